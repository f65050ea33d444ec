//! Semantic search: the nearest vectors of a workspace by cosine.

mod drafts;
mod embedded;
mod kernel;
mod rows;
mod signs;

use std::collections::HashSet;

use uuid::Uuid;

use crate::IndexedChunk;

pub(crate) use self::drafts::DraftVectors;
pub use self::embedded::{EmbeddedVectors, VectorSource};
pub use self::kernel::UnitVector;
pub(crate) use self::rows::RowFilter;

/// All vectors of one document; without rows the document is removed.
#[derive(Debug, Clone, PartialEq)]
pub struct DocumentVectors {
    /// The document.
    pub document: Uuid,
    /// Its folder or source, for filters.
    pub container: Option<Uuid>,
    /// The ordinals of the chunks and their vectors. A chunk with a zero vector has none.
    pub rows: Vec<(u32, Composed)>,
}

/// The vector of a chunk, and the pieces of text that it is composed of.
#[derive(Debug, Clone, PartialEq)]
pub struct Composed {
    /// The vector.
    pub vector: UnitVector,
    /// The distinct pieces that the vector is the sum of, in ascending order; empty if the embedder works differently, or the
    /// engine does not store them.
    pub pieces: Box<[u16]>,
}

impl Composed {
    /// The vector of a chunk; `None` for a zero vector.
    pub(crate) fn of(chunk: &IndexedChunk) -> Option<Self> {
        let vector = UnitVector::new(&chunk.embedding)?;
        Some(Self { vector, pieces: chunk.pieces.as_slice().into() })
    }
}

impl From<UnitVector> for Composed {
    /// Without pieces.
    fn from(vector: UnitVector) -> Self {
        Self { vector, pieces: Box::default() }
    }
}

/// A search for the nearest vectors.
#[derive(Debug, Clone)]
pub struct VectorQuery<'a> {
    /// The workspace searched.
    pub workspace: Uuid,
    /// The query's vector, of the index's dimensions and any length.
    pub vector: &'a [f32],
    /// The folders and sources searched, `None` for the whole workspace.
    pub containers: Option<&'a HashSet<Uuid>>,
    /// The documents searched, `None` for all.
    pub documents: Option<&'a HashSet<Uuid>>,
    /// The maximum number of hits.
    pub limit: usize,
}

#[cfg(test)]
mod tests;
