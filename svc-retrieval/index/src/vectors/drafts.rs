//! The vectors of drafts, which are not indexed.

use std::collections::HashMap;

use uuid::Uuid;

use super::{Composed, RowFilter, UnitVector};
use crate::{ChunkId, Hit, IndexedDocument, PieceCounts};

/// The vectors of the chunks of some documents, as an index would store them.
#[derive(Default)]
pub(crate) struct DraftVectors {
    /// A chunk whose vector is zero has none.
    rows: Vec<(ChunkId, Vec<f32>, Composed)>,
    containers: HashMap<Uuid, Option<Uuid>>,
}

impl DraftVectors {
    pub(crate) fn of(documents: &[IndexedDocument]) -> Self {
        let mut rows = Vec::new();
        for document in documents {
            for (ordinal, chunk) in (0..).zip(&document.chunks) {
                let id = ChunkId { document: document.document, ordinal };
                rows.extend(Composed::of(chunk).map(|composed| (id, composed.vector.to_f32(), composed)));
            }
        }
        let containers = documents.iter().map(|document| (document.document, document.container)).collect();
        Self { rows, containers }
    }

    /// Whether the document is one of them.
    pub(crate) fn has(&self, document: Uuid) -> bool {
        self.containers.contains_key(&document)
    }

    /// The vector and pieces of a chunk.
    pub(crate) fn composed(&self, chunk: ChunkId) -> Option<Composed> {
        self.rows.iter().find(|(id, _, _)| *id == chunk).map(|(_, _, composed)| composed.clone())
    }

    /// How many of the chunks contain each piece.
    pub(crate) fn piece_counts(&self, pieces: &[u16]) -> PieceCounts {
        let holds = |piece: &u16| {
            let containing = self.rows.iter().filter(|(_, _, row)| row.pieces.binary_search(piece).is_ok());
            u32::try_from(containing.count()).unwrap_or(u32::MAX)
        };
        let chunks = u32::try_from(self.rows.len()).unwrap_or(u32::MAX);
        PieceCounts { chunks, counts: pieces.iter().map(holds).collect() }
    }

    /// The cosines of the chunks that pass the filter, unordered; empty for a zero vector.
    pub(crate) fn cosines(&self, vector: &[f32], within: RowFilter<'_>) -> Vec<Hit> {
        let Some(vector) = UnitVector::new(vector).map(|vector| vector.to_f32()) else { return Vec::new() };
        let is_found = |(chunk, _, _): &&(ChunkId, Vec<f32>, Composed)| {
            within.has(chunk.document, self.containers.get(&chunk.document).copied().flatten())
        };
        let cosine = |(chunk, other, _): &(ChunkId, Vec<f32>, Composed)| {
            let score = vector.iter().zip(other).map(|(one, other)| one * other).sum();
            Hit { chunk: *chunk, score }
        };
        self.rows.iter().filter(is_found).map(cosine).collect()
    }
}
