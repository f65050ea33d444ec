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

pub(crate) use self::ask::{Answers, Asked, Found, Outcome, live_path};
use self::cache::Cache;
use self::connections::Connections;
use crate::model::Source;
use crate::runs::{Failure, Machine, Purse, Till};
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
const SWEEP_EVERY: Duration = Duration::from_secs(10);

/// Asks providers; clones share their memory and their bounds.
#[derive(Debug, Clone)]
pub(crate) struct Live {
    machine: Machine,
    /// Has children of its own: whoever waits does not stand behind a run's files.
    extractor: Extractor,
    cache: Cache,
    connections: Connections,
    gates: Arc<Gates>,
    till: Till,
}

#[derive(Debug)]
struct Gates {
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
    pub(crate) fn new(machine: Machine, extractor: Extractor, most_bytes: u64) -> Self {
        let gates = Gates {
            sources: gate(SOURCES_AT_ONCE),
            bodies: gate(BODIES_AT_ONCE),
            fetches: gate(FETCHES_AT_ONCE),
        };
        let (cache, connections) = (Cache::new(most_bytes), Connections::new());
        let till = Till::new(machine.context.db.clone(), Arc::clone(&machine.context.clock));
        Self { machine, extractor, cache, connections, gates: Arc::new(gates), till }
    }

    /// Forgets what was read of a source: it is disconnected, or somebody changed it.
    pub(crate) fn forget(&self, source: SourceId) {
        self.cache.forget(source);
        self.connections.forget(source);
    }

    /// Takes what is too old from memory until the shutdown.
    pub(crate) async fn run(&self, shutdown: &CancellationToken) {
        while !shutdown.is_cancelled() {
            tokio::select! {
                () = shutdown.cancelled() => {}
                () = tokio::time::sleep(SWEEP_EVERY) => {}
            }
            let now = self.machine.context.clock.now();
            self.cache.sweep(now);
            self.connections.sweep(now);
        }
    }

    /// What is kept in memory, in bytes.
    #[cfg(test)]
    pub(crate) fn kept_bytes(&self) -> u64 {
        self.cache.weight()
    }

    async fn connect<'a>(&self, source: &'a Source) -> Result<Connection<'a>, Error> {
        let now = self.machine.context.clock.now();
        let provider = match self.connections.get(source, now) {
            Some(provider) => provider,
            None => {
                let made: Arc<dyn Provider> = Arc::from(self.machine.provider(source).await?);
                self.connections.put(source, &made, now);
                made
            }
        };
        let purse = Purse::Question { budget: source.daily_budget, till: self.till.clone() };
        let call = self.machine.call(source, purse);
        Ok(Connection { source, provider, call })
    }

    /// What follows from a fault for those who ask next. That a provider does not take the credentials, everybody gets to
    /// know as from a run.
    async fn note(&self, source: &Source, fault: &Fault) {
        if !matches!(fault, Fault::Waiting { .. } | Fault::Budget) {
            // Whatever it was: the next connection begins anew.
            self.connections.forget(source.id);
        }
        if *fault != Fault::Credentials {
            return;
        }
        let message = Failure::Credentials.message();
        let noted = store::sources::refuse_credentials(&self.machine.context.db, source, &message).await;
        if let Err(error) = noted {
            tracing::warn!(%error, source = %source.id, "that credentials are refused is not noted");
        }
    }
}

/// Whoever waits there does so within a time of its own.
fn gate(at_once: usize) -> FairSemaphore {
    FairSemaphore::new(Share { waiting: MOST_WAITING, max_wait: MOST_WAIT, ..Share::of(at_once) })
}

/// Why a source is not asked, whatever for.
fn rests(source: &Source) -> Option<&'static str> {
    if source.paused {
        Some("it is paused")
    } else if source.needs_credentials {
        Some("the provider does not accept the credentials: give new ones")
    } else {
        None
    }
}
