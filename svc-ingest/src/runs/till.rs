//! Requests of questions, taken from the days' budgets together.
//!
//! A question to fifty sources takes two hundred requests within two seconds, and each has to be written down before it is
//! sent. One transaction for each would keep the others waiting for the disk: so one is written at a time, with all that came
//! while the one before was.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cairn_chassis::clock::Clock;
use cairn_chassis::sql::{Db, Error};
use cairn_proto::ids::{SourceId, WorkspaceId};
use cairn_providers::Fault;
use tokio::sync::oneshot;

use super::next;
use crate::model::Spending;
use crate::store;

/// Requests of one transaction: it is over in a few milliseconds.
const MOST_AT_ONCE: usize = 128;

/// Where questions take their requests; clones are the same.
#[derive(Clone)]
pub(crate) struct Till(Arc<Inner>);

struct Inner {
    db: Db,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    wishes: Vec<Wish>,
    /// Whether somebody serves them.
    is_served: bool,
    #[cfg(test)]
    transactions: u32,
}

struct Wish {
    workspace: WorkspaceId,
    source: SourceId,
    /// Of the day.
    budget: u32,
    answer: oneshot::Sender<Result<(), Fault>>,
}

impl fmt::Debug for Till {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Till").finish_non_exhaustive()
    }
}

impl Till {
    pub(crate) fn new(db: Db, clock: Arc<dyn Clock>) -> Self {
        Self(Arc::new(Inner { db, clock, state: Mutex::default() }))
    }

    /// Takes one request of the day from the budget of a source, unless it rests or its budget is used up.
    pub(crate) async fn take(
        &self,
        workspace: WorkspaceId,
        source: SourceId,
        budget: u32,
    ) -> Result<(), Fault> {
        let (answer, told) = oneshot::channel();
        let is_first = {
            let mut state = self.state();
            state.wishes.push(Wish { workspace, source, budget, answer });
            !std::mem::replace(&mut state.is_served, true)
        };
        if is_first {
            // By itself: whoever came first may give up, and the others still wait.
            tokio::spawn(Served { till: self.clone(), is_done: false }.serve());
        }
        told.await.unwrap_or(Err(Fault::Unavailable))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next ones; `None`: there are none, and nobody serves any more.
    fn next(&self) -> Option<Vec<Wish>> {
        let mut state = self.state();
        state.wishes.retain(|wish| !wish.answer.is_closed());
        let most = state.wishes.len().min(MOST_AT_ONCE);
        let mut wishes: Vec<Wish> = state.wishes.drain(..most).collect();
        state.is_served = !wishes.is_empty();
        // The rows are locked in one order, whoever writes.
        wishes.sort_by_key(|wish| (wish.workspace, wish.source));
        state.is_served.then_some(wishes)
    }

    async fn write(&self, wishes: &[Wish]) -> Result<Vec<Result<(), Fault>>, Error> {
        #[cfg(test)]
        {
            self.state().transactions += 1;
        }
        let now = self.0.clock.now();
        let day = next::day(now);
        let mut answers = Vec::with_capacity(wishes.len());
        let mut tx = self.0.db.begin_write().await?;
        for Wish { workspace, source, budget, .. } in wishes {
            let (workspace, source, limit) = (*workspace, *source, Some(*budget));
            let answer = match store::sources::rest(&mut tx, workspace, source).await? {
                None => Err(Fault::Refused),
                Some(Some(until)) if until > now => Err(Fault::Waiting { until }),
                Some(_) => {
                    let ledger = Spending::Live;
                    let is_taken =
                        store::provider_operations::take(&mut tx, workspace, source, day, ledger, limit);
                    if is_taken.await? { Ok(()) } else { Err(Fault::Budget) }
                }
            };
            answers.push(answer);
        }
        tx.commit().await?;
        Ok(answers)
    }
}

/// What a request is told when the storage fails.
pub(super) fn unavailable(error: &Error) -> Fault {
    tracing::warn!(%error, "the account of a connected source cannot be kept now");
    Fault::Unavailable
}

/// Who serves wishes. Whatever ends it, the next one who comes is served again.
struct Served {
    till: Till,
    is_done: bool,
}

impl Served {
    async fn serve(mut self) {
        while let Some(wishes) = self.till.next() {
            let answers = self.till.write(&wishes).await.unwrap_or_else(|error| {
                let fault = unavailable(&error);
                vec![Err(fault); wishes.len()]
            });
            for (wish, answer) in wishes.into_iter().zip(answers) {
                // Whoever gave up meanwhile has paid for a request that is not sent.
                let _ = wish.answer.send(answer);
            }
        }
        self.is_done = true;
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if !self.is_done {
            let mut state = self.till.state();
            state.is_served = false;
            state.wishes.clear();
        }
    }
}

#[cfg(test)]
impl Till {
    /// How many were written.
    pub(crate) fn transactions(&self) -> u32 {
        self.state().transactions
    }
}
