//! A document whose text is still to be taken out of it.

use bytes::Bytes;
use cairn_proto::ids::{DocumentId, WorkspaceId};

/// Names a document of a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) workspace: WorkspaceId,
    pub(crate) document: DocumentId,
}

/// What is known of what was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Upload {
    pub(crate) file_name: Option<String>,
    /// What its sender takes it for.
    pub(crate) mime_type: Option<String>,
    /// Whether it is HTML by its sender's word, and not to be guessed.
    pub(crate) is_html: bool,
    pub(crate) size_bytes: u64,
}

/// Work that this process holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Extraction {
    pub(crate) place: Place,
    pub(crate) upload: Upload,
    /// With this one.
    pub(crate) attempts: u32,
}

/// Bytes that were sent, as they are stored: pieces of a length that a row may well have.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pieces(pub(crate) Vec<Bytes>);

impl Pieces {
    /// The most bytes of a piece.
    pub(crate) const MOST_BYTES: usize = 1024 * 1024;

    /// Of what is in memory.
    pub(crate) fn of(mut bytes: Bytes) -> Self {
        let mut pieces = Vec::with_capacity(bytes.len() / Self::MOST_BYTES + 1);
        while !bytes.is_empty() {
            pieces.push(bytes.split_to(bytes.len().min(Self::MOST_BYTES)));
        }
        Self(pieces)
    }
}
