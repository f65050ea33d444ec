//! In-memory vectors, loaded per workspace on the first search.

use std::collections::HashMap;
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use uuid::Uuid;

use super::rows::{QueryVector, RowFilter, Rows};
use super::{Composed, DocumentVectors, UnitVector, VectorQuery};
use crate::{ChunkId, Error, Hit, PieceCounts};

/// The storage that the vectors of a workspace are loaded from.
pub trait VectorSource: Send + Sync + fmt::Debug {
    /// Calls `each` once for each chunk of a workspace that has a vector, with its container, in unspecified order.
    fn load(
        &self,
        workspace: Uuid,
        each: &mut dyn FnMut(ChunkId, Option<Uuid>, Composed),
    ) -> Result<(), Error>;
}

/// The vectors of one workspace.
#[derive(Debug)]
struct Slot {
    /// `None` until the workspace is first searched.
    rows: RwLock<Option<Rows>>,
    /// Calls of [`EmbeddedVectors::release_idle`] since it was last searched or changed.
    idle_rounds: AtomicU32,
}

/// Exact search over in-memory vectors.
///
/// Takes about `3 × dimensions + 100` bytes per chunk, plus two per piece where pieces are stored, plus eight per distinct piece of
/// a workspace; only for workspaces that are searched. A workspace's slot is locked while it is loaded, searched or changed, so a
/// search sees each document as a whole. A change must be visible in the source before it is applied here: a load in between then
/// already contains it, and applying it twice is harmless.
#[derive(Debug)]
pub struct EmbeddedVectors {
    dimensions: NonZeroUsize,
    source: Option<Arc<dyn VectorSource>>,
    slots: Mutex<HashMap<Uuid, Arc<Slot>>>,
}

impl EmbeddedVectors {
    /// Vectors without a backing source.
    #[must_use]
    pub fn in_memory(dimensions: NonZeroUsize) -> Self {
        Self { dimensions, source: None, slots: Mutex::default() }
    }

    /// Vectors that are loaded from `source`.
    #[must_use]
    pub fn from_source(dimensions: NonZeroUsize, source: Arc<dyn VectorSource>) -> Self {
        Self { dimensions, source: Some(source), slots: Mutex::default() }
    }

    /// Replaces documents, all those of a workspace at once.
    pub fn apply(&self, changes: &[(Uuid, DocumentVectors)]) {
        let mut by_workspace: HashMap<Uuid, Vec<&DocumentVectors>> = HashMap::new();
        for (workspace, vectors) in changes {
            by_workspace.entry(*workspace).or_default().push(vectors);
        }
        for (workspace, changed) in by_workspace {
            let slot = self.slot(workspace);
            let mut rows = slot.rows.write().unwrap_or_else(PoisonError::into_inner);
            // If not loaded, the source already contains the change.
            if let Some(rows) = rows.as_mut() {
                for vectors in changed {
                    rows.replace(vectors);
                }
            }
        }
    }

    /// Evicts everything that can be loaded again.
    pub fn release(&self) {
        if self.source.is_some() {
            self.slots.lock().unwrap_or_else(PoisonError::into_inner).clear();
        }
    }

    /// Evicts workspaces that were neither searched nor changed during the last `rounds` calls, if they can be loaded again. That
    /// must be minutes, longer than any search: a running search keeps its slot, which would no longer receive changes.
    pub(crate) fn release_idle(&self, rounds: u32) {
        if self.source.is_none() {
            return;
        }
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let idle: Vec<(Uuid, Arc<Slot>)> =
            slots.extract_if(|_, slot| slot.idle_rounds.fetch_add(1, Ordering::Relaxed) >= rounds).collect();
        // Free the memory outside of the critical section.
        drop(slots);
        drop(idle);
    }

    fn slot(&self, workspace: Uuid) -> Arc<Slot> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = slots.entry(workspace).or_insert_with(|| {
            let rows = self.source.is_none().then(|| Rows::new(self.dimensions.get()));
            Arc::new(Slot { rows: RwLock::new(rows), idle_rounds: AtomicU32::new(0) })
        });
        slot.idle_rounds.store(0, Ordering::Relaxed);
        Arc::clone(slot)
    }

    fn with_rows<T>(&self, workspace: Uuid, read: impl FnOnce(&Rows) -> T) -> Result<T, Error> {
        let slot = self.slot(workspace);
        if let Some(rows) = slot.rows.read().unwrap_or_else(PoisonError::into_inner).as_ref() {
            return Ok(read(rows));
        }
        let mut loaded = slot.rows.write().unwrap_or_else(PoisonError::into_inner);
        let rows = match loaded.as_mut() {
            Some(rows) => rows,
            None => loaded.insert(self.load(workspace)?),
        };
        Ok(read(rows))
    }

    fn load(&self, workspace: Uuid) -> Result<Rows, Error> {
        let mut rows = Rows::new(self.dimensions.get());
        if let Some(source) = &self.source {
            source.load(workspace, &mut |chunk, container, row| rows.push(chunk, container, &row))?;
        }
        Ok(rows)
    }

    fn check(&self, vector: &[f32]) -> Result<(), Error> {
        if vector.len() == self.dimensions.get() {
            return Ok(());
        }
        Err(Error::Dimensions { expected: self.dimensions.get(), given: vector.len() })
    }
}

impl EmbeddedVectors {
    /// The chunks with the highest cosines, best first, ties by [`ChunkId`]. A zero query finds nothing.
    ///
    /// Cosines are exact to half precision; they may be negative.
    ///
    /// # Errors
    /// The vector has the wrong number of dimensions, or the stored vectors cannot be read.
    pub fn search(&self, query: &VectorQuery<'_>) -> Result<Vec<Hit>, Error> {
        self.check(query.vector)?;
        let Some(query_vector) = QueryVector::new(query.vector) else {
            return Ok(Vec::new());
        };
        let within = RowFilter { containers: query.containers, documents: query.documents };
        self.with_rows(query.workspace, |rows| rows.search(&query_vector, within, query.limit))
    }

    /// The exact cosine of each given chunk, in the given order; 0 for a chunk without a vector.
    ///
    /// # Errors
    /// As [`EmbeddedVectors::search`].
    pub fn scores(&self, workspace: Uuid, vector: &[f32], chunks: &[ChunkId]) -> Result<Vec<Hit>, Error> {
        self.check(vector)?;
        let hit = |(chunk, score): (&ChunkId, f32)| Hit { chunk: *chunk, score };
        let Some(query_vector) = QueryVector::new(vector) else {
            return Ok(chunks.iter().zip(std::iter::repeat(0.0)).map(hit).collect());
        };
        let cosines = self.with_rows(workspace, |rows| rows.cosines(&query_vector, chunks))?;
        Ok(chunks.iter().zip(cosines).map(hit).collect())
    }

    /// The vector and pieces of each of the chunks that has a vector.
    ///
    /// # Errors
    /// The stored vectors cannot be read.
    pub fn composed(&self, workspace: Uuid, chunks: &[ChunkId]) -> Result<HashMap<ChunkId, Composed>, Error> {
        self.with_rows(workspace, |rows| {
            chunks.iter().filter_map(|chunk| Some((*chunk, rows.composed(*chunk)?))).collect()
        })
    }

    /// How many chunks of a workspace contain each piece.
    ///
    /// # Errors
    /// The stored vectors cannot be read.
    pub fn piece_counts(&self, workspace: Uuid, pieces: &[u16]) -> Result<PieceCounts, Error> {
        self.with_rows(workspace, |rows| rows.piece_counts(pieces))
    }

    /// How many chunks of one document contain each piece.
    ///
    /// # Errors
    /// The stored vectors cannot be read.
    pub fn piece_counts_of(
        &self,
        workspace: Uuid,
        document: Uuid,
        pieces: &[u16],
    ) -> Result<PieceCounts, Error> {
        self.with_rows(workspace, |rows| rows.piece_counts_of(document, pieces))
    }

    /// The vectors of a document's chunks by ordinal; chunks without a vector are omitted.
    ///
    /// # Errors
    /// The stored vectors cannot be read.
    pub fn of(&self, workspace: Uuid, document: Uuid) -> Result<Vec<(u32, UnitVector)>, Error> {
        self.with_rows(workspace, |rows| rows.vectors(document))
    }
}
