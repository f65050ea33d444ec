//! The engine on Qdrant, for several replicas of retrieval without local state.
//!
//! One collection holds the chunks of all workspaces for one embedder. A chunk has a dense vector for semantic search, a sparse one for
//! BM25 ([`words`]), its tokens for phrases and exclusions, and the fields that are returned. It is derived data: a deleted
//! collection is rebuilt from the feeds. [`write`] says how batches are applied without transactions.

mod api;
mod candidates;
mod client;
mod collection;
mod completions;
mod cursor_reads;
mod drafts;
mod factory;
mod filters;
mod inspect;
mod language_cache;
mod mark;
mod nearness;
mod points;
mod read;
mod tuning;
mod words;
mod write;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use cairn_chassis::ids::IdSource;
use uuid::Uuid;

pub(super) use self::factory::QdrantFactory;

use self::client::Client;
use self::cursor_reads::CursorReads;
use self::drafts::Drafts;
use self::language_cache::LanguageCache;
use self::points::{DOCUMENT, HEADINGS, ORDINAL, PIECES, Row, TABLE_HEADER, TEXT, TITLE};
use self::write::Replacement;
use super::Config;
use crate::vectors::UnitVector;
use crate::{
    Batch, Candidates, ChunkId, Counts, Cursors, EmbeddedChunk, Engine, IndexedDocument, InspectRequest,
    Inspection, Query, StoredChunk,
};

/// 1 while Qdrant is healthy.
const UP: &str = "cairn_retrieval_qdrant_up";

/// Why a call of Qdrant failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The server lacks features that searches need.
    #[error(
        "Qdrant cannot be used as configured: the server is older than 1.19: replace it with a newer one"
    )]
    TooOld,
    /// The server cannot be reached, or is overloaded.
    #[error("Qdrant cannot be reached: {0}")]
    Unreachable(String),
    /// The API key is not accepted.
    #[error("Qdrant refuses the API key: set CAIRN_QDRANT_API_KEY to one that may read and write")]
    Refused,
    /// The collection was removed while this process ran; another replica may have recreated it.
    #[error("the collection is no longer in Qdrant; it is made again and filled from the feeds")]
    Gone,
    /// The collection of that name was not created by this version of Cairn for this embedder.
    #[error(
        "the collection {collection} has other vectors: remove it, or choose another CAIRN_QDRANT_PREFIX"
    )]
    Foreign {
        /// Its name.
        collection: String,
    },
    /// Qdrant rejects the request as invalid.
    #[error("Qdrant rejects a request: {0}")]
    Rejected(String),
    /// The response is malformed.
    #[error("Qdrant's answer cannot be used: {0}")]
    Answer(&'static str),
    /// The cursors in Qdrant are behind those that this process had cached. The cache is refreshed; the caller starts again from
    /// there.
    #[error("what was applied before is no longer in Qdrant; indexing goes on from where it is")]
    CursorsBehind,
}

impl From<Error> for crate::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::CursorsBehind => Self::CursorsBehind,
            Error::Unreachable(_) | Error::Refused | Error::Gone => Self::Unavailable(Box::new(error)),
            Error::TooOld | Error::Foreign { .. } | Error::Rejected(_) | Error::Answer(_) => {
                Self::Remote(Box::new(error))
            }
        }
    }
}

/// An index on Qdrant; cheap to clone.
#[derive(Clone)]
pub(crate) struct Index(Arc<Inner>);

struct Inner {
    client: Client,
    collection: String,
    dimensions: usize,
    /// Whether the collection exists with all of its indexes, and the cursors were read.
    is_ready: AtomicBool,
    /// Held while the collection is being prepared.
    preparing: tokio::sync::Mutex<()>,
    /// Identifies the collection among successive ones of the same name ([`mark`]).
    mark: RwLock<Option<Uuid>>,
    /// Generates marks.
    ids: IdSource,
    /// The last known cursors.
    cursors: RwLock<Cursors>,
    /// The cursors that callers continue from.
    cursor_reads: CursorReads,
    /// How often the collection was lost.
    storage_losses: AtomicU64,
    language_cache: LanguageCache,
    /// The result of the last health check.
    answers: AtomicBool,
}

impl fmt::Debug for Index {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Index").field("collection", &self.0.collection).finish_non_exhaustive()
    }
}

impl Index {
    /// The index in a collection. Connects on first use.
    fn on(client: Client, collection: String, dimensions: usize, ids: IdSource) -> Self {
        Self(Arc::new(Inner {
            client,
            collection,
            dimensions,
            is_ready: AtomicBool::new(false),
            preparing: tokio::sync::Mutex::default(),
            mark: RwLock::default(),
            ids,
            cursors: RwLock::default(),
            cursor_reads: CursorReads::default(),
            storage_losses: AtomicU64::new(0),
            language_cache: LanguageCache::default(),
            answers: AtomicBool::new(true),
        }))
    }

    /// Creates the collection if it does not exist, and reads the cursors.
    async fn prepare(&self) -> Result<(), Error> {
        self.0.ready().await
    }

    /// The points of a document.
    fn replacement(&self, document: &IndexedDocument) -> Result<Replacement, crate::Error> {
        let mut rows = Vec::with_capacity(document.chunks.len());
        for (ordinal, chunk) in (0..).zip(&document.chunks) {
            if chunk.embedding.len() != self.0.dimensions {
                let (expected, given) = (self.0.dimensions, chunk.embedding.len());
                return Err(crate::Error::Dimensions { expected, given });
            }
            rows.push(Row::of_chunk(document, ordinal, chunk, UnitVector::new(&chunk.embedding)));
        }
        Ok(Replacement { workspace: document.workspace, document: document.document, rows })
    }

    fn has_dimensions(&self, given: usize) -> Result<(), crate::Error> {
        let expected = self.0.dimensions;
        if given == expected { Ok(()) } else { Err(crate::Error::Dimensions { expected, given }) }
    }
}

impl Inner {
    /// Returns when the collection is ready; creates it if it does not exist.
    async fn ready(&self) -> Result<(), Error> {
        if self.is_ready.load(Ordering::Acquire) {
            return Ok(());
        }
        let _preparing = self.preparing.lock().await;
        if !self.is_ready.load(Ordering::Acquire) {
            collection::ensure(&self.client, &self.collection, self.dimensions).await?;
            // Before the cursors, so that cursors of a collection that replaces this one meanwhile do not count.
            let mark = self.ensure_mark().await?;
            let cursors = self.read_cursors(mark).await?;
            // Held until everything is set, so that a concurrent loss comes either before or after.
            let mut current = self.mark.write().unwrap_or_else(PoisonError::into_inner);
            *current = Some(mark);
            *self.cursors.write().unwrap_or_else(PoisonError::into_inner) = cursors;
            self.is_ready.store(true, Ordering::Release);
        }
        Ok(())
    }

    /// Detects from an error that the collection is gone, so that the next call recreates it.
    fn detect_loss<T, E>(&self, answer: Result<T, E>) -> Result<T, Error>
    where
        Error: From<E>,
    {
        answer.map_err(|error| {
            let error = Error::from(error);
            if matches!(error, Error::Gone) {
                self.mark_lost();
            }
            error
        })
    }

    /// Checks the health of Qdrant, and logs changes of it.
    async fn check_health(&self) -> Result<(), Error> {
        let health = match self.client.api.health_check().await {
            Ok(_) => self.recover().await,
            Err(error) => Err(error.into()),
        };
        let answered = health.is_ok();
        let answered_before = self.answers.swap(answered, Ordering::AcqRel);
        metrics::gauge!(UP).set(if answered { 1.0 } else { 0.0 });
        match &health {
            Ok(()) if !answered_before => tracing::info!("Qdrant answers again"),
            Err(error) if answered_before => {
                tracing::warn!(%error, "Qdrant does not answer: searches fail until it does");
            }
            Ok(()) | Err(_) => {}
        }
        health
    }

    fn mark_lost(&self) {
        self.cursor_reads.invalidate();
        self.storage_losses.fetch_add(1, Ordering::AcqRel);
        let mut current = self.mark.write().unwrap_or_else(PoisonError::into_inner);
        *current = None;
        self.cursors.write().unwrap_or_else(PoisonError::into_inner).clear();
        // Last: whoever sees it reads the cursors of the next collection.
        self.is_ready.store(false, Ordering::Release);
    }

    fn cursor(&self, feed: &str, workspace: Uuid) -> u64 {
        let cursors = self.cursors.read().unwrap_or_else(PoisonError::into_inner);
        cursors.get(feed).and_then(|feed| feed.get(&workspace)).copied().unwrap_or(0)
    }

    fn set_cursor(&self, feed: &str, workspace: Uuid, position: u64) {
        let mut cursors = self.cursors.write().unwrap_or_else(PoisonError::into_inner);
        let before = cursors.get(feed).and_then(|feed| feed.get(&workspace)).copied().unwrap_or(0);
        if before != position {
            // Another replica may have written documents in another language.
            self.language_cache.invalidate(workspace);
        }
        if position == 0 {
            cursors.get_mut(feed).and_then(|feed| feed.remove(&workspace));
        } else {
            cursors.entry(feed.to_owned()).or_default().insert(workspace, position);
        }
    }

    fn drop_cursors(&self, workspace: Uuid) {
        let mut cursors = self.cursors.write().unwrap_or_else(PoisonError::into_inner);
        for positions in cursors.values_mut() {
            positions.remove(&workspace);
        }
    }
}

#[async_trait]
impl Engine for Index {
    async fn apply(&self, batch: Batch) -> Result<(), crate::Error> {
        let gone = |(workspace, document): &(Uuid, Uuid)| Replacement {
            workspace: *workspace,
            document: *document,
            rows: Vec::new(),
        };
        let mut documents: Vec<Replacement> = batch.deletions.iter().map(gone).collect();
        for document in &batch.documents {
            documents.push(self.replacement(document)?);
        }
        self.0.apply(documents, batch.cursors).await?;
        for document in &batch.documents {
            self.0.language_cache.record_write(document.workspace, document.language);
        }
        Ok(())
    }

    async fn forget(&self, workspace: Uuid) -> Result<(), crate::Error> {
        Ok(self.0.forget(workspace).await?)
    }

    fn cursor(&self, feed: &str, workspace: Uuid) -> u64 {
        self.0.cursor(feed, workspace)
    }

    fn cursors(&self) -> Cursors {
        self.0.cursors.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn refresh(&self, feed: &str, workspace: Uuid) -> Result<u64, crate::Error> {
        self.0.cursor_reads.record(feed, workspace);
        Ok(self.0.refresh(feed, workspace).await?)
    }

    async fn candidates(&self, query: Query) -> Result<Vec<Candidates>, crate::Error> {
        for vector in query.lists.iter().filter_map(|list_query| list_query.vector.as_ref()) {
            self.has_dimensions(vector.len())?;
        }
        Ok(self.0.candidates(&query).await?)
    }

    async fn candidates_with_drafts(
        &self,
        query: Query,
        documents: Arc<Vec<IndexedDocument>>,
    ) -> Result<Vec<Candidates>, crate::Error> {
        for vector in query.lists.iter().filter_map(|list_query| list_query.vector.as_ref()) {
            self.has_dimensions(vector.len())?;
        }
        let drafts = tokio::task::spawn_blocking(move || Drafts::of(&documents)).await?;
        Ok(self.0.candidates_with_drafts(&query, &drafts).await?)
    }

    async fn chunks(&self, workspace: Uuid, ids: Vec<ChunkId>) -> Result<Vec<StoredChunk>, crate::Error> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        Ok(self.0.chunks(workspace, ids).await?)
    }

    async fn inspect(&self, request: InspectRequest) -> Result<Inspection, crate::Error> {
        Ok(self.0.inspect(&request, &Drafts::default()).await?)
    }

    async fn inspect_with_drafts(
        &self,
        mut request: InspectRequest,
        documents: Arc<Vec<IndexedDocument>>,
    ) -> Result<Inspection, crate::Error> {
        let requested = request.chunks.clone();
        request.chunks.retain(|chunk| documents.iter().all(|document| document.document != chunk.document));
        let with_vectors = request.pieces.is_some();
        let to_analyse = Arc::clone(&documents);
        let drafts = tokio::task::spawn_blocking(move || Drafts::of(&to_analyse)).await?;
        let mut inspection = self.0.inspect(&request, &drafts).await?;
        for id in &requested {
            let document = documents.iter().find(|document| document.document == id.document);
            let Some((stored, composed)) = document.and_then(|document| document.stored_chunk(id.ordinal))
            else {
                continue;
            };
            inspection.chunks.push(stored);
            inspection.composed.extend(composed.filter(|_| with_vectors).map(|composed| (*id, composed)));
        }
        let place = |chunk: &StoredChunk| requested.iter().position(|id| *id == chunk.id);
        inspection.chunks.sort_by_key(place);
        Ok(inspection)
    }

    async fn embedded(
        &self,
        workspace: Uuid,
        documents: Vec<Uuid>,
    ) -> Result<HashMap<Uuid, Vec<EmbeddedChunk>>, crate::Error> {
        let with = [DOCUMENT, ORDINAL, TITLE, HEADINGS, TABLE_HEADER, TEXT, PIECES];
        let mut embedded: HashMap<Uuid, Vec<EmbeddedChunk>> = HashMap::new();
        for (id, chunk) in self.0.embedded(workspace, documents, &with).await? {
            embedded.entry(id.document).or_default().push(chunk);
        }
        Ok(embedded)
    }

    async fn vectors(
        &self,
        workspace: Uuid,
        documents: Vec<Uuid>,
    ) -> Result<HashMap<Uuid, Vec<(u32, UnitVector)>>, crate::Error> {
        let mut vectors: HashMap<Uuid, Vec<(u32, UnitVector)>> = HashMap::new();
        for (id, chunk) in self.0.embedded(workspace, documents, &[DOCUMENT, ORDINAL]).await? {
            let unit = UnitVector::new(&chunk.embedding).map(|unit| (id.ordinal, unit));
            vectors.entry(id.document).or_default().extend(unit);
        }
        Ok(vectors)
    }

    async fn counts(&self, workspace: Uuid) -> Result<Counts, crate::Error> {
        Ok(self.0.counts(workspace).await?)
    }

    async fn maintain(&self) -> Result<(), crate::Error> {
        // Failures are logged by the check.
        let _health = self.0.check_health().await;
        Ok(())
    }

    fn answers(&self) -> bool {
        self.0.answers.load(Ordering::Acquire)
    }

    fn storage_losses(&self) -> u64 {
        self.0.storage_losses.load(Ordering::Acquire)
    }
}
