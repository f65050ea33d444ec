//! Applies batches: one commit and one reload each, then the vectors.

use std::sync::PoisonError;

use tantivy::IndexWriter;
use tantivy::indexer::{IndexWriterOptions, LogMergePolicy, UserOperation};
use uuid::Uuid;

use super::model::{Batch, ChunkId};
use super::open::Payload;
use super::tuning::{
    MERGE_AT, MERGE_CLASS_WIDTH, MERGE_DELETED_SHARE, MERGE_SMALLEST, MERGE_THREADS, WRITER_MEMORY,
};
use super::{Error, Index};
use crate::vectors::{DocumentVectors, UnitVector};

/// A batch in the engine's terms.
#[derive(Default)]
struct Changes {
    operations: Vec<UserOperation>,
    vectors: Vec<(Uuid, DocumentVectors)>,
}

impl Index {
    pub(super) fn write(&self, batch: Batch) -> Result<(), Error> {
        let changes = self.changes(&batch)?;
        let move_cursors = |payload: &mut Payload| {
            for cursor in batch.cursors {
                payload.cursors.entry(cursor.feed).or_default().insert(cursor.workspace, cursor.position);
            }
        };
        self.commit_with(changes.operations, move_cursors, || self.vectors.apply(&changes.vectors))
    }

    pub(super) fn remove(&self, workspace: Uuid) -> Result<(), Error> {
        let all_chunks = UserOperation::Delete(self.fields.workspace_term(workspace));
        let drop_cursors = |payload: &mut Payload| {
            for positions in payload.cursors.values_mut() {
                positions.remove(&workspace);
            }
        };
        // Rare enough that every workspace's vectors may be read anew.
        self.commit_with(vec![all_chunks], drop_cursors, || self.vectors.release())
    }

    /// Commits operations and cursors together, then lets the vectors follow.
    fn commit_with(
        &self,
        operations: Vec<UserOperation>,
        change_payload: impl FnOnce(&mut Payload),
        follow: impl FnOnce(),
    ) -> Result<(), Error> {
        // Held to the end: one batch at a time, and none reads the cursors that another is about to move.
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let mut payload = self.payload.read().unwrap_or_else(PoisonError::into_inner).clone();
        change_payload(&mut payload);
        if let Err(error) = self.commit(&mut writer, operations, &payload) {
            // Drops what is uncommitted. If the commit itself went through, the vectors have missed it.
            *writer = None;
            self.vectors.release();
            return Err(error);
        }
        follow();
        *self.payload.write().unwrap_or_else(PoisonError::into_inner) = payload;
        Ok(())
    }

    fn commit(
        &self,
        writer: &mut Option<IndexWriter>,
        operations: Vec<UserOperation>,
        payload: &Payload,
    ) -> Result<(), Error> {
        let payload = serde_json::to_string(payload)?;
        let writer = match writer.as_mut() {
            Some(writer) => writer,
            None => writer.insert(self.open_writer()?),
        };
        writer.run(operations)?;
        let mut commit = writer.prepare_commit()?;
        commit.set_payload(&payload);
        commit.commit()?;
        self.reader.reload()?;
        Ok(())
    }

    fn open_writer(&self) -> Result<IndexWriter, Error> {
        let options = IndexWriterOptions::builder()
            .num_worker_threads(1)
            .memory_budget_per_thread(WRITER_MEMORY)
            .num_merge_threads(MERGE_THREADS)
            .build();
        let writer: IndexWriter = self.engine.writer_with_options(options)?;
        let mut policy = LogMergePolicy::default();
        policy.set_min_num_segments(MERGE_AT);
        policy.set_min_layer_size(MERGE_SMALLEST);
        policy.set_level_log_size(MERGE_CLASS_WIDTH);
        policy.set_del_docs_ratio_before_merge(MERGE_DELETED_SHARE);
        writer.set_merge_policy(Box::new(policy));
        Ok(writer)
    }

    /// Deletions come first, and each document deletes what it replaces.
    fn changes(&self, batch: &Batch) -> Result<Changes, Error> {
        let mut changes = Changes::default();
        for (workspace, document) in &batch.deletions {
            let gone = self.fields.document_term(*workspace, *document);
            changes.operations.push(UserOperation::Delete(gone));
            let vectors = DocumentVectors { document: *document, container: None, rows: Vec::new() };
            changes.vectors.push((*workspace, vectors));
        }
        for document in &batch.documents {
            let replaced = self.fields.document_term(document.workspace, document.document);
            changes.operations.push(UserOperation::Delete(replaced));
            let mut rows = Vec::with_capacity(document.chunks.len());
            for (ordinal, chunk) in (0..).zip(&document.chunks) {
                let vector = self.unit_vector(&chunk.embedding)?;
                let id = ChunkId { document: document.document, ordinal };
                let encoded = self.fields.encode(document, id, chunk, vector.as_ref());
                changes.operations.push(UserOperation::Add(encoded));
                rows.extend(vector.map(|vector| (ordinal, vector)));
            }
            let vectors =
                DocumentVectors { document: document.document, container: document.container, rows };
            changes.vectors.push((document.workspace, vectors));
        }
        Ok(changes)
    }

    /// None for a zero vector.
    fn unit_vector(&self, embedding: &[f32]) -> Result<Option<UnitVector>, Error> {
        if embedding.len() == self.dimensions.get() {
            return Ok(UnitVector::new(embedding));
        }
        Err(Error::Dimensions { expected: self.dimensions.get(), given: embedding.len() })
    }
}
