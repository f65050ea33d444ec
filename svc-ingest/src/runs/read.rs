//! What a provider answers about one document, as text.

use std::time::Duration;

use cairn_extract::{Extractor, Failure, FailureKind, Format, Raw};
use cairn_proto::domain::FileType;
use cairn_providers::{Body as Sent, Entry, Fault, Fetched, ProviderKind, Version};

use super::document::{self, Found};
use super::fault;
use super::path;
use crate::model::{Body, Known, Metadata, RetainedText};

/// What was found out about a document.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) found: Found,
    /// The text, where one is to be kept.
    pub(super) body: Option<Body>,
    /// Whether it is worth another try.
    pub(super) is_passing: bool,
    /// Why the whole run stops after this one.
    pub(super) halt: Option<String>,
}

impl Read {
    /// What needs no text.
    pub(super) const fn of(found: Found) -> Self {
        Self { found, body: None, is_passing: false, halt: None }
    }

    fn passing(entry: &Entry, metadata: Metadata, message: String) -> Self {
        let version = version_of(entry);
        let found = Found::Unreadable { version, metadata, message, is_lasting: false };
        Self { is_passing: true, ..Self::of(found) }
    }

    fn lasting(entry: &Entry, metadata: Metadata, message: String) -> Self {
        let version = version_of(entry);
        Self::of(Found::Unreadable { version, metadata, message, is_lasting: true })
    }
}

/// The version that a listing gave, if it knew one.
fn version_of(entry: &Entry) -> Option<Version> {
    Some(entry.version.clone()).filter(Version::is_known)
}

/// Makes text of answers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader<'a> {
    pub(super) extractor: &'a Extractor,
    pub(super) provider: ProviderKind,
    /// Whether texts are kept.
    pub(super) keeps_text: bool,
}

impl Reader<'_> {
    /// What an answer says of a document.
    ///
    /// # Errors
    /// A fault that is about the whole source.
    pub(super) async fn read(
        &self,
        answer: Result<Fetched, Fault>,
        entry: &Entry,
        known: Option<&Known>,
        gone_after: Option<Duration>,
    ) -> Result<Read, Fault> {
        let metadata = document::metadata(entry, known);
        Ok(match answer {
            Ok(Fetched::Body(body)) => self.text(body, entry, metadata).await,
            Ok(Fetched::Same) if known.is_some() => {
                Read::of(Found::Same { version: version_of(entry), metadata: Some(metadata) })
            }
            Ok(Fetched::Same) => Read::passing(entry, metadata, "the provider sends no content".to_owned()),
            Ok(Fetched::Gone) | Err(Fault::Gone) => Read::of(Found::Gone { after: gone_after }),
            Ok(Fetched::TooLarge(bytes)) | Err(Fault::TooLarge(bytes)) => {
                let message = format!("it is larger than what is read: {bytes} bytes or more");
                Read::lasting(entry, metadata, message)
            }
            Ok(Fetched::Unsupported(_)) => {
                Read::lasting(entry, metadata, "files of its kind have no text that could be read".to_owned())
            }
            Ok(Fetched::Unreadable(why)) => Read::lasting(entry, metadata, why.into_owned()),
            Err(Fault::Forbidden) => Read::of(Found::Forbidden { metadata }),
            Err(other) if fault::is_of_source(&other) => return Err(other),
            Err(other) => Read::passing(entry, metadata, other.to_string()),
        })
    }

    async fn text(&self, sent: Sent, entry: &Entry, mut metadata: Metadata) -> Read {
        describe(&mut metadata, &sent, entry);
        let version = sent.version.clone();
        // A page says itself what it is called, where neither the listing nor the provider knows.
        let is_nameless = self.provider == ProviderKind::Web && entry.is_nameless() && sent.title.is_none();
        if !self.keeps_text {
            return Read::of(Found::Described { version, metadata });
        }
        let (body, title) = match self.extract(sent, entry, &metadata).await {
            Ok(text) => text,
            Err(failure) if failure.may_pass() => return Read::passing(entry, metadata, failure.message),
            Err(failure) => return Read::lasting(entry, metadata, failure.message),
        };
        if let Some(title) = title.filter(|_| is_nameless) {
            metadata.title = title;
            if entry.path.is_none() {
                metadata.path = path::below(None, &metadata.title);
            }
        }
        let retained =
            RetainedText { content_hash: body.0.hash.clone(), format: body.1, size_bytes: body.0.size_bytes };
        Read { body: Some(body.0), ..Read::of(Found::Text { version, metadata, retained }) }
    }

    /// The text of a body, with the title that it gives itself.
    async fn extract(
        &self,
        sent: Sent,
        entry: &Entry,
        metadata: &Metadata,
    ) -> Result<((Body, FileType), Option<String>), Failure> {
        let text = self.extractor.extract(raw(sent, entry, metadata)).await?;
        let unavailable = |_| {
            let message = "The text cannot be kept now.";
            Failure::new(FailureKind::Unavailable, message)
        };
        let body = Body::of(text.content).await.map_err(unavailable)?;
        Ok(((body, format_of(text.format)), text.title))
    }
}

/// A body as the extractor takes it. A path that is made of a title says nothing about the kind.
pub(super) fn raw(sent: Sent, entry: &Entry, metadata: &Metadata) -> Raw {
    Raw {
        bytes: sent.bytes,
        name: entry.path.clone(),
        mime: Some(sent.mime).filter(|mime| !mime.is_empty()),
        base_url: sent.url.or_else(|| metadata.url.clone()),
        kind: None,
    }
}

/// What a body knows better than a listing.
pub(super) fn describe(metadata: &mut Metadata, sent: &Sent, entry: &Entry) {
    let essence = sent.mime.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if !essence.is_empty() && essence.len() <= 200 {
        metadata.mime_type = essence;
    }
    if let Some(url) = &sent.url {
        metadata.url = Some(url.clone());
    }
    if let Some(title) = sent.title.as_ref().filter(|title| !title.trim().is_empty()) {
        // Bounded and on one line, as those of entries are.
        metadata.title = Entry::new(entry.id.clone(), entry.version.clone(), title).title;
        if entry.path.is_none() {
            metadata.path = path::below(None, &metadata.title);
        }
    }
}

pub(super) const fn format_of(format: Format) -> FileType {
    match format {
        Format::Markdown => FileType::Markdown,
        Format::Text => FileType::Text,
        Format::Json => FileType::Json,
        Format::Yaml => FileType::Yaml,
    }
}

/// Why there is no text of a document that a provider was asked for.
#[derive(Debug)]
pub(crate) enum Unread {
    /// The provider does not have it.
    Gone,
    /// It did not answer.
    Fault(Fault),
    /// What it answered has no text.
    Failure(Failure),
}

/// The text of a document that a provider was asked for just now, and what is known of it.
pub(crate) async fn read_live(
    extractor: &Extractor,
    answer: Result<Fetched, Fault>,
    entry: &Entry,
) -> Result<(String, Metadata), Unread> {
    let sent = match answer.map_err(Unread::Fault)? {
        Fetched::Body(sent) => sent,
        Fetched::Gone => return Err(Unread::Gone),
        Fetched::Same => return Err(Unread::Fault(Fault::broken("the provider sends no content"))),
        Fetched::TooLarge(bytes) => {
            let message = format!("It is larger than what is read: {bytes} bytes or more.");
            return Err(Unread::Failure(Failure::new(FailureKind::TooLarge, message)));
        }
        Fetched::Unsupported(_) => {
            let message = "Files of its kind have no text that could be read.";
            return Err(Unread::Failure(Failure::new(FailureKind::Unsupported, message)));
        }
        Fetched::Unreadable(why) => {
            return Err(Unread::Failure(Failure::new(FailureKind::Unsupported, why)));
        }
    };
    let mut metadata = document::metadata(entry, None);
    describe(&mut metadata, &sent, entry);
    let text = extractor.extract(raw(sent, entry, &metadata)).await.map_err(Unread::Failure)?;
    Ok((text.content, metadata))
}
