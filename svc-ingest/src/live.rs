//! Live reads: searches of live sources, and bodies of documents that are not stored.
//!
//! All bodies go through `read`; `fetch` reads one document, `ask` fans out to many sources, `cache` holds bodies in memory for a minute.
//! Nothing is spawned, so dropping the future of a question cancels all of its requests.

mod ask;
mod cache;
mod connections;
mod fetch;
mod read;
mod request;

use std::sync::Arc;
use std::time::Duration;

use cairn_chassis::fair_semaphore::{FairSemaphore, Share};
use cairn_extract::Extractor;
use cairn_proto::ids::SourceId;
use cairn_providers::{Call, Fault, Provider};
use tokio_util::sync::CancellationToken;

pub(crate) use self::ask::{Answers, LiveHit, Outcome, SourceReport, live_path};
use self::cache::Cache;
use self::connections::Connections;
use crate::model::Source;
use crate::runs::{BudgetQueue, Charge, Failure, Runner};
use crate::{Error, store};

/// Concurrent questions to sources in this process; one workspace may have three quarters of them.
const MAX_CONCURRENT_SOURCES: usize = 128;
/// Concurrent reads of bodies for searches, of up to 1 MiB each.
const MAX_CONCURRENT_BODIES: usize = 32;
/// Concurrent fetches of single documents, which may be large.
const MAX_CONCURRENT_FETCHES: usize = 8;
/// Waiters of one workspace: a few questions with as many sources as allowed.
const MAX_WAITING: usize = 512;
/// Longer than any caller's deadline.
const MAX_WAIT: Duration = Duration::from_secs(30);
/// How often expired entries are evicted.
const SWEEP_INTERVAL: Duration = Duration::from_secs(10);

/// Reads from providers; clones share caches and limits.
#[derive(Debug, Clone)]
pub(crate) struct Live {
    runner: Runner,
    /// A pool of its own, so that questions do not queue behind the files of runs.
    extractor: Extractor,
    cache: Cache,
    connections: Connections,
    semaphores: Arc<Semaphores>,
    budget_queue: BudgetQueue,
}

#[derive(Debug)]
struct Semaphores {
    sources: FairSemaphore,
    bodies: FairSemaphore,
    fetches: FairSemaphore,
}

/// A connected source.
#[derive(Debug)]
struct Connection<'a> {
    source: &'a Source,
    provider: Arc<dyn Provider>,
    /// Charged to the daily budget of the source.
    call: Call,
}

impl Live {
    pub(crate) fn new(runner: Runner, extractor: Extractor, most_bytes: u64) -> Self {
        let semaphores = Semaphores {
            sources: semaphore(MAX_CONCURRENT_SOURCES),
            bodies: semaphore(MAX_CONCURRENT_BODIES),
            fetches: semaphore(MAX_CONCURRENT_FETCHES),
        };
        let (cache, connections) = (Cache::new(most_bytes), Connections::new());
        let budget_queue = BudgetQueue::new(runner.context.db.clone(), Arc::clone(&runner.context.clock));
        Self { runner, extractor, cache, connections, semaphores: Arc::new(semaphores), budget_queue }
    }

    /// Invalidates the caches of a source that was changed or disconnected.
    pub(crate) fn invalidate(&self, source: SourceId) {
        self.cache.invalidate(source);
        self.connections.invalidate(source);
    }

    /// Evicts expired entries until the shutdown.
    pub(crate) async fn run(&self, shutdown: &CancellationToken) {
        while !shutdown.is_cancelled() {
            tokio::select! {
                () = shutdown.cancelled() => {}
                () = tokio::time::sleep(SWEEP_INTERVAL) => {}
            }
            let now = self.runner.context.clock.now();
            self.cache.sweep(now);
            self.connections.sweep(now);
        }
    }

    /// The weight of the cache in bytes.
    #[cfg(test)]
    pub(crate) fn cached_bytes(&self) -> u64 {
        self.cache.weight()
    }

    async fn connect<'a>(&self, source: &'a Source) -> Result<Connection<'a>, Error> {
        let now = self.runner.context.clock.now();
        let provider = match self.connections.get(source, now) {
            Some(provider) => provider,
            None => {
                let made: Arc<dyn Provider> = Arc::from(self.runner.provider(source).await?);
                self.connections.insert(source, &made, now);
                made
            }
        };
        let charge =
            Charge::Question { budget: source.daily_budget, budget_queue: self.budget_queue.clone() };
        let call = self.runner.call(source, charge);
        Ok(Connection { source, provider, call })
    }

    /// Draws the consequences of a fault: a broken connection is dropped, and refused credentials are recorded as a run would.
    async fn record_fault(&self, source: &Source, fault: &Fault) {
        if !matches!(fault, Fault::Waiting { .. } | Fault::Budget) {
            // The next question connects anew.
            self.connections.invalidate(source.id);
        }
        if *fault != Fault::Credentials {
            return;
        }
        let message = Failure::Credentials.message();
        let noted = store::sources::refuse_credentials(&self.runner.context.db, source, &message).await;
        if let Err(error) = noted {
            tracing::warn!(%error, source = %source.id, "that credentials are refused is not noted");
        }
    }
}

/// A semaphore whose waiters have deadlines of their own.
fn semaphore(at_once: usize) -> FairSemaphore {
    FairSemaphore::new(Share { waiting: MAX_WAITING, max_wait: MAX_WAIT, ..Share::of(at_once) })
}

/// Why a source cannot be read now, if so.
fn unavailable_reason(source: &Source) -> Option<&'static str> {
    if source.paused {
        Some("it is paused")
    } else if source.needs_credentials {
        Some("the provider does not accept the credentials: give new ones")
    } else {
        None
    }
}
