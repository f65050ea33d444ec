//! The vectors of documents that are at hand and in no index.

use std::collections::HashMap;

use uuid::Uuid;

use super::{UnitVector, Within};
use crate::{ChunkId, Hit, IndexedDocument};

/// The vectors of some documents' chunks, as an index would keep them.
pub(crate) struct VectorsAtHand {
    /// A chunk whose vector is zero has none.
    rows: Vec<(ChunkId, Vec<f32>)>,
    containers: HashMap<Uuid, Option<Uuid>>,
}

impl VectorsAtHand {
    pub(crate) fn of(documents: &[IndexedDocument]) -> Self {
        let mut rows = Vec::new();
        for document in documents {
            for (ordinal, chunk) in (0..).zip(&document.chunks) {
                let id = ChunkId { document: document.document, ordinal };
                rows.extend(UnitVector::new(&chunk.embedding).map(|vector| (id, vector.to_f32())));
            }
        }
        let containers = documents.iter().map(|document| (document.document, document.container)).collect();
        Self { rows, containers }
    }

    /// Whether the document is one of them.
    pub(crate) fn has(&self, document: Uuid) -> bool {
        self.containers.contains_key(&document)
    }

    /// The cosines of the chunks that may be found, in no order; none for a vector that has no direction.
    pub(crate) fn cosines(&self, vector: &[f32], within: Within<'_>) -> Vec<Hit> {
        let Some(vector) = UnitVector::new(vector).map(|vector| vector.to_f32()) else { return Vec::new() };
        let is_found = |(chunk, _): &&(ChunkId, Vec<f32>)| {
            within.has(chunk.document, self.containers.get(&chunk.document).copied().flatten())
        };
        let cosine = |(chunk, other): &(ChunkId, Vec<f32>)| {
            let score = vector.iter().zip(other).map(|(one, other)| one * other).sum();
            Hit { chunk: *chunk, score }
        };
        self.rows.iter().filter(is_found).map(cosine).collect()
    }
}
