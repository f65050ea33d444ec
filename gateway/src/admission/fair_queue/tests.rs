//! The order of admission with many tenants, on simulated time.

use std::net::Ipv4Addr;

use proptest::prelude::*;
use uuid::Uuid;

use super::*;

const START: Timestamp = Timestamp::from_seconds(1_800_000_000);

fn tenant(number: usize) -> Tenant {
    Tenant::Workspace(Uuid::from_u128(number as u128).into())
}

fn anonymous(number: usize) -> Tenant {
    Tenant::Address(Ipv4Addr::from_bits(u32::try_from(number).unwrap()).into())
}

fn at(milliseconds: u64) -> Timestamp {
    START.plus(Duration::from_millis(milliseconds))
}

impl<W> FairQueue<W> {
    pub(in crate::admission) fn is_empty(&self) -> bool {
        let is_forgotten =
            self.tenants.is_empty() && self.identified_order.is_empty() && self.anonymous_order.is_empty();
        is_forgotten && (self.used, self.used_by_anonymous, self.waiting) == (0, 0, 0)
    }
}

/// Admits at once or enqueues.
fn arrive(
    queue: &mut FairQueue<usize>,
    tenant: &Tenant,
    units: u32,
    now: Timestamp,
    who: usize,
) -> Option<Ticket> {
    if queue.admit(tenant, units) {
        return None;
    }
    Some(queue.enqueue(tenant, units, now, who).unwrap().0)
}

fn dispatch(queue: &mut FairQueue<usize>, now: Timestamp) -> Vec<(usize, Outcome)> {
    let mut called = Vec::new();
    queue.dispatch(now, |who, outcome| called.push((who, outcome)));
    called
}

#[test]
fn something_is_always_left_to_whoever_comes_next() {
    for capacity in 4..400 {
        let mut queue: FairQueue<usize> = FairQueue::new(Shares::of(capacity));
        assert_eq!(queue.shares().units(&tenant(1), u32::MAX), capacity - capacity / 4);
        for number in 1..4 {
            assert!(queue.used < capacity || number > 2, "{capacity}");
            while queue.admit(&tenant(number), 1) {}
        }
        let most = queue.tenants.values().map(|state| state.used).max().unwrap();
        assert!(most <= capacity - capacity / 4, "{capacity}: {most}");
    }
    assert_eq!(Shares::of(0).units(&anonymous(1), 50), 1);
}

#[test]
fn who_has_least_under_way_is_next() {
    let mut queue = FairQueue::new(Shares::of(4));
    for who in 0..3 {
        assert!(arrive(&mut queue, &tenant(1), 1, START, who).is_none());
    }
    arrive(&mut queue, &tenant(2), 1, START, 3);
    for (number, who) in [(1, 4), (1, 5), (2, 6), (3, 7)] {
        assert!(arrive(&mut queue, &tenant(number), 1, START, who).is_some());
    }
    assert_eq!(dispatch(&mut queue, START), []);
    queue.release(&tenant(1), 1);
    assert_eq!(
        dispatch(&mut queue, START),
        [(7, Outcome::Admitted)],
        "nothing of the third one is under way"
    );
    queue.release(&tenant(1), 1);
    // One of each is in flight, and the first tenant was served longest ago.
    assert_eq!(dispatch(&mut queue, START), [(4, Outcome::Admitted)]);
    queue.release(&tenant(2), 1);
    assert_eq!(dispatch(&mut queue, START), [(6, Outcome::Admitted)]);
    queue.release(&tenant(3), 1);
    assert_eq!(dispatch(&mut queue, START), [(5, Outcome::Admitted)]);
}

#[test]
fn a_large_request_is_waited_for() {
    let mut queue = FairQueue::new(Shares::of(100));
    for who in 0..10 {
        assert!(arrive(&mut queue, &tenant(who), 10, START, who).is_none());
    }
    assert!(arrive(&mut queue, &tenant(50), 50, START, 50).is_some());
    assert!(arrive(&mut queue, &tenant(9), 1, START, 51).is_some(), "nobody overtakes it");
    for number in 0..5 {
        assert_eq!(dispatch(&mut queue, START), [], "{number}");
        queue.release(&tenant(number), 10);
    }
    assert_eq!(dispatch(&mut queue, START), [(50, Outcome::Admitted)]);
    queue.release(&tenant(5), 10);
    assert_eq!(dispatch(&mut queue, START), [(51, Outcome::Admitted)]);
}

#[test]
fn strangers_share_a_quarter() {
    let mut queue = FairQueue::new(Shares::of(100));
    for who in 0..25 {
        assert!(arrive(&mut queue, &anonymous(who), 1, START, who).is_none(), "{who}");
    }
    for who in 25..400 {
        assert!(arrive(&mut queue, &anonymous(who), 1, START, who).is_some());
    }
    assert_eq!(dispatch(&mut queue, START), []);
    assert!(arrive(&mut queue, &tenant(1), 50, START, 1_000).is_some());
    assert_eq!(
        dispatch(&mut queue, START),
        [(1_000, Outcome::Admitted)],
        "who is known waits for no stranger"
    );
    queue.release(&anonymous(0), 1);
    assert_eq!(dispatch(&mut queue, START), [(25, Outcome::Admitted)]);
}

#[test]
fn a_line_that_stands_sheds_early_and_a_burst_does_not() {
    let mut queue = FairQueue::new(Shares::of(1));
    assert!(arrive(&mut queue, &tenant(1), 1, at(0), 0).is_none());
    arrive(&mut queue, &tenant(1), 1, at(0), 1);
    arrive(&mut queue, &tenant(1), 1, at(400), 2);
    queue.release(&tenant(1), 1);
    assert_eq!(dispatch(&mut queue, at(800)), [(1, Outcome::Admitted)], "800 ms are no harm in a burst");
    arrive(&mut queue, &tenant(1), 1, at(1_160), 3);
    queue.release(&tenant(1), 1);
    assert_eq!(dispatch(&mut queue, at(1_200)), [(2, Outcome::TimedOut), (3, Outcome::Admitted)]);
    // The queue is only empty because of a timeout, so it still counts as standing.
    arrive(&mut queue, &tenant(1), 1, at(1_300), 4);
    arrive(&mut queue, &tenant(1), 1, at(1_390), 5);
    queue.release(&tenant(1), 1);
    assert_eq!(dispatch(&mut queue, at(1_400)), [(4, Outcome::TimedOut), (5, Outcome::Admitted)]);
    arrive(&mut queue, &tenant(1), 1, at(2_500), 6);
    queue.release(&tenant(1), 1);
    assert_eq!(
        dispatch(&mut queue, at(2_900)),
        [(6, Outcome::Admitted)],
        "a second later it is a burst again"
    );
    queue.release(&tenant(1), 1);
    assert!(queue.is_empty());
}

#[test]
fn a_tenants_line_is_bounded_by_its_units() {
    for (capacity, most) in [(2, 1_024), (512, 1_024), (600, 1_200)] {
        for units in [1, 3, 10] {
            let mut queue = FairQueue::new(Shares::of(capacity));
            queue.take(&tenant(0), capacity);
            // Keeps the tenant's state when its queue is empty.
            queue.take(&tenant(1), 1);
            let units = queue.shares().units(&tenant(1), units);
            let fitting = usize::try_from(most / units).unwrap();
            let enqueue = |queue: &mut FairQueue<usize>| queue.enqueue(&tenant(1), units, START, 0);
            let mut tickets: Vec<Ticket> =
                (0..fitting).map(|_| enqueue(&mut queue).map(|(ticket, _)| ticket).unwrap()).collect();
            assert_eq!(enqueue(&mut queue).err(), Some(Full), "{capacity}, {units}");
            // However a request leaves the queue, its units leave with it.
            let ticket = tickets.pop().unwrap();
            assert!(queue.leave(&ticket) && !queue.leave(&ticket));
            assert!(enqueue(&mut queue).is_ok());
            assert_eq!(dispatch(&mut queue, at(2_000)), vec![(0, Outcome::TimedOut); fitting]);
            assert!((0..fitting).all(|_| enqueue(&mut queue).is_ok()));
        }
    }
}

#[test]
fn the_line_of_all_is_bounded_by_its_requests() {
    let mut queue = FairQueue::new(Shares::of(2));
    queue.take(&tenant(0), 2);
    for number in 1..3 {
        for who in 0..1_024 {
            queue.enqueue(&tenant(number), 1, START, number * 10_000 + who).unwrap();
        }
    }
    let (ticket, displaced) = queue.enqueue(&tenant(9), 1, START, 90_000).unwrap();
    assert!(
        matches!(displaced, Some((who, Outcome::Displaced)) if who % 10_000 == 1_023),
        "the last of a longest line"
    );
    assert_eq!(queue.waiting, 2_048);
    assert!(queue.leave(&ticket) && !queue.leave(&ticket));
}

#[test]
fn many_tenants_leave_no_trace() {
    let mut queue = FairQueue::new(Shares::of(8));
    let mut tickets = Vec::new();
    for who in 0..100_000 {
        let tenant = if who % 2 == 0 { tenant(who) } else { anonymous(who) };
        if queue.admit(&tenant, 1) {
            queue.release(&tenant, 1);
        } else if let Ok((ticket, _)) = queue.enqueue(&tenant, 1, START, who) {
            tickets.push(ticket);
        }
        if who == 1_000 {
            queue.take(&self::tenant(0), 8);
        }
        assert!(queue.tenants.len() <= 2_048 + 8);
    }
    for ticket in tickets {
        queue.leave(&ticket);
    }
    queue.release(&tenant(0), 8);
    assert!(queue.is_empty());
}

/// A tenant of the simulation: its load, and the outcome.
#[derive(Debug, Clone)]
struct Asker {
    /// Milliseconds between bursts.
    every: u64,
    /// Requests per burst.
    at_once: usize,
    units: u32,
    /// Service time of a request in milliseconds.
    takes: u64,
}

#[derive(Debug, Default, Clone)]
struct Served {
    asked: u64,
    /// Units admitted while all tenants were active.
    units: u64,
    refused: u64,
    longest_wait: Duration,
}

/// Runs the queue for a simulated time in milliseconds, checking its invariants at each step.
fn simulate(capacity: u32, askers: &[Asker], length: u64) -> Vec<Served> {
    let mut queue = FairQueue::new(Shares::of(capacity));
    let mut served = vec![Served::default(); askers.len()];
    let mut waiting: BTreeMap<usize, (usize, u32, u64, Ticket)> = BTreeMap::new();
    let mut ends: BTreeMap<(u64, usize), (usize, u32)> = BTreeMap::new();
    let mut who = 0;
    for now in 0..length + 6_000 {
        while let Some(end) = ends.first_entry().filter(|end| end.key().0 <= now) {
            let (asker, units) = end.remove();
            queue.release(&tenant(asker), units);
        }
        // Requests that time out leave by themselves, in the order they came.
        let late: Vec<usize> = waiting
            .iter()
            .take_while(|(_, (.., since, _))| at(now).since(at(*since)) >= MAX_WAIT)
            .map(|(who, _)| *who)
            .collect();
        for who in late {
            let (asker, _, _, ticket) = waiting.remove(&who).unwrap();
            assert!(queue.leave(&ticket));
            served[asker].refused += 1;
        }
        for (asker, asks) in askers.iter().enumerate() {
            if now >= length || now % asks.every != 0 {
                continue;
            }
            for _ in 0..asks.at_once {
                who += 1;
                served[asker].asked += 1;
                let units = queue.shares().units(&tenant(asker), asks.units);
                if queue.admit(&tenant(asker), units) {
                    ends.insert((now + asks.takes, who), (asker, units));
                    served[asker].units += u64::from(units);
                    continue;
                }
                match queue.enqueue(&tenant(asker), units, at(now), who) {
                    Ok((ticket, displaced)) => {
                        waiting.insert(who, (asker, units, now, ticket));
                        if let Some((displaced, _)) = displaced {
                            let (asker, ..) = waiting.remove(&displaced).unwrap();
                            served[asker].refused += 1;
                        }
                    }
                    Err(Full) => served[asker].refused += 1,
                }
            }
        }
        for (who, outcome) in dispatch(&mut queue, at(now)) {
            let (asker, units, since, _) = waiting.remove(&who).unwrap();
            let waited = Duration::from_millis(now - since);
            served[asker].longest_wait = served[asker].longest_wait.max(waited);
            if outcome == Outcome::Admitted {
                ends.insert((now + askers[asker].takes, who), (asker, units));
                if now < length {
                    served[asker].units += u64::from(units);
                }
            } else {
                served[asker].refused += 1;
            }
        }
        assert!(queue.used <= capacity, "{} units of {capacity}", queue.used);
        let under_way: u32 = ends.values().map(|(_, units)| units).sum();
        assert_eq!(queue.used, under_way, "each unit is counted once");
        assert_eq!(queue.waiting, waiting.len());
    }
    assert!(queue.is_empty(), "nothing is left when everybody is gone");
    served
}

fn asker() -> impl Strategy<Value = Asker> {
    (1_u64..40, prop_oneof![Just(1_u32), Just(3), Just(10), Just(50)], 1_u64..100)
        .prop_map(|(every, units, takes)| Asker { every, at_once: 1, units, takes })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Under any load: a tenant below its share is never refused, and nobody waits longer than the limit.
    #[test]
    fn who_asks_for_little_is_never_refused(
        crowd in prop::collection::vec(asker(), 1..6),
        every in 10_u64..50,
    ) {
        let mut askers = vec![Asker { every, at_once: 1, units: 1, takes: 2 }];
        askers.extend(crowd);
        let served = simulate(400, &askers, 2_000);
        prop_assert_eq!(served[0].refused, 0, "{:?}", served);
        prop_assert!(served.iter().all(|served| served.longest_wait <= MAX_WAIT));
    }

    /// Tenants that all demand far more than the capacity get about the same, however they split their demand.
    #[test]
    fn who_asks_for_too_much_gets_a_share(costs in lists_of_costs()) {
        let askers: Vec<Asker> = costs
            .iter()
            .map(|units| Asker { every: 1, at_once: 10 / *units as usize, units: *units, takes: 200 })
            .collect();
        let (least, most) = least_and_most(&simulate(600, &askers, 4_000));
        prop_assert!(least * 10 >= most * 8, "{least} of {most}");
    }

    /// Also if they send bursts with pauses, so that the queue holds what is served in between.
    #[test]
    fn who_asks_for_too_much_at_once_gets_a_share(costs in lists_of_costs()) {
        let askers: Vec<Asker> = costs
            .iter()
            .map(|units| Asker { every: 200, at_once: 1_200 / *units as usize, units: *units, takes: 50 })
            .collect();
        let (least, most) = least_and_most(&simulate(600, &askers, 2_000));
        prop_assert!(least * 10 >= most * 8, "{least} of {most}");
    }
}

fn lists_of_costs() -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec(prop_oneof![Just(1_u32), Just(3), Just(10)], 2..5)
}

fn least_and_most(served: &[Served]) -> (u64, u64) {
    let units = || served.iter().map(|served| served.units);
    (units().min().unwrap(), units().max().unwrap())
}

#[test]
fn ten_times_as_much_takes_nothing_from_who_asks_modestly() {
    let modest = Asker { every: 10, at_once: 1, units: 10, takes: 20 };
    let alone = simulate(100, std::slice::from_ref(&modest), 5_000);
    let flood = Asker { every: 1, at_once: 1, units: 10, takes: 20 };
    let beside = simulate(100, &[modest, flood.clone(), flood], 5_000);
    assert_eq!(beside[0].units, alone[0].units);
    assert_eq!(beside[0].refused, 0);
    assert!(beside[1].refused > beside[1].asked / 2, "{beside:?}");
}

/// Slow requests of one tenant, such as of a slow provider, do not delay those of another.
#[test]
fn who_is_slow_keeps_nobody_waiting() {
    let slow = Asker { every: 1, at_once: 1, units: 10, takes: 5_000 };
    let quick = Asker { every: 5, at_once: 1, units: 10, takes: 5 };
    let served = simulate(100, &[quick, slow.clone(), slow], 20_000);
    assert_eq!(served[0].refused, 0, "{served:?}");
}
