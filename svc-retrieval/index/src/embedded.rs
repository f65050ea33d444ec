//! The embedded index: words in tantivy, vectors in memory, both in one folder.
//!
//! One index holds the chunks of all workspaces. It is derived data: nothing is fsynced, and a folder that
//! does not open, or was made by another schema or embedder, is wiped, after which the cursors are 0 and
//! the caller replays the feeds. Small batches stay in memory and are searched there until they are committed
//! together; a crash of the process loses them with their positions. Changes and cursors are committed together,
//! so a replay from the committed cursor is always right.

mod among;
mod candidates;
mod collect;
mod directory;
mod engine;
mod exclusion;
mod folder;
pub(crate) mod held;
mod look;
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

pub use self::among::candidates_among;
pub use self::engine::EmbeddedEngine;
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
    /// Held while the merges of a writer that is being closed end: until then no other writer can be opened.
    closing: Mutex<()>,
    engine: tantivy::Index,
    current_view: CurrentView,
    /// What searches see; the last commit may be behind it.
    payload: RwLock<Payload>,
    vectors: EmbeddedVectors,
    // Last, so that the folder is given back when all else is closed.
    _folder: Folder,
}

cairn_chassis::debug_fields!(Index { _folder });

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

    /// Loads the vectors of a workspace, so that its first search does not wait for it.
    ///
    /// # Errors
    /// The stored vectors cannot be read.
    pub fn preload(&self, workspace: Uuid) -> Result<(), Error> {
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
        self.close_writer()
    }

    fn snapshot(&self) -> Snapshot<'_> {
        Snapshot { fields: &self.fields, view: self.current_view.load() }
    }
}

impl Index {
    /// The search by meaning. Changes go through [`Index::apply`] alone.
    pub fn vectors(&self) -> &EmbeddedVectors {
        &self.vectors
    }

    /// The chunks of a document that have a vector, in any order.
    ///
    /// # Errors
    /// The stored chunks cannot be read.
    pub fn embedded(&self, workspace: Uuid, document: Uuid) -> Result<Vec<EmbeddedChunk>, Error> {
        Ok(self.snapshot().embedded(workspace, document)?)
    }

    /// Commits what is in memory only.
    ///
    /// # Errors
    /// The folder cannot be written; the index is as it was after the last commit.
    pub fn flush(&self) -> Result<(), Error> {
        self.commit_pending()
    }

    /// Commits what is in memory only, and gives back what has not been used for a time: the vectors of each workspace, and
    /// the writer.
    ///
    /// # Errors
    /// As [`Index::flush`].
    pub fn maintain(&self) -> Result<(), Error> {
        self.commit_pending()?;
        self.vectors.release_idle(IDLE_ROUNDS);
        self.close_idle_writer()
    }

    /// Applies a batch with its cursors, all of it or nothing.
    ///
    /// # Errors
    /// A vector of other dimensions, or the folder cannot be written.
    pub fn apply(&self, batch: Batch) -> Result<(), Error> {
        self.write(batch)
    }

    /// Removes all chunks of a workspace and its cursors of all feeds, together.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn forget(&self, workspace: Uuid) -> Result<(), Error> {
        self.remove(workspace)
    }

    /// The last position applied of a feed for a workspace, 0 if none.
    pub fn cursor(&self, feed: &str, workspace: Uuid) -> u64 {
        let payload = self.payload.read().unwrap_or_else(PoisonError::into_inner);
        payload.cursors.get(feed).and_then(|feed| feed.get(&workspace)).copied().unwrap_or(0)
    }

    /// All positions applied.
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

    /// Those of `chunks` that hold an excluded word or phrase, so that a search by meaning can drop them.
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

    /// The given chunks in the given order, without those that the index no longer holds.
    ///
    /// # Errors
    /// The stored chunks cannot be read.
    pub fn chunks(&self, workspace: Uuid, ids: &[ChunkId]) -> Result<Vec<StoredChunk>, Error> {
        Ok(self.snapshot().chunks(workspace, ids)?)
    }

    /// What the index holds of a workspace.
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
