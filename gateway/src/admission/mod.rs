//! Admission by cost and tenant: how much work runs concurrently, and who is next.
//!
//! Each request holds the units of its [`Cost`] while it is worked on. A request without room waits in a queue that
//! is fair between tenants ([`fair_queue`]), and only briefly: an early 503 is better than a late answer ([ADR
//! 100](../../../docs/adr/0100-admission-by-cost-and-tenant.md)).

mod fair_queue;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use cairn_chassis::clock::Clock;
use cairn_chassis::status::Problem;
use http::Extensions;
use metrics::Gauge;
use tokio::sync::oneshot::{self, Receiver, Sender};

pub(crate) use self::fair_queue::Tenant;
use self::fair_queue::{FairQueue, Full, MAX_WAIT, Outcome, Shares, Ticket};
use crate::cost::Cost;
use crate::in_flight::REFUSED;
use crate::suspension::{Permits, Suspendable};

/// Units per core: about 50 ms of its work.
const UNITS_PER_CORE: usize = 256;
/// `Retry-After` of a refusal.
const BUSY: Duration = Duration::from_secs(1);

const CAPACITY: &str = "cairn_capacity_units";
const USED: &str = "cairn_capacity_units_used";
const WAITING: &str = "cairn_requests_waiting";
const WAITED: &str = "cairn_request_wait_seconds";

/// The default capacity: by the number of cores, but below the request limit, so that requests of one unit do not
/// hit that limit, which knows no tenants, first.
pub(crate) fn default_capacity(max_requests: usize) -> u32 {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let capacity = cores.saturating_mul(UNITS_PER_CORE).min(max_requests - max_requests / 4);
    u32::try_from(capacity).unwrap_or(u32::MAX).max(1)
}

/// The admission controller of this process.
#[derive(Debug)]
pub(crate) struct Admission {
    /// `None` if admission is disabled.
    queue: Option<Mutex<FairQueue<Sender<Outcome>>>>,
    clock: Arc<dyn Clock>,
    /// Gauge of the units in flight.
    used: Gauge,
}

/// The units of an admitted request, held until this is dropped, except while the request is suspended.
#[derive(Debug)]
pub(crate) struct Permit {
    admission: Arc<Admission>,
    tenant: Tenant,
    units: u32,
    suspended: AtomicBool,
}

impl Admission {
    /// `capacity` in units; 0 disables admission.
    pub(crate) fn new(capacity: u32, clock: Arc<dyn Clock>) -> Self {
        metrics::gauge!(CAPACITY).set(capacity);
        let used = metrics::gauge!(USED);
        used.set(0);
        metrics::gauge!(WAITING).set(0);
        let queue = (capacity > 0).then(|| Mutex::new(FairQueue::new(Shares::of(capacity))));
        Self { queue, clock, used }
    }

    /// Admits a request, at once or after a short wait. Cancel safe: a dropped future leaves the queue and returns
    /// its units. `None` if the request costs nothing.
    ///
    /// # Errors
    /// When the queue is full or the wait limit has passed.
    pub(crate) async fn enter(
        self: &Arc<Self>,
        tenant: Tenant,
        cost: Cost,
        request: &mut Extensions,
    ) -> Result<Option<Arc<Permit>>, Problem> {
        let Some(queue) = self.queue.as_ref().filter(|_| cost > Cost::FREE) else { return Ok(None) };
        let (units, is_admitted) = {
            let mut queue = lock(queue);
            let units = queue.shares().units(&tenant, cost.units());
            (units, queue.admit(&tenant, units))
        };
        if !is_admitted {
            let _suspended = Permits::suspend(request);
            Box::pin(self.wait(queue, &tenant, units)).await?;
        }
        self.used.increment(units);
        let permit = Permit { admission: Arc::clone(self), tenant, units, suspended: AtomicBool::new(false) };
        let permit = Arc::new(permit);
        Permits::add(request, &permit);
        Ok(Some(permit))
    }

    async fn wait(
        &self,
        queue: &Mutex<FairQueue<Sender<Outcome>>>,
        tenant: &Tenant,
        units: u32,
    ) -> Result<(), Problem> {
        let now = self.clock.now();
        let (sender, receiver) = oneshot::channel();
        let queued = {
            let mut queue = lock(queue);
            let queued = queue.enqueue(tenant, units, now, sender).map(|(ticket, displaced)| {
                displaced.into_iter().for_each(|(who, outcome)| send_outcome(who, outcome));
                ticket
            });
            queue.dispatch(now, send_outcome);
            queued
        };
        let ticket = queued.map_err(|Full| refuse("waiting"))?;
        metrics::gauge!(WAITING).increment(1.0);
        let mut waiting = Waiting { admission: self, queue, tenant, units, ticket, receiver, is_over: false };
        // On a timeout, an outcome sent at the last moment still counts.
        let received = tokio::time::timeout(MAX_WAIT, &mut waiting.receiver).await.ok().and_then(Result::ok);
        let outcome = match received {
            Some(outcome) => {
                waiting.is_over = true;
                outcome
            }
            None => waiting.end(),
        };
        metrics::histogram!(WAITED).record(self.clock.now().since(now));
        match outcome {
            Outcome::Admitted => Ok(()),
            Outcome::TimedOut => Err(refuse("delay")),
            Outcome::Displaced => Err(refuse("waiting")),
        }
    }

    /// Applies a change and dispatches the queue.
    fn settle(&self, change: impl FnOnce(&mut FairQueue<Sender<Outcome>>)) {
        let Some(queue) = &self.queue else { return };
        let now = self.clock.now();
        let mut queue = lock(queue);
        change(&mut queue);
        queue.dispatch(now, send_outcome);
    }
}

/// Called under the queue's lock, so that a request that leaves the queue knows whether an outcome was sent.
fn send_outcome(who: Sender<Outcome>, outcome: Outcome) {
    // A dropped receiver has already taken the outcome into account, or will in [`Waiting::end`].
    let _gone = who.send(outcome);
}

fn refuse(bound: &'static str) -> Problem {
    metrics::counter!(REFUSED, "bound" => bound).increment(1);
    Problem::unavailable("more is asked for here than can be answered in time; try again", BUSY)
}

fn lock<W>(queue: &Mutex<FairQueue<W>>) -> MutexGuard<'_, FairQueue<W>> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A queued request.
struct Waiting<'a> {
    admission: &'a Admission,
    queue: &'a Mutex<FairQueue<Sender<Outcome>>>,
    tenant: &'a Tenant,
    units: u32,
    ticket: Ticket,
    receiver: Receiver<Outcome>,
    is_over: bool,
}

impl Waiting<'_> {
    /// Leaves the queue; the outcome if one was sent before.
    fn end(&mut self) -> Outcome {
        self.is_over = true;
        let now = self.admission.clock.now();
        let mut queue = lock(self.queue);
        if queue.leave(&self.ticket) {
            queue.dispatch(now, send_outcome);
            return Outcome::TimedOut;
        }
        self.receiver.try_recv().unwrap_or(Outcome::TimedOut)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        metrics::gauge!(WAITING).decrement(1.0);
        if !self.is_over && self.end() == Outcome::Admitted {
            self.admission.settle(|queue| queue.release(self.tenant, self.units));
        }
    }
}

impl Suspendable for Permit {
    fn set_suspended(&self, suspended: bool) {
        match (self.suspended.swap(suspended, Ordering::AcqRel), suspended) {
            (false, true) => {
                self.admission.used.decrement(self.units);
                self.admission.settle(|queue| queue.release(&self.tenant, self.units));
            }
            (true, false) => {
                self.admission.used.increment(self.units);
                self.admission.settle(|queue| queue.take(&self.tenant, self.units));
            }
            (true, true) | (false, false) => {}
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.set_suspended(true);
    }
}

#[cfg(test)]
mod tests;
