//! How a chunk is cited.

use cairn_browse::citation;
use cairn_index::StoredChunk;
use cairn_proto::document::v1::ConfirmedDocument;
use cairn_proto::retrieval::v1::{Citation, Location};

/// Of one chunk.
pub(crate) fn of_chunk(chunk: &StoredChunk, document: &ConfirmedDocument) -> Citation {
    let location = Location {
        start_line: chunk.start_line,
        end_line: chunk.end_line,
        heading_path: chunk.heading_path.clone(),
    };
    citation::of_lines(location, chunk.content_hash.clone(), document)
}
