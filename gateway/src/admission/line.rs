//! Fair queueing between tenants: the rules of admission, without clock or async.
//!
//! The shared resource is concurrency, not a request rate: the tenant with the fewest units in flight is next, ties
//! go to the one served least recently. So a tenant with slow requests is no better off than one with fast requests,
//! and an occasional caller is next at once. Within a tenant, requests keep their order (FIFO).
//!
//! Units in flight cannot be preempted, so a tenant may hold at most [`SHARE`] times what is free ("dynamic
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
pub(super) const PATIENCE: Duration = Duration::from_secs(1);
/// The longest wait once a tenant's queue has been non-empty for [`PATIENCE`], and for that long after a request
/// last timed out in it: a standing queue is no burst, and waiting in it only adds latency ("controlled delay",
/// CoDel).
pub(super) const TARGET: Duration = Duration::from_millis(50);

/// The dynamic threshold's factor: how many times the free units a tenant may hold.
const SHARE: u32 = 3;

/// Queue limit of a tenant in multiples of the capacity: enough to take its share again when all units are released
/// at once.
const LINE: u32 = 2;
/// The least queue limit of a tenant, in units.
const SHORTEST_LINE: u32 = 1_024;
/// Queue limit of all tenants in requests, in multiples of a tenant's limit.
const LINES: usize = 2;

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

    const fn is_stranger(&self) -> bool {
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
    of_strangers: u32,
    /// Queued units per tenant. Counted in units so that a tenant of small requests can queue as much work as
    /// others; as every request costs at least one, it bounds their number, too.
    waiting_of_tenant: u32,
    /// Queued requests: each takes memory, whatever it costs.
    waiting: usize,
}

impl Shares {
    pub(super) fn of(capacity: u32) -> Self {
        let capacity = capacity.max(1);
        let waiting_of_tenant = capacity.saturating_mul(LINE).max(SHORTEST_LINE);
        let waiting = usize::try_from(waiting_of_tenant).unwrap_or(usize::MAX).saturating_mul(LINES);
        Self { capacity, of_strangers: (capacity / 4).max(1), waiting_of_tenant, waiting }
    }

    /// The units a request is charged: at most what its tenant could hold with everybody else idle, so that it can
    /// be admitted at all.
    pub(super) fn units(&self, tenant: &Tenant, units: u32) -> u32 {
        let all = if tenant.is_stranger() { self.of_strangers } else { self.capacity };
        units.min((all - all / (SHARE + 1)).max(1))
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
pub(super) enum Word {
    /// Evicted in favour of a tenant with a shorter queue.
    Admitted,
    /// The wait limit has passed.
    Late,
    /// Evicted in favour of a tenant with a shorter queue.
    Displaced,
}

/// The queue is full for this tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Full;

/// The units in flight and the queues; a queued request is identified by a `W`.
#[derive(Debug)]
pub(super) struct Line<W> {
    shares: Shares,
    used: u32,
    used_by_strangers: u32,
    /// Tenants with units in flight or queued requests, and no others.
    tenants: HashMap<Tenant, Standing<W>>,
    /// Tenants with queued requests, the next one first.
    known: Order,
    strangers: Order,
    waiting: usize,
    numbers: u64,
}

type Order = BTreeMap<Rank, Tenant>;
/// Units in flight, then the turn: the order in which tenants are served.
type Rank = (u32, u64);

/// The state of one tenant.
#[derive(Debug)]
struct Standing<W> {
    used: u32,
    /// Increases with every admission: the smaller one was served longer ago.
    turn: u64,
    waiting: Queue<W>,
    /// Since when the queue has been non-empty without interruption.
    crowded_since: Timestamp,
    /// When a request last timed out: a queue emptied by timeouts still counts as standing.
    shed: Option<Timestamp>,
}

impl<W> Standing<W> {
    const fn rank(&self) -> Rank {
        (self.used, self.turn)
    }

    /// The longest wait of the request at the front.
    fn patience(&self, now: Timestamp) -> Duration {
        let is_standing = now.since(self.crowded_since) > PATIENCE;
        let has_just_shed = self.shed.is_some_and(|shed| now.since(shed) <= PATIENCE);
        if is_standing || has_just_shed { TARGET } else { PATIENCE }
    }
}

impl<W> Line<W> {
    pub(super) fn new(shares: Shares) -> Self {
        Self {
            shares,
            used: 0,
            used_by_strangers: 0,
            tenants: HashMap::new(),
            known: Order::new(),
            strangers: Order::new(),
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

    /// Enqueues a request; [`Self::call`] decides who is next. If the total queue is full, the tenant with the
    /// longest queue loses its last request.
    pub(super) fn queue(
        &mut self,
        tenant: &Tenant,
        units: u32,
        now: Timestamp,
        who: W,
    ) -> Result<(Ticket, Option<(W, Word)>), Full> {
        let own = self.tenants.get(tenant).map(|standing| &standing.waiting);
        let (own, own_units) = own.map_or((0, 0), |waiting| (waiting.len(), waiting.units()));
        if own_units.saturating_add(units) > self.shares.waiting_of_tenant {
            return Err(Full);
        }
        let displaced = if self.waiting < self.shares.waiting { None } else { Some(self.displace(own)?) };
        let number = self.number();
        let turn = self.number();
        let standing = self.standing(tenant, turn);
        if standing.waiting.is_empty() {
            standing.crowded_since = now;
        }
        standing.waiting.push(Waiting { number, units, since: now, who });
        let rank = standing.rank();
        self.waiting += 1;
        self.order(tenant).insert(rank, tenant.clone());
        Ok((Ticket { tenant: tenant.clone(), number }, displaced.map(|who| (who, Word::Displaced))))
    }

    /// Removes a request from the queue; `false` if it was not in it.
    pub(super) fn leave(&mut self, ticket: &Ticket) -> bool {
        let Some(standing) = self.tenants.get_mut(&ticket.tenant) else { return false };
        if !standing.waiting.remove(ticket.number) {
            return false;
        }
        self.waiting -= 1;
        self.tidy(&ticket.tenant);
        true
    }

    /// Takes units unconditionally, for a resumed request that was admitted before.
    pub(super) fn take(&mut self, tenant: &Tenant, units: u32) {
        let turn = self.number();
        let standing = self.standing(tenant, turn);
        let before = standing.rank();
        standing.used = standing.used.saturating_add(units);
        standing.turn = turn;
        let after = standing.rank();
        self.used = self.used.saturating_add(units);
        if tenant.is_stranger() {
            self.used_by_strangers = self.used_by_strangers.saturating_add(units);
        }
        self.reorder(tenant, before, after);
    }

    pub(super) fn give_back(&mut self, tenant: &Tenant, units: u32) {
        let Some(standing) = self.tenants.get_mut(tenant) else { return };
        let before = standing.rank();
        standing.used = standing.used.saturating_sub(units);
        let after = standing.rank();
        self.used = self.used.saturating_sub(units);
        if tenant.is_stranger() {
            self.used_by_strangers = self.used_by_strangers.saturating_sub(units);
        }
        self.reorder(tenant, before, after);
        self.tidy(tenant);
    }

    /// Dispatches: admits the next requests and expires those past their wait limit, until nobody else has room. A
    /// next request larger than the free units blocks the rest: otherwise small requests would starve it.
    pub(super) fn call(&mut self, now: Timestamp, mut tell: impl FnMut(W, Word)) {
        while let Some((tenant, units, is_late)) = self.next(now) {
            let Some(front) = self.pop(&tenant) else { return };
            if is_late {
                self.note_shed(&tenant, now);
                tell(front.who, Word::Late);
            } else {
                self.take(&tenant, units);
                tell(front.who, Word::Admitted);
            }
            self.tidy(&tenant);
        }
    }

    /// The tenant whose front request has expired or has room, with its units. Anonymous tenants are skipped while
    /// their common limit is reached.
    fn next(&self, now: Timestamp) -> Option<(Tenant, u32, bool)> {
        let first = |order: &Order| {
            let (rank, tenant) = order.first_key_value()?;
            let standing = self.tenants.get(tenant)?;
            let front = standing.waiting.first()?;
            let is_late = now.since(front.since) > standing.patience(now);
            Some((*rank, tenant.clone(), front.units, is_late))
        };
        let stranger = first(&self.strangers)
            .filter(|(_, tenant, units, is_late)| *is_late || self.is_stranger_let_in(tenant, *units));
        let next = [first(&self.known), stranger].into_iter().flatten().min_by_key(|(rank, ..)| *rank);
        let (_, tenant, units, is_late) = next?;
        (is_late || self.has_room(&tenant, units)).then_some((tenant, units, is_late))
    }

    /// Whether the units fit into the free capacity and the tenant's dynamic threshold.
    fn has_room(&self, tenant: &Tenant, units: u32) -> bool {
        let free = self.shares.capacity.saturating_sub(self.used);
        if tenant.is_stranger() {
            return units <= free && self.is_stranger_let_in(tenant, units);
        }
        units <= free && self.is_within(tenant, units, free)
    }

    /// Whether the units fit into the limit of anonymous tenants.
    fn is_stranger_let_in(&self, tenant: &Tenant, units: u32) -> bool {
        let free = self.shares.of_strangers.saturating_sub(self.used_by_strangers);
        units <= free && self.is_within(tenant, units, free)
    }

    fn is_within(&self, tenant: &Tenant, units: u32, free: u32) -> bool {
        let used = self.tenants.get(tenant).map_or(0, |standing| standing.used);
        used.saturating_add(units) <= free.saturating_mul(SHARE)
    }

    /// Evicts the last request of the longest queue, if that is longer than `own` will be.
    fn displace(&mut self, own: usize) -> Result<W, Full> {
        let longest = self.tenants.iter().max_by_key(|(_, standing)| standing.waiting.len());
        let longest = longest.filter(|(_, standing)| standing.waiting.len() > own + 1);
        let tenant = longest.map(|(tenant, _)| tenant.clone()).ok_or(Full)?;
        let last = self.tenants.get_mut(&tenant).and_then(|standing| standing.waiting.pop_last());
        self.waiting -= usize::from(last.is_some());
        last.map(|last| last.who).ok_or(Full)
    }

    fn pop(&mut self, tenant: &Tenant) -> Option<Waiting<W>> {
        let front = self.tenants.get_mut(tenant)?.waiting.pop_first()?;
        self.waiting -= 1;
        Some(front)
    }

    fn standing(&mut self, tenant: &Tenant, turn: u64) -> &mut Standing<W> {
        self.tenants.entry(tenant.clone()).or_insert_with(|| Standing {
            used: 0,
            turn,
            waiting: Queue::new(),
            crowded_since: Timestamp::from_micros(0),
            shed: None,
        })
    }

    fn note_shed(&mut self, tenant: &Tenant, now: Timestamp) {
        if let Some(standing) = self.tenants.get_mut(tenant) {
            standing.shed = Some(now);
        }
    }

    fn order(&mut self, tenant: &Tenant) -> &mut Order {
        if tenant.is_stranger() { &mut self.strangers } else { &mut self.known }
    }

    /// Moves a queued tenant to its new rank.
    fn reorder(&mut self, tenant: &Tenant, before: Rank, after: Rank) {
        let order = self.order(tenant);
        if let Some(known) = order.remove(&before) {
            order.insert(after, known);
        }
    }

    /// Removes an idle tenant, and the rank of one without queued requests.
    fn tidy(&mut self, tenant: &Tenant) {
        let Some(standing) = self.tenants.get(tenant).filter(|standing| standing.waiting.is_empty()) else {
            return;
        };
        let (rank, is_gone) = (standing.rank(), standing.used == 0);
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
