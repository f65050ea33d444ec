//! Admission by cost and tenant: how much work runs concurrently, and who is next.
//!
//! Each request holds the units of its [`Cost`] while it is worked on. A request without room waits in a queue that
//! is fair between tenants ([`line`]), and only briefly: an early 503 is better than a late answer ([ADR
//! 100](../../../docs/adr/0100-admission-by-cost-and-tenant.md)).

mod line;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use cairn_chassis::clock::Clock;
use cairn_chassis::status::Problem;
use http::Extensions;
use metrics::Gauge;
use tokio::sync::oneshot::{self, Receiver, Sender};

pub(crate) use self::line::Tenant;
use self::line::{Full, Line, PATIENCE, Shares, Ticket, Word};
use crate::cost::Cost;
use crate::held::{Held, Holdings};
use crate::in_flight::REFUSED;

/// Units per core: about 50 ms of its work.
const UNITS_OF_A_CORE: usize = 256;
/// `Retry-After` of a refusal.
const BUSY: Duration = Duration::from_secs(1);

const CAPACITY: &str = "cairn_capacity_units";
const USED: &str = "cairn_capacity_units_used";
const WAITING: &str = "cairn_requests_waiting";
const WAITED: &str = "cairn_request_wait_seconds";

/// The default capacity: by the number of cores, but below the request limit, so that requests of one unit do not
/// hit that limit, which knows no tenants, first.
pub(crate) fn usual_capacity(max_requests: usize) -> u32 {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let capacity = cores.saturating_mul(UNITS_OF_A_CORE).min(max_requests - max_requests / 4);
    u32::try_from(capacity).unwrap_or(u32::MAX).max(1)
}

/// The admission controller of this process.
#[derive(Debug)]
pub(crate) struct Admission {
    /// `None` if admission is disabled.
    line: Option<Mutex<Line<Sender<Word>>>>,
    clock: Arc<dyn Clock>,
    /// Gauge of the units in flight.
    used: Gauge,
}

/// The units of an admitted request, held until this is dropped, except while the request is suspended.
#[derive(Debug)]
pub(crate) struct Place {
    admission: Arc<Admission>,
    tenant: Tenant,
    units: u32,
    waits: AtomicBool,
}

impl Admission {
    /// `capacity` in units; 0 disables admission.
    pub(crate) fn new(capacity: u32, clock: Arc<dyn Clock>) -> Self {
        metrics::gauge!(CAPACITY).set(capacity);
        let used = metrics::gauge!(USED);
        used.set(0);
        metrics::gauge!(WAITING).set(0);
        let line = (capacity > 0).then(|| Mutex::new(Line::new(Shares::of(capacity))));
        Self { line, clock, used }
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
    ) -> Result<Option<Arc<Place>>, Problem> {
        let Some(line) = self.line.as_ref().filter(|_| cost > Cost::FREE) else { return Ok(None) };
        let (units, is_admitted) = {
            let mut line = lock(line);
            let units = line.shares().units(&tenant, cost.units());
            (units, line.admit(&tenant, units))
        };
        if !is_admitted {
            let _away = Holdings::let_go(request);
            Box::pin(self.wait(line, &tenant, units)).await?;
        }
        self.used.increment(units);
        let place = Place { admission: Arc::clone(self), tenant, units, waits: AtomicBool::new(false) };
        let place = Arc::new(place);
        Holdings::note(request, &place);
        Ok(Some(place))
    }

    async fn wait(
        &self,
        line: &Mutex<Line<Sender<Word>>>,
        tenant: &Tenant,
        units: u32,
    ) -> Result<(), Problem> {
        let now = self.clock.now();
        let (tell, told) = oneshot::channel();
        let queued = {
            let mut line = lock(line);
            let queued = line.queue(tenant, units, now, tell).map(|(ticket, displaced)| {
                displaced.into_iter().for_each(|(who, word)| tell_that(who, word));
                ticket
            });
            line.call(now, tell_that);
            queued
        };
        let ticket = queued.map_err(|Full| refuse("waiting"))?;
        metrics::gauge!(WAITING).increment(1.0);
        let mut waiting = Waiting { admission: self, line, tenant, units, ticket, told, is_over: false };
        // On a timeout, an outcome sent at the last moment still counts.
        let told = tokio::time::timeout(PATIENCE, &mut waiting.told).await.ok().and_then(Result::ok);
        let word = match told {
            Some(word) => {
                waiting.is_over = true;
                word
            }
            None => waiting.end(),
        };
        metrics::histogram!(WAITED).record(self.clock.now().since(now));
        match word {
            Word::Admitted => Ok(()),
            Word::Late => Err(refuse("delay")),
            Word::Displaced => Err(refuse("waiting")),
        }
    }

    /// Applies a change and dispatches the queue.
    fn settle(&self, change: impl FnOnce(&mut Line<Sender<Word>>)) {
        let Some(line) = &self.line else { return };
        let now = self.clock.now();
        let mut line = lock(line);
        change(&mut line);
        line.call(now, tell_that);
    }
}

/// Called under the queue's lock, so that a request that leaves the queue knows whether an outcome was sent.
fn tell_that(who: Sender<Word>, word: Word) {
    // A dropped receiver has already taken the outcome into account, or will in [`Waiting::end`].
    let _gone = who.send(word);
}

fn refuse(bound: &'static str) -> Problem {
    metrics::counter!(REFUSED, "bound" => bound).increment(1);
    Problem::unavailable("more is asked for here than can be answered in time; try again", BUSY)
}

fn lock<W>(line: &Mutex<Line<W>>) -> MutexGuard<'_, Line<W>> {
    line.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A queued request.
struct Waiting<'a> {
    admission: &'a Admission,
    line: &'a Mutex<Line<Sender<Word>>>,
    tenant: &'a Tenant,
    units: u32,
    ticket: Ticket,
    told: Receiver<Word>,
    is_over: bool,
}

impl Waiting<'_> {
    /// Leaves the queue; the outcome if one was sent before.
    fn end(&mut self) -> Word {
        self.is_over = true;
        let now = self.admission.clock.now();
        let mut line = lock(self.line);
        if line.leave(&self.ticket) {
            line.call(now, tell_that);
            return Word::Late;
        }
        self.told.try_recv().unwrap_or(Word::Late)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        metrics::gauge!(WAITING).decrement(1.0);
        if !self.is_over && self.end() == Word::Admitted {
            self.admission.settle(|line| line.give_back(self.tenant, self.units));
        }
    }
}

impl Held for Place {
    fn set_waiting(&self, waits: bool) {
        match (self.waits.swap(waits, Ordering::AcqRel), waits) {
            (false, true) => {
                self.admission.used.decrement(self.units);
                self.admission.settle(|line| line.give_back(&self.tenant, self.units));
            }
            (true, false) => {
                self.admission.used.increment(self.units);
                self.admission.settle(|line| line.take(&self.tenant, self.units));
            }
            (true, true) | (false, false) => {}
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.set_waiting(true);
    }
}

#[cfg(test)]
mod tests;
