//! How much this process begins at once, and whose turn is next: admission by cost and by tenant.
//!
//! Each request takes the units of its [`Cost`] while it is worked on. What finds no room waits in a line that is fair
//! between tenants ([`line`]), and not for long: it is better told at once to come again than answered late ([ADR
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

/// Units for each core: about 50 ms of its work.
const UNITS_OF_A_CORE: usize = 256;
/// When a caller may come again.
const BUSY: Duration = Duration::from_secs(1);

const CAPACITY: &str = "cairn_capacity_units";
const USED: &str = "cairn_capacity_units_used";
const WAITING: &str = "cairn_requests_waiting";
const WAITED: &str = "cairn_request_wait_seconds";

/// Units that a process has when nobody says how many: by its cores, and never so many that requests of one unit would meet
/// the bound of all requests first, which knows no tenants.
pub(crate) fn usual_capacity(max_requests: usize) -> u32 {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let capacity = cores.saturating_mul(UNITS_OF_A_CORE).min(max_requests - max_requests / 4);
    u32::try_from(capacity).unwrap_or(u32::MAX).max(1)
}

/// The capacity of this process.
#[derive(Debug)]
pub(crate) struct Admission {
    /// `None` where everything is let in.
    line: Option<Mutex<Line<Sender<Word>>>>,
    clock: Arc<dyn Clock>,
    /// Units that requests under way have, for the metrics.
    used: Gauge,
}

/// The units of a request that was let in: it has them until this is dropped, but for when it waits.
#[derive(Debug)]
pub(crate) struct Place {
    admission: Arc<Admission>,
    tenant: Tenant,
    units: u32,
    waits: AtomicBool,
}

impl Admission {
    /// With so many units; with none, everything is let in.
    pub(crate) fn new(capacity: u32, clock: Arc<dyn Clock>) -> Self {
        metrics::gauge!(CAPACITY).set(capacity);
        let used = metrics::gauge!(USED);
        used.set(0);
        metrics::gauge!(WAITING).set(0);
        let line = (capacity > 0).then(|| Mutex::new(Line::new(Shares::of(capacity))));
        Self { line, clock, used }
    }

    /// Lets a request in, at once or after a short wait. Whoever gives up waiting has never been here. `None` where it
    /// takes no place.
    ///
    /// # Errors
    /// When too many of its tenant wait, or it has waited for too long.
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
        // Without an answer in time, what was said in the last moment counts.
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

    /// Changes who is under way or waits, and calls those who are next by then.
    fn settle(&self, change: impl FnOnce(&mut Line<Sender<Word>>)) {
        let Some(line) = &self.line else { return };
        let now = self.clock.now();
        let mut line = lock(line);
        change(&mut line);
        line.call(now, tell_that);
    }
}

/// Under the lock of the line: so whoever leaves it knows whether anything was said.
fn tell_that(who: Sender<Word>, word: Word) {
    // Whoever is gone has looked for the word, or will.
    let _gone = who.send(word);
}

fn refuse(bound: &'static str) -> Problem {
    metrics::counter!(REFUSED, "bound" => bound).increment(1);
    Problem::unavailable("more is asked for here than can be answered in time; try again", BUSY)
}

fn lock<W>(line: &Mutex<Line<W>>) -> MutexGuard<'_, Line<W>> {
    line.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A request in line.
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
    /// Leaves the line, and tells what was said before that.
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
