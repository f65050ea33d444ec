//! Applies batches: small ones to in-memory segments, which a later commit writes to files together with the cursors.

use std::collections::{HashMap, HashSet};
use std::sync::{MutexGuard, PoisonError};

use tantivy::index::SegmentId;
use tantivy::indexer::{IndexWriterOptions, LogMergePolicy, UserOperation};
use tantivy::{IndexWriter, SegmentReader, TantivyDocument, Term};
use uuid::Uuid;

use super::open::Payload;
use super::recent::{self, Pending};
use super::view::View;
use super::{Error, Index};
use crate::tuning::{
    MERGE_AT, MERGE_CLASS_WIDTH, MERGE_DELETED_SHARE, MERGE_SMALLEST, MERGE_THREADS, WRITER_IDLE_ROUNDS,
    WRITER_MEMORY,
};
use crate::vectors::{Composed, DocumentVectors};
use crate::words::Stems;
use crate::{Batch, ChunkId, IndexedChunk, IndexedDocument};

/// The state of the write path, which one batch at a time locks.
pub(super) struct WriterState {
    /// Opened by the first commit, since its threads and buffers take memory.
    writer: Option<IndexWriter>,
    pending: Pending,
    /// The payload of the last commit.
    committed: Payload,
    /// Rounds of maintenance since the last write.
    idle_rounds: u32,
}

impl WriterState {
    pub(super) fn new(committed: Payload) -> Self {
        Self { writer: None, pending: Pending::default(), committed, idle_rounds: 0 }
    }
}

/// A writer that is being closed. While it waits for its merges, it holds tantivy's lock of the folder, so that no other writer can
/// be opened.
pub(super) struct ClosingWriter<'a> {
    writer: IndexWriter,
    _closing: MutexGuard<'a, ()>,
}

impl ClosingWriter<'_> {
    /// Waits for the merges.
    pub(super) fn wait(self) -> Result<(), Error> {
        Ok(self.writer.wait_merging_threads()?)
    }
}

/// A batch in tantivy's terms.
#[derive(Default)]
struct Changes {
    deletions: Vec<Term>,
    rows: Vec<TantivyDocument>,
    vectors: Vec<(Uuid, DocumentVectors)>,
}

impl Index {
    pub(super) fn write(&self, batch: Batch) -> Result<(), Error> {
        let mut changes = self.changes(&batch)?;
        let mut writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        writing.idle_rounds = 0;
        // New documents have no rows to delete, and a single deletion makes a commit reopen every segment.
        changes.deletions = self.current_view.load().existing_keys(changes.deletions)?;
        let rows = changes.rows.len();
        let payload = if writing.pending.has_room_for(rows) {
            self.publish_recent(&changes)?;
            writing.pending.push(operations(changes.deletions, changes.rows), rows);
            None
        } else {
            writing.pending.push(operations(changes.deletions, changes.rows), rows);
            let mut payload = self.payload();
            payload.advance(&batch.cursors);
            self.commit(&mut writing, &payload)?;
            Some(payload)
        };
        self.vectors.apply(&changes.vectors);
        // Last: whoever reads a cursor must find everything up to it.
        let mut published = self.payload.write().unwrap_or_else(PoisonError::into_inner);
        match payload {
            Some(payload) => *published = payload,
            None => published.advance(&batch.cursors),
        }
        Ok(())
    }

    pub(super) fn remove(&self, workspace: Uuid) -> Result<(), Error> {
        let mut writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut payload = self.payload();
        for positions in payload.cursors.values_mut() {
            positions.remove(&workspace);
        }
        writing.pending.push(operations(vec![self.fields.workspace_term(workspace)], Vec::new()), 0);
        self.commit(&mut writing, &payload)?;
        // Rare enough to reload the vectors of every workspace.
        self.vectors.release();
        self.set_payload(payload);
        Ok(())
    }

    /// Commits pending batches.
    pub(super) fn commit_pending(&self) -> Result<(), Error> {
        let mut writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        if writing.pending.is_empty() {
            return Ok(());
        }
        let payload = self.payload();
        self.commit(&mut writing, &payload)
    }

    /// Commits pending batches, and closes the writer once its merges have finished. Batches are applied meanwhile; only a
    /// commit, which needs another writer, waits.
    pub(super) fn close_writer(&self) -> Result<(), Error> {
        self.commit_pending()?;
        let Some(closing) = self.take_writer() else { return Ok(()) };
        closing.wait()?;
        let writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        if writing.pending.is_empty() && self.has_merged()? {
            // Closes the files of merged segments.
            self.reader.reload()?;
            self.current_view.store(View::committed(self.reader.searcher()));
        }
        Ok(())
    }

    /// Takes the writer out to close it. Lock order: `writing` before `closing`; the holder of a [`ClosingWriter`] must not lock
    /// `writing` before it is dropped.
    pub(super) fn take_writer(&self) -> Option<ClosingWriter<'_>> {
        let mut writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let writer = writing.writer.take()?;
        // Never contended: there is no writer while another one is being closed.
        let closing = self.closing.lock().unwrap_or_else(PoisonError::into_inner);
        Some(ClosingWriter { writer, _closing: closing })
    }

    /// Closes the writer after [`WRITER_IDLE_ROUNDS`] calls without a write.
    pub(super) fn close_idle_writer(&self) -> Result<(), Error> {
        let is_idle = {
            let mut writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
            writing.idle_rounds = writing.idle_rounds.saturating_add(1);
            writing.writer.is_some() && writing.idle_rounds > WRITER_IDLE_ROUNDS
        };
        if is_idle { self.close_writer() } else { Ok(()) }
    }

    /// Whether segments were merged since the last commit.
    fn has_merged(&self) -> Result<bool, Error> {
        let searched: HashSet<SegmentId> =
            self.reader.searcher().segment_readers().iter().map(SegmentReader::segment_id).collect();
        let committed: HashSet<SegmentId> = self.engine.searchable_segment_ids()?.into_iter().collect();
        Ok(searched != committed)
    }

    fn publish_recent(&self, changes: &Changes) -> Result<(), Error> {
        if changes.deletions.is_empty() && changes.rows.is_empty() {
            return Ok(());
        }
        let recent = match changes.rows.as_slice() {
            [] => None,
            rows => Some(recent::segment(&self.fields.schema, self.engine.tokenizers(), rows)?),
        };
        let view = self.current_view.load().with(&changes.deletions, recent)?;
        self.current_view.store(view);
        Ok(())
    }

    /// Commits pending batches with the payload. On failure the index is rolled back to the last commit, from which the feeds are
    /// replayed.
    fn commit(&self, writing: &mut WriterState, payload: &Payload) -> Result<(), Error> {
        if let Err(error) = self.try_commit(writing, payload) {
            // Discards uncommitted operations.
            writing.writer = None;
            self.current_view.store(View::committed(self.reader.searcher()));
            self.vectors.release();
            self.set_payload(writing.committed.clone());
            return Err(error);
        }
        writing.committed = payload.clone();
        Ok(())
    }

    fn try_commit(&self, writing: &mut WriterState, payload: &Payload) -> Result<(), Error> {
        let operations = std::mem::take(&mut writing.pending).into_operations();
        let text = serde_json::to_string(payload)?;
        let writer = match writing.writer.as_mut() {
            Some(writer) => writer,
            None => writing.writer.insert(self.open_writer()?),
        };
        writer.run(operations)?;
        let mut commit = writer.prepare_commit()?;
        commit.set_payload(&text);
        commit.commit()?;
        self.reader.reload()?;
        self.current_view.store(View::committed(self.reader.searcher()));
        Ok(())
    }

    fn open_writer(&self) -> Result<IndexWriter, Error> {
        let _closed = self.closing.lock().unwrap_or_else(PoisonError::into_inner);
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

    fn payload(&self) -> Payload {
        self.payload.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_payload(&self, payload: Payload) {
        *self.payload.write().unwrap_or_else(PoisonError::into_inner) = payload;
    }

    /// The changes of a batch. Rows of deleted and replaced documents are deleted; of several documents with one id the last one
    /// wins.
    fn changes(&self, batch: &Batch) -> Result<Changes, Error> {
        let mut changes = Changes::default();
        let last: HashMap<(Uuid, Uuid), &IndexedDocument> = batch
            .documents
            .iter()
            .map(|document| ((document.workspace, document.document), document))
            .collect();
        let deleted: HashSet<(Uuid, Uuid)> = batch.deletions.iter().copied().collect();
        for key in deleted.iter().filter(|key| !last.contains_key(key)) {
            changes.deletions.push(self.fields.document_term(key.0, key.1));
            let vectors = DocumentVectors { document: key.1, container: None, rows: Vec::new() };
            changes.vectors.push((key.0, vectors));
        }
        let mut stems = Stems::default();
        for document in last.into_values() {
            self.replace(document, &mut stems, &mut changes)?;
        }
        Ok(changes)
    }

    fn replace(
        &self,
        document: &IndexedDocument,
        stems: &mut Stems,
        changes: &mut Changes,
    ) -> Result<(), Error> {
        changes.deletions.push(self.fields.document_term(document.workspace, document.document));
        let mut rows = Vec::with_capacity(document.chunks.len());
        for (ordinal, chunk) in (0..).zip(&document.chunks) {
            let composed = self.composed(chunk)?;
            let id = ChunkId { document: document.document, ordinal };
            changes.rows.push(self.fields.encode(document, id, chunk, composed.as_ref(), stems));
            rows.extend(composed.map(|composed| (ordinal, composed)));
        }
        let vectors = DocumentVectors { document: document.document, container: document.container, rows };
        changes.vectors.push((document.workspace, vectors));
        Ok(())
    }

    /// `None` for a zero vector.
    fn composed(&self, chunk: &IndexedChunk) -> Result<Option<Composed>, Error> {
        let given = chunk.embedding.len();
        if given == self.dimensions.get() {
            return Ok(Composed::of(chunk));
        }
        Err(Error::Dimensions { expected: self.dimensions.get(), given })
    }
}

/// Deletions come first, so that they do not remove the new rows.
fn operations(deletions: Vec<Term>, rows: Vec<TantivyDocument>) -> Vec<UserOperation> {
    deletions.into_iter().map(UserOperation::Delete).chain(rows.into_iter().map(UserOperation::Add)).collect()
}
