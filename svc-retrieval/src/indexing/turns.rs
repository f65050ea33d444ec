//! Who indexes, where several processes share one index: each feed of a workspace has one process at work at a time.
//!
//! Whoever has the turn asks the index how far it is before it reads the feed, so what another process has done is not done
//! again: neither is a text embedded twice. When a process ends in the midst of its turn, the turn ends by itself, and the next
//! one goes on from the index's cursor. A process that was paused for longer than that may find that another one took over: it
//! gives up as soon as it notices, and what it wrote meanwhile undoes nothing newer (ADR 15).

use std::future::Future;
use std::time::Duration;

use cairn_chassis::jobs::Leases;
use tokio::time::{Instant, sleep, timeout_at};
use uuid::Uuid;

use crate::error::Error;

/// How long a turn outlives a process that ends in its midst. A search that waits for a write of that workspace waits so long.
pub(crate) const TERM: Duration = Duration::from_secs(20);

/// Whoever waits for another process looks this soon, then after twice as long, up to the longest pause.
const FIRST_LOOK: Duration = Duration::from_millis(20);
const LONGEST_LOOK: Duration = Duration::from_millis(500);

/// The turns of this process.
#[derive(Debug, Clone, Default)]
pub(crate) struct Turns(Option<Shared>);

#[derive(Debug, Clone)]
struct Shared {
    leases: Leases,
    index: String,
}

impl Turns {
    /// Those of a process that shares its indexes with whoever has leases in the same storage.
    pub(crate) fn shared(leases: Leases) -> Self {
        Self(Some(Shared { leases, index: String::new() }))
    }

    /// Those at one of the indexes.
    pub(crate) fn at(&self, index: &str) -> Self {
        Self(self.0.as_ref().map(|shared| Shared { leases: shared.leases.clone(), index: index.to_owned() }))
    }

    /// Does the work when it is this process's turn at a feed of a workspace; none while it is another one's.
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
            error = keep(leases, &name) => Err(error),
        };
        if let Err(error) = leases.release(&name).await {
            tracing::debug!(%error, name, "a turn could not be given back; it ends by itself");
        }
        done.map(Some)
    }
}

/// Renews a lease until that fails. A storage that is away for a moment is asked again while the lease still holds; one that does
/// not answer at all is not waited for any longer, since another process may have the turn by then.
async fn keep(leases: &Leases, name: &str) -> Error {
    let period = leases.term() / 4;
    let mut renewed = Instant::now();
    loop {
        sleep(period).await;
        let asked = Instant::now();
        let at_the_latest = renewed + period * 7 / 2;
        match timeout_at(at_the_latest, leases.claim(name)).await {
            Ok(Ok(true)) => renewed = asked,
            Ok(Ok(false)) | Err(_) => return Error::Overtaken,
            Ok(Err(_)) if renewed.elapsed() + period < leases.term() => {}
            Ok(Err(error)) => return error.into(),
        }
    }
}

/// Looks of a process that waits for another one.
#[derive(Debug)]
pub(super) struct Looks(Duration);

impl Looks {
    pub(super) const fn new() -> Self {
        Self(FIRST_LOOK)
    }

    /// Waits until it is time to look again.
    pub(super) async fn next(&mut self) {
        sleep(self.0).await;
        self.0 = (self.0 * 2).min(LONGEST_LOOK);
    }
}

#[cfg(test)]
mod tests;
