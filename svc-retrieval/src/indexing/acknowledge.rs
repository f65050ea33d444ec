//! Acknowledges outside documents to their owner, once they are committed.
//!
//! Delivery is at least once. How far was acknowledged is a cursor of its own, stored by the engine with the others a few seconds
//! late: after a crash, or when a call failed, the changes between that cursor and the one of the words are acknowledged again,
//! from the feed.

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
use super::batch::{CHANGES_PER_READ, touched_documents};
use crate::error::Error;
use crate::owners::Owner;
use crate::partition;

/// Documents in one call.
const DOCUMENTS_PER_CALL: usize = 1_000;
/// The minimal interval between two calls for new documents, so that they are batched.
const PAUSE: Duration = Duration::from_millis(50);
/// How often the cursors are stored and missed documents are sent again. After a crash the owner knows within twice that.
const RESEND_INTERVAL: Duration = Duration::from_secs(5);

/// The name of the cursor up to which the owner has been told.
fn acknowledged_cursor(feed: Feed) -> String {
    format!("{feed}/acknowledged")
}

/// Outcomes that wait to be sent.
#[derive(Debug, Default)]
pub(super) struct Acknowledgements {
    waiting: Mutex<HashMap<WorkspaceId, Pending>>,
    /// Woken when there is something to send.
    wake: Notify,
}

/// The outcomes of the documents of a range of changes.
#[derive(Debug)]
struct Pending {
    documents: HashMap<String, IndexedDocument>,
    /// The position before the first change.
    from: u64,
    to: u64,
}

impl Acknowledgements {
    /// Queues the outcomes of the changes between two positions.
    pub(super) fn note(
        &self,
        workspace: WorkspaceId,
        (from, to): (u64, u64),
        documents: Vec<IndexedDocument>,
    ) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let entry =
            waiting.entry(workspace).or_insert_with(|| Pending { documents: HashMap::new(), from, to });
        // The workspace may have been removed, and be read from the beginning of its feed.
        (entry.from, entry.to) = (entry.from.min(from), to);
        let named = |document: IndexedDocument| Some((document.r#ref.as_ref()?.id.clone(), document));
        entry.documents.extend(documents.into_iter().filter_map(named));
        drop(waiting);
        self.wake.notify_one();
    }

    fn take(&self) -> HashMap<WorkspaceId, Pending> {
        std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// How far was acknowledged, and the cursor of the index at the last round.
#[derive(Debug, Default)]
struct Acknowledged {
    positions: HashMap<WorkspaceId, u64>,
    indexed: HashMap<WorkspaceId, u64>,
}

impl Indexer {
    /// Acknowledges outside documents to their owner as they are indexed, forever.
    pub(super) async fn acknowledge(&self) {
        let Some(owner) = self.owner(Feed::Ingest) else { return };
        let mut told = Acknowledged::default();
        let mut rounds = tokio::time::interval(RESEND_INTERVAL);
        rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let is_round = tokio::select! {
                () = self.0.acknowledgements.wake.notified() => false,
                _ = rounds.tick() => true,
            };
            let outcome = async {
                self.send_pending(owner, &mut told).await?;
                if is_round { self.acknowledge_round(owner, &mut told).await } else { Ok(()) }
            };
            if let Err(error) = outcome.await {
                tracing::warn!(feed = %owner.feed, %error, "what was indexed is told later");
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn send_pending(&self, owner: &Owner, told: &mut Acknowledged) -> Result<(), Error> {
        for (workspace, waiting) in self.0.acknowledgements.take() {
            let before = self.acknowledged(owner, workspace, told);
            send(owner, workspace, waiting.documents.into_values().collect()).await?;
            // There is a gap where an earlier call failed; the next round sends it again.
            if (waiting.from..=waiting.to).contains(&before) {
                told.positions.insert(workspace, waiting.to);
            }
        }
        Ok(())
    }

    fn acknowledged(&self, owner: &Owner, workspace: WorkspaceId, told: &Acknowledged) -> u64 {
        let kept = self.0.index.cursor(&acknowledged_cursor(owner.feed), workspace.0);
        told.positions.get(&workspace).copied().unwrap_or(0).max(kept)
    }

    /// Sends again what was missed, and stores the cursor.
    async fn acknowledge_round(&self, owner: &Owner, told: &mut Acknowledged) -> Result<(), Error> {
        let words = self.0.index.cursors().remove(owner.feed.as_str()).unwrap_or_default();
        let mut cursors = Vec::new();
        for (workspace, indexed) in words {
            let workspace = WorkspaceId(workspace);
            let seen = told.indexed.insert(workspace, indexed);
            if seen.is_some_and(|seen| seen > indexed) {
                // The workspace was removed, and is read from the beginning of its feed.
                told.positions.remove(&workspace);
            }
            // What came since the last round is still in the queue.
            let missed =
                seen.is_some_and(|seen| self.acknowledged(owner, workspace, told) < seen.min(indexed));
            if missed {
                self.resend_missed(owner, workspace, indexed, told).await?;
            }
            let position = self.acknowledged(owner, workspace, told).min(indexed);
            let feed = acknowledged_cursor(owner.feed);
            if self.0.index.cursor(&feed, workspace.0) < position {
                cursors.push(Cursor { feed, workspace: workspace.0, position });
            }
        }
        if cursors.is_empty() {
            return Ok(());
        }
        Ok(self.0.index.apply(Batch { cursors, ..Batch::default() }).await?)
    }

    /// Acknowledges the changes after the cursor, read from the feed.
    async fn resend_missed(
        &self,
        owner: &Owner,
        workspace: WorkspaceId,
        indexed: u64,
        told: &mut Acknowledged,
    ) -> Result<(), Error> {
        // Another process may have acknowledged them.
        let kept = self.0.index.refresh(&acknowledged_cursor(owner.feed), workspace.0).await?;
        let mut after = kept.max(told.positions.get(&workspace).copied().unwrap_or(0));
        while after < indexed {
            let mut changes = owner.read_feed(workspace, after).await?.changes;
            changes.retain(|change| change.position <= indexed);
            if changes.is_empty() {
                // The feed was rolled back; the follower starts over.
                return Ok(());
            }
            for changes in changes.chunks(CHANGES_PER_READ) {
                let outcomes = self.outcomes(owner, workspace, changes).await?;
                send(owner, workspace, outcomes).await?;
                after = changes.last().map_or(after, |change| change.position);
                told.positions.insert(workspace, after);
            }
        }
        Ok(())
    }

    /// The outcomes of the documents that changes touched, where the index has their current text.
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
            // A document with another text has changed again, and that change is acknowledged by itself.
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

async fn send(owner: &Owner, workspace: WorkspaceId, documents: Vec<IndexedDocument>) -> Result<(), Error> {
    for some in documents.chunks(DOCUMENTS_PER_CALL) {
        owner.acknowledge(workspace, some.to_vec()).await?;
    }
    Ok(())
}

/// The outcome of a document that could not be cut.
pub(super) fn failed(reference: DocumentRef, content_hash: String, failure: &str) -> IndexedDocument {
    IndexedDocument { r#ref: Some(reference), content_hash, chunks: 0, failure: Some(failure.to_owned()) }
}
