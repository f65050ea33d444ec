//! An in-memory engine with only the guarantees of the contract: changes are visible at once, and persisted with a delay.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use cairn_embed::{self as embed, Embedder, ImmediateEmbedder, TextKind};
use cairn_index::vectors::UnitVector;
use cairn_index::{
    Batch, Candidates, ChunkId, Counts, Cursors, EmbeddedChunk, Engine, Error, IndexedDocument,
    InspectRequest, Inspection, Query, StoredChunk,
};
use uuid::Uuid;

use super::course::{Course, Refused};

/// The contents of an index.
#[derive(Debug, Clone, Default)]
pub(in crate::indexing) struct Contents {
    /// By workspace and document.
    pub(in crate::indexing) documents: BTreeMap<(Uuid, Uuid), IndexedDocument>,
    cursors: Cursors,
}

impl Contents {
    pub(in crate::indexing) fn cursor(&self, feed: &str, workspace: Uuid) -> u64 {
        self.cursors.get(feed).and_then(|of| of.get(&workspace)).copied().unwrap_or(0)
    }

    fn apply(&mut self, batch: Batch) {
        for place in batch.deletions {
            self.documents.remove(&place);
        }
        for document in batch.documents {
            let place = (document.workspace, document.document);
            if document.chunks.is_empty() {
                self.documents.remove(&place);
            } else {
                self.documents.insert(place, document);
            }
        }
        for cursor in batch.cursors {
            self.cursors.entry(cursor.feed).or_default().insert(cursor.workspace, cursor.position);
        }
    }

    fn forget(&mut self, workspace: Uuid) {
        self.documents.retain(|(of, _), _| *of != workspace);
        for of_feed in self.cursors.values_mut() {
            of_feed.remove(&workspace);
        }
    }
}

/// The persisted contents, which survive a crash, and those that are visible to the process.
#[derive(Debug, Clone, Default)]
pub(in crate::indexing) struct Disk {
    pub(in crate::indexing) persisted: Contents,
    pub(in crate::indexing) visible: Contents,
}

impl Disk {
    /// The process crashes: changes that were not persisted are lost.
    pub(in crate::indexing) fn crash(&mut self) {
        self.visible = self.persisted.clone();
    }

    pub(in crate::indexing) fn persist(&mut self) {
        self.persisted = self.visible.clone();
    }
}

/// The engine of one process.
#[derive(Debug)]
pub(in crate::indexing) struct InMemory {
    pub(in crate::indexing) disk: Arc<Mutex<Disk>>,
    pub(in crate::indexing) course: Course,
    /// Whether changes are persisted at once, or with the next flush.
    pub(in crate::indexing) persists_at_once: bool,
}

impl From<Refused> for Error {
    fn from(refused: Refused) -> Self {
        Self::Unavailable(Box::new(refused))
    }
}

impl InMemory {
    async fn change(&self, change: impl FnOnce(&mut Contents) + Send) -> Result<(), Error> {
        self.course.pass().await?;
        {
            let mut disk = self.disk.lock().unwrap();
            change(&mut disk.visible);
            if self.persists_at_once {
                disk.persist();
            }
        }
        // The change is applied, but its response may be lost.
        Ok(self.course.pass().await?)
    }
}

#[async_trait]
impl Engine for InMemory {
    async fn apply(&self, batch: Batch) -> Result<(), Error> {
        self.change(|contents| contents.apply(batch)).await
    }

    async fn forget(&self, workspace: Uuid) -> Result<(), Error> {
        self.change(|contents| contents.forget(workspace)).await
    }

    fn cursor(&self, feed: &str, workspace: Uuid) -> u64 {
        self.disk.lock().unwrap().visible.cursor(feed, workspace)
    }

    fn cursors(&self) -> Cursors {
        self.disk.lock().unwrap().visible.cursors.clone()
    }

    async fn embedded(
        &self,
        workspace: Uuid,
        documents: Vec<Uuid>,
    ) -> Result<HashMap<Uuid, Vec<EmbeddedChunk>>, Error> {
        self.course.pass().await?;
        let disk = self.disk.lock().unwrap();
        let found =
            documents.into_iter().filter_map(|id| Some((id, disk.visible.documents.get(&(workspace, id))?)));
        Ok(found.map(|(id, document)| (id, embedded_of(document))).collect())
    }

    async fn candidates(&self, _: Query) -> Result<Vec<Candidates>, Error> {
        Ok(Vec::new())
    }

    async fn candidates_with_drafts(
        &self,
        _: Query,
        _: Arc<Vec<IndexedDocument>>,
    ) -> Result<Vec<Candidates>, Error> {
        Ok(Vec::new())
    }

    async fn chunks(&self, _: Uuid, _: Vec<ChunkId>) -> Result<Vec<StoredChunk>, Error> {
        Ok(Vec::new())
    }

    async fn inspect(&self, _: InspectRequest) -> Result<Inspection, Error> {
        Ok(Inspection::default())
    }

    async fn inspect_with_drafts(
        &self,
        _: InspectRequest,
        _: Arc<Vec<IndexedDocument>>,
    ) -> Result<Inspection, Error> {
        Ok(Inspection::default())
    }

    async fn vectors(&self, _: Uuid, _: Vec<Uuid>) -> Result<HashMap<Uuid, Vec<(u32, UnitVector)>>, Error> {
        Ok(HashMap::new())
    }

    async fn counts(&self, _: Uuid) -> Result<Counts, Error> {
        Ok(Counts::default())
    }
}

fn embedded_of(document: &IndexedDocument) -> Vec<EmbeddedChunk> {
    let chunks = document.chunks.iter().filter(|chunk| chunk.embedding.iter().any(|value| *value != 0.0));
    let embedded = chunks.map(|chunk| EmbeddedChunk {
        title: document.title.clone(),
        heading_path: chunk.heading_path.clone(),
        table_header: chunk.table_header.clone(),
        text: chunk.text.clone(),
        embedding: chunk.embedding.clone(),
        pieces: chunk.pieces.clone(),
    });
    embedded.collect()
}

/// The length of every vector here.
pub(in crate::indexing) const DIMENSIONS: usize = 2;

/// An embedder that embeds at once, or takes its time.
#[derive(Debug, Clone, Copy)]
pub(in crate::indexing) struct Lengths {
    pub(in crate::indexing) is_immediate: bool,
}

#[async_trait]
impl Embedder for Lengths {
    fn name(&self) -> &'static str {
        "lengths"
    }

    fn dimensions(&self) -> usize {
        DIMENSIONS
    }

    fn immediate(&self) -> Option<&dyn ImmediateEmbedder> {
        self.is_immediate.then_some(self as &dyn ImmediateEmbedder)
    }

    async fn embed(&self, _: TextKind, texts: &[&str]) -> Result<Vec<Vec<f32>>, embed::Error> {
        Ok(self.embed_now(texts))
    }
}

impl ImmediateEmbedder for Lengths {
    /// Of length 1, and another one for almost every length of a text.
    fn embed_now(&self, texts: &[&str]) -> Vec<Vec<f32>> {
        let angle = |text: &&str| text.len() as f32 / 100.0;
        texts.iter().map(|text| vec![angle(text).cos(), angle(text).sin()]).collect()
    }
}
