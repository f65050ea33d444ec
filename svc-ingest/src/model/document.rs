//! A document as retrieval sees it, ingested or of a source.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::feed::Kind;
use cairn_proto::ids::{DocumentId, SourceId};

use super::{FileType, Ingested, SourceView};

/// An unvalidated reference to a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DocumentRef {
    /// Absent if the caller sent an unknown kind.
    pub(crate) kind: Option<Kind>,
    pub(crate) id: String,
}

/// A parsed reference.
pub(crate) type Key = (Kind, DocumentId);

impl DocumentRef {
    pub(crate) fn key(&self) -> Option<Key> {
        Some((self.kind?, self.id.parse().ok()?))
    }
}

/// The source of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) id: SourceId,
    pub(crate) name: String,
    pub(crate) provider: String,
}

/// A document: with a text, or catalog-only without one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Document {
    pub(crate) kind: Kind,
    pub(crate) id: DocumentId,
    pub(crate) title: String,
    pub(crate) path: String,
    pub(crate) format: FileType,
    /// Empty for catalog-only documents.
    pub(crate) content_hash: String,
    pub(crate) size_bytes: u64,
    pub(crate) updated_at: Timestamp,
    pub(crate) url: Option<String>,
    pub(crate) external_id: Option<String>,
    pub(crate) mime_type: String,
    pub(crate) source: Option<Origin>,
}

impl From<SourceView> for Document {
    fn from(view: SourceView) -> Self {
        Self {
            kind: Kind::SourceDocument,
            id: view.id,
            title: view.title,
            path: view.path,
            format: view.format,
            content_hash: view.content_hash.unwrap_or_default(),
            size_bytes: view.size_bytes,
            updated_at: view.updated_at,
            url: view.url,
            external_id: Some(view.external_id),
            mime_type: view.mime_type,
            source: Some(Origin { id: view.source, name: view.source_name, provider: view.provider }),
        }
    }
}

impl Document {
    /// An ingested document; `None` while it has no text.
    pub(crate) fn of(ingested: Ingested) -> Option<Self> {
        let updated_at = ingested.as_of();
        let text = ingested.text?;
        Some(Self {
            kind: Kind::Ingested,
            id: ingested.id,
            title: ingested.title,
            path: text.path(),
            format: text.format,
            content_hash: text.hash,
            size_bytes: text.size_bytes,
            updated_at,
            url: ingested.url,
            external_id: ingested.external_id,
            mime_type: text.format.media_type().to_owned(),
            source: None,
        })
    }

    /// Whether only its metadata is stored.
    pub(crate) const fn is_catalog_only(&self) -> bool {
        self.content_hash.is_empty()
    }

    pub(crate) const fn key(&self) -> Key {
        (self.kind, self.id)
    }
}
