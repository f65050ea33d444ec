//! An ingested document.

use cairn_chassis::clock::Timestamp;
use cairn_proto::ids::DocumentId;

use super::{FileType, INGESTED_FOLDER, IngestStatus};

/// A document that a program sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ingested {
    pub(crate) id: DocumentId,
    pub(crate) idempotency_key: String,
    /// `blake3:` and 64 hexadecimal digits, of the bytes that were sent: the same again is a replay.
    pub(crate) sent_hash: String,
    pub(crate) title: String,
    pub(crate) url: Option<String>,
    pub(crate) external_id: Option<String>,
    /// A JSON object.
    pub(crate) metadata: Option<String>,
    pub(crate) occurred_at: Option<Timestamp>,
    pub(crate) status: IngestStatus,
    /// Absent before its text was taken out of it, and when there was none.
    pub(crate) text: Option<Retained>,
    pub(crate) indexed: Option<Indexed>,
    /// Why it failed, for a person.
    pub(crate) error: Option<String>,
    pub(crate) created_at: Timestamp,
    pub(crate) updated_at: Timestamp,
}

/// The text of a document, as it is kept and cited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Retained {
    /// In the tree, unique in the workspace.
    pub(crate) name: String,
    pub(crate) format: FileType,
    pub(crate) hash: String,
    pub(crate) size_bytes: u64,
}

/// How it stands in the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Indexed {
    pub(crate) chunks: u32,
    pub(crate) at: Timestamp,
}

/// What became of a document in the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) id: DocumentId,
    /// Of the text that was indexed.
    pub(crate) content_hash: String,
    pub(crate) chunks: u32,
    /// Why it is not in the index, for a person.
    pub(crate) failure: Option<String>,
}

impl Ingested {
    /// When what it says was so: what its sender said, or when it came.
    pub(crate) fn as_of(&self) -> Timestamp {
        self.occurred_at.unwrap_or(self.created_at)
    }
}

impl Retained {
    /// Where it stands in the tree.
    pub(crate) fn path(&self) -> String {
        format!("{INGESTED_FOLDER}/{}", self.name)
    }
}
