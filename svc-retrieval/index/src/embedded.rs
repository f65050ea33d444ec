//! The embedded index: words in tantivy, vectors in memory, both in one folder.
//!
//! One index holds the chunks of all workspaces. It is derived data: nothing is fsynced, and a folder that cannot be opened, or was
//! written with another schema or embedder, is wiped; its cursors are then 0 and the caller replays the feeds. Small batches are
//! searched in memory until they are committed together; a crash of the process loses them together with their cursors. Changes
//! and cursors are committed atomically, so replaying from the committed cursor is always correct.

mod candidates;
mod collect;
pub(crate) mod contents;
mod directory;
mod engine;
mod exclusion;
mod folder;
mod in_memory;
mod inspect;
mod open;
mod overlay;
mod prefix;
mod proximity;
mod query;
mod query_builder;
mod read;
mod recent;
mod schema;
mod statistics;
mod stored;
mod tokens;
mod view;
mod write;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use tantivy::IndexReader;
use uuid::Uuid;

pub use self::engine::EmbeddedEngine;
pub use self::in_memory::candidates_in_memory;
pub use self::query::LexicalQuery;

use self::folder::Folder;
use self::open::{Opened, Payload};
use self::read::Snapshot;
use self::schema::Fields;
use self::view::{CurrentView, View};
use self::write::WriterState;
use crate::tuning::IDLE_ROUNDS;
use crate::vectors::EmbeddedVectors;
use crate::{Batch, ChunkId, Counts, Cursors, EmbeddedChunk, Error, Hit, ParsedQuery, StoredChunk};

/// The embedded index of words and vectors.
pub struct Index {
    fields: Arc<Fields>,
    dimensions: NonZeroUsize,
    reader: IndexReader,
    writing: Mutex<WriterState>,
    /// Held while a writer that is being closed waits for its merges: until then no other writer can be opened.
    closing: Mutex<()>,
    engine: tantivy::Index,
    current_view: CurrentView,
    /// What searches see; it may be ahead of the last commit.
    payload: RwLock<Payload>,
    vectors: EmbeddedVectors,
    // Last, so that the folder is unlocked after everything else is closed.
    _folder: Folder,
}

cairn_chassis::debug_fields!(Index { _folder });

impl Index {
    /// Opens the index in `folder`, which is created if needed and belongs to this index alone. The vectors come from `embedder`
    /// and have `dimensions` numbers each.
    ///
    /// # Errors
    /// [`Error::InUse`] while another process has it open; [`Error::Io`] or [`Error::Engine`] when not even an empty index can be
    /// created. Unusable files are no error: they are wiped, and all cursors are 0.
    pub fn open(folder: &Path, embedder: &str, dimensions: usize) -> Result<Self, Error> {
        let dimensions = NonZeroUsize::new(dimensions).ok_or(Error::NoDimensions)?;
        let folder = Folder::claim(folder)?;
        let fields = Arc::new(Fields::new());
        let Opened { engine, reader, payload } =
            open::open(&folder, &fields, Payload::new(embedder, dimensions.get()))?;
        let current_view = CurrentView::new(View::committed(reader.searcher()));
        let source = read::StoredVectors { fields: Arc::clone(&fields), current_view: current_view.clone() };
        Ok(Self {
            fields,
            dimensions,
            reader,
            writing: Mutex::new(WriterState::new(payload.clone())),
            closing: Mutex::default(),
            engine,
            current_view,
            payload: RwLock::new(payload),
            vectors: EmbeddedVectors::from_source(dimensions, Arc::new(source)),
            _folder: folder,
        })
    }

    /// Loads the vectors of a workspace, so that its first search does not have to.
    ///
    /// # Errors
    /// The stored vectors cannot be read.
    pub fn preload(&self, workspace: Uuid) -> Result<(), Error> {
        let zero = vec![0.0; self.dimensions.get()];
        self.vectors.scores(workspace, &zero, &[]).map(|_| ())
    }

    /// Releases the loaded vectors and closes the writer once its merges have finished. Both are restored on demand.
    ///
    /// # Errors
    /// A merge failed; the index keeps working.
    pub fn release_memory(&self) -> Result<(), Error> {
        self.vectors.release();
        self.close_writer()
    }

    fn snapshot(&self) -> Snapshot<'_> {
        Snapshot { fields: &self.fields, view: self.current_view.load() }
    }
}

impl Index {
    /// The vectors, for semantic search. They are changed only through [`Index::apply`].
    pub fn vectors(&self) -> &EmbeddedVectors {
        &self.vectors
    }

    /// The chunks of a document that have a vector, in unspecified order.
    ///
    /// # Errors
    /// The stored chunks cannot be read.
    pub fn embedded(&self, workspace: Uuid, document: Uuid) -> Result<Vec<EmbeddedChunk>, Error> {
        Ok(self.snapshot().embedded(workspace, document)?)
    }

    /// Commits pending batches.
    ///
    /// # Errors
    /// The folder cannot be written; the index was rolled back to the last commit.
    pub fn flush(&self) -> Result<(), Error> {
        self.commit_pending()
    }

    /// Commits pending batches, evicts the vectors of idle workspaces and closes an idle writer.
    ///
    /// # Errors
    /// As [`Index::flush`].
    pub fn maintain(&self) -> Result<(), Error> {
        self.commit_pending()?;
        self.vectors.release_idle(IDLE_ROUNDS);
        self.close_idle_writer()
    }

    /// Applies a batch and its cursors atomically.
    ///
    /// # Errors
    /// A vector has the wrong number of dimensions, or the folder cannot be written.
    pub fn apply(&self, batch: Batch) -> Result<(), Error> {
        self.write(batch)
    }

    /// Removes all chunks of a workspace and its cursors of all feeds, atomically.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn forget(&self, workspace: Uuid) -> Result<(), Error> {
        self.remove(workspace)
    }

    /// The last applied position of a feed for a workspace, 0 if there is none.
    pub fn cursor(&self, feed: &str, workspace: Uuid) -> u64 {
        let payload = self.payload.read().unwrap_or_else(PoisonError::into_inner);
        payload.cursors.get(feed).and_then(|feed| feed.get(&workspace)).copied().unwrap_or(0)
    }

    /// All cursors.
    pub fn cursors(&self) -> Cursors {
        self.payload.read().unwrap_or_else(PoisonError::into_inner).cursors.clone()
    }

    /// The best chunks by BM25, best first, ties by [`ChunkId`].
    ///
    /// # Errors
    /// A segment cannot be read.
    pub fn search(&self, query: &LexicalQuery<'_>) -> Result<Vec<Hit>, Error> {
        Ok(self.snapshot().search(query)?)
    }

    /// Those of `chunks` that contain an excluded word or phrase, so that a semantic search can drop them.
    ///
    /// # Errors
    /// A segment cannot be read.
    pub fn excluded(
        &self,
        workspace: Uuid,
        words: &ParsedQuery,
        chunks: &[ChunkId],
    ) -> Result<HashSet<ChunkId>, Error> {
        Ok(self.snapshot().excluded(workspace, words, chunks)?)
    }

    /// The given chunks in the given order, without those that are no longer indexed.
    ///
    /// # Errors
    /// The stored chunks cannot be read.
    pub fn chunks(&self, workspace: Uuid, ids: &[ChunkId]) -> Result<Vec<StoredChunk>, Error> {
        Ok(self.snapshot().chunks(workspace, ids)?)
    }

    /// How many documents and chunks of a workspace are indexed.
    ///
    /// # Errors
    /// A segment cannot be read.
    pub fn counts(&self, workspace: Uuid) -> Result<Counts, Error> {
        Ok(self.snapshot().counts(workspace)?)
    }
}

impl Drop for Index {
    fn drop(&mut self) {
        if let Err(error) = self.commit_pending() {
            tracing::warn!(%error, "what was applied last is not committed; it is replayed from the feeds");
        }
    }
}
