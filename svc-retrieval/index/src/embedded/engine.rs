//! The embedded index as an engine: its work is done off the async threads.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::Semaphore;
use uuid::Uuid;

use super::Index;
use crate::vectors::UnitVector;
use crate::{
    Batch, Candidates, ChunkId, Counts, Cursors, EmbeddedChunk, Engine, Error, IndexedDocument, Look, Query,
    Seen, StoredChunk,
};

/// The embedded index as an engine; cheap to clone.
#[derive(Debug, Clone)]
pub struct EmbeddedEngine {
    index: Arc<Index>,
    permits: Arc<Semaphore>,
}

impl EmbeddedEngine {
    /// Searches take one of the permits each. Use one for each core ([`EmbeddedEngine::permits`]): finding candidates only
    /// computes. More at a time would each take longer, and would keep a fresh write, which passes through several tasks,
    /// waiting at every one of them.
    #[must_use]
    pub fn new(index: Arc<Index>, permits: Arc<Semaphore>) -> Self {
        Self { index, permits }
    }

    /// One for each core.
    #[must_use]
    pub fn permits() -> Arc<Semaphore> {
        Arc::new(Semaphore::new(std::thread::available_parallelism().map_or(1, NonZeroUsize::get)))
    }

    /// Does work on a thread that may block. It goes on when nobody waits for it any more.
    async fn off<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Index) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let index = Arc::clone(&self.index);
        tokio::task::spawn_blocking(move || work(&index)).await?
    }
}

#[async_trait]
impl Engine for EmbeddedEngine {
    async fn apply(&self, batch: Batch) -> Result<(), Error> {
        self.off(move |index| index.apply(batch)).await
    }

    async fn forget(&self, workspace: Uuid) -> Result<(), Error> {
        self.off(move |index| index.forget(workspace)).await
    }

    fn cursor(&self, feed: &str, workspace: Uuid) -> u64 {
        self.index.cursor(feed, workspace)
    }

    fn cursors(&self) -> Cursors {
        self.index.cursors()
    }

    async fn candidates(&self, query: Query) -> Result<Vec<Candidates>, Error> {
        // Nobody closes it; without a permit there would still be an answer.
        let permit = Arc::clone(&self.permits).acquire_owned().await.ok();
        self.off(move |index| {
            let _permit = permit;
            index.candidates(&query)
        })
        .await
    }

    async fn candidates_instead(
        &self,
        query: Query,
        documents: Arc<Vec<IndexedDocument>>,
    ) -> Result<Vec<Candidates>, Error> {
        let permit = Arc::clone(&self.permits).acquire_owned().await.ok();
        self.off(move |index| {
            let _permit = permit;
            index.candidates_instead(&query, &documents)
        })
        .await
    }

    async fn chunks(&self, workspace: Uuid, ids: Vec<ChunkId>) -> Result<Vec<StoredChunk>, Error> {
        self.off(move |index| index.chunks(workspace, &ids)).await
    }

    async fn look(&self, look: Look) -> Result<Seen, Error> {
        self.off(move |index| index.look(&look)).await
    }

    async fn look_instead(&self, look: Look, documents: Arc<Vec<IndexedDocument>>) -> Result<Seen, Error> {
        self.off(move |index| index.look_instead(&look, &documents)).await
    }

    async fn embedded(
        &self,
        workspace: Uuid,
        documents: Vec<Uuid>,
    ) -> Result<HashMap<Uuid, Vec<EmbeddedChunk>>, Error> {
        self.off(move |index| {
            let embedded = |document| Ok((document, index.embedded(workspace, document)?));
            documents.into_iter().map(embedded).collect()
        })
        .await
    }

    async fn vectors(
        &self,
        workspace: Uuid,
        documents: Vec<Uuid>,
    ) -> Result<HashMap<Uuid, Vec<(u32, UnitVector)>>, Error> {
        self.off(move |index| {
            let vectors = |document| Ok((document, index.vectors().of(workspace, document)?));
            documents.into_iter().map(vectors).collect()
        })
        .await
    }

    async fn counts(&self, workspace: Uuid) -> Result<Counts, Error> {
        self.off(move |index| index.counts(workspace)).await
    }

    async fn flush(&self) -> Result<(), Error> {
        self.off(Index::flush).await
    }

    async fn maintain(&self) -> Result<(), Error> {
        self.off(Index::maintain).await
    }
}
