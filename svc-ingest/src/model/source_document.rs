//! Documents of sources.

use cairn_chassis::clock::Timestamp;
use cairn_proto::domain::FileType;
use cairn_proto::ids::{DocumentId, SourceId, SourceRunId};
use cairn_providers::{ExternalId, Version};

/// What is stored of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Retention {
    /// Its text.
    Text,
    /// Only its metadata, because of the mode of its source.
    Metadata,
    /// Nothing: it cannot be read.
    Nothing,
    /// Access to it was lost: it is hidden now and removed later.
    Hidden,
}

impl Retention {
    /// Whether searches, scripts and memories can see it.
    pub(crate) const fn is_visible(self) -> bool {
        matches!(self, Self::Text | Self::Metadata)
    }
}

/// The metadata that a provider returned, as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Metadata {
    pub(crate) title: String,
    /// Below the source's folder.
    pub(crate) path: String,
    pub(crate) mime_type: String,
    pub(crate) url: Option<String>,
    /// Absent if the provider reports no time.
    pub(crate) updated_at: Option<Timestamp>,
}

impl Metadata {
    /// Whether searches and scripts would show the same.
    pub(crate) fn is_same_but_for_time(&self, other: &Self) -> bool {
        let Self { title, path, mime_type, url, updated_at: _ } = self;
        *title == other.title && *path == other.path && *mime_type == other.mime_type && *url == other.url
    }
}

/// Why a document was not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    /// For people; never text of the provider.
    pub(crate) message: String,
    pub(crate) tries: u32,
    /// Absent: no retry before its version changes.
    pub(crate) next_try: Option<Timestamp>,
}

/// The stored text of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RetainedText {
    /// `blake3:` and 64 hexadecimal digits.
    pub(crate) content_hash: String,
    pub(crate) format: FileType,
    pub(crate) size_bytes: u64,
}

/// A document as runs store it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredDocument {
    pub(crate) id: DocumentId,
    pub(crate) external_id: ExternalId,
    pub(crate) version: Option<Version>,
    pub(crate) metadata: Metadata,
    pub(crate) kept: Retention,
    /// Also of a hidden document, until it is removed.
    pub(crate) retained: Option<RetainedText>,
    pub(crate) fault: Option<Fault>,
    /// The listing that saw it last.
    pub(crate) seen: Option<SourceRunId>,
    /// Since when listings lack it, or the provider reports it as gone.
    pub(crate) missing_since: Option<Timestamp>,
    /// Consecutive complete listings that lacked it.
    pub(crate) misses: u32,
    pub(crate) hidden_at: Option<Timestamp>,
}

/// A document as its provider just returned it: only in memory, and never logged.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct LiveText {
    /// Its path is below the folder of its source.
    pub(crate) metadata: Metadata,
    pub(crate) format: FileType,
    pub(crate) content: String,
    /// `blake3:` and 64 hexadecimal digits.
    pub(crate) content_hash: String,
}

cairn_chassis::debug_fields!(LiveText { format, content_hash });

/// A document as lists show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListedDocument {
    pub(crate) id: DocumentId,
    pub(crate) source: SourceId,
    pub(crate) external_id: String,
    pub(crate) title: String,
    pub(crate) mime_type: String,
    pub(crate) url: Option<String>,
    pub(crate) status: DocumentStatus,
    pub(crate) error: Option<String>,
    pub(crate) synced_at: Timestamp,
}

/// The status of a document (contract, `indexStatus`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum DocumentStatus {
    /// Only its metadata is stored, and the current run has yet to read its text: its source was in catalog mode before.
    Pending,
    /// Its text is stored, but not searchable yet.
    Indexing,
    Indexed,
    Catalog,
    Failed,
}

impl DocumentStatus {
    pub(crate) const ALL: [Self; 5] =
        [Self::Pending, Self::Indexing, Self::Indexed, Self::Catalog, Self::Failed];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Indexing => "indexing",
            Self::Indexed => "indexed",
            Self::Catalog => "catalog",
            Self::Failed => "failed",
        }
    }
}

/// A document as searches, scripts and memories see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SourceView {
    pub(crate) id: DocumentId,
    pub(crate) source: SourceId,
    pub(crate) source_name: String,
    pub(crate) provider: String,
    pub(crate) external_id: String,
    pub(crate) title: String,
    /// The full path, starting with `/sources`.
    pub(crate) path: String,
    pub(crate) mime_type: String,
    /// The document's URL at the provider.
    pub(crate) url: Option<String>,
    pub(crate) format: FileType,
    pub(crate) size_bytes: u64,
    /// Absent for catalog-only documents.
    pub(crate) content_hash: Option<String>,
    pub(crate) updated_at: Timestamp,
}
