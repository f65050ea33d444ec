//! What every engine of an index does.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use uuid::Uuid;

use crate::error::Error;
use crate::look::{Look, Seen};
use crate::model::{
    Batch, Candidates, ChunkId, Counts, Cursors, EmbeddedChunk, IndexedDocument, Query, StoredChunk,
};
use crate::vectors::UnitVector;

/// An engine of words and meaning over the same chunks. Its calls wait and never block: what computes, an engine does off
/// the async threads.
///
/// No method returns anything of another workspace than the one asked for.
#[async_trait]
pub trait Engine: Send + Sync + fmt::Debug {
    /// Applies a batch with its cursors; every search that begins after it returns sees it, by words and by meaning. A
    /// crash leaves the cursors behind what was written or with it, never ahead, and applying the batch again has the same
    /// end.
    ///
    /// The embedded engine shows a batch all at once. An engine without transactions may show some of its documents
    /// before others while it is applied, and chunks of two states of one document, which differ in their content hash.
    async fn apply(&self, batch: Batch) -> Result<(), Error>;

    /// Removes all chunks of a workspace and its cursors of all feeds, together.
    async fn forget(&self, workspace: Uuid) -> Result<(), Error>;

    /// The last position applied of a feed for a workspace, 0 if none.
    fn cursor(&self, feed: &str, workspace: Uuid) -> u64;

    /// All positions applied.
    fn cursors(&self) -> Cursors;

    /// The last position applied of a feed for a workspace as the storage has it, 0 if none, where other processes may
    /// write to it too; [`Engine::cursor`] says the same from then on.
    async fn refresh(&self, feed: &str, workspace: Uuid) -> Result<u64, Error> {
        Ok(self.cursor(feed, workspace))
    }

    /// Everything that a search ranks, found in one call: one answer for each list asked for, in their order.
    async fn candidates(&self, query: Query) -> Result<Vec<Candidates>, Error>;

    /// What [`Engine::candidates`] would find if these documents stood in place of what the index holds of them. Nothing is
    /// stored.
    async fn candidates_instead(
        &self,
        query: Query,
        documents: Arc<Vec<IndexedDocument>>,
    ) -> Result<Vec<Candidates>, Error>;

    /// The given chunks in the given order, without those that the index no longer holds.
    async fn chunks(&self, workspace: Uuid, ids: Vec<ChunkId>) -> Result<Vec<StoredChunk>, Error>;

    /// What a second look at some chunks needs, in one call.
    async fn look(&self, look: Look) -> Result<Seen, Error>;

    /// What [`Engine::look`] would see if these documents stood in place of what the index holds of them. Nothing is stored.
    async fn look_instead(&self, look: Look, documents: Arc<Vec<IndexedDocument>>) -> Result<Seen, Error>;

    /// The chunks of these documents that have a vector, in any order, so that text which stays is not embedded again. A
    /// document without any may be missing.
    async fn embedded(
        &self,
        workspace: Uuid,
        documents: Vec<Uuid>,
    ) -> Result<HashMap<Uuid, Vec<EmbeddedChunk>>, Error>;

    /// The vectors of these documents' chunks with their places, in the order of the places; chunks without a vector are
    /// left out, and a document without any may be missing. What is near a document is found with them.
    async fn vectors(
        &self,
        workspace: Uuid,
        documents: Vec<Uuid>,
    ) -> Result<HashMap<Uuid, Vec<(u32, UnitVector)>>, Error>;

    /// What the index holds of a workspace.
    async fn counts(&self, workspace: Uuid) -> Result<Counts, Error>;

    /// Whether searches can be answered now. An engine in this process always can.
    fn answers(&self) -> bool {
        true
    }

    /// How often all that was applied was lost, as far as this process knows, where it is kept elsewhere: what a search found while
    /// this changed may be of a storage that is being filled again.
    fn losses(&self) -> u64 {
        0
    }

    /// Makes everything applied outlive the process. Called before it ends; what is not flushed by then is replayed
    /// from the feeds. An engine that keeps nothing back has nothing to do.
    async fn flush(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Called every few seconds by whoever feeds the engine, for what should not wait for the next call.
    async fn maintain(&self) -> Result<(), Error> {
        Ok(())
    }
}
