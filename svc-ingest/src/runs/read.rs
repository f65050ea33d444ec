//! Turns a provider's answer about one document into text.

use std::time::Duration;

use cairn_extract::{Extractor, Failure, FailureKind, Format, Raw, Text};
use cairn_proto::domain::FileType;
use cairn_providers::{Body as Sent, Entry, Fault, Fetched, ProviderKind, Version};

use super::document::{self, Finding};
use super::fault;
use super::path;
use crate::extracting::{self, Occasion};
use crate::model::{Body, LiveText, Metadata, RetainedText, StoredDocument};

/// What was found out about a document.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) found: Finding,
    /// The text, if it is to be stored.
    pub(super) body: Option<Body>,
    /// Whether a retry may succeed.
    pub(super) is_passing: bool,
    /// Why the whole run stops after this document.
    pub(super) halt: Option<String>,
}

impl Read {
    /// A finding without a text.
    pub(super) const fn of(found: Finding) -> Self {
        Self { found, body: None, is_passing: false, halt: None }
    }

    fn passing(entry: &Entry, metadata: Metadata, message: String) -> Self {
        let version = version_of(entry);
        let found = Finding::Unreadable { version, metadata, message, is_lasting: false };
        Self { is_passing: true, ..Self::of(found) }
    }

    fn lasting(entry: &Entry, metadata: Metadata, message: String) -> Self {
        let version = version_of(entry);
        Self::of(Finding::Unreadable { version, metadata, message, is_lasting: true })
    }
}

/// The version from the listing, if it has one.
fn version_of(entry: &Entry) -> Option<Version> {
    Some(entry.version.clone()).filter(Version::is_known)
}

/// Extracts text from answers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader<'a> {
    pub(super) extractor: &'a Extractor,
    pub(super) provider: ProviderKind,
    /// Whether texts are stored.
    pub(super) keeps_text: bool,
}

impl Reader<'_> {
    /// The finding of an answer about a document.
    ///
    /// # Errors
    /// A fault that is about the whole source.
    pub(super) async fn read(
        &self,
        answer: Result<Fetched, Fault>,
        entry: &Entry,
        known: Option<&StoredDocument>,
        gone_after: Option<Duration>,
    ) -> Result<Read, Fault> {
        let metadata = document::metadata(entry, known);
        Ok(match answer {
            Ok(Fetched::Body(body)) => self.text(body, entry, metadata).await,
            Ok(Fetched::Same) if known.is_some() => {
                Read::of(Finding::Same { version: version_of(entry), metadata: Some(metadata) })
            }
            Ok(Fetched::Same) => Read::passing(entry, metadata, "the provider sends no content".to_owned()),
            // Only an explicit answer: `Fault::Gone` may be about the URL of the request.
            Ok(Fetched::Gone) => Read::of(Finding::Gone { after: gone_after }),
            Ok(Fetched::TooLarge(bytes)) | Err(Fault::TooLarge(bytes)) => {
                let message = format!("it is larger than what is read: {bytes} bytes or more");
                Read::lasting(entry, metadata, message)
            }
            Ok(Fetched::Unsupported(_)) => {
                Read::lasting(entry, metadata, "files of its kind have no text that could be read".to_owned())
            }
            Ok(Fetched::Unreadable(why)) => Read::lasting(entry, metadata, why.into_owned()),
            Err(Fault::Forbidden) => Read::of(Finding::Forbidden { metadata }),
            Err(other) if fault::is_of_source(&other) => return Err(other),
            Err(other) => Read::passing(entry, metadata, other.to_string()),
        })
    }

    async fn text(&self, sent: Sent, entry: &Entry, mut metadata: Metadata) -> Read {
        describe(&mut metadata, &sent, entry);
        let version = sent.version.clone();
        if !self.keeps_text {
            return Read::of(Finding::Described { version, metadata });
        }
        let extracted =
            extract(self.extractor, Occasion::Run, self.provider, sent, entry, &mut metadata).await;
        let (body, format) = match kept(extracted).await {
            Ok(body) => body,
            Err(failure) if failure.may_pass() => return Read::passing(entry, metadata, failure.message),
            Err(failure) => return Read::lasting(entry, metadata, failure.message),
        };
        let retained = RetainedText { content_hash: body.hash.clone(), format, size_bytes: body.size_bytes };
        Read { body: Some(body), ..Read::of(Finding::Text { version, metadata, retained }) }
    }
}

/// Extracts the text of a body, for runs and live questions alike; fills in the metadata that the body provides.
async fn extract(
    extractor: &Extractor,
    occasion: Occasion,
    provider: ProviderKind,
    sent: Sent,
    entry: &Entry,
    metadata: &mut Metadata,
) -> Result<Text, Failure> {
    // Web pages: the title of the page, if neither the listing nor the provider has one.
    let is_nameless = provider == ProviderKind::Web && entry.is_nameless() && sent.title.is_none();
    let mut text = extracting::extract(extractor, raw(sent, entry, metadata), occasion).await?;
    if let Some(title) = text.title.take().filter(|_| is_nameless) {
        metadata.title = title;
        if entry.path.is_none() {
            metadata.path = path::below(None, &metadata.title);
        }
    }
    Ok(text)
}

async fn kept(extracted: Result<Text, Failure>) -> Result<(Body, FileType), Failure> {
    let text = extracted?;
    let unavailable = |_| Failure::new(FailureKind::Unavailable, "The text cannot be kept now.");
    let body = Body::of(text.content).await.map_err(unavailable)?;
    Ok((body, format_of(text.format)))
}

/// The extractor's input. A path that is derived from the title is left out, as it says nothing about the file type.
fn raw(sent: Sent, entry: &Entry, metadata: &Metadata) -> Raw {
    Raw {
        bytes: sent.bytes,
        name: entry.path.clone(),
        mime: Some(sent.mime).filter(|mime| !mime.is_empty()),
        base_url: sent.url.or_else(|| metadata.url.clone()),
        kind: None,
        of_provider: true,
    }
}

/// Updates the metadata with what the body's response says.
fn describe(metadata: &mut Metadata, sent: &Sent, entry: &Entry) {
    let essence = sent.mime.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if !essence.is_empty() && essence.len() <= 200 {
        metadata.mime_type = essence;
    }
    if let Some(url) = &sent.url {
        metadata.url = Some(url.clone());
    }
    if let Some(title) = sent.title.as_ref().filter(|title| !title.trim().is_empty()) {
        // Normalized like the titles of entries.
        metadata.title = document::seen(&Entry::new(entry.id.clone(), entry.version.clone(), title).title);
        if entry.path.is_none() {
            metadata.path = path::below(None, &metadata.title);
        }
    }
}

const fn format_of(format: Format) -> FileType {
    match format {
        Format::Markdown => FileType::Markdown,
        Format::Text => FileType::Text,
        Format::Json => FileType::Json,
        Format::Yaml => FileType::Yaml,
    }
}

/// Why a live read has no text.
#[derive(Debug)]
pub(crate) enum Unread {
    /// The provider does not have it, or denies access.
    Gone,
    /// The request failed.
    Fault(Fault),
    /// The text could not be extracted.
    Failure(Failure),
}

/// Extracts the text of at most `most_bytes` from the answer to a live read.
pub(crate) async fn read_live(
    extractor: &Extractor,
    provider: ProviderKind,
    answer: Result<Fetched, Fault>,
    entry: &Entry,
    most_bytes: usize,
) -> Result<LiveText, Unread> {
    let sent = match answer {
        Ok(Fetched::Body(sent)) => sent,
        Ok(Fetched::Gone) | Err(Fault::Gone | Fault::Forbidden) => return Err(Unread::Gone),
        Ok(Fetched::Same) => return Err(Unread::Fault(Fault::broken("the provider sends no content"))),
        Ok(Fetched::TooLarge(_)) | Err(Fault::TooLarge(_)) => return Err(too_large(most_bytes)),
        Ok(Fetched::Unsupported(_)) => {
            let message = "Files of its kind have no text that could be read.";
            return Err(Unread::Failure(Failure::new(FailureKind::Unsupported, message)));
        }
        Ok(Fetched::Unreadable(why)) => {
            return Err(Unread::Failure(Failure::new(FailureKind::Unsupported, why)));
        }
        Err(fault) => return Err(Unread::Fault(fault)),
    };
    if sent.bytes.len() > most_bytes {
        return Err(too_large(most_bytes));
    }
    let mut metadata = document::metadata(entry, None);
    describe(&mut metadata, &sent, entry);
    let text = extract(extractor, Occasion::Question, provider, sent, entry, &mut metadata).await;
    let text = text.map_err(Unread::Failure)?;
    // Compressed files expand.
    if text.content.len() > most_bytes {
        return Err(too_large(most_bytes));
    }
    let content_hash = cairn_chassis::bodies::content_hash(&text.content);
    Ok(LiveText { metadata, format: format_of(text.format), content: text.content, content_hash })
}

fn too_large(most_bytes: usize) -> Unread {
    let message = format!("It is larger than the {most_bytes} bytes that are read of one document.");
    Unread::Failure(Failure::new(FailureKind::TooLarge, message))
}
