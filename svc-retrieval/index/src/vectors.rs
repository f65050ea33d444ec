//! Finds chunks by meaning: the nearest vectors of a workspace by cosine.

mod embedded;
mod kernel;
mod rows;
mod signs;

#[cfg(test)]
pub(crate) mod contract;

use std::collections::HashSet;
use std::fmt;

use uuid::Uuid;

pub use self::embedded::{EmbeddedVectors, VectorSource};
pub use self::kernel::UnitVector;
use crate::{ChunkId, Error, Hit};

/// All vectors of one document; no rows remove it.
#[derive(Debug, Clone, PartialEq)]
pub struct DocumentVectors {
    /// The document.
    pub document: Uuid,
    /// Its folder or source, for filters.
    pub container: Option<Uuid>,
    /// The chunks' places in the document and their vectors. A chunk whose vector is zero has none.
    pub rows: Vec<(u32, UnitVector)>,
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

/// An engine that finds chunks by the cosine of their vectors. Calls block: run them off the async threads.
pub trait VectorIndex: Send + Sync + fmt::Debug {
    /// Replaces all vectors of a document; no search sees a part of it.
    fn upsert(&self, workspace: Uuid, vectors: DocumentVectors) -> Result<(), Error>;

    /// Removes all vectors of a document.
    fn delete(&self, workspace: Uuid, document: Uuid) -> Result<(), Error>;

    /// The chunks of the greatest cosine, best first, ties by [`ChunkId`]. A zero query finds nothing.
    ///
    /// Cosines are exact to half precision; they may be negative.
    fn search(&self, query: &VectorQuery<'_>) -> Result<Vec<Hit>, Error>;

    /// The exact cosine of each given chunk, in the given order; 0 for a chunk without a vector.
    fn scores(&self, workspace: Uuid, vector: &[f32], chunks: &[ChunkId]) -> Result<Vec<Hit>, Error>;

    /// The vectors of a document's chunks with their places, in the order of the places; chunks without a vector are left
    /// out. What is near a document is found with them.
    fn vectors(&self, workspace: Uuid, document: Uuid) -> Result<Vec<(u32, UnitVector)>, Error>;
}

#[cfg(test)]
mod tests;
