//! Seeded simulation of the rate limits (docs/adr/0101): gateways with skewed clocks, network faults to Redis
//! including lost responses, and a Redis clock that jumps on failover.
//!
//! Invariants: no counter admits more in any window than its limit, and refuses nobody below it: the shared windows
//! while Redis answers, a gateway's own while it does not. A gateway returns to Redis once it answers again.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Duration;

use cairn_chassis::clock::{Clock, ManualClock, Timestamp};
use cairn_chassis::testing::simulation::{self, SkewedClock, World};

use super::limiter::Limiter;
use super::memory::Memory;
use super::{Counted, Key, Quota, RateLimiter, Unreachable, Window};

/// 00:50 of some day, UTC: close to the end of an hour.
const START: i64 = 1_800_057_600 + 50 * 60;
const KEYS: u64 = 2;
/// The circuit breaker's pause after a failure.
const PAUSE: Duration = Duration::from_secs(1);

#[test]
fn limits_are_kept_and_nobody_below_them_is_refused() {
    simulation::run("rate limits", 300, |world| {
        simulation::block_on(async {
            let mut walk = SimulationRun::begin(world);
            for _ in 0..walk.world.between(50, 200) {
                walk.step().await;
            }
        });
    });
}

/// The state of a gateway's connection to Redis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LinkState {
    Open,
    /// Requests are lost.
    Cut,
    /// Requests arrive, responses are lost.
    ResponseLost,
}

const LINK_STATES: [LinkState; 3] = [LinkState::Open, LinkState::Cut, LinkState::ResponseLost];

/// The connection of one gateway to the shared windows.
#[derive(Debug)]
struct Link {
    redis: Memory,
    /// An index into [`LINK_STATES`].
    state: AtomicU8,
    was_asked: AtomicBool,
}

impl Link {
    fn state(&self) -> LinkState {
        LINK_STATES[usize::from(self.state.load(Ordering::SeqCst))]
    }

    /// Sends a request; its effect happens if it arrives.
    fn ask<T>(&self, question: impl FnOnce() -> T) -> Result<T, Unreachable> {
        self.was_asked.store(true, Ordering::SeqCst);
        match self.state() {
            LinkState::Open => Ok(question()),
            LinkState::Cut => Err(Unreachable("cut".to_owned())),
            LinkState::ResponseLost => {
                question();
                Err(Unreachable("deaf".to_owned()))
            }
        }
    }
}

#[tonic::async_trait]
impl RateLimiter for Link {
    async fn take(&self, key: &Key, quota: Quota, units: u32) -> Result<Counted, Unreachable> {
        self.ask(|| self.redis.count(key, quota, units))
    }

    async fn refund(&self, key: &Key, quota: Quota, units: u32) -> Result<(), Unreachable> {
        self.ask(|| self.redis.put_back(key, quota, units))
    }
}

struct Gateway {
    limiter: Limiter,
    link: Arc<Link>,
    clock: Arc<SkewedClock>,
    /// When Redis last failed, by the gateway's clock; `None` since it answered.
    failed_at: Option<Timestamp>,
}

/// The counter: Redis, or a gateway by its index.
type Counter = Option<usize>;

/// What one counter admitted: per key and window, the number of the latest window and its units.
#[derive(Debug, Default)]
struct Model(HashMap<(Counter, u64, usize), (i64, u32)>);

impl Model {
    /// The use of a window at that second. If the clock has gone back, the newer window keeps counting.
    fn used(&self, counter: Counter, key: u64, place: usize, second: i64) -> u32 {
        let running = Window::ALL[place].number_at(second);
        let stored = self.0.get(&(counter, key, place));
        stored.filter(|(number, _)| *number >= running).map_or(0, |(_, units)| *units)
    }

    /// Takes the units if every window has room.
    fn take(&mut self, counter: Counter, key: u64, quota: Quota, units: u32, second: i64) -> bool {
        let limits: Vec<(usize, u32)> = quota
            .0
            .iter()
            .enumerate()
            .filter_map(|(place, limit)| limit.map(|limit| (place, limit)))
            .collect();
        let fits = |(place, limit): &(usize, u32)| self.used(counter, key, *place, second) + units <= *limit;
        if !limits.iter().all(fits) {
            return false;
        }
        for (place, limit) in limits {
            let used = self.used(counter, key, place, second) + units;
            assert!(used <= limit);
            let running = Window::ALL[place].number_at(second);
            let stored = self.0.entry((counter, key, place)).or_insert((running, 0));
            *stored = (stored.0.max(running), used);
        }
        true
    }
}

/// Units admitted per counter and window, summed up independently of the model.
type Sums = HashMap<(Counter, u64, usize, i64), u32>;

struct SimulationRun<'a> {
    world: &'a mut World,
    time: Arc<ManualClock>,
    redis_clock: Arc<SkewedClock>,
    gateways: Vec<Gateway>,
    quota: Quota,
    model: Model,
    sums: Sums,
}

fn clock(time: &Arc<ManualClock>) -> (Arc<SkewedClock>, Arc<dyn Clock>) {
    let clock = Arc::new(SkewedClock::new(Arc::clone(time)));
    let shared: Arc<dyn Clock> = Arc::<SkewedClock>::clone(&clock);
    (clock, shared)
}

impl<'a> SimulationRun<'a> {
    fn begin(world: &'a mut World) -> Self {
        let time = Arc::new(ManualClock::new(Timestamp::from_seconds(START)));
        let (redis_clock, shared) = clock(&time);
        let redis = Memory::new(shared);
        let count = world.between(1, 3);
        let gateway = |_| {
            let (clock, shared) = clock(&time);
            let (state, was_asked) = Default::default();
            let link = Arc::new(Link { redis: redis.clone(), state, was_asked });
            let engine: Arc<dyn RateLimiter> = Arc::<Link>::clone(&link);
            Gateway { limiter: Limiter::new(Some(engine), shared), link, clock, failed_at: None }
        };
        let gateways = (0..count).map(gateway).collect();
        let mut limit = |most| (!world.one_in(3)).then(|| u32::try_from(world.between(1, most)).unwrap_or(1));
        let quota = Quota::new(limit(8), limit(20), limit(40));
        world.note(format_args!("{count} gateways, {quota:?}"));
        let (model, sums) = Default::default();
        Self { world, time, redis_clock, gateways, quota, model, sums }
    }

    async fn step(&mut self) {
        let gateway = self.world.place_in(self.gateways.len());
        match self.world.below(20) {
            0..=11 => self.take(gateway).await,
            12..=15 => self.pass(),
            16..=17 => self.change_link(gateway),
            18 => self.adjust_clock(Some(gateway)),
            _ => self.adjust_clock(None),
        }
    }

    async fn take(&mut self, gateway: usize) {
        let (key, units) = (self.world.below(KEYS), u32::try_from(self.world.below(4)).unwrap_or(0));
        let (counted, asked) = {
            let Gateway { limiter, link, .. } = &self.gateways[gateway];
            link.was_asked.store(false, Ordering::SeqCst);
            let counted = limiter.take(&Key::new("token", key), self.quota, units).await;
            (counted, link.was_asked.load(Ordering::SeqCst).then(|| link.state()))
        };
        let what = format!("{gateway} takes {units} for {key}, Redis asked: {asked:?}");
        self.world.note(format_args!("{what}: {}", counted.admitted));
        self.check_asked(gateway, asked, &what);
        let (redis_second, own_second) =
            (self.redis_clock.now().as_seconds(), self.gateways[gateway].clock.now().as_seconds());
        if asked == Some(LinkState::ResponseLost) {
            // Redis counted it, but the response was lost.
            self.count(None, key, units, redis_second);
        }
        let (counter, second) = match asked {
            Some(LinkState::Open) => (None, redis_second),
            Some(LinkState::Cut | LinkState::ResponseLost) | None => (Some(gateway), own_second),
        };
        let expected = self.count(counter, key, units, second);
        assert_eq!(counted.admitted, expected, "{what}, at {second}: {counted:?}");
    }

    /// Redis is asked unless the circuit breaker is open, whatever the clock did since.
    fn check_asked(&mut self, gateway: usize, asked: Option<LinkState>, what: &str) {
        let gateway = &mut self.gateways[gateway];
        let now = gateway.clock.now();
        let is_paused = gateway.failed_at.is_some_and(|at| (at..at.plus(PAUSE)).contains(&now));
        assert_eq!(
            asked.is_some(),
            !is_paused,
            "{what}: it failed at {:?}, and it is {now:?}",
            gateway.failed_at
        );
        match asked {
            Some(LinkState::Open) => gateway.failed_at = None,
            Some(LinkState::Cut | LinkState::ResponseLost) => gateway.failed_at = Some(now),
            None => {}
        }
    }

    /// Whether the model admits the units; sums up what it admits per window.
    fn count(&mut self, counter: Counter, key: u64, units: u32, second: i64) -> bool {
        if units == 0 || !self.model.take(counter, key, self.quota, units, second) {
            return units == 0;
        }
        for (place, limit) in self.quota.0.into_iter().enumerate() {
            let number = self.model.0.get(&(counter, key, place)).map_or(0, |(number, _)| *number);
            let sum = self.sums.entry((counter, key, place, number)).or_default();
            *sum += units;
            assert!(limit.is_none_or(|limit| *sum <= limit), "{counter:?} let {sum} of {limit:?} through");
        }
        true
    }

    fn pass(&mut self) {
        let seconds = match self.world.below(6) {
            0..=2 => self.world.below(2),
            3..=4 => self.world.below(60),
            _ => self.world.below(7_200),
        };
        let time = Duration::from_secs(seconds) + Duration::from_millis(self.world.below(1_000));
        self.world.note(format_args!("{time:?} pass"));
        self.time.advance(time);
    }

    /// Changes the state of a gateway's connection to Redis.
    fn change_link(&mut self, gateway: usize) {
        let place = self.world.place_in(LINK_STATES.len());
        self.world.note(format_args!("{gateway} and Redis: {:?}", LINK_STATES[place]));
        self.gateways[gateway].link.state.store(u8::try_from(place).unwrap_or(0), Ordering::SeqCst);
    }

    /// Skews a clock by up to two minutes from the true time: a gateway's, or that of Redis.
    fn adjust_clock(&mut self, gateway: Option<usize>) {
        let error = i64::try_from(self.world.below(240_000_000)).unwrap_or(0) - 120_000_000;
        self.world
            .note(format_args!("the clock of {gateway:?} (Redis has no number) is wrong by {error} µs"));
        match gateway {
            Some(gateway) => self.gateways[gateway].clock.set_error(error),
            None => self.redis_clock.set_error(error),
        }
    }
}
