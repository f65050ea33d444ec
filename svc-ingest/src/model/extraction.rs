//! Documents that await extraction.

use bytes::Bytes;
use cairn_proto::ids::{DocumentId, WorkspaceId};

/// The key of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) workspace: WorkspaceId,
    pub(crate) document: DocumentId,
}

/// The metadata of an upload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Upload {
    pub(crate) file_name: Option<String>,
    /// The sender's claim.
    pub(crate) mime_type: Option<String>,
    /// Whether the sender declared it as HTML, so that its type is not detected.
    pub(crate) is_html: bool,
    pub(crate) size_bytes: u64,
}

/// An extraction that this process has claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Extraction {
    pub(crate) place: Place,
    pub(crate) upload: Upload,
    /// Including the current one.
    pub(crate) attempts: u32,
}

/// The bytes of an upload, split into pieces that fit into a row.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pieces(pub(crate) Vec<Bytes>);

impl Pieces {
    /// Bytes of a piece.
    pub(crate) const MAX_BYTES: usize = 1024 * 1024;

    /// Splits bytes that are in memory.
    pub(crate) fn of(mut bytes: Bytes) -> Self {
        let mut pieces = Vec::with_capacity(bytes.len() / Self::MAX_BYTES + 1);
        while !bytes.is_empty() {
            pieces.push(bytes.split_to(bytes.len().min(Self::MAX_BYTES)));
        }
        Self(pieces)
    }
}
