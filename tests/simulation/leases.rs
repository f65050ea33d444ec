//! Leases of jobs: processes with clock skew that pause, wait for the storage, miss responses and crash, and a storage
//! that loses power.
//!
//! The guarantee (`cairn_chassis::jobs`): whoever claimed a lease is its only holder for the term minus the maximum
//! clock skew, counted from the request. Work after that, following an unnoticed pause, must be idempotent; so the
//! holder renews before each step, which fails if another one holds the lease. A crashed holder is succeeded after the
//! term plus the maximum clock skew.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use cairn_chassis::clock::{Clock, ManualClock, Timestamp};
use cairn_chassis::entropy::SeededEntropy;
use cairn_chassis::ids::IdSource;
use cairn_chassis::jobs::{self, Lease};
use cairn_chassis::sql::{Db, Error, Migration};
use cairn_chassis::testing::simulation::{self, SkewedClock, World};

use crate::storage::Storage;

const MIGRATIONS: &[Migration] = &[jobs::MIGRATION];
const NAME: &str = "job";
const TERM: Duration = Duration::from_secs(60);
/// The maximum error of a clock.
const ERROR: Duration = Duration::from_secs(20);
/// The maximum difference of two clocks, which is less than the term.
const SKEW: Duration = Duration::from_secs(2 * ERROR.as_secs());

/// One simulation.
pub(crate) fn walk(world: &mut World) {
    simulation::block_on(async {
        let mut walk = Walk::begin(world).await;
        for _ in 0..walk.world.between(20, 60) {
            walk.step().await;
        }
        walk.end().await;
    });
}

/// A process that may hold the lease.
#[derive(Debug)]
struct Replica {
    clock: Arc<SkewedClock>,
    lease: Lease,
    /// Its number among all processes so far.
    process: u32,
    /// Until when its exclusive ownership is guaranteed, in true time.
    sure_until: Option<Timestamp>,
}

/// The row in the table.
#[derive(Debug, Clone, Copy)]
struct Held {
    process: u32,
    /// By the clock of its holder.
    expires_at: Timestamp,
    /// When its holder requested it, in true time.
    asked_at: Timestamp,
}

/// A claim in flight.
struct PendingClaim {
    replica: usize,
    /// By the clock of the replica.
    now: Timestamp,
    /// In true time.
    asked_at: Timestamp,
    claim: Pin<Box<dyn Future<Output = Result<bool, Error>>>>,
}

struct Walk<'a> {
    world: &'a mut World,
    storage: Storage,
    db: Db,
    time: Arc<ManualClock>,
    ids: IdSource,
    replicas: Vec<Replica>,
    processes: u32,
    held: Option<Held>,
}

impl<'a> Walk<'a> {
    async fn begin(world: &'a mut World) -> Self {
        let mut storage = Storage::new();
        let db = Box::pin(storage.open(MIGRATIONS)).await;
        let time = Arc::new(ManualClock::new(Timestamp::from_seconds(1_800_000_000)));
        let shared: Arc<dyn Clock> = Arc::<ManualClock>::clone(&time);
        let ids = IdSource::new(shared, Arc::new(SeededEntropy::new(world.seed())));
        let count = world.between(2, 4);
        let mut walk = Self { world, storage, db, time, ids, replicas: Vec::new(), processes: 0, held: None };
        for _ in 0..count {
            let replica = walk.start();
            walk.replicas.push(replica);
        }
        walk
    }

    /// A new process with a random clock error.
    fn start(&mut self) -> Replica {
        self.processes += 1;
        let clock = Arc::new(SkewedClock::new(Arc::clone(&self.time)));
        clock.set_error(self.error());
        let shared: Arc<dyn Clock> = Arc::<SkewedClock>::clone(&clock);
        let lease = Lease::new(self.db.clone(), shared, &self.ids, NAME, TERM);
        Replica { clock, lease, process: self.processes, sure_until: None }
    }

    fn error(&mut self) -> i64 {
        let most = u64::try_from(ERROR.as_micros()).unwrap();
        i64::try_from(self.world.between(0, 2 * most)).unwrap() - i64::try_from(most).unwrap()
    }

    async fn step(&mut self) {
        let replica = self.world.place_in(self.replicas.len());
        match self.world.below(16) {
            0..=5 => self.claim(replica).await,
            6..=8 => self.wait(),
            9 => self.claim_late().await,
            10 => self.work_on(replica).await,
            11 => self.release(replica).await,
            12 => self.adjust_clock(replica),
            13 => self.lose(replica).await,
            14 => self.lose_answer(replica).await,
            _ => Box::pin(self.lose_power()).await,
        }
    }

    /// After the term plus the maximum clock skew, anybody can claim the lease.
    async fn end(&mut self) {
        self.pass(TERM + SKEW);
        let replica = self.world.place_in(self.replicas.len());
        self.claim(replica).await;
        assert!(self.replicas[replica].sure_until.is_some(), "nobody takes over what nobody renews");
        self.db.close().await;
    }

    fn now(&self) -> Timestamp {
        self.time.now()
    }

    fn pass(&mut self, time: Duration) {
        self.time.advance(time);
        self.world.note(format_args!("{time:?} pass"));
    }

    fn wait(&mut self) {
        let longest = if self.world.one_in(3) { 2 * (TERM + SKEW).as_micros() } else { TERM.as_micros() / 3 };
        let time = Duration::from_micros(self.world.below(u64::try_from(longest).unwrap()));
        self.pass(time);
    }

    /// The replica reads its clock and sends its claim.
    fn ask(&self, replica: usize) -> PendingClaim {
        let (lease, now) = (self.replicas[replica].lease.clone(), self.replicas[replica].clock.now());
        let claim = Box::pin(async move { lease.claim().await });
        PendingClaim { replica, now, asked_at: self.now(), claim }
    }

    /// Whether a claim is granted now, and the resulting row.
    fn settle(&mut self, replica: usize, now: Timestamp, asked_at: Timestamp) -> bool {
        let process = self.replicas[replica].process;
        let is_granted = self.held.is_none_or(|held| held.process == process || held.expires_at <= now);
        if let Some(held) = self.held.filter(|held| asked_at >= held.asked_at.plus(TERM).plus(SKEW)) {
            assert!(is_granted, "{held:?} keeps others out for longer than it may");
        }
        if is_granted {
            self.held = Some(Held { process, expires_at: now.plus(TERM), asked_at });
        }
        is_granted
    }

    /// The replica receives the result of its claim.
    fn hear(&mut self, replica: usize, is_granted: bool, asked_at: Timestamp) {
        let now = self.now();
        if !is_granted {
            self.replicas[replica].sure_until = None;
            return;
        }
        for (number, other) in self.replicas.iter().enumerate().filter(|(number, _)| *number != replica) {
            let is_sure = other.sure_until.is_some_and(|until| now < until);
            assert!(!is_sure, "{replica} was given what {number} holds: {other:?} at {now:?}");
        }
        let sure_for = TERM.saturating_sub(SKEW);
        self.replicas[replica].sure_until = Some(asked_at.plus(sure_for));
    }

    async fn claim(&mut self, replica: usize) {
        let PendingClaim { now, asked_at, claim, .. } = self.ask(replica);
        let is_granted = claim.await.unwrap();
        self.storage.keep();
        self.world.note(format_args!("{replica} claims at {now:?}: {is_granted}"));
        assert_eq!(is_granted, self.settle(replica, now, asked_at), "the claim of {replica}");
        self.hear(replica, is_granted, asked_at);
    }

    /// Some replicas claim while the storage is locked. They have read their clocks; time passes; then it is unlocked.
    async fn claim_late(&mut self) {
        let blocking = self.db.begin_write().await.unwrap();
        let mut begun: Vec<PendingClaim> = Vec::new();
        for replica in 0..self.replicas.len() {
            if self.world.one_in(3) {
                continue;
            }
            self.world.note(format_args!("{replica} claims, and waits for the storage"));
            let mut asked = self.ask(replica);
            assert!(futures::poll!(&mut asked.claim).is_pending(), "nobody writes while another does");
            begun.push(asked);
            self.wait();
        }
        blocking.rollback().await.unwrap();
        // In the order of arrival, in which the storage serves them.
        let claims: Vec<_> = begun.iter_mut().map(|asked| &mut asked.claim).collect();
        let answers = futures::future::join_all(claims).await;
        self.storage.keep();
        for (asked, answer) in begun.iter().zip(answers) {
            let (replica, is_granted) = (asked.replica, answer.unwrap());
            self.world.note(format_args!("{replica} hears {is_granted}"));
            assert_eq!(is_granted, self.settle(replica, asked.now, asked.asked_at), "the claim of {replica}");
            self.hear(replica, is_granted, asked.asked_at);
        }
    }

    /// A replica works step by step, renews before each, and may pause unnoticed after that.
    async fn work_on(&mut self, replica: usize) {
        for part in 0..self.world.between(1, 4) {
            self.claim(replica).await;
            let Some(until) = self.replicas[replica].sure_until else { return };
            self.wait();
            let is_sure = self.now() < until;
            self.world.note(format_args!("{replica} does part {part}, sure of the lease: {is_sure}"));
            if !is_sure {
                continue;
            }
            let process = self.replicas[replica].process;
            assert!(self.held.is_some_and(|held| held.process == process), "{replica} lost what it holds");
            let other = (replica + 1) % self.replicas.len();
            self.claim(other).await;
            assert!(self.replicas[other].sure_until.is_none(), "{other} works beside {replica}");
        }
    }

    async fn release(&mut self, replica: usize) {
        self.world.note(format_args!("{replica} gives the lease back"));
        self.replicas[replica].lease.release().await.unwrap();
        self.storage.keep();
        let process = self.replicas[replica].process;
        self.replicas[replica].sure_until = None;
        self.held = self.held.filter(|held| held.process != process);
    }

    fn adjust_clock(&mut self, replica: usize) {
        let error = self.error();
        self.world.note(format_args!("the clock of {replica} is wrong by {error} µs"));
        self.replicas[replica].clock.set_error(error);
    }

    /// A process crashes, and another one with another name replaces it.
    async fn lose(&mut self, replica: usize) {
        self.world.note(format_args!("{replica} is lost"));
        self.replicas[replica] = self.start();
    }

    /// A claim arrives, its response is lost, and the process crashes. The row excludes others for a term.
    async fn lose_answer(&mut self, replica: usize) {
        let PendingClaim { now, asked_at, claim, .. } = self.ask(replica);
        let is_granted = claim.await.unwrap();
        self.storage.keep();
        self.world.note(format_args!("{replica} claims at {now:?} and never hears: {is_granted}"));
        assert_eq!(is_granted, self.settle(replica, now, asked_at), "the claim of {replica}");
        self.replicas[replica] = self.start();
    }

    /// All processes crash, and the last claim may or may not be persisted.
    async fn lose_power(&mut self) {
        let replica = self.world.place_in(self.replicas.len());
        let PendingClaim { now, asked_at, claim, .. } = self.ask(replica);
        let is_granted = claim.await.unwrap();
        let before = self.held;
        assert_eq!(is_granted, self.settle(replica, now, asked_at), "the claim of {replica}");
        self.world.note(format_args!("{replica} claims at {now:?} and never hears: {is_granted}"));
        self.storage.lose_power(self.world);
        self.db.close().await;
        self.db = self.storage.open(MIGRATIONS).await;
        for number in 0..self.replicas.len() {
            self.replicas[number] = self.start();
        }
        self.find_out(before).await;
    }

    /// Determines whether the unconfirmed claim was persisted: the row before it may have expired.
    async fn find_out(&mut self, before: Option<Held>) {
        const READ: &str = "SELECT expires_at FROM leases WHERE name = $1";
        let found: Option<Timestamp> = cairn_chassis::fetch!(optional_scalar, self.db, READ, NAME).unwrap();
        let after = self.held;
        let is_of = |held: Option<Held>| held.map(|held| held.expires_at) == found;
        assert!(is_of(before) || is_of(after), "{found:?} was neither {before:?} nor {after:?}");
        if !is_of(after) {
            self.world.note("that claim is lost");
            self.held = before;
        }
    }
}
