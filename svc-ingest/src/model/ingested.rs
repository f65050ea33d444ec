//! An ingested document.

use cairn_chassis::clock::Timestamp;
use cairn_proto::ids::DocumentId;

use super::{FileType, INGESTED_FOLDER, IngestStatus};

/// A document that a program sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ingested {
    pub(crate) id: DocumentId,
    pub(crate) idempotency_key: String,
    /// `blake3:` and 64 hexadecimal digits, of the bytes as received: detects replays.
    pub(crate) sent_hash: String,
    pub(crate) title: String,
    pub(crate) url: Option<String>,
    pub(crate) external_id: Option<String>,
    /// A JSON object.
    pub(crate) metadata: Option<String>,
    pub(crate) occurred_at: Option<Timestamp>,
    pub(crate) status: IngestStatus,
    /// Absent before extraction, and if it has no text.
    pub(crate) text: Option<Retained>,
    pub(crate) indexed: Option<Indexed>,
    /// Why it failed, for people.
    pub(crate) error: Option<String>,
    pub(crate) created_at: Timestamp,
    pub(crate) updated_at: Timestamp,
}

/// The stored text of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Retained {
    /// In the tree; unique in the workspace.
    pub(crate) name: String,
    pub(crate) format: FileType,
    pub(crate) hash: String,
    pub(crate) size_bytes: u64,
}

/// Its state in the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Indexed {
    pub(crate) chunks: u32,
    pub(crate) at: Timestamp,
}

/// The indexing result of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) id: DocumentId,
    /// The hash of the indexed text.
    pub(crate) content_hash: String,
    pub(crate) chunks: u32,
    /// Why it could not be indexed, for people.
    pub(crate) failure: Option<String>,
}

impl Ingested {
    /// The time that the content is from: as the sender says, else the time of ingestion.
    pub(crate) fn as_of(&self) -> Timestamp {
        self.occurred_at.unwrap_or(self.created_at)
    }
}

impl Retained {
    /// The path in the tree.
    pub(crate) fn path(&self) -> String {
        format!("{INGESTED_FOLDER}/{}", self.name)
    }
}
