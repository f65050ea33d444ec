//! Places of programs that wait for changes: how many there may be, of one token and in all.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cairn_chassis::status::{Problem, Reason};
use tokio::sync::watch;

use crate::auth::CallerIdentity;

/// Calls that wait and streams of one token at once.
const MOST_OF_TOKEN: usize = 16;
/// Of this process at once.
const MOST: usize = 1_024;
/// When it may be tried again.
const RETRY: Duration = Duration::from_secs(5);

/// Who waits for changes through this process.
#[derive(Debug)]
pub(crate) struct Follows {
    seats: Mutex<Seats>,
    closed: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct Seats {
    of_tokens: HashMap<String, usize>,
    total: usize,
}

impl Default for Follows {
    fn default() -> Self {
        Self { seats: Mutex::default(), closed: watch::Sender::new(false) }
    }
}

impl Follows {
    /// Ends every wait and every stream, so that a server that drains need not wait for them.
    pub(crate) fn close(&self) {
        self.closed.send_replace(true);
    }

    fn seats(&self) -> MutexGuard<'_, Seats> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place among those that wait.
    pub(crate) fn join(self: &Arc<Self>, caller: &CallerIdentity) -> Result<Seat, Problem> {
        if *self.closed.borrow() {
            return Err(Problem::unavailable("this server is going down; another answers", RETRY));
        }
        let token = caller.claims.principal.id.clone();
        let mut seats = self.seats();
        if seats.total >= MOST {
            return Err(Problem::unavailable("too many programs wait for changes at once", RETRY));
        }
        let own = seats.of_tokens.entry(token.clone()).or_default();
        if *own >= MOST_OF_TOKEN {
            let message =
                format!("this token waits for changes {MOST_OF_TOKEN} times already: end one of these first");
            return Err(Problem { retry_after: Some(RETRY), ..Problem::new(Reason::RateLimited, message) });
        }
        *own += 1;
        seats.total += 1;
        metrics::gauge!("cairn_change_followers").set(u32::try_from(seats.total).unwrap_or(u32::MAX));
        drop(seats);
        Ok(Seat { follows: Arc::clone(self), token, closed: self.closed.subscribe() })
    }
}

/// A place among those that wait; given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Seat {
    follows: Arc<Follows>,
    token: String,
    closed: watch::Receiver<bool>,
}

impl Seat {
    /// Ends when the server goes down.
    pub(crate) async fn ended(&mut self) {
        // A sender that is gone has closed, too.
        let _ = self.closed.wait_for(|closed| *closed).await;
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut seats = self.follows.seats();
        seats.total = seats.total.saturating_sub(1);
        if let Some(count) = seats.of_tokens.get_mut(&self.token) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                seats.of_tokens.remove(&self.token);
            }
        }
        metrics::gauge!("cairn_change_followers").set(u32::try_from(seats.total).unwrap_or(u32::MAX));
    }
}
