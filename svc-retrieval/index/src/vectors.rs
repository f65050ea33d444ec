//! Finds chunks by meaning: the nearest vectors of a workspace by cosine.

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

/// All vectors of one document; no rows remove it.
#[derive(Debug, Clone, PartialEq)]
pub struct DocumentVectors {
    /// The document.
    pub document: Uuid,
    /// Its folder or source, for filters.
    pub container: Option<Uuid>,
    /// The chunks' places in the document and their vectors. A chunk whose vector is zero has none.
    pub rows: Vec<(u32, Composed)>,
}

/// The vector of a chunk, and what it is made of.
#[derive(Debug, Clone, PartialEq)]
pub struct Composed {
    /// The vector.
    pub vector: UnitVector,
    /// The distinct pieces of the text that the vector is a sum of, in ascending order; none where the embedder makes its
    /// vectors in another way, or the engine does not keep them.
    pub pieces: Box<[u16]>,
}

impl Composed {
    /// Of a chunk as it is indexed; none for a zero vector.
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
    /// The folders and sources searched, none for the whole workspace.
    pub containers: Option<&'a HashSet<Uuid>>,
    /// The documents searched, none for all.
    pub documents: Option<&'a HashSet<Uuid>>,
    /// Most hits returned.
    pub limit: usize,
}

#[cfg(test)]
mod tests;
