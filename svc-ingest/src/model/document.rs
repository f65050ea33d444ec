//! A document as retrieval sees it, whichever way it came.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::feed::Kind;
use cairn_proto::ids::DocumentId;

use super::{FileType, Ingested};

/// Names a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DocumentRef {
    /// Absent when the caller named none that there is.
    pub(crate) kind: Option<Kind>,
    pub(crate) id: String,
}

/// A reference in the one spelling that ids have.
pub(crate) type Key = (Kind, DocumentId);

impl DocumentRef {
    pub(crate) fn key(&self) -> Option<Key> {
        Some((self.kind?, self.id.parse().ok()?))
    }
}

/// A document with a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Document {
    pub(crate) kind: Kind,
    pub(crate) id: DocumentId,
    pub(crate) title: String,
    pub(crate) path: String,
    pub(crate) format: FileType,
    pub(crate) content_hash: String,
    pub(crate) size_bytes: u64,
    pub(crate) updated_at: Timestamp,
    pub(crate) url: Option<String>,
    pub(crate) external_id: Option<String>,
}

impl Document {
    /// An ingested document, once it has a text.
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
        })
    }

    pub(crate) const fn key(&self) -> Key {
        (self.kind, self.id)
    }
}
