//! Citations of chunks.

use cairn_browse::citation;
use cairn_index::StoredChunk;
use cairn_proto::document::v1::ConfirmedDocument;
use cairn_proto::retrieval::v1::{Citation, Location, SyncMode};

use super::evidence::Evidence;

/// Of one chunk.
pub(crate) fn of_chunk(chunk: &StoredChunk, document: &ConfirmedDocument) -> Citation {
    citation::of_lines(location(chunk), chunk.content_hash.clone(), document)
}

/// Of lines around a piece of evidence.
pub(super) fn of_evidence(location: Location, evidence: &Evidence) -> Citation {
    let cited = citation::of_lines(location, evidence.chunk.content_hash.clone(), &evidence.document);
    let sync_mode = if evidence.is_live { SyncMode::Live } else { SyncMode::Indexed };
    Citation { sync_mode: sync_mode.into(), ..cited }
}

/// Where a chunk stands in its document.
pub(super) fn location(chunk: &StoredChunk) -> Location {
    Location {
        start_line: chunk.start_line,
        end_line: chunk.end_line,
        heading_path: chunk.heading_path.clone(),
    }
}
