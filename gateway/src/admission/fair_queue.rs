//! Fair queueing between tenants: the rules of admission, without clock or async.
//!
//! The shared resource is concurrency, not a request rate: the tenant with the fewest units in flight is next, ties
//! go to the one served least recently. So a tenant with slow requests is no better off than one with fast requests,
//! and an occasional caller is next at once. Within a tenant, requests keep their order (FIFO).
//!
//! Units in flight cannot be preempted, so a tenant may hold at most [`THRESHOLD_FACTOR`] times what is free ("dynamic
//! threshold"): a single tenant gets three quarters, two get three sevenths each, and some capacity is always left
//! for a newcomer.

mod queue;

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::time::Duration;

use cairn_chassis::clock::Timestamp;
use cairn_chassis::identity::Identity;
use cairn_proto::ids::WorkspaceId;

use self::queue::{Queue, Waiting};

/// The longest wait in a burst.
pub(super) const MAX_WAIT: Duration = Duration::from_secs(1);
/// The longest wait once a tenant's queue has been non-empty for [`MAX_WAIT`], and for that long after a request
/// last timed out in it: a standing queue is no burst, and waiting in it only adds latency ("controlled delay",
/// CoDel).
pub(super) const TARGET_WAIT: Duration = Duration::from_millis(50);

/// The dynamic threshold's factor: how many times the free units a tenant may hold.
const THRESHOLD_FACTOR: u32 = 3;

/// Queue limit of a tenant in multiples of the capacity: enough to take its share again when all units are released
/// at once.
const QUEUE_FACTOR: u32 = 2;
/// The least queue limit of a tenant, in units.
const MIN_QUEUE_UNITS: u32 = 1_024;
/// Queue limit of all tenants in requests, in multiples of a tenant's limit.
const TOTAL_QUEUE_FACTOR: usize = 2;

/// Who shares the capacity.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Tenant {
    Workspace(WorkspaceId),
    /// A person without a workspace, by account id.
    Person(String),
    /// An anonymous caller, by source address.
    Address(IpAddr),
}

impl Tenant {
    /// The tenant that a caller's requests count for.
    pub(crate) fn of(caller: &Identity) -> Self {
        caller.workspace.map_or_else(|| Self::Person(caller.principal.id.clone()), Self::Workspace)
    }

    const fn is_anonymous(&self) -> bool {
        match self {
            Self::Workspace(_) | Self::Person(_) => false,
            Self::Address(_) => true,
        }
    }
}

/// The limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shares {
    /// Units in flight.
    capacity: u32,
    /// Of those, units of all anonymous callers together, because one attacker may have many addresses.
    anonymous_capacity: u32,
    /// Queued units per tenant. Counted in units so that a tenant of small requests can queue as much work as
    /// others; as every request costs at least one, it bounds their number, too.
    waiting_of_tenant: u32,
    /// Queued requests: each takes memory, whatever it costs.
    waiting: usize,
}

impl Shares {
    pub(super) fn of(capacity: u32) -> Self {
        let capacity = capacity.max(1);
        let waiting_of_tenant = capacity.saturating_mul(QUEUE_FACTOR).max(MIN_QUEUE_UNITS);
        let waiting =
            usize::try_from(waiting_of_tenant).unwrap_or(usize::MAX).saturating_mul(TOTAL_QUEUE_FACTOR);
        Self { capacity, anonymous_capacity: (capacity / 4).max(1), waiting_of_tenant, waiting }
    }

    /// The units a request is charged: at most what its tenant could hold with everybody else idle, so that it can
    /// be admitted at all.
    pub(super) fn units(&self, tenant: &Tenant, units: u32) -> u32 {
        let all = if tenant.is_anonymous() { self.anonymous_capacity } else { self.capacity };
        units.min((all - all / (THRESHOLD_FACTOR + 1)).max(1))
    }
}

/// Handle of a queued request, for leaving the queue.
#[derive(Debug, Clone)]
pub(super) struct Ticket {
    tenant: Tenant,
    number: u64,
}

/// The outcome of waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The request holds its units from now on.
    Admitted,
    /// The wait limit has passed.
    TimedOut,
    /// Evicted in favour of a tenant with a shorter queue.
    Displaced,
}

/// The queue is full for this tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Full;

/// The units in flight and the queues; a queued request is identified by a `W`.
#[derive(Debug)]
pub(super) struct FairQueue<W> {
    shares: Shares,
    used: u32,
    used_by_anonymous: u32,
    /// Tenants with units in flight or queued requests, and no others.
    tenants: HashMap<Tenant, TenantState<W>>,
    /// Tenants with queued requests, the next one first.
    identified_order: Order,
    anonymous_order: Order,
    waiting: usize,
    numbers: u64,
}

type Order = BTreeMap<Rank, Tenant>;
/// Units in flight, then the turn: the order in which tenants are served.
type Rank = (u32, u64);

/// The state of one tenant.
#[derive(Debug)]
struct TenantState<W> {
    used: u32,
    /// Increases with every admission: the smaller one was served longer ago.
    turn: u64,
    waiting: Queue<W>,
    /// Since when the queue has been non-empty without interruption.
    backlogged_since: Timestamp,
    /// When a request last timed out: a queue emptied by timeouts still counts as standing.
    timed_out_at: Option<Timestamp>,
}

impl<W> TenantState<W> {
    const fn rank(&self) -> Rank {
        (self.used, self.turn)
    }

    /// The longest wait of the request at the front.
    fn max_wait(&self, now: Timestamp) -> Duration {
        let is_standing = now.since(self.backlogged_since) > MAX_WAIT;
        let timed_out_recently =
            self.timed_out_at.is_some_and(|timed_out_at| now.since(timed_out_at) <= MAX_WAIT);
        if is_standing || timed_out_recently { TARGET_WAIT } else { MAX_WAIT }
    }
}

impl<W> FairQueue<W> {
    pub(super) fn new(shares: Shares) -> Self {
        Self {
            shares,
            used: 0,
            used_by_anonymous: 0,
            tenants: HashMap::new(),
            identified_order: Order::new(),
            anonymous_order: Order::new(),
            waiting: 0,
            numbers: 0,
        }
    }

    pub(super) const fn shares(&self) -> &Shares {
        &self.shares
    }

    /// Takes the units of a request that need not wait.
    pub(super) fn admit(&mut self, tenant: &Tenant, units: u32) -> bool {
        if self.waiting > 0 || !self.has_room(tenant, units) {
            return false;
        }
        self.take(tenant, units);
        true
    }

    /// Enqueues a request; [`Self::dispatch`] decides who is next. If the total queue is full, the tenant with the
    /// longest queue loses its last request.
    pub(super) fn enqueue(
        &mut self,
        tenant: &Tenant,
        units: u32,
        now: Timestamp,
        who: W,
    ) -> Result<(Ticket, Option<(W, Outcome)>), Full> {
        let own = self.tenants.get(tenant).map(|state| &state.waiting);
        let (own, own_units) = own.map_or((0, 0), |waiting| (waiting.len(), waiting.units()));
        if own_units.saturating_add(units) > self.shares.waiting_of_tenant {
            return Err(Full);
        }
        let displaced = if self.waiting < self.shares.waiting { None } else { Some(self.displace(own)?) };
        let number = self.number();
        let turn = self.number();
        let state = self.state(tenant, turn);
        if state.waiting.is_empty() {
            state.backlogged_since = now;
        }
        state.waiting.push(Waiting { number, units, since: now, who });
        let rank = state.rank();
        self.waiting += 1;
        self.order(tenant).insert(rank, tenant.clone());
        Ok((Ticket { tenant: tenant.clone(), number }, displaced.map(|who| (who, Outcome::Displaced))))
    }

    /// Removes a request from the queue; `false` if it was not in it.
    pub(super) fn leave(&mut self, ticket: &Ticket) -> bool {
        let Some(state) = self.tenants.get_mut(&ticket.tenant) else { return false };
        if !state.waiting.remove(ticket.number) {
            return false;
        }
        self.waiting -= 1;
        self.tidy(&ticket.tenant);
        true
    }

    /// Takes units unconditionally, for a resumed request that was admitted before.
    pub(super) fn take(&mut self, tenant: &Tenant, units: u32) {
        let turn = self.number();
        let state = self.state(tenant, turn);
        let before = state.rank();
        state.used = state.used.saturating_add(units);
        state.turn = turn;
        let after = state.rank();
        self.used = self.used.saturating_add(units);
        if tenant.is_anonymous() {
            self.used_by_anonymous = self.used_by_anonymous.saturating_add(units);
        }
        self.reorder(tenant, before, after);
    }

    pub(super) fn release(&mut self, tenant: &Tenant, units: u32) {
        let Some(state) = self.tenants.get_mut(tenant) else { return };
        let before = state.rank();
        state.used = state.used.saturating_sub(units);
        let after = state.rank();
        self.used = self.used.saturating_sub(units);
        if tenant.is_anonymous() {
            self.used_by_anonymous = self.used_by_anonymous.saturating_sub(units);
        }
        self.reorder(tenant, before, after);
        self.tidy(tenant);
    }

    /// Dispatches: admits the next requests and expires those past their wait limit, until nobody else has room. A
    /// next request larger than the free units blocks the rest: otherwise small requests would starve it.
    pub(super) fn dispatch(&mut self, now: Timestamp, mut notify: impl FnMut(W, Outcome)) {
        while let Some((tenant, units, is_late)) = self.next(now) {
            let Some(front) = self.pop(&tenant) else { return };
            if is_late {
                self.note_timeout(&tenant, now);
                notify(front.who, Outcome::TimedOut);
            } else {
                self.take(&tenant, units);
                notify(front.who, Outcome::Admitted);
            }
            self.tidy(&tenant);
        }
    }

    /// The tenant whose front request has expired or has room, with its units. Anonymous tenants are skipped while
    /// their common limit is reached.
    fn next(&self, now: Timestamp) -> Option<(Tenant, u32, bool)> {
        let first = |order: &Order| {
            let (rank, tenant) = order.first_key_value()?;
            let state = self.tenants.get(tenant)?;
            let front = state.waiting.first()?;
            let is_late = now.since(front.since) > state.max_wait(now);
            Some((*rank, tenant.clone(), front.units, is_late))
        };
        let anonymous = first(&self.anonymous_order)
            .filter(|(_, tenant, units, is_late)| *is_late || self.has_anonymous_room(tenant, *units));
        let next =
            [first(&self.identified_order), anonymous].into_iter().flatten().min_by_key(|(rank, ..)| *rank);
        let (_, tenant, units, is_late) = next?;
        (is_late || self.has_room(&tenant, units)).then_some((tenant, units, is_late))
    }

    /// Whether the units fit into the free capacity and the tenant's dynamic threshold.
    fn has_room(&self, tenant: &Tenant, units: u32) -> bool {
        let free = self.shares.capacity.saturating_sub(self.used);
        if tenant.is_anonymous() {
            return units <= free && self.has_anonymous_room(tenant, units);
        }
        units <= free && self.is_within(tenant, units, free)
    }

    /// Whether the units fit into the limit of anonymous tenants.
    fn has_anonymous_room(&self, tenant: &Tenant, units: u32) -> bool {
        let free = self.shares.anonymous_capacity.saturating_sub(self.used_by_anonymous);
        units <= free && self.is_within(tenant, units, free)
    }

    fn is_within(&self, tenant: &Tenant, units: u32, free: u32) -> bool {
        let used = self.tenants.get(tenant).map_or(0, |state| state.used);
        used.saturating_add(units) <= free.saturating_mul(THRESHOLD_FACTOR)
    }

    /// Evicts the last request of the longest queue, if that is longer than `own` will be.
    fn displace(&mut self, own: usize) -> Result<W, Full> {
        let longest = self.tenants.iter().max_by_key(|(_, state)| state.waiting.len());
        let longest = longest.filter(|(_, state)| state.waiting.len() > own + 1);
        let tenant = longest.map(|(tenant, _)| tenant.clone()).ok_or(Full)?;
        let last = self.tenants.get_mut(&tenant).and_then(|state| state.waiting.pop_last());
        self.waiting -= usize::from(last.is_some());
        last.map(|last| last.who).ok_or(Full)
    }

    fn pop(&mut self, tenant: &Tenant) -> Option<Waiting<W>> {
        let front = self.tenants.get_mut(tenant)?.waiting.pop_first()?;
        self.waiting -= 1;
        Some(front)
    }

    fn state(&mut self, tenant: &Tenant, turn: u64) -> &mut TenantState<W> {
        self.tenants.entry(tenant.clone()).or_insert_with(|| TenantState {
            used: 0,
            turn,
            waiting: Queue::new(),
            backlogged_since: Timestamp::from_micros(0),
            timed_out_at: None,
        })
    }

    fn note_timeout(&mut self, tenant: &Tenant, now: Timestamp) {
        if let Some(state) = self.tenants.get_mut(tenant) {
            state.timed_out_at = Some(now);
        }
    }

    fn order(&mut self, tenant: &Tenant) -> &mut Order {
        if tenant.is_anonymous() { &mut self.anonymous_order } else { &mut self.identified_order }
    }

    /// Moves a queued tenant to its new rank.
    fn reorder(&mut self, tenant: &Tenant, before: Rank, after: Rank) {
        let order = self.order(tenant);
        if let Some(moved) = order.remove(&before) {
            order.insert(after, moved);
        }
    }

    /// Removes an idle tenant, and the rank of one without queued requests.
    fn tidy(&mut self, tenant: &Tenant) {
        let Some(state) = self.tenants.get(tenant).filter(|state| state.waiting.is_empty()) else {
            return;
        };
        let (rank, is_gone) = (state.rank(), state.used == 0);
        self.order(tenant).remove(&rank);
        if is_gone {
            self.tenants.remove(tenant);
        }
    }

    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }
}

#[cfg(test)]
mod tests;
