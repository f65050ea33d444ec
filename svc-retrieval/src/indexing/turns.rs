//! Who indexes, where several processes share one index: each feed of a workspace has one process at work at a time.
//!
//! A turn is a lease. Its holder refreshes the cursor of the index before it reads the feed, so that the work of another process
//! is not repeated and no text is embedded twice. When a process crashes, its lease expires, and the next holder continues from
//! the cursor. A process that was paused for longer than the term may find that another one took over: it stops as soon as it
//! notices, and its stale writes undo nothing newer (ADR 15).

use std::future::Future;
use std::time::Duration;

use cairn_chassis::jobs::Leases;
use tokio::time::{Instant, sleep, timeout_at};
use uuid::Uuid;

use crate::error::Error;

/// The term of a lease: after a crash, a search that waits for a write of that workspace waits up to this long.
pub(crate) const TERM: Duration = Duration::from_secs(20);

/// The first interval at which a process that waits for another one polls; doubled up to the maximum.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(20);
const MAX_POLL_INTERVAL: Duration = Duration::from_millis(500);

/// The leases of this process; none where it has the index to itself.
#[derive(Debug, Clone, Default)]
pub(crate) struct Turns(Option<Shared>);

#[derive(Debug, Clone)]
struct Shared {
    leases: Leases,
    index: String,
}

impl Turns {
    /// For a process that shares its indexes with others that have leases in the same storage.
    pub(crate) fn shared(leases: Leases) -> Self {
        Self(Some(Shared { leases, index: String::new() }))
    }

    /// The turns at one of the indexes.
    pub(crate) fn at(&self, index: &str) -> Self {
        Self(self.0.as_ref().map(|shared| Shared { leases: shared.leases.clone(), index: index.to_owned() }))
    }

    /// Runs the work under the lease of a feed of a workspace; `None` while another process holds it.
    ///
    /// # Errors
    /// Those of the work, of the storage, and [`Error::Overtaken`] when another process has taken over.
    pub(super) async fn take<T>(
        &self,
        feed: &str,
        workspace: Uuid,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<Option<T>, Error> {
        let Some(Shared { leases, index }) = &self.0 else { return work.await.map(Some) };
        let name = format!("index/{index}/{feed}/{workspace}");
        if !leases.claim(&name).await? {
            return Ok(None);
        }
        let done = tokio::select! {
            done = work => done,
            error = keep_renewed(leases, &name) => Err(error),
        };
        if let Err(error) = leases.release(&name).await {
            tracing::debug!(%error, name, "a turn could not be given back; it ends by itself");
        }
        done.map(Some)
    }
}

/// Renews a lease until that fails. Errors of the storage are retried while the lease is still valid; a renewal that hangs is
/// given up before it expires, since another process may hold the lease by then.
async fn keep_renewed(leases: &Leases, name: &str) -> Error {
    let period = leases.term() / 4;
    let mut renewed = Instant::now();
    loop {
        sleep(period).await;
        let asked = Instant::now();
        let deadline = renewed + period * 7 / 2;
        match timeout_at(deadline, leases.claim(name)).await {
            Ok(Ok(true)) => renewed = asked,
            Ok(Ok(false)) | Err(_) => return Error::Overtaken,
            Ok(Err(_)) if renewed.elapsed() + period < leases.term() => {}
            Ok(Err(error)) => return error.into(),
        }
    }
}

/// Exponential backoff of a process that polls while another one holds the lease.
#[derive(Debug)]
pub(super) struct PollBackoff(Duration);

impl PollBackoff {
    pub(super) const fn new() -> Self {
        Self(MIN_POLL_INTERVAL)
    }

    /// Waits until the next poll is due.
    pub(super) async fn next(&mut self) {
        sleep(self.0).await;
        self.0 = (self.0 * 2).min(MAX_POLL_INTERVAL);
    }
}

#[cfg(test)]
mod tests;
