//! Embeds documents after their words are indexed.
//!
//! A slow embedder (a transformer, an endpoint that may be down) must not delay the words. Its documents are indexed with the
//! vectors that exist, and a cursor of its own, stored by the engine with the others, says up to where all vectors exist. One task
//! advances that cursor to the one of the words; a restart loses nothing.

use std::time::Duration;

use cairn_embed as embed;
use cairn_index::{Batch, Cursor};
use cairn_proto::document::v1::Document;
use cairn_proto::domain::Feed;
use cairn_proto::feed::v1::Change;
use cairn_proto::ids::WorkspaceId;
use uuid::Uuid;

use super::batch::touched_documents;
use super::{Indexer, run_blocking};
use crate::error::Error;
use crate::indexing::prepare::VectorsByText;
use crate::owners::Owner;

/// Changes whose documents are embedded and committed together: few enough for a transformer to embed within seconds.
const CHANGES_PER_BATCH: usize = 16;
/// The pause after a failure, twice as long after each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause.
const MAX_PAUSE: Duration = Duration::from_secs(30);
/// How often is polled while another process embeds.
const OTHER_PROCESS_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How often [`Indexer::caught_up`] polls.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The name of the cursor of the vectors.
fn vectors_of(feed: Feed) -> String {
    format!("{feed}/vectors")
}

/// The outcome of a batch, or of a round of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    Nothing,
    /// Another process holds the lease.
    Elsewhere,
    Embedded,
}

impl Indexer {
    /// How many changes of the workspace are indexed without all of their vectors, over all feeds.
    pub(crate) fn not_embedded(&self, workspace: WorkspaceId) -> u64 {
        if self.0.embedder.is_immediate() {
            return 0;
        }
        self.0.owners.iter().map(|owner| self.pending(owner.feed, workspace.0)).sum()
    }

    /// How many changes are not indexed with their vectors yet, over all workspaces; unknown until all heads are known.
    pub(crate) fn behind(&self) -> Option<u64> {
        self.heads().map(|heads| {
            heads.iter().map(|(feed, workspace, head)| self.behind_of(*feed, *workspace, *head)).sum()
        })
    }

    /// How many changes there are in all, over all workspaces; unknown until all heads are known.
    pub(crate) fn changes(&self) -> Option<u64> {
        self.heads().map(|heads| heads.iter().map(|(_, _, head)| *head).sum())
    }

    /// Returns when everything that the owners had at the time of the call is indexed with its vectors.
    pub(crate) async fn caught_up(&self) {
        let heads = loop {
            match self.heads() {
                Some(heads) => break heads,
                None => tokio::time::sleep(POLL_INTERVAL).await,
            }
        };
        while heads.iter().any(|(feed, workspace, head)| self.behind_of(*feed, *workspace, *head) > 0) {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// All heads; `None` until all owners have reported theirs.
    fn heads(&self) -> Option<Vec<(Feed, WorkspaceId, u64)>> {
        let complete =
            self.0.complete_heads.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
        if !self.0.owners.iter().all(|owner| complete.contains(&owner.feed)) {
            return None;
        }
        let feeds = self.0.feeds.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let head = |state: &super::FeedState| state.head.load(std::sync::atomic::Ordering::Acquire);
        Some(feeds.iter().map(|((feed, workspace), state)| (*feed, *workspace, head(state))).collect())
    }

    /// How far the index is behind a head. A feed that was rolled back counts with its current head.
    fn behind_of(&self, feed: Feed, workspace: WorkspaceId, head: u64) -> u64 {
        let now = self.feed(feed, workspace).head.load(std::sync::atomic::Ordering::Acquire);
        head.min(now).saturating_sub(self.done(feed, workspace.0))
    }

    /// The position up to which everything is indexed with its vectors.
    fn done(&self, feed: Feed, workspace: Uuid) -> u64 {
        let words = self.0.index.cursor(feed.as_str(), workspace);
        if self.0.embedder.is_immediate() {
            return words;
        }
        words.min(self.0.index.cursor(&vectors_of(feed), workspace))
    }

    fn pending(&self, feed: Feed, workspace: Uuid) -> u64 {
        self.0.index.cursor(feed.as_str(), workspace).saturating_sub(self.done(feed, workspace))
    }

    /// Embeds pending documents of an owner, forever.
    pub(super) async fn embed_pending(&self, owner: Owner) {
        let Some(to_embed) = self.0.to_embed.get(&owner.feed).filter(|_| !self.0.embedder.is_immediate())
        else {
            return std::future::pending().await;
        };
        let mut pause = FIRST_PAUSE;
        loop {
            match self.embed_round(&owner).await {
                Ok(Outcome::Embedded) => pause = FIRST_PAUSE,
                Ok(Outcome::Elsewhere) => {
                    // It may stop before it has embedded them.
                    let looked = tokio::time::timeout(OTHER_PROCESS_POLL_INTERVAL, to_embed.notified());
                    let _is_woken = looked.await.is_ok();
                }
                Ok(Outcome::Nothing) => to_embed.notified().await,
                Err(error) => {
                    let wanted = if let Error::Embed(embed::Error::Spent { retry_after, .. }) = &error {
                        Some(*retry_after)
                    } else {
                        None
                    };
                    let pause_now = wanted.unwrap_or(pause);
                    tracing::warn!(%error, pause = ?pause_now, "vectors are missing; words are found meanwhile");
                    pause = (pause * 2).min(MAX_PAUSE);
                    tokio::time::sleep(pause_now).await;
                }
            }
        }
    }

    /// Embeds one batch of each workspace with pending documents.
    async fn embed_round(&self, owner: &Owner) -> Result<Outcome, Error> {
        let mut found = Outcome::Nothing;
        let mut failed = None;
        let cursors = self.0.index.cursors().remove(owner.feed.as_str()).unwrap_or_default();
        for workspace in cursors.into_keys().filter(|workspace| self.pending(owner.feed, *workspace) > 0) {
            match self.embed_batch(owner, WorkspaceId(workspace)).await {
                Ok(outcome) => found = found.max(outcome),
                // It would fail for the next workspace, too.
                Err(error @ Error::Embed(_)) => return Err(error),
                Err(error) => failed = Some(error),
            }
        }
        failed.map_or(Ok(found), Err)
    }

    /// Embeds the documents of the next changes, under the lease.
    async fn embed_batch(&self, owner: &Owner, workspace: WorkspaceId) -> Result<Outcome, Error> {
        let work = Box::pin(self.embed_in_turn(owner, workspace));
        Ok(match self.0.turns.take(&vectors_of(owner.feed), workspace.0, work).await? {
            None => Outcome::Elsewhere,
            Some(false) => Outcome::Nothing,
            Some(true) => Outcome::Embedded,
        })
    }

    /// Whether there was anything to do.
    async fn embed_in_turn(&self, owner: &Owner, workspace: WorkspaceId) -> Result<bool, Error> {
        // The previous holder of the lease may have embedded them.
        let before = self.0.index.refresh(&vectors_of(owner.feed), workspace.0).await?;
        let words = self.0.index.cursor(owner.feed.as_str(), workspace.0);
        let mut changes = owner.read_feed(workspace, before).await?.changes;
        changes.truncate(CHANGES_PER_BATCH);
        changes.retain(|change| change.position <= words);
        let Some(last) = changes.last().map(|change| change.position) else {
            // The feed was rolled back; the follower starts over.
            return Ok(false);
        };
        let known = self.embed_changes(owner, workspace, &changes).await?;
        let state = self.feed(owner.feed, workspace);
        let _applying = state.applying.lock().await;
        if self.0.index.cursor(&vectors_of(owner.feed), workspace.0) == before {
            self.apply_vectors(owner, workspace, &changes, last, known).await?;
        }
        Ok(true)
    }

    /// The vectors of the documents that changes touched.
    async fn embed_changes(
        &self,
        owner: &Owner,
        workspace: WorkspaceId,
        changes: &[Change],
    ) -> Result<VectorsByText, Error> {
        let refs = touched_documents(changes).into_iter().map(|(_, reference)| reference).collect();
        let live = without_catalog_entries(owner.read_documents(workspace, refs).await?);
        let mut cut = self.0.cutter.cut(self.0.index.as_ref(), workspace, live).await?;
        cut.embed(self.0.embedder.as_ref()).await?;
        Ok(cut.into_vectors())
    }

    /// Indexes the current documents again: writes during the embedding must not be undone. A chunk that was added meanwhile has
    /// no vector yet; its change is pending, too.
    async fn apply_vectors(
        &self,
        owner: &Owner,
        workspace: WorkspaceId,
        changes: &[Change],
        position: u64,
        known: VectorsByText,
    ) -> Result<(), Error> {
        let refs = touched_documents(changes).into_iter().map(|(_, reference)| reference).collect();
        let live = without_catalog_entries(owner.read_documents(workspace, refs).await?);
        let cursor = Cursor { feed: vectors_of(owner.feed), workspace: workspace.0, position };
        let cut = self.0.cutter.cut(self.0.index.as_ref(), workspace, live).await?.with(known);
        let dimensions = self.0.embedder.dimensions();
        let documents = run_blocking(move || cut.into_documents(dimensions)).await?;
        let batch = Batch { documents, deletions: Vec::new(), cursors: vec![cursor] };
        Ok(self.0.index.apply(batch).await?)
    }
}

/// Without the entries of catalogs, which are found by their words alone.
fn without_catalog_entries(mut documents: Vec<Document>) -> Vec<Document> {
    documents.retain(|document| !document.catalog_only);
    documents
}
