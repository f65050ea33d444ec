//! Tells the owner of outside documents what became of them, once that is committed.
//!
//! It is told at least once. How far it was told is a cursor of its own, kept by the engine with the others, though a few
//! seconds late: after a crash, or when a call failed, what stands between that cursor and the words' is told again, from
//! the feed.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use cairn_index::{Batch, ChunkId, Cursor};
use cairn_proto::document::v1::{Document, DocumentRef};
use cairn_proto::domain::Feed;
use cairn_proto::feed::v1::Change;
use cairn_proto::ids::WorkspaceId;
use cairn_proto::ingest::v1::IndexedDocument;
use tokio::sync::Notify;
use tokio::time::MissedTickBehavior;
use uuid::Uuid;

use super::Indexer;
use super::batch::{CHANGES_A_READ, touched_documents};
use crate::error::Error;
use crate::owners::Owner;
use crate::partition;

/// Documents that one call tells of.
const DOCUMENTS_A_CALL: usize = 1_000;
/// The least time between two calls for what was just indexed: many are told of as cheaply as one.
const PAUSE: Duration = Duration::from_millis(50);
/// How often the cursors are kept, and what was missed is told. Twice that after a crash the owner knows.
const ROUND_INTERVAL: Duration = Duration::from_secs(5);

/// The cursor that tells how far the owner was told.
fn acknowledged_of(feed: Feed) -> String {
    format!("{feed}/acknowledged")
}

/// What is to be told, and what has been.
#[derive(Debug, Default)]
pub(super) struct Acknowledgements {
    waiting: Mutex<HashMap<WorkspaceId, Waiting>>,
    /// Woken when there is something to tell.
    wake: Notify,
}

/// What became of the documents of a run of changes.
#[derive(Debug)]
struct Waiting {
    documents: HashMap<String, IndexedDocument>,
    /// The position before the first change.
    from: u64,
    to: u64,
}

impl Acknowledgements {
    /// Takes in what came of the changes between two positions.
    pub(super) fn note(
        &self,
        workspace: WorkspaceId,
        (from, to): (u64, u64),
        documents: Vec<IndexedDocument>,
    ) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let entry =
            waiting.entry(workspace).or_insert_with(|| Waiting { documents: HashMap::new(), from, to });
        // The workspace may have been forgotten, and be read from its beginning.
        (entry.from, entry.to) = (entry.from.min(from), to);
        let named = |document: IndexedDocument| Some((document.r#ref.as_ref()?.id.clone(), document));
        entry.documents.extend(documents.into_iter().filter_map(named));
        drop(waiting);
        self.wake.notify_one();
    }

    fn take(&self) -> HashMap<WorkspaceId, Waiting> {
        std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// How far the owner was told, and how far the index was at the last round.
#[derive(Debug, Default)]
struct Told {
    positions: HashMap<WorkspaceId, u64>,
    indexed: HashMap<WorkspaceId, u64>,
}

impl Indexer {
    /// Tells the owner of outside documents, whenever there is something to tell.
    pub(super) async fn acknowledge(&self) {
        let Some(owner) = self.owner(Feed::Ingest) else { return };
        let mut told = Told::default();
        let mut rounds = tokio::time::interval(ROUND_INTERVAL);
        rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let is_round = tokio::select! {
                () = self.0.acknowledgements.wake.notified() => false,
                _ = rounds.tick() => true,
            };
            let outcome = async {
                self.tell_waiting(owner, &mut told).await?;
                if is_round { self.acknowledge_round(owner, &mut told).await } else { Ok(()) }
            };
            if let Err(error) = outcome.await {
                tracing::warn!(feed = %owner.feed, %error, "what was indexed is told later");
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn tell_waiting(&self, owner: &Owner, told: &mut Told) -> Result<(), Error> {
        for (workspace, waiting) in self.0.acknowledgements.take() {
            let before = self.acknowledged(owner, workspace, told);
            tell(owner, workspace, waiting.documents.into_values().collect()).await?;
            // What an earlier call failed to tell stands before it, and is told again in a round.
            if (waiting.from..=waiting.to).contains(&before) {
                told.positions.insert(workspace, waiting.to);
            }
        }
        Ok(())
    }

    fn acknowledged(&self, owner: &Owner, workspace: WorkspaceId, told: &Told) -> u64 {
        let kept = self.0.index.cursor(&acknowledged_of(owner.feed), workspace.0);
        told.positions.get(&workspace).copied().unwrap_or(0).max(kept)
    }

    /// Tells what was missed, and keeps how far everything was told.
    async fn acknowledge_round(&self, owner: &Owner, told: &mut Told) -> Result<(), Error> {
        let words = self.0.index.cursors().remove(owner.feed.as_str()).unwrap_or_default();
        let mut cursors = Vec::new();
        for (workspace, indexed) in words {
            let workspace = WorkspaceId(workspace);
            let seen = told.indexed.insert(workspace, indexed);
            if seen.is_some_and(|seen| seen > indexed) {
                // The workspace was forgotten, and is read from its beginning.
                told.positions.remove(&workspace);
            }
            // What came since the last round is on its way.
            let missed =
                seen.is_some_and(|seen| self.acknowledged(owner, workspace, told) < seen.min(indexed));
            if missed {
                self.tell_again(owner, workspace, indexed, told).await?;
            }
            let position = self.acknowledged(owner, workspace, told).min(indexed);
            let feed = acknowledged_of(owner.feed);
            if self.0.index.cursor(&feed, workspace.0) < position {
                cursors.push(Cursor { feed, workspace: workspace.0, position });
            }
        }
        if cursors.is_empty() {
            return Ok(());
        }
        Ok(self.0.index.apply(Batch { cursors, ..Batch::default() }).await?)
    }

    /// Tells from the feed what became of the changes from where the owner was told last.
    async fn tell_again(
        &self,
        owner: &Owner,
        workspace: WorkspaceId,
        indexed: u64,
        told: &mut Told,
    ) -> Result<(), Error> {
        // Another process may have told it.
        let kept = self.0.index.refresh(&acknowledged_of(owner.feed), workspace.0).await?;
        let mut after = kept.max(told.positions.get(&workspace).copied().unwrap_or(0));
        while after < indexed {
            let mut changes = owner.read_feed(workspace, after).await?.changes;
            changes.retain(|change| change.position <= indexed);
            if changes.is_empty() {
                // The feed has gone back; whoever follows it starts over.
                return Ok(());
            }
            for changes in changes.chunks(CHANGES_A_READ) {
                let outcomes = self.outcomes(owner, workspace, changes).await?;
                tell(owner, workspace, outcomes).await?;
                after = changes.last().map_or(after, |change| change.position);
                told.positions.insert(workspace, after);
            }
        }
        Ok(())
    }

    /// What became of the documents that changes touched, as far as the index holds them as they are now.
    async fn outcomes(
        &self,
        owner: &Owner,
        workspace: WorkspaceId,
        changes: &[Change],
    ) -> Result<Vec<IndexedDocument>, Error> {
        let refs = touched_documents(changes).into_iter().map(|(_, reference)| reference).collect();
        let live = owner.read_documents(workspace, refs).await?;
        let first = |document: &Document| {
            let document = Uuid::try_parse(&document.r#ref.as_ref()?.id).ok()?;
            Some(ChunkId { document, ordinal: 0 })
        };
        let mut stored = HashMap::new();
        for catalog_only in [false, true] {
            let some = live.iter().filter(|document| document.catalog_only == catalog_only);
            let ids = some.filter_map(first).collect();
            let partition = partition::of(workspace, catalog_only);
            let chunks = self.0.index.chunks(partition, ids).await?;
            stored.extend(chunks.into_iter().map(|chunk| (chunk.id.document, chunk.content_hash)));
        }
        let outcomes = live.into_iter().filter_map(|document| {
            let id = first(&document)?.document;
            let chunks = self.0.cutter.count(id, &document)?;
            // What has another text by now changed again, and that is told by itself.
            let is_there = chunks == 0 || stored.get(&id) == Some(&document.content_hash);
            is_there.then_some(IndexedDocument {
                r#ref: document.r#ref,
                content_hash: document.content_hash,
                chunks,
                failure: None,
            })
        });
        Ok(outcomes.collect())
    }
}

async fn tell(owner: &Owner, workspace: WorkspaceId, documents: Vec<IndexedDocument>) -> Result<(), Error> {
    for some in documents.chunks(DOCUMENTS_A_CALL) {
        owner.acknowledge(workspace, some.to_vec()).await?;
    }
    Ok(())
}

/// The outcome of a document that could not be cut.
pub(super) fn failed(reference: DocumentRef, content_hash: String, failure: &str) -> IndexedDocument {
    IndexedDocument { r#ref: Some(reference), content_hash, chunks: 0, failure: Some(failure.to_owned()) }
}
