//! The embedded index: words in tantivy, vectors in memory, both in one folder.
//!
//! One index holds the chunks of all workspaces. It is derived data: nothing is fsynced, and a folder that
//! does not open, or was made by another schema or embedder, is wiped, after which the cursors are 0 and
//! the caller replays the feeds. A crash of the process loses nothing that [`LexicalIndex::apply`] reported
//! as applied; changes and cursors are committed together, so a replay from the cursor is always right.

mod directory;
mod exclusion;
mod folder;
mod model;
mod open;
mod query;
mod read;
mod schema;
pub(crate) mod tuning;
mod write;

#[cfg(test)]
pub(crate) mod contract;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::fmt;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use tantivy::tokenizer::TextAnalyzer;
use tantivy::{IndexReader, IndexWriter, TantivyError};
use uuid::Uuid;

pub use self::model::{
    Batch, ChunkId, Counts, Cursor, Cursors, Engine, Hit, IndexedChunk, IndexedDocument, LexicalIndex,
    LexicalQuery, StoredChunk, sort_hits,
};
pub use self::query::ParsedQuery;

use self::folder::Folder;
use self::open::{Opened, Payload};
use self::read::Snapshot;
use self::schema::Fields;
use crate::vectors::{self, EmbeddedVectors, VectorIndex};

/// Why an index failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another process has the folder open.
    #[error("the index folder is in use by another process")]
    InUse,
    /// An index of no dimensions was asked for.
    #[error("an index needs vectors of at least one dimension")]
    NoDimensions,
    /// An embedding of another length than the index's.
    #[error("an embedding has {given} dimensions where {expected} are expected")]
    Dimensions {
        /// The index's dimensions.
        expected: usize,
        /// The embedding's.
        given: usize,
    },
    /// The folder cannot be read or written.
    #[error("cannot use the index folder")]
    Io(#[from] std::io::Error),
    /// The positions could not be written beside the changes.
    #[error("cannot encode the cursors")]
    Cursors(#[from] serde_json::Error),
    /// The engine failed.
    #[error("the index engine failed")]
    Engine(#[from] TantivyError),
}

/// The embedded index of words and vectors.
pub struct Index {
    fields: Arc<Fields>,
    analyzer: TextAnalyzer,
    dimensions: NonZeroUsize,
    reader: IndexReader,
    /// Opened by the first write: its threads and buffers are not worth their memory before.
    writer: Mutex<Option<IndexWriter>>,
    engine: tantivy::Index,
    payload: RwLock<Payload>,
    vectors: EmbeddedVectors,
    // Last, so that the folder is given back when all else is closed.
    _folder: Folder,
}

impl fmt::Debug for Index {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Index").field("folder", &self._folder).finish_non_exhaustive()
    }
}

impl Index {
    /// Opens the index in `folder`, which is created if needed and belongs to this index alone. Vectors are
    /// those of `embedder`, with `dimensions` numbers each.
    ///
    /// # Errors
    /// [`Error::InUse`] while another process has it; [`Error::Io`] or [`Error::Engine`] where even an empty
    /// index cannot be made. Files of no use are no error: they are wiped, and all cursors are 0.
    pub fn open(folder: &Path, embedder: &str, dimensions: usize) -> Result<Self, Error> {
        let dimensions = NonZeroUsize::new(dimensions).ok_or(Error::NoDimensions)?;
        let folder = Folder::claim(folder)?;
        let fields = Arc::new(Fields::new());
        let Opened { engine, reader, payload } =
            open::open(&folder, &fields, Payload::new(embedder, dimensions.get()))?;
        let source = read::StoredVectors { fields: Arc::clone(&fields), reader: reader.clone() };
        Ok(Self {
            fields,
            analyzer: schema::analyzer(),
            dimensions,
            reader,
            writer: Mutex::new(None),
            engine,
            payload: RwLock::new(payload),
            vectors: EmbeddedVectors::from_source(dimensions, Arc::new(source)),
            _folder: folder,
        })
    }

    /// Loads the vectors of a workspace, so that its first search does not wait for it.
    ///
    /// # Errors
    /// The stored vectors cannot be read.
    pub fn preload(&self, workspace: Uuid) -> Result<(), vectors::Error> {
        let zero = vec![0.0; self.dimensions.get()];
        self.vectors.scores(workspace, &zero, &[]).map(|_| ())
    }

    /// Gives back the memory that only activity needs: the loaded vectors and the writer, once its merges
    /// have ended. All come back by themselves when needed.
    ///
    /// # Errors
    /// A merge failed; the index goes on working.
    pub fn release_memory(&self) -> Result<(), Error> {
        self.vectors.release();
        // Held while merges end: until then no other writer can be opened.
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(writer) = writer.take() {
            writer.wait_merging_threads()?;
        }
        Ok(())
    }

    fn snapshot(&self) -> Snapshot<'_> {
        Snapshot { fields: &self.fields, analyzer: &self.analyzer, searcher: self.reader.searcher() }
    }
}

impl Engine for Index {
    fn vectors(&self) -> &dyn VectorIndex {
        &self.vectors
    }
}

impl LexicalIndex for Index {
    fn apply(&self, batch: Batch) -> Result<(), Error> {
        self.write(batch)
    }

    fn forget(&self, workspace: Uuid) -> Result<(), Error> {
        self.remove(workspace)
    }

    fn cursor(&self, feed: &str, workspace: Uuid) -> u64 {
        let payload = self.payload.read().unwrap_or_else(PoisonError::into_inner);
        payload.cursors.get(feed).and_then(|feed| feed.get(&workspace)).copied().unwrap_or(0)
    }

    fn cursors(&self) -> Cursors {
        self.payload.read().unwrap_or_else(PoisonError::into_inner).cursors.clone()
    }

    fn search(&self, query: &LexicalQuery<'_>) -> Result<Vec<Hit>, Error> {
        Ok(self.snapshot().search(query)?)
    }

    fn excluded(
        &self,
        workspace: Uuid,
        words: &ParsedQuery,
        chunks: &[ChunkId],
    ) -> Result<HashSet<ChunkId>, Error> {
        Ok(self.snapshot().excluded(workspace, words, chunks)?)
    }

    fn chunks(&self, workspace: Uuid, ids: &[ChunkId]) -> Result<Vec<StoredChunk>, Error> {
        Ok(self.snapshot().chunks(workspace, ids)?)
    }

    fn counts(&self, workspace: Uuid) -> Result<Counts, Error> {
        Ok(self.snapshot().counts(workspace)?)
    }
}
