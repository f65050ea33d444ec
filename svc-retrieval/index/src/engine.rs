//! The interface of index engines.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use uuid::Uuid;

use crate::error::Error;
use crate::inspect::{InspectRequest, Inspection};
use crate::model::{
    Batch, Candidates, ChunkId, Counts, Cursors, EmbeddedChunk, IndexedDocument, Query, StoredChunk,
};
use crate::vectors::UnitVector;

/// A lexical and semantic search engine over the same chunks. Its methods never block: engines run CPU-bound work on blocking threads.
///
/// No method returns anything of another workspace than the requested one.
#[async_trait]
pub trait Engine: Send + Sync + fmt::Debug {
    /// Applies a batch with its cursors; every search that starts after this returns sees it. After a crash the cursors are never ahead
    /// of what was written, and applying the batch again is idempotent.
    ///
    /// The embedded engine applies a batch atomically. An engine without transactions may expose some of its documents before others
    /// meanwhile, and chunks of two versions of one document, which differ in their content hash.
    async fn apply(&self, batch: Batch) -> Result<(), Error>;

    /// Removes all chunks of a workspace and its cursors of all feeds.
    async fn forget(&self, workspace: Uuid) -> Result<(), Error>;

    /// The last applied position of a feed for a workspace, 0 if there is none; cached.
    fn cursor(&self, feed: &str, workspace: Uuid) -> u64;

    /// All cursors, as cached.
    fn cursors(&self) -> Cursors;

    /// Reads a cursor from the storage, which other processes may write to, and updates the one that [`Engine::cursor`] returns.
    async fn refresh(&self, feed: &str, workspace: Uuid) -> Result<u64, Error> {
        Ok(self.cursor(feed, workspace))
    }

    /// The candidates of a search, one result for each requested list, in order.
    async fn candidates(&self, query: Query) -> Result<Vec<Candidates>, Error>;

    /// As [`Engine::candidates`], with these documents in place of their indexed versions. Nothing is stored.
    async fn candidates_with_drafts(
        &self,
        query: Query,
        documents: Arc<Vec<IndexedDocument>>,
    ) -> Result<Vec<Candidates>, Error>;

    /// The given chunks in the given order, without those that are no longer indexed.
    async fn chunks(&self, workspace: Uuid, ids: Vec<ChunkId>) -> Result<Vec<StoredChunk>, Error>;

    /// The features of some chunks for reranking.
    async fn inspect(&self, request: InspectRequest) -> Result<Inspection, Error>;

    /// As [`Engine::inspect`], with these documents in place of their indexed versions. Nothing is stored.
    async fn inspect_with_drafts(
        &self,
        request: InspectRequest,
        documents: Arc<Vec<IndexedDocument>>,
    ) -> Result<Inspection, Error>;

    /// The chunks of these documents that have a vector, unordered, so that unchanged text is not embedded again. A document without any
    /// may be missing.
    async fn embedded(
        &self,
        workspace: Uuid,
        documents: Vec<Uuid>,
    ) -> Result<HashMap<Uuid, Vec<EmbeddedChunk>>, Error>;

    /// The vectors of these documents' chunks by ordinal, to find similar documents. Chunks without a vector are omitted, and a document
    /// without any may be missing.
    async fn vectors(
        &self,
        workspace: Uuid,
        documents: Vec<Uuid>,
    ) -> Result<HashMap<Uuid, Vec<(u32, UnitVector)>>, Error>;

    /// How many documents and chunks of a workspace are indexed.
    async fn counts(&self, workspace: Uuid) -> Result<Counts, Error>;

    /// Whether the engine is healthy. An engine in this process always is.
    fn answers(&self) -> bool {
        true
    }

    /// How often this process noticed that a remote storage was lost: if the number changed during a search, its result may come from a
    /// storage that is being refilled.
    fn storage_losses(&self) -> u64 {
        0
    }

    /// Persists everything that was applied. Called at shutdown; what is not flushed is replayed from the feeds. A no-op for engines
    /// that persist each batch.
    async fn flush(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Periodic maintenance, called every few seconds by the indexer.
    async fn maintain(&self) -> Result<(), Error> {
        Ok(())
    }
}
