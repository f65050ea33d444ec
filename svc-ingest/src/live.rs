//! Questions to providers while somebody waits: searches of live sources, and bodies that are kept nowhere.
//!
//! `read` is the one way to a body; `fetch` reads one document, `ask` asks many sources at once, `cache` keeps what was read
//! for a minute in memory. No question is spawned: a caller that gives up drops the future, and all of it stops.

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

/// Sources that this process asks at once, for all callers together; three quarters are the share of one workspace.
const SOURCES_AT_ONCE: usize = 128;
/// The same of bodies that are read for searches, of 1 MiB each.
const BODIES_AT_ONCE: usize = 32;
/// The same of documents that are fetched by themselves, which may be large.
const FETCHES_AT_ONCE: usize = 8;
/// Of one workspace: a few questions of all that it may name.
const MOST_WAITING: usize = 512;
/// Longer than anybody has.
const MOST_WAIT: Duration = Duration::from_secs(30);
/// How often what is too old goes from memory, whoever asks or not.
const SWEEP_INTERVAL: Duration = Duration::from_secs(10);

/// Asks providers; clones share their memory and their bounds.
#[derive(Debug, Clone)]
pub(crate) struct Live {
    runner: Runner,
    /// Has children of its own: whoever waits does not stand behind a run's files.
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

/// A source that is asked.
#[derive(Debug)]
struct Connection<'a> {
    source: &'a Source,
    provider: Arc<dyn Provider>,
    /// On the account of the source's questions.
    call: Call,
}

impl Live {
    pub(crate) fn new(runner: Runner, extractor: Extractor, most_bytes: u64) -> Self {
        let semaphores = Semaphores {
            sources: semaphore(SOURCES_AT_ONCE),
            bodies: semaphore(BODIES_AT_ONCE),
            fetches: semaphore(FETCHES_AT_ONCE),
        };
        let (cache, connections) = (Cache::new(most_bytes), Connections::new());
        let budget_queue = BudgetQueue::new(runner.context.db.clone(), Arc::clone(&runner.context.clock));
        Self { runner, extractor, cache, connections, semaphores: Arc::new(semaphores), budget_queue }
    }

    /// Forgets what was read of a source: it is disconnected, or somebody changed it.
    pub(crate) fn invalidate(&self, source: SourceId) {
        self.cache.invalidate(source);
        self.connections.invalidate(source);
    }

    /// Takes what is too old from memory until the shutdown.
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

    /// What is kept in memory, in bytes.
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

    /// What follows from a fault for those who ask next. That a provider does not take the credentials, everybody gets to
    /// know as from a run.
    async fn record_fault(&self, source: &Source, fault: &Fault) {
        if !matches!(fault, Fault::Waiting { .. } | Fault::Budget) {
            // Whatever it was: the next connection begins anew.
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

/// Whoever waits there does so within a time of its own.
fn semaphore(at_once: usize) -> FairSemaphore {
    FairSemaphore::new(Share { waiting: MOST_WAITING, max_wait: MOST_WAIT, ..Share::of(at_once) })
}

/// Why a source is not asked, whatever for.
fn unavailable_reason(source: &Source) -> Option<&'static str> {
    if source.paused {
        Some("it is paused")
    } else if source.needs_credentials {
        Some("the provider does not accept the credentials: give new ones")
    } else {
        None
    }
}
