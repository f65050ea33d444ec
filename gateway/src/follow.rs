//! Limits on long polls and streams of changes, per token and per process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cairn_chassis::status::{Problem, Reason};
use tokio::sync::watch;

use crate::auth::CallerIdentity;

/// Concurrent long polls and streams per token.
const MAX_OF_TOKEN: usize = 16;
/// Concurrent long polls and streams of this process.
const MAX_FOLLOWERS: usize = 1_024;
/// `Retry-After` of a refusal.
const RETRY: Duration = Duration::from_secs(5);

/// Who follows changes through this process.
#[derive(Debug)]
pub(crate) struct FollowLimit {
    counts: Mutex<Counts>,
    closed: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct Counts {
    of_tokens: HashMap<String, usize>,
    total: usize,
}

impl Default for FollowLimit {
    fn default() -> Self {
        Self { counts: Mutex::default(), closed: watch::Sender::new(false) }
    }
}

impl FollowLimit {
    /// Ends every long poll and stream, so that draining does not wait for them.
    pub(crate) fn close(&self) {
        self.closed.send_replace(true);
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Acquires a slot.
    pub(crate) fn join(self: &Arc<Self>, caller: &CallerIdentity) -> Result<FollowPermit, Problem> {
        if *self.closed.borrow() {
            return Err(Problem::unavailable("this server is going down; another answers", RETRY));
        }
        let token = caller.claims.principal.id.clone();
        let mut counts = self.counts();
        if counts.total >= MAX_FOLLOWERS {
            return Err(Problem::unavailable("too many programs wait for changes at once", RETRY));
        }
        let own = counts.of_tokens.entry(token.clone()).or_default();
        if *own >= MAX_OF_TOKEN {
            let message =
                format!("this token waits for changes {MAX_OF_TOKEN} times already: end one of these first");
            return Err(Problem { retry_after: Some(RETRY), ..Problem::new(Reason::RateLimited, message) });
        }
        *own += 1;
        counts.total += 1;
        metrics::gauge!("cairn_change_followers").set(u32::try_from(counts.total).unwrap_or(u32::MAX));
        drop(counts);
        Ok(FollowPermit { follows: Arc::clone(self), token, closed: self.closed.subscribe() })
    }
}

/// A slot; released on drop.
#[derive(Debug)]
pub(crate) struct FollowPermit {
    follows: Arc<FollowLimit>,
    token: String,
    closed: watch::Receiver<bool>,
}

impl FollowPermit {
    /// Resolves when the server shuts down.
    pub(crate) async fn shutdown(&mut self) {
        // A dropped sender means closed, too.
        let _ = self.closed.wait_for(|closed| *closed).await;
    }
}

impl Drop for FollowPermit {
    fn drop(&mut self) {
        let mut counts = self.follows.counts();
        counts.total = counts.total.saturating_sub(1);
        if let Some(count) = counts.of_tokens.get_mut(&self.token) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                counts.of_tokens.remove(&self.token);
            }
        }
        metrics::gauge!("cairn_change_followers").set(u32::try_from(counts.total).unwrap_or(u32::MAX));
    }
}
