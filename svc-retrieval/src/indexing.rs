//! Keeps the index up with the feeds of the owners.
//!
//! Each workspace is caught up by one task at a time: the one that the watch woke, or a search that waits for a write.
//! Changes and the cursor are applied together ([`apply`]), so a crash costs a replay and never a fact. Where several processes
//! share an index, they take turns ([`turns`]). Vectors of an embedder that takes its time follow the words ([`pending`]), and the
//! owner of outside documents is told what became of them ([`acknowledge`]).
//!
//! The feeds of a workspace are followed apart: the owner of one may be down, and the other goes on.

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
/// Workspaces that are caught up at the same time; more would only fight over the cores.
const WORKSPACES_AT_ONCE: usize = 4;

/// After a batch that nobody waits for, a workspace rests for so many times as long as it took: a batch of many documents costs
/// little more than one of few. A search that waits for a write does not wait for this.
const REST: u32 = 4;
/// The shortest rest. A batch of one document costs what a batch of twenty does: two questions to its owner, and a segment whose
/// tables of words are made anew for each. Each write of a bulk would pay for one; who wants to see its own write waits for that, and
/// not for this.
const LEAST_REST: Duration = Duration::from_millis(40);
/// The longest rest; by then a bulk of writes has brought a whole batch.
const LONGEST_REST: Duration = Duration::from_millis(200);

/// How often the engine may do what should not wait for the next write. A crash costs a replay of so much of the feed.
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
    /// The feeds whose every head has been told.
    told: Mutex<HashSet<Feed>>,
    /// Woken when there may be something to embed of that feed.
    to_embed: HashMap<Feed, Notify>,
    acknowledgements: Acknowledgements,
    turns: Turns,
}

/// What is known of one feed of one workspace.
#[derive(Debug, Default)]
struct FeedState {
    /// The newest position heard of.
    head: AtomicU64,
    /// Held by whoever applies.
    applying: tokio::sync::Mutex<()>,
    /// Whether the follower is about to apply what has been heard of.
    is_due: AtomicBool,
    /// When the follower applies next, at the earliest.
    rested: Mutex<Option<Instant>>,
    /// What was behind when somebody last looked.
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
        // What is embedded at once is not cut again.
        let cutter = if embedder.is_immediate() { Cutter::forgetful() } else { Cutter::default() };
        let to_embed = owners.iter().map(|owner| (owner.feed, Notify::new())).collect();
        let (feeds, told, acknowledgements) = Default::default();
        Self(Arc::new(Inner {
            index,
            embedder,
            cutter,
            owners,
            feeds,
            told,
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

    /// Documents that no index holds, cut and embedded as it would hold them.
    pub(crate) async fn index_now(
        &self,
        workspace: WorkspaceId,
        documents: Vec<Document>,
    ) -> Result<Vec<IndexedDocument>, Error> {
        let embedder = Arc::clone(&self.0.embedder);
        off(move || Cutter::forgetful().index_now(workspace, documents, embedder.as_ref())).await
    }

    /// A document as the index would hold it: passages that stay keep their vectors, and new ones get theirs where the
    /// embedder only computes.
    pub(crate) async fn index_instead(
        &self,
        workspace: WorkspaceId,
        document: Document,
    ) -> Result<Vec<IndexedDocument>, Error> {
        let cutter = Cutter::forgetful();
        let mut cut = cutter.cut(self.0.index.as_ref(), workspace, vec![document]).await?;
        let embedder = Arc::clone(&self.0.embedder);
        off(move || {
            if let Some(immediate) = embedder.immediate() {
                cut.embed_now(immediate);
            }
            cut.into_documents(embedder.dimensions())
        })
        .await
    }

    /// How many passages a document has; none when it cannot be cut.
    pub(crate) async fn count_passages(&self, id: Uuid, document: Document) -> Result<Option<u32>, Error> {
        off(move || Cutter::forgetful().count(id, &document)).await
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
        // What a batch that is still under way brings is committed when the engine is closed.
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

    /// Goes on where a failure, or the loss of a storage elsewhere, left a workspace behind its feed and nothing moves the
    /// feed's head.
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
                // The next of that owner would most likely meet the same.
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
        let told = owner.watch().await?;
        // In their order and before anything is applied, so that every head is known when all have been told.
        let heads = told.inspect(|told| {
            if let Ok(told) = told {
                self.note(owner, told);
            }
        });
        let permits = Semaphore::new(WORKSPACES_AT_ONCE);
        // As many as there are workspaces that move: of one workspace one is due at a time.
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

    fn note(&self, owner: &Owner, told: &WatchFeedResponse) {
        if told.every_head_told {
            self.0.told.lock().unwrap_or_else(PoisonError::into_inner).insert(owner.feed);
        } else if let Ok(workspace) = told.workspace_id.parse::<WorkspaceId>() {
            self.feed(owner.feed, workspace).head.fetch_max(told.position, Ordering::AcqRel);
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
                // A head may be told late, so only the owner itself can say that its feed has gone back.
                let head = owner.read_feed(workspace, cursor).await?.head;
                if head < cursor {
                    self.start_over(owner, workspace, head).await?;
                }
            }
        }
        let state = self.feed(owner.feed, workspace);
        if state.is_due.swap(true, Ordering::AcqRel) {
            // Whoever is due reads the head after this.
            return Ok(());
        }
        let rested = *state.rested.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(rested) = rested {
            tokio::time::sleep_until(rested).await;
        }
        // Closed only when it is dropped.
        let _permit = permits.acquire().await;
        state.is_due.swap(false, Ordering::AcqRel);
        let began = Instant::now();
        let reached = self.reach(owner, workspace, state.head.load(Ordering::Acquire)).await;
        let rest = (began.elapsed() * REST).clamp(LEAST_REST, LONGEST_REST);
        *state.rested.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now() + rest);
        reached.map(drop)
    }

    /// The cursor as the engine's storage has it. The feed is held: what a batch is based on must not change meanwhile.
    async fn refreshed(&self, owner: &Owner, workspace: WorkspaceId) -> Result<u64, Error> {
        Ok(self.0.index.refresh(owner.feed.as_str(), workspace.0).await?)
    }

    /// Forgets a workspace whose owner was restored from an older copy: what the index took from positions that are
    /// given out anew is not what stands there now. The head is where the feed is now: nothing may move it again for long.
    async fn start_over(&self, owner: &Owner, workspace: WorkspaceId, head: u64) -> Result<(), Error> {
        tracing::warn!(feed = %owner.feed, %workspace, "the feed has gone back; indexing the workspace anew");
        // What the other feed brought goes, too, and is read again (`resume`).
        let states = self.states(workspace);
        let _applying = held(&states).await;
        self.feed(owner.feed, workspace).head.store(head, Ordering::Release);
        self.wipe(workspace).await
    }

    fn states(&self, workspace: WorkspaceId) -> Vec<Arc<FeedState>> {
        self.0.owners.iter().map(|owner| self.feed(owner.feed, workspace)).collect()
    }

    /// Removes all that the index holds of a workspace. Its feeds are held.
    async fn wipe(&self, workspace: WorkspaceId) -> Result<(), Error> {
        // The cursors last: until they are gone nothing is taken for indexed that is not there.
        self.0.index.forget(partition::of(workspace, true)).await?;
        Ok(self.0.index.forget(workspace.0).await?)
    }

    /// Forgets a workspace that no owner has any more.
    ///
    /// # Errors
    /// When the index fails; it may be repeated.
    pub(crate) async fn forget(&self, workspace: WorkspaceId) -> Result<(), Error> {
        let states = self.states(workspace);
        // Nothing is applied meanwhile.
        let _applying = held(&states).await;
        states.iter().for_each(|state| state.head.store(0, Ordering::Release));
        self.wipe(workspace).await?;
        let mut known = self.0.feeds.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|(_, other), _| *other != workspace);
        Ok(())
    }

    /// Returns when the index has applied the workspace's feed up to the position, or at once with `false` when the
    /// feed has no such position.
    ///
    /// The work goes on when the caller stops waiting: a batch that is under way must not meet a second one of the
    /// same workspace.
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

/// Holds feeds until it is dropped. Always in the order of the owners: of two who hold feeds of one workspace neither waits
/// for the other.
async fn held(states: &[Arc<FeedState>]) -> Vec<MutexGuard<'_, ()>> {
    let mut held = Vec::with_capacity(states.len());
    for state in states {
        held.push(state.applying.lock().await);
    }
    held
}

/// Computes on a thread that may block.
async fn off<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Error> {
    Ok(tokio::task::spawn_blocking(work).await?)
}

fn warn_of(done: &str, outcome: Result<(), index::Error>) {
    if let Err(error) = outcome {
        tracing::warn!(%error, "the index cannot be {done} now");
    }
}
