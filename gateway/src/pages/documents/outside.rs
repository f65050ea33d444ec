//! An ingested or source document, in the common form of its page.

use cairn_chassis::status::{Problem, Reason};
use cairn_proto::domain::FileType;
use cairn_proto::ids::{DocumentId, SourceId};
use maud::{Markup, html};

use super::{IndexingStatus, language, web};
use crate::answers::{IngestedDocument, RetainedDocument};
use crate::operations::person::Person;
use crate::operations::{Context, ingest, sources};
use crate::pages::parts as part;
use crate::pages::text::Language;
use crate::pages::words;

/// A document as its page shows it.
#[derive(Debug)]
pub(super) struct Document {
    pub(super) title: String,
    pub(super) status: IndexingStatus,
    /// Why it failed.
    pub(super) error: Option<String>,
    /// Its external URL.
    pub(super) url: Option<String>,
    /// Its path in scripts.
    pub(super) path: Option<String>,
    pub(super) text: Option<Text>,
    /// Its source; absent for an ingested document.
    pub(super) source: Option<Origin>,
    /// Further facts as a definition list.
    pub(super) facts: Markup,
}

/// A retained text.
#[derive(Debug)]
pub(super) struct Text {
    pub(super) content: String,
    pub(super) content_hash: String,
    pub(super) file_type: FileType,
}

impl Text {
    pub(super) const fn language(&self) -> Language {
        language(self.file_type)
    }
}

/// The source of a document.
#[derive(Debug)]
pub(super) struct Origin {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) provider: String,
    /// The provider's id of the document.
    pub(super) external_id: String,
}

impl Document {
    /// An ingested document.
    pub(super) async fn ingested(context: &Context, id: DocumentId) -> Result<Self, Problem> {
        let document = ingest::get(context, id).await?;
        let text = match &document.content_hash {
            Some(_) => text_of(ingest::content(context, id).await)?,
            None => None,
        };
        let facts = of_ingested(&document);
        Ok(Self {
            status: IndexingStatus::of(document.status),
            path: document.citation.map(|citation| citation.path),
            title: document.title,
            error: document.error,
            url: document.url,
            text,
            source: None,
            facts,
        })
    }

    /// A document of a source, as retained; the provider is not called.
    pub(super) async fn of_source(person: &Person, id: DocumentId) -> Result<Self, Problem> {
        let found = sources::document(person, id).await?;
        let facts = of_source(&found);
        let text = found.content.zip(found.content_hash);
        let document = found.document;
        Ok(Self {
            title: document.title,
            status: IndexingStatus::named(&document.index_status).unwrap_or(IndexingStatus::Pending),
            error: document.error,
            url: found.url,
            path: found.path,
            text: text.map(|(content, content_hash)| Text {
                content,
                content_hash,
                file_type: found.file_type,
            }),
            source: Some(Origin {
                id: document.source_id,
                name: found.source_name,
                provider: found.provider,
                external_id: document.external_id,
            }),
            facts,
        })
    }
}

impl Origin {
    pub(super) fn id(&self) -> Result<SourceId, Problem> {
        self.id.parse().map_err(|_| Problem::internal("a source without an id"))
    }
}

fn text_of(read: Result<ingest::Content, Problem>) -> Result<Option<Text>, Problem> {
    let content = match read {
        Ok(content) => content,
        // Deleted between the two reads: the next request reports it.
        Err(problem) if problem.reason == Reason::NotFound => return Ok(None),
        Err(problem) => return Err(problem),
    };
    let all = [FileType::Markdown, FileType::Json, FileType::Yaml];
    let file_type = all.into_iter().find(|one| one.media_type() == content.mime_type);
    Ok(Some(Text {
        content: String::from_utf8_lossy(&content.text).into_owned(),
        content_hash: content.content_hash,
        file_type: file_type.unwrap_or(FileType::Text),
    }))
}

fn of_ingested(document: &IngestedDocument) -> Markup {
    html! {
        dt { "Comes from" } dd { "a program, which sent it under the key " code { bdi { (document.idempotency_key) } } }
        @if let Some(id) = &document.external_id { dt { "Id there" } dd { bdi { (id) } } }
        @if let Some(at) = &document.occurred_at { dt { "What it says was so" } dd { (part::time(at)) } }
        dt { "Came" } dd { (part::time(&document.created_at)) }
        @if document.size_bytes > 0 { dt { "Size" } dd { (words::bytes(document.size_bytes)) } }
        @if let Some(metadata) = &document.metadata {
            @for (name, value) in metadata {
                dt { bdi { (name) } }
                dd { bdi { @match value { serde_json::Value::String(text) => (text), other => (other.to_string()) } } }
            }
        }
    }
}

fn of_source(found: &RetainedDocument) -> Markup {
    let document = &found.document;
    html! {
        dt { "Id there" } dd { bdi { (document.external_id) } }
        @if let Some(url) = found.url.as_deref().filter(|url| web(url).is_none()) { dt { "Address there" } dd { bdi { (url) } } }
        dt { "Changed there" } dd { (part::time_or(found.updated_at.as_deref(), "not known")) }
        dt { "Last seen there" } dd { (part::time_or(document.last_synced_at.as_deref(), "never")) }
        @if let Some(content) = &found.content { dt { "Size" } dd { (words::bytes(content.len() as u64)) } }
    }
}
