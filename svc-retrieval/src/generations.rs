//! Generations of the index, each with its embedder; one is current.
//!
//! A generation is an index with the embedder that its vectors come from: vectors of two embedders are not comparable.
//! When another embedder is configured than the one of the current generation, the next generation is built from the feeds in the
//! background, and replaces the current one atomically once it has caught up. Until then the current one serves searches and
//! follows the feeds with its own embedder, or by words where that is no longer available. It is crash-safe: each generation stores
//! its cursors, and the factory stores which one is current.

use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use cairn_browse::{IndexPosition, Indexed};
use cairn_embed::{Embedder, EmbedderIdentity, Embedders, QueryEmbedder};
use cairn_index::{Engine, EngineFactory};
use cairn_proto::domain::Feed;
use cairn_proto::ids::WorkspaceId;
use tokio_util::sync::CancellationToken;

use crate::error::Error;
use crate::indexing::Indexer;
use crate::indexing::turns::Turns;
use crate::owners::Owner;

/// The first pause before an embedder that could not be opened is retried; doubled after each further failure.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause.
const MAX_PAUSE: Duration = Duration::from_secs(60);
/// How often progress is logged.
const LOG_INTERVAL: Duration = Duration::from_secs(30);
/// How often the metrics are updated.
const MEASURE_INTERVAL: Duration = Duration::from_secs(5);

impl IndexPosition for Generations {
    fn position(&self, workspace: WorkspaceId) -> Indexed {
        let progress = self.current().indexer.progress(workspace);
        let of =
            |feed| progress.iter().find(|progress| progress.feed == feed).map(|progress| progress.position);
        Indexed { content: of(Feed::Content), outside: of(Feed::Ingest) }
    }
}

/// An index with its embedder.
#[derive(Debug)]
pub(crate) struct Generation {
    /// Finds chunks.
    pub engine: Arc<dyn Engine>,
    /// Embeds the texts of searches.
    pub queries: QueryEmbedder,
    /// Keeps the index up with the feeds.
    pub indexer: Indexer,
    identity: EmbedderIdentity,
}

impl Generation {
    /// The name of its embedder.
    pub(crate) fn embedder(&self) -> &str {
        &self.identity.embedder
    }
}

/// The progress of the next generation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rebuilding {
    /// Its embedder.
    pub embedder: String,
    /// Changes that are not indexed yet, over all workspaces; unknown at the beginning.
    pub behind: Option<u64>,
    /// All changes, over all workspaces.
    pub changes: Option<u64>,
}

impl Rebuilding {
    /// How much of it is built, in percent; less than 100 until it has taken over.
    pub(crate) fn percent(&self) -> Option<u32> {
        let (behind, changes) = (self.behind?, self.changes?);
        let percent = changes.saturating_sub(behind).saturating_mul(100).checked_div(changes).unwrap_or(0);
        u32::try_from(percent.min(99)).ok()
    }
}

/// The current generation, and the one that is to follow it; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Generations(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    factory: Arc<dyn EngineFactory>,
    embedders: Arc<Embedders>,
    owners: Vec<Owner>,
    turns: Turns,
    current: RwLock<Arc<Generation>>,
    next: Mutex<Option<Arc<Generation>>>,
}

impl Generations {
    /// Opens the current generation. Where there is none, one with the built-in embedder is created, since it is always available; the
    /// configured one follows in the background.
    ///
    /// # Errors
    /// When the index cannot be opened.
    pub(crate) async fn open(
        factory: Arc<dyn EngineFactory>,
        embedders: Embedders,
        owners: Vec<Owner>,
        turns: Turns,
    ) -> Result<Self, Error> {
        let embedders = Arc::new(embedders);
        let (identity, embedder) = match factory.current().await? {
            Some(identity) => {
                let (opened, wanted) = (Arc::clone(&embedders), identity.clone());
                // A model's files are read.
                let embedder = tokio::task::spawn_blocking(move || opened.of(&wanted)).await?;
                (identity, embedder)
            }
            None => {
                let first = embedders.first();
                let identity = EmbedderIdentity::of(first.as_ref());
                factory.make_current(&identity).await?;
                (identity, first)
            }
        };
        let current =
            open_one(factory.as_ref(), &embedders, (owners.as_slice(), &turns), identity, embedder).await?;
        let (current, next) = (RwLock::new(current), Mutex::default());
        Ok(Self(Arc::new(Inner { factory, embedders, owners, turns, current, next })))
    }

    /// The generation that answers.
    pub(crate) fn current(&self) -> Arc<Generation> {
        Arc::clone(&self.0.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The generation that is being built, when another embedder is configured than the one that answers.
    pub(crate) fn rebuilding(&self) -> Option<Rebuilding> {
        let next = self.0.next.lock().unwrap_or_else(PoisonError::into_inner);
        next.as_ref().map(|next| Rebuilding {
            embedder: next.identity.embedder.clone(),
            behind: next.indexer.behind(),
            changes: next.indexer.changes(),
        })
    }

    /// Removes a workspace that no owner has any more from every generation.
    ///
    /// # Errors
    /// When an index fails; it may be repeated.
    pub(crate) async fn forget(&self, workspace: WorkspaceId) -> Result<(), Error> {
        // The next one first: if it takes over meanwhile, it is removed there again as the current one.
        let next = self.0.next.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for generation in next.into_iter().chain([self.current()]) {
            generation.indexer.forget(workspace).await?;
        }
        Ok(())
    }

    /// Follows the feeds, and builds the next generation if there is to be one, until the shutdown.
    pub(crate) async fn run(&self, shutdown: CancellationToken) {
        let current = self.current();
        let replaced = shutdown.child_token();
        let follow = async {
            current.indexer.run(replaced.clone()).await;
            // Releases the last reference here, so that the index is closed.
            drop(current);
        };
        let measure = async {
            tokio::select! {
                () = shutdown.cancelled() => {}
                () = self.measure() => {}
            }
        };
        tokio::join!(follow, self.follow_next(&shutdown, &replaced), measure);
    }

    async fn measure(&self) {
        let mut measured = tokio::time::interval(MEASURE_INTERVAL);
        loop {
            measured.tick().await;
            let current = self.current();
            let behind = current.indexer.behind().unwrap_or(0);
            metrics::gauge!("cairn_index_behind").set(behind as f64);
            for (feed, lag) in current.indexer.lags() {
                metrics::gauge!("cairn_feed_lag_seconds", "feed" => feed.as_str()).set(lag.as_secs_f64());
            }
            let rebuilding = self.rebuilding();
            let behind = rebuilding.as_ref().and_then(|next| next.behind).unwrap_or(0);
            metrics::gauge!("cairn_index_rebuilding").set(if rebuilding.is_some() { 1.0 } else { 0.0 });
            metrics::gauge!("cairn_index_rebuilding_behind").set(behind as f64);
            let changes = rebuilding.as_ref().and_then(|next| next.changes).unwrap_or(0);
            metrics::gauge!("cairn_index_rebuilding_changes").set(changes as f64);
        }
    }

    async fn follow_next(&self, shutdown: &CancellationToken, replaced: &CancellationToken) {
        let opened = tokio::select! {
            () = shutdown.cancelled() => return,
            opened = self.open_next() => opened,
        };
        let Some(next) = opened else {
            self.keep_current_only().await;
            return;
        };
        tracing::info!(
            embedder = next.identity.embedder,
            "the index of another embedder is built; the old one answers"
        );
        *self.0.next.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&next));
        let take_over = async {
            tokio::select! {
                () = shutdown.cancelled() => {}
                () = self.take_over(&next, replaced) => {}
            }
        };
        tokio::join!(next.indexer.run(shutdown.clone()), take_over);
    }

    /// Opens the generation of the configured embedder, with retries; `None` when it is the current one.
    async fn open_next(&self) -> Option<Arc<Generation>> {
        let mut pause = FIRST_PAUSE;
        loop {
            match self.try_open_next().await {
                Ok(next) => return next,
                Err(error) => {
                    tracing::warn!(%error, ?pause, "the configured embedder cannot be used now; trying again");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(MAX_PAUSE);
                }
            }
        }
    }

    async fn try_open_next(&self) -> Result<Option<Arc<Generation>>, Error> {
        let current = self.current().identity.clone();
        let Some(embedder) = self.0.embedders.configured(&current).await? else {
            return Ok(None);
        };
        let identity = EmbedderIdentity::of(embedder.as_ref());
        if identity.fits(&current) {
            return Ok(None);
        }
        let Inner { factory, embedders, owners, turns, .. } = self.0.as_ref();
        open_one(factory.as_ref(), embedders, (owners.as_slice(), turns), identity, embedder).await.map(Some)
    }

    /// Makes the next generation the current one when it has caught up.
    async fn take_over(&self, next: &Arc<Generation>, replaced: &CancellationToken) {
        let mut progress = tokio::time::interval(LOG_INTERVAL);
        progress.tick().await;
        let caught_up = next.indexer.caught_up();
        tokio::pin!(caught_up);
        loop {
            tokio::select! {
                () = &mut caught_up => break,
                _ = progress.tick() => {
                    let (behind, of) = (next.indexer.behind(), next.indexer.changes());
                    tracing::info!(?behind, ?of, "the next index is being built");
                }
            }
        }
        if let Err(error) = self.0.factory.make_current(&next.identity).await {
            // It serves searches nevertheless; the next start continues with what is there.
            tracing::warn!(%error, "it cannot be noted which index is current");
        }
        let old = {
            let mut current = self.0.current.write().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *current, Arc::clone(next))
        };
        *self.0.next.lock().unwrap_or_else(PoisonError::into_inner) = None;
        tracing::info!(embedder = next.identity.embedder, "the index of another embedder has taken over");
        replaced.cancel();
        drop(old);
        self.keep_current_only().await;
    }

    async fn keep_current_only(&self) {
        let identity = self.current().identity.clone();
        if let Err(error) = self.0.factory.keep_only(&identity).await {
            tracing::warn!(%error, "an index that is no longer used cannot be removed; the next start tries again");
        }
    }
}

async fn open_one(
    factory: &dyn EngineFactory,
    embedders: &Embedders,
    (owners, turns): (&[Owner], &Turns),
    identity: EmbedderIdentity,
    embedder: Arc<dyn Embedder>,
) -> Result<Arc<Generation>, Error> {
    let engine = factory.open(&identity).await?;
    let turns = turns.at(&identity.slug());
    let indexer = Indexer::new(Arc::clone(&engine), Arc::clone(&embedder), owners.to_vec(), turns);
    let queries = embedders.queries(embedder);
    Ok(Arc::new(Generation { engine, queries, indexer, identity }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_that_is_being_built_is_never_said_to_be_whole() {
        let percent = |behind: Option<u64>, changes: Option<u64>| {
            Rebuilding { embedder: "next".to_owned(), behind, changes }.percent()
        };
        assert_eq!(percent(None, None), None);
        assert_eq!(percent(Some(200), Some(200)), Some(0));
        assert_eq!(percent(Some(150), Some(200)), Some(25));
        assert_eq!(percent(Some(0), Some(200)), Some(99));
        // Nothing was ever written, or a feed has gone back.
        assert_eq!(percent(Some(0), Some(0)), Some(0));
        assert_eq!(percent(Some(7), Some(5)), Some(0));
    }
}
