//! Keeps the index up to date with the feeds of the owners.
//!
//! Each feed of a workspace is caught up by one task at a time: the one that the watch woke, or a search that waits for a write.
//! Changes and the cursor are applied together ([`apply`]), so a crash costs a replay and loses nothing. Processes that share an
//! index coordinate with leases ([`turns`]). Vectors of a slow embedder follow the words ([`pending`]), and outside documents are
//! acknowledged to their owner ([`acknowledge`]).
//!
//! The feeds of a workspace are independent: while the owner of one is down, the other continues.

mod acknowledge;
mod apply;
mod batch;
mod lag;
mod pending;
mod prepare;
#[cfg(test)]
mod simulation;
pub(crate) mod turns;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cairn_embed::Embedder;
use cairn_index::{self as index, Engine, IndexedDocument};
use cairn_proto::document::v1::Document;
use cairn_proto::domain::Feed;
use cairn_proto::feed::v1::WatchFeedResponse;
use cairn_proto::ids::WorkspaceId;
use futures::StreamExt as _;
use futures::future::join_all;
use tokio::sync::{MutexGuard, Notify, Semaphore};
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use self::acknowledge::Acknowledgements;
use self::lag::Mark;
use self::prepare::Cutter;
use self::turns::Turns;
use crate::error::Error;
use crate::owners::Owner;
use crate::partition;

/// The pause before a broken watch is opened again.
const RECONNECT_PAUSE: Duration = Duration::from_millis(500);
/// Workspaces that are caught up concurrently; more would only contend for the cores.
const WORKSPACES_AT_ONCE: usize = 4;

/// After a batch that nobody waits for, a workspace is left alone for this multiple of the time that the batch took, so that
/// writes are batched. A search that waits for a write is not delayed by it.
const REST_FACTOR: u32 = 4;
/// The minimal rest. A batch of one document costs what a batch of twenty does: two calls of its owner, and a segment with a term
/// dictionary of its own.
const MIN_REST: Duration = Duration::from_millis(40);
/// The maximal rest; by then a bulk of writes fills a batch.
const MAX_REST: Duration = Duration::from_millis(200);

/// How often the engine does its maintenance, whether or not there are writes. A crash costs a replay of this much of the feed.
const MAINTENANCE_INTERVAL: Duration = Duration::from_secs(5);

/// Applies the feeds to the index; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Indexer(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    index: Arc<dyn Engine>,
    embedder: Arc<dyn Embedder>,
    cutter: Cutter,
    owners: Vec<Owner>,
    feeds: Mutex<HashMap<(Feed, WorkspaceId), Arc<FeedState>>>,
    /// The feeds of which every head is known.
    complete_heads: Mutex<HashSet<Feed>>,
    /// Notified when a feed may have chunks without vectors.
    to_embed: HashMap<Feed, Notify>,
    acknowledgements: Acknowledgements,
    turns: Turns,
}

/// The state of one feed of one workspace.
#[derive(Debug, Default)]
struct FeedState {
    /// The newest known position.
    head: AtomicU64,
    /// Serializes applying.
    applying: tokio::sync::Mutex<()>,
    /// Whether the follower is scheduled to apply up to the head.
    is_due: AtomicBool,
    /// The earliest time at which the follower applies again.
    next_run: Mutex<Option<Instant>>,
    /// The sampled head that lag is measured by.
    mark: Mutex<Option<Mark>>,
}

/// How far a feed of a workspace is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Progress {
    /// The feed.
    pub feed: Feed,
    /// The last position applied.
    pub position: u64,
    /// Changes that are known and not applied.
    pub behind: u64,
}

impl Indexer {
    /// An indexer of these owners' documents.
    pub(crate) fn new(
        index: Arc<dyn Engine>,
        embedder: Arc<dyn Embedder>,
        owners: Vec<Owner>,
        turns: Turns,
    ) -> Self {
        // With an immediate embedder no document is cut a second time.
        let cutter = if embedder.is_immediate() { Cutter::uncached() } else { Cutter::default() };
        let to_embed = owners.iter().map(|owner| (owner.feed, Notify::new())).collect();
        let (feeds, complete_heads, acknowledgements) = Default::default();
        Self(Arc::new(Inner {
            index,
            embedder,
            cutter,
            owners,
            feeds,
            complete_heads,
            to_embed,
            acknowledgements,
            turns,
        }))
    }

    /// Every owner of documents.
    pub(crate) fn owners(&self) -> &[Owner] {
        &self.0.owners
    }

    /// The owner of that feed.
    pub(crate) fn owner(&self, feed: Feed) -> Option<&Owner> {
        self.0.owners.iter().find(|owner| owner.feed == feed)
    }

    /// How many changes of the workspace the index is known to be behind, over all feeds.
    pub(crate) fn lag(&self, workspace: WorkspaceId) -> u64 {
        let behind = |owner: &Owner| {
            let head = self.feed(owner.feed, workspace).head.load(Ordering::Acquire);
            head.saturating_sub(self.0.index.cursor(owner.feed.as_str(), workspace.0))
        };
        self.0.owners.iter().map(behind).sum()
    }

    /// The newest position of a feed of the workspace that is known.
    pub(crate) fn head(&self, feed: Feed, workspace: WorkspaceId) -> u64 {
        let known = self.feed(feed, workspace).head.load(Ordering::Acquire);
        known.max(self.0.index.cursor(feed.as_str(), workspace.0))
    }

    /// How far each feed of the workspace is applied.
    pub(crate) fn progress(&self, workspace: WorkspaceId) -> Vec<Progress> {
        let of = |owner: &Owner| {
            let head = self.feed(owner.feed, workspace).head.load(Ordering::Acquire);
            let position = self.0.index.cursor(owner.feed.as_str(), workspace.0);
            Progress { feed: owner.feed, position, behind: head.saturating_sub(position) }
        };
        self.0.owners.iter().map(of).collect()
    }

    /// Cuts and embeds documents as for the index, without storing them.
    pub(crate) async fn index_now(
        &self,
        workspace: WorkspaceId,
        documents: Vec<Document>,
    ) -> Result<Vec<IndexedDocument>, Error> {
        let embedder = Arc::clone(&self.0.embedder);
        run_blocking(move || Cutter::uncached().index_now(workspace, documents, embedder.as_ref())).await
    }

    /// Cuts a document as for the index: unchanged passages keep their stored vectors, and new ones are embedded if the embedder
    /// is immediate.
    pub(crate) async fn index_instead(
        &self,
        workspace: WorkspaceId,
        document: Document,
    ) -> Result<Vec<IndexedDocument>, Error> {
        let cutter = Cutter::uncached();
        let mut cut = cutter.cut(self.0.index.as_ref(), workspace, vec![document]).await?;
        let embedder = Arc::clone(&self.0.embedder);
        run_blocking(move || {
            if let Some(immediate) = embedder.immediate() {
                cut.embed_now(immediate);
            }
            cut.into_documents(embedder.dimensions())
        })
        .await
    }

    /// How many passages a document has; `None` when it cannot be cut.
    pub(crate) async fn count_passages(&self, id: Uuid, document: Document) -> Result<Option<u32>, Error> {
        run_blocking(move || Cutter::uncached().count(id, &document)).await
    }

    /// Whether [`Indexer::index_now`] gives vectors.
    pub(crate) fn embeds_at_once(&self) -> bool {
        self.0.embedder.is_immediate()
    }

    /// Follows all feeds until the shutdown.
    pub(crate) async fn run(&self, shutdown: CancellationToken) {
        let follow = |owner: Owner| async {
            tokio::select! {
                () = shutdown.cancelled() => {}
                () = self.follow(owner) => {}
            }
        };
        let embed = |owner: Owner| async {
            tokio::select! {
                () = shutdown.cancelled() => {}
                () = self.embed_pending(owner) => {}
            }
        };
        let acknowledge = async {
            tokio::select! {
                () = shutdown.cancelled() => {}
                () = self.acknowledge() => {}
            }
        };
        let maintain = async {
            tokio::select! {
                () = shutdown.cancelled() => {}
                () = self.maintain() => {}
            }
        };
        let owners = || self.0.owners.iter().cloned();
        tokio::join!(join_all(owners().map(follow)), join_all(owners().map(embed)), acknowledge, maintain);
        // A batch in flight is committed when the engine is closed.
        warn_of("flushed", self.0.index.flush().await);
    }

    async fn maintain(&self) {
        let mut rounds = tokio::time::interval(MAINTENANCE_INTERVAL);
        rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            rounds.tick().await;
            warn_of("maintained", self.0.index.maintain().await);
            if self.0.index.answers() {
                self.resume().await;
            }
        }
    }

    /// Retries workspaces that a failure, or the loss of a remote storage, left behind their feeds: without a new write nothing
    /// else would.
    async fn resume(&self) {
        let states: Vec<_> = {
            let feeds = self.0.feeds.lock().unwrap_or_else(PoisonError::into_inner);
            feeds.iter().map(|(key, state)| (*key, Arc::clone(state))).collect()
        };
        let mut failed = HashSet::new();
        for ((feed, workspace), state) in states {
            let head = state.head.load(Ordering::Acquire);
            let is_worked_on = state.applying.try_lock().is_err();
            if failed.contains(&feed)
                || is_worked_on
                || self.0.index.cursor(feed.as_str(), workspace.0) >= head
            {
                continue;
            }
            let Some(owner) = self.owner(feed) else { continue };
            if let Err(error) = self.reach(owner, workspace, head).await {
                tracing::warn!(%feed, %workspace, %error, "a workspace cannot be indexed now; trying again");
                // Other workspaces of that owner would most likely fail, too.
                failed.insert(feed);
            }
        }
    }

    async fn follow(&self, owner: Owner) {
        loop {
            if let Err(error) = self.follow_once(&owner).await {
                tracing::warn!(feed = %owner.feed, %error, "the feed cannot be followed; trying again");
            }
            tokio::time::sleep(RECONNECT_PAUSE).await;
        }
    }

    async fn follow_once(&self, owner: &Owner) -> Result<(), Error> {
        let updates = owner.watch().await?;
        // Recorded in order and before anything is applied, so that all heads are known when the owner says so.
        let heads = updates.inspect(|update| {
            if let Ok(update) = update {
                self.note(owner, update);
            }
        });
        let permits = Semaphore::new(WORKSPACES_AT_ONCE);
        // Bounded by the number of workspaces with changes: each is scheduled once at a time.
        heads
            .for_each_concurrent(None, |moved| async {
                let Ok(moved) = moved else { return };
                let Ok(workspace) = moved.workspace_id.parse::<WorkspaceId>() else { return };
                if let Err(error) = self.follow_head(owner, workspace, moved.position, &permits).await {
                    tracing::warn!(feed = %owner.feed, %workspace, %error, "a workspace cannot be indexed now");
                }
            })
            .await;
        Ok(())
    }

    fn note(&self, owner: &Owner, update: &WatchFeedResponse) {
        if update.every_head_told {
            self.0.complete_heads.lock().unwrap_or_else(PoisonError::into_inner).insert(owner.feed);
        } else if let Ok(workspace) = update.workspace_id.parse::<WorkspaceId>() {
            self.feed(owner.feed, workspace).head.fetch_max(update.position, Ordering::AcqRel);
        }
    }

    async fn follow_head(
        &self,
        owner: &Owner,
        workspace: WorkspaceId,
        position: u64,
        permits: &Semaphore,
    ) -> Result<(), Error> {
        if position < self.0.index.cursor(owner.feed.as_str(), workspace.0) {
            let cursor = {
                let state = self.feed(owner.feed, workspace);
                let _applying = state.applying.lock().await;
                self.refreshed(owner, workspace).await?
            };
            if position < cursor {
                // The head may be stale, so only the owner itself can say that its feed was rolled back.
                let head = owner.read_feed(workspace, cursor).await?.head;
                if head < cursor {
                    self.start_over(owner, workspace, head).await?;
                }
            }
        }
        let state = self.feed(owner.feed, workspace);
        if state.is_due.swap(true, Ordering::AcqRel) {
            // The scheduled run reads the head after this.
            return Ok(());
        }
        let next_run = *state.next_run.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(next_run) = next_run {
            tokio::time::sleep_until(next_run).await;
        }
        // The semaphore is never closed.
        let _permit = permits.acquire().await;
        state.is_due.swap(false, Ordering::AcqRel);
        let began = Instant::now();
        let reached = self.reach(owner, workspace, state.head.load(Ordering::Acquire)).await;
        let rest = (began.elapsed() * REST_FACTOR).clamp(MIN_REST, MAX_REST);
        *state.next_run.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now() + rest);
        reached.map(drop)
    }

    /// The cursor as the engine's storage has it. Called with the feed locked: the base of a batch must not change meanwhile.
    async fn refreshed(&self, owner: &Owner, workspace: WorkspaceId) -> Result<u64, Error> {
        Ok(self.0.index.refresh(owner.feed.as_str(), workspace.0).await?)
    }

    /// Removes a workspace whose owner was restored from an older backup, and indexes it again: positions of its feed are reused
    /// for other changes. `head` is the current head; the next write may be long away.
    async fn start_over(&self, owner: &Owner, workspace: WorkspaceId, head: u64) -> Result<(), Error> {
        tracing::warn!(feed = %owner.feed, %workspace, "the feed has gone back; indexing the workspace anew");
        // Documents of the other feed are removed, too, and are read again (`resume`).
        let states = self.states(workspace);
        let _applying = lock_all(&states).await;
        self.feed(owner.feed, workspace).head.store(head, Ordering::Release);
        self.wipe(workspace).await
    }

    fn states(&self, workspace: WorkspaceId) -> Vec<Arc<FeedState>> {
        self.0.owners.iter().map(|owner| self.feed(owner.feed, workspace)).collect()
    }

    /// Removes a workspace from the index. Called with its feeds locked.
    async fn wipe(&self, workspace: WorkspaceId) -> Result<(), Error> {
        // The workspace's own partition last, since it has the cursors: while they exist, an interrupted removal is repeated.
        self.0.index.forget(partition::of(workspace, true)).await?;
        Ok(self.0.index.forget(workspace.0).await?)
    }

    /// Removes a workspace that no owner has any more.
    ///
    /// # Errors
    /// When the index fails; it may be repeated.
    pub(crate) async fn forget(&self, workspace: WorkspaceId) -> Result<(), Error> {
        let states = self.states(workspace);
        // No batch is applied meanwhile.
        let _applying = lock_all(&states).await;
        states.iter().for_each(|state| state.head.store(0, Ordering::Release));
        self.wipe(workspace).await?;
        let mut known = self.0.feeds.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|(_, other), _| *other != workspace);
        Ok(())
    }

    /// Returns when the index has applied the workspace's feed up to the position, or at once with `false` when the
    /// feed has no such position.
    ///
    /// The work continues when the caller is cancelled: a batch in flight must not run beside a second one of the same
    /// workspace.
    ///
    /// # Errors
    /// When the owner does not answer or the index fails; the index stays as it was.
    pub(crate) async fn reach(
        &self,
        owner: &Owner,
        workspace: WorkspaceId,
        position: u64,
    ) -> Result<bool, Error> {
        if self.0.index.cursor(owner.feed.as_str(), workspace.0) >= position {
            return Ok(true);
        }
        let indexer = self.clone();
        let owner = owner.clone();
        tokio::spawn(async move { indexer.apply_until(&owner, workspace, position).await }).await?
    }

    fn feed(&self, feed: Feed, workspace: WorkspaceId) -> Arc<FeedState> {
        let mut feeds = self.0.feeds.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(feeds.entry((feed, workspace)).or_default())
    }
}

/// Locks feeds. The lock order is that of the owners, so two tasks that lock feeds of one workspace cannot deadlock.
async fn lock_all(states: &[Arc<FeedState>]) -> Vec<MutexGuard<'_, ()>> {
    let mut guards = Vec::with_capacity(states.len());
    for state in states {
        guards.push(state.applying.lock().await);
    }
    guards
}

/// Runs blocking work off the async threads.
async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Error> {
    Ok(tokio::task::spawn_blocking(work).await?)
}

fn warn_of(done: &str, outcome: Result<(), index::Error>) {
    if let Err(error) = outcome {
        tracing::warn!(%error, "the index cannot be {done} now");
    }
}
