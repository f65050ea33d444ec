//! Group commit for the requests of live questions: reservations from daily budgets share transactions.
//!
//! A question to fifty sources makes two hundred requests within two seconds, and each must be charged before it is sent. With a
//! transaction each, they would queue for the disk; instead one transaction is open at a time, and commits all reservations that
//! arrived during the previous one.

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

/// Reservations of one transaction, so that it takes a few milliseconds.
const MAX_BATCH: usize = 128;

/// The queue of reservations; clones share it.
#[derive(Clone)]
pub(crate) struct BudgetQueue(Arc<Inner>);

struct Inner {
    db: Db,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    reservations: Vec<Reservation>,
    /// Whether a committer is running.
    is_committing: bool,
    #[cfg(test)]
    transactions: u32,
}

struct Reservation {
    workspace: WorkspaceId,
    source: SourceId,
    /// The daily limit.
    budget: u32,
    answer: oneshot::Sender<Result<(), Fault>>,
}

impl fmt::Debug for BudgetQueue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("BudgetQueue").finish_non_exhaustive()
    }
}

impl BudgetQueue {
    pub(crate) fn new(db: Db, clock: Arc<dyn Clock>) -> Self {
        Self(Arc::new(Inner { db, clock, state: Mutex::default() }))
    }

    /// Reserves one request from the daily budget of a source; fails while the source must wait, or if the budget is used up.
    pub(crate) async fn take(
        &self,
        workspace: WorkspaceId,
        source: SourceId,
        budget: u32,
    ) -> Result<(), Fault> {
        let (answer, result) = oneshot::channel();
        let is_first = {
            let mut state = self.state();
            state.reservations.push(Reservation { workspace, source, budget, answer });
            !std::mem::replace(&mut state.is_committing, true)
        };
        if is_first {
            // A task of its own: the first caller may be cancelled while others wait.
            tokio::spawn(Committer { budget_queue: self.clone(), is_done: false }.serve());
        }
        result.await.unwrap_or(Err(Fault::Unavailable))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next batch; `None` when the queue is empty, and the committer must stop.
    fn next(&self) -> Option<Vec<Reservation>> {
        let mut state = self.state();
        state.reservations.retain(|reservation| !reservation.answer.is_closed());
        let most = state.reservations.len().min(MAX_BATCH);
        let mut reservations: Vec<Reservation> = state.reservations.drain(..most).collect();
        state.is_committing = !reservations.is_empty();
        // The lock order of all writers.
        reservations.sort_by_key(|reservation| (reservation.workspace, reservation.source));
        state.is_committing.then_some(reservations)
    }

    async fn write(&self, reservations: &[Reservation]) -> Result<Vec<Result<(), Fault>>, Error> {
        #[cfg(test)]
        {
            self.state().transactions += 1;
        }
        let now = self.0.clock.now();
        let day = next::day(now);
        let mut answers = Vec::with_capacity(reservations.len());
        let mut tx = self.0.db.begin_write().await?;
        for Reservation { workspace, source, budget, .. } in reservations {
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

/// The fault of a request when the storage fails.
pub(super) fn unavailable(error: &Error) -> Fault {
    tracing::warn!(%error, "the account of a connected source cannot be kept now");
    Fault::Unavailable
}

/// The task that commits reservations. If it is dropped early, the next reservation starts another.
struct Committer {
    budget_queue: BudgetQueue,
    is_done: bool,
}

impl Committer {
    async fn serve(mut self) {
        while let Some(reservations) = self.budget_queue.next() {
            let answers = self.budget_queue.write(&reservations).await.unwrap_or_else(|error| {
                let fault = unavailable(&error);
                vec![Err(fault); reservations.len()]
            });
            for (reservation, answer) in reservations.into_iter().zip(answers) {
                // A caller that was cancelled meanwhile is charged for a request that is never sent.
                let _ = reservation.answer.send(answer);
            }
        }
        self.is_done = true;
    }
}

impl Drop for Committer {
    fn drop(&mut self) {
        if !self.is_done {
            let mut state = self.budget_queue.state();
            state.is_committing = false;
            state.reservations.clear();
        }
    }
}

#[cfg(test)]
impl BudgetQueue {
    /// The number of transactions so far.
    pub(crate) fn transactions(&self) -> u32 {
        self.state().transactions
    }
}
