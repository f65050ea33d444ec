//! Applies changes of one feed of a workspace, batched into commits.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use cairn_index::{self as index, Batch};
use cairn_proto::domain::Feed;
use cairn_proto::feed::v1::Change;
use cairn_proto::ids::WorkspaceId;

use super::batch::{CHANGES_PER_READ, Prepared, removals, touched_documents};
use super::turns::PollBackoff;
use super::{FeedState, Indexer, prepare, run_blocking};
use crate::error::Error;
use crate::owners::Owner;

impl Indexer {
    /// Applies the feed up to the position, in this process or by waiting for another one; `false` when the feed has no such
    /// position.
    pub(super) async fn apply_until(
        &self,
        owner: &Owner,
        workspace: WorkspaceId,
        position: u64,
    ) -> Result<bool, Error> {
        let state = self.feed(owner.feed, workspace);
        let _applying = state.applying.lock().await;
        let mut poll = PollBackoff::new();
        let is_reached = loop {
            let work = Box::pin(self.apply_in_turn(owner, workspace, &state, position));
            if let Some(done) = self.0.turns.take(owner.feed.as_str(), workspace.0, work).await? {
                break done;
            }
            // Another process holds the lease.
            poll.next().await;
            if self.refreshed(owner, workspace).await? >= position {
                break true;
            }
        };
        // The process that applied it may stop before it has embedded it.
        self.0.to_embed.get(&owner.feed).inspect(|pending| pending.notify_one());
        Ok(is_reached)
    }

    async fn apply_in_turn(
        &self,
        owner: &Owner,
        workspace: WorkspaceId,
        state: &FeedState,
        position: u64,
    ) -> Result<bool, Error> {
        // Another process may have applied it to the same storage.
        self.refreshed(owner, workspace).await?;
        while self.0.index.cursor(owner.feed.as_str(), workspace.0) < position {
            let before = self.0.index.cursor(owner.feed.as_str(), workspace.0);
            let answer = owner.read_feed(workspace, before).await?;
            if answer.changes.is_empty() {
                return Ok(false);
            }
            state.head.fetch_max(answer.head, Ordering::AcqRel);
            match self.apply(owner, workspace, &answer.changes).await {
                // Another process removed the workspace; read the feed again from the cursor that the storage has now.
                Err(Error::Index(index::Error::CursorsBehind))
                    if self.0.index.cursor(owner.feed.as_str(), workspace.0) < before => {}
                applied => applied?,
            }
        }
        Ok(true)
    }

    /// Applies changes; batches are merged until one is large enough for a commit.
    async fn apply(&self, owner: &Owner, workspace: WorkspaceId, changes: &[Change]) -> Result<(), Error> {
        let mut waiting: Option<Prepared> = None;
        for changes in changes.chunks(CHANGES_PER_READ) {
            let read = match self.prepare(owner, workspace, changes).await {
                Ok(read) => read,
                Err(error) => {
                    // Commit what was prepared before the failure, so that retries make progress.
                    self.commit(owner, workspace, waiting).await?;
                    return Err(error);
                }
            };
            let prepared = match waiting.take() {
                Some(before) => before.then(read),
                None => read,
            };
            if prepared.is_full() {
                self.commit(owner, workspace, Some(prepared)).await?;
            } else {
                waiting = Some(prepared);
            }
        }
        self.commit(owner, workspace, waiting).await
    }

    async fn prepare(
        &self,
        owner: &Owner,
        workspace: WorkspaceId,
        changes: &[Change],
    ) -> Result<Prepared, Error> {
        let position = changes.last().map_or(0, |last| last.position);
        let touched = touched_documents(changes);
        let refs = touched.iter().map(|(_, reference)| reference.clone()).collect();
        let live = owner.read_documents(workspace, refs).await?;
        let (deletions, cursors) = removals(owner.feed, workspace, &touched, position);

        let embedder = Arc::clone(&self.0.embedder);
        let index = self.0.index.as_ref();
        let mut cut = self.0.cutter.cut_for(embedder.as_ref(), index, workspace, live).await?;
        let failed = cut.take_failed();
        let documents = run_blocking(move || {
            if let Some(embedder) = embedder.immediate() {
                cut.embed_now(embedder);
            }
            cut.into_documents(embedder.dimensions())
        });
        let batch = Batch { documents: documents.await?, deletions, cursors };
        Ok(Prepared { batch, failed, position })
    }

    async fn commit(
        &self,
        owner: &Owner,
        workspace: WorkspaceId,
        prepared: Option<Prepared>,
    ) -> Result<(), Error> {
        let Some(Prepared { batch, failed, position }) = prepared else { return Ok(()) };
        let before = self.0.index.cursor(owner.feed.as_str(), workspace.0);
        let outcomes = (owner.feed == Feed::Ingest).then(|| prepare::outcomes(&batch.documents, failed));
        self.0.index.apply(batch).await?;
        if let Some(outcomes) = outcomes {
            self.0.acknowledgements.note(workspace, (before, position), outcomes);
        }
        self.0.to_embed.get(&owner.feed).inspect(|pending| pending.notify_one());
        Ok(())
    }
}
