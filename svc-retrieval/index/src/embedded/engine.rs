//! The embedded index as an [`Engine`]: its work runs on blocking threads.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::Semaphore;
use uuid::Uuid;

use super::Index;
use crate::vectors::UnitVector;
use crate::{
    Batch, Candidates, ChunkId, Counts, Cursors, EmbeddedChunk, Engine, Error, IndexedDocument,
    InspectRequest, Inspection, Query, StoredChunk,
};

/// The embedded index as an engine; cheap to clone.
#[derive(Debug, Clone)]
pub struct EmbeddedEngine {
    index: Arc<Index>,
    permits: Arc<Semaphore>,
}

impl EmbeddedEngine {
    /// Each search takes one of the permits. Use one per core ([`EmbeddedEngine::permits`]): finding candidates is CPU-bound.
    /// More concurrent searches would each take longer, and would delay a fresh write at each of the tasks that it passes
    /// through.
    #[must_use]
    pub fn new(index: Arc<Index>, permits: Arc<Semaphore>) -> Self {
        Self { index, permits }
    }

    /// One permit per core.
    #[must_use]
    pub fn permits() -> Arc<Semaphore> {
        Arc::new(Semaphore::new(std::thread::available_parallelism().map_or(1, NonZeroUsize::get)))
    }

    /// Runs work on a blocking thread. It is not cancelled when the caller is.
    async fn run_blocking<T: Send + 'static>(
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
        self.run_blocking(move |index| index.apply(batch)).await
    }

    async fn forget(&self, workspace: Uuid) -> Result<(), Error> {
        self.run_blocking(move |index| index.forget(workspace)).await
    }

    fn cursor(&self, feed: &str, workspace: Uuid) -> u64 {
        self.index.cursor(feed, workspace)
    }

    fn cursors(&self) -> Cursors {
        self.index.cursors()
    }

    async fn candidates(&self, query: Query) -> Result<Vec<Candidates>, Error> {
        // The semaphore is never closed; if it were, the search would run without a permit.
        let permit = Arc::clone(&self.permits).acquire_owned().await.ok();
        self.run_blocking(move |index| {
            let _permit = permit;
            index.candidates(&query)
        })
        .await
    }

    async fn candidates_with_drafts(
        &self,
        query: Query,
        documents: Arc<Vec<IndexedDocument>>,
    ) -> Result<Vec<Candidates>, Error> {
        let permit = Arc::clone(&self.permits).acquire_owned().await.ok();
        self.run_blocking(move |index| {
            let _permit = permit;
            index.candidates_with_drafts(&query, &documents)
        })
        .await
    }

    async fn chunks(&self, workspace: Uuid, ids: Vec<ChunkId>) -> Result<Vec<StoredChunk>, Error> {
        self.run_blocking(move |index| index.chunks(workspace, &ids)).await
    }

    async fn inspect(&self, request: InspectRequest) -> Result<Inspection, Error> {
        self.run_blocking(move |index| index.inspect(&request)).await
    }

    async fn inspect_with_drafts(
        &self,
        request: InspectRequest,
        documents: Arc<Vec<IndexedDocument>>,
    ) -> Result<Inspection, Error> {
        self.run_blocking(move |index| index.inspect_with_drafts(&request, &documents)).await
    }

    async fn embedded(
        &self,
        workspace: Uuid,
        documents: Vec<Uuid>,
    ) -> Result<HashMap<Uuid, Vec<EmbeddedChunk>>, Error> {
        self.run_blocking(move |index| {
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
        self.run_blocking(move |index| {
            let vectors = |document| Ok((document, index.vectors().of(workspace, document)?));
            documents.into_iter().map(vectors).collect()
        })
        .await
    }

    async fn counts(&self, workspace: Uuid) -> Result<Counts, Error> {
        self.run_blocking(move |index| index.counts(workspace)).await
    }

    async fn flush(&self) -> Result<(), Error> {
        self.run_blocking(Index::flush).await
    }

    async fn maintain(&self) -> Result<(), Error> {
        self.run_blocking(Index::maintain).await
    }
}
