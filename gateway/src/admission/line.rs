//! Who is next: the rules of admission, without a clock and without anybody who really waits.
//!
//! What is shared are places that are held, not requests in a second: the tenant with the fewest units under way is next, and
//! among equals whoever has not been for the longest. So a tenant whose requests are slow is no better off than one whose
//! requests are quick, and whoever asks seldom is next at once. Each tenant's own requests keep their order.
//!
//! What is held cannot be taken back, so nobody may hold more than [`SHARE`] times what is free ("dynamic threshold"): one
//! tenant gets three quarters, two get three sevenths each, and something is always left for whoever comes next.

mod queue;

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::time::Duration;

use cairn_chassis::clock::Timestamp;
use cairn_chassis::identity::Identity;
use cairn_proto::ids::WorkspaceId;

use self::queue::{Queue, Waiting};

/// How long a request waits in a burst.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);
/// How long it waits once its tenant's line has stood for [`PATIENCE`], and until that long after somebody has waited in vain: a
/// line that stays is no burst, and waiting in it helps nobody ("controlled delay").
pub(super) const TARGET: Duration = Duration::from_millis(50);

/// How many times what is free a tenant may hold.
const SHARE: u32 = 3;

/// How many units of a tenant wait, in capacities: enough to take its share again when all is given back at once.
const LINE: u32 = 2;
/// How many units of a tenant wait at least.
const SHORTEST_LINE: u32 = 1_024;
/// How many requests wait, in lines of requests of one unit.
const LINES: usize = 2;

/// Who shares the capacity.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Tenant {
    Workspace(WorkspaceId),
    /// A person who names no workspace, by the id of the account.
    Person(String),
    /// A source address of which nothing else is known.
    Address(IpAddr),
}

impl Tenant {
    /// Whom a caller's requests are for.
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

/// How much there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shares {
    /// Units under way.
    capacity: u32,
    /// Of those, of all addresses together: anybody may have many.
    of_strangers: u32,
    /// Units of one tenant that wait. In units, so that whoever asks for little at a time has as much ready as others; as no
    /// request has less than one, it bounds the requests, too.
    waiting_of_tenant: u32,
    /// Requests that wait: each takes memory, whatever it costs.
    waiting: usize,
}

impl Shares {
    pub(super) fn of(capacity: u32) -> Self {
        let capacity = capacity.max(1);
        let waiting_of_tenant = capacity.saturating_mul(LINE).max(SHORTEST_LINE);
        let waiting = usize::try_from(waiting_of_tenant).unwrap_or(usize::MAX).saturating_mul(LINES);
        Self { capacity, of_strangers: (capacity / 4).max(1), waiting_of_tenant, waiting }
    }

    /// What a request counts: at most what its tenant has when nobody else is there.
    pub(super) fn units(&self, tenant: &Tenant, units: u32) -> u32 {
        let all = if tenant.is_stranger() { self.of_strangers } else { self.capacity };
        units.min((all - all / (SHARE + 1)).max(1))
    }
}

/// A request that waits, so that it can leave.
#[derive(Debug, Clone)]
pub(super) struct Ticket {
    tenant: Tenant,
    number: u64,
}

/// What somebody who waited is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    /// The units are taken.
    Admitted,
    /// It has waited for too long.
    Late,
    /// Others need the place in line more.
    Displaced,
}

/// No place in line is left for this tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Full;

/// Those who are under way and those who wait; each of the latter is known by a `W`.
#[derive(Debug)]
pub(super) struct Line<W> {
    shares: Shares,
    used: u32,
    used_by_strangers: u32,
    /// Those of whom something is under way or waits, and nobody else.
    tenants: HashMap<Tenant, Standing<W>>,
    /// Tenants of whom somebody waits, the next one first.
    known: Order,
    strangers: Order,
    waiting: usize,
    numbers: u64,
}

type Order = BTreeMap<Rank, Tenant>;
/// The units under way, and since when.
type Rank = (u32, u64);

/// One tenant.
#[derive(Debug)]
struct Standing<W> {
    used: u32,
    /// Grows with every request that was admitted: the smaller one has not been for longer.
    turn: u64,
    waiting: Queue<W>,
    /// Since when somebody waits without a break.
    crowded_since: Timestamp,
    /// When somebody had last waited for too long: a line that is empty because of that is no shorter for it.
    shed: Option<Timestamp>,
}

impl<W> Standing<W> {
    const fn rank(&self) -> Rank {
        (self.used, self.turn)
    }

    /// How long the one in front may have waited.
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

    /// Takes the units of a request that need not wait for anybody.
    pub(super) fn admit(&mut self, tenant: &Tenant, units: u32) -> bool {
        if self.waiting > 0 || !self.has_room(tenant, units) {
            return false;
        }
        self.take(tenant, units);
        true
    }

    /// Puts a request into line; [`Self::call`] says who is next. Where no more requests may wait, one of the tenant that has most
    /// in line makes room.
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

    /// Takes a request out of line; tells whether it was in it.
    pub(super) fn leave(&mut self, ticket: &Ticket) -> bool {
        let Some(standing) = self.tenants.get_mut(&ticket.tenant) else { return false };
        if !standing.waiting.remove(ticket.number) {
            return false;
        }
        self.waiting -= 1;
        self.tidy(&ticket.tenant);
        true
    }

    /// Takes units without asking for room: of a request that was let in before.
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

    /// Tells whoever is next, and whoever has waited for too long, until nobody more has room. Whoever is next and needs
    /// more than is free is waited for: otherwise small requests would always be before a large one.
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

    /// The tenant whose first request is over, or has room, with what that costs. A stranger whose like hold all that is for
    /// them is passed over.
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

    /// Whether so much more fits into what there is, and into the tenant's share of what is free.
    fn has_room(&self, tenant: &Tenant, units: u32) -> bool {
        let free = self.shares.capacity.saturating_sub(self.used);
        if tenant.is_stranger() {
            return units <= free && self.is_stranger_let_in(tenant, units);
        }
        units <= free && self.is_within(tenant, units, free)
    }

    /// Whether so much more fits into what all strangers share.
    fn is_stranger_let_in(&self, tenant: &Tenant, units: u32) -> bool {
        let free = self.shares.of_strangers.saturating_sub(self.used_by_strangers);
        units <= free && self.is_within(tenant, units, free)
    }

    fn is_within(&self, tenant: &Tenant, units: u32, free: u32) -> bool {
        let used = self.tenants.get(tenant).map_or(0, |standing| standing.used);
        used.saturating_add(units) <= free.saturating_mul(SHARE)
    }

    /// Takes the last one in the line of most requests out of it, where that has more than `own` will be.
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

    /// Moves a tenant of whom somebody waits to where it belongs now.
    fn reorder(&mut self, tenant: &Tenant, before: Rank, after: Rank) {
        let order = self.order(tenant);
        if let Some(known) = order.remove(&before) {
            order.insert(after, known);
        }
    }

    /// Forgets a tenant of whom nothing is left, and the place in line of one of whom nobody waits.
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
