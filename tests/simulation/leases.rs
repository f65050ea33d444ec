//! Leases of jobs: processes whose clocks differ, that pause, wait for the storage, never hear an answer and are lost, and a
//! storage that loses power.
//!
//! What a lease promises (`cairn_chassis::jobs`): whoever claimed it is its only holder for the term, less what clocks may differ
//! by, counted from when it asked. What it does after that, in a pause that it did not notice, must do no harm twice; so before
//! each part of its work it asks again, and is told no when another has it. Whoever is lost is succeeded after the term and what
//! clocks may differ by.

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
/// By how much a clock is wrong at most.
const ERROR: Duration = Duration::from_secs(20);
/// By how much two clocks differ at most, which is less than the term.
const SKEW: Duration = Duration::from_secs(2 * ERROR.as_secs());

/// One walk.
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
    /// Which of all processes that ever were.
    process: u32,
    /// Until when nobody else can hold what it was told to hold, in true time.
    sure_until: Option<Timestamp>,
}

/// What stands in the table.
#[derive(Debug, Clone, Copy)]
struct Held {
    process: u32,
    /// By the clock of its holder.
    expires_at: Timestamp,
    /// When its holder asked, in true time.
    asked_at: Timestamp,
}

/// A claim that has begun.
struct Begun {
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

    /// Another process, whose clock is wrong by some time or other.
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

    /// Whatever happened: after the term and what clocks differ by, whoever asks has the lease.
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

    /// The replica reads its clock, and its claim is on the way.
    fn ask(&self, replica: usize) -> Begun {
        let (lease, now) = (self.replicas[replica].lease.clone(), self.replicas[replica].clock.now());
        let claim = Box::pin(async move { lease.claim().await });
        Begun { replica, now, asked_at: self.now(), claim }
    }

    /// Whether a claim is granted by now, and what stands in the table then.
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

    /// The replica hears what became of its claim.
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
        let Begun { now, asked_at, claim, .. } = self.ask(replica);
        let is_granted = claim.await.unwrap();
        self.storage.keep();
        self.world.note(format_args!("{replica} claims at {now:?}: {is_granted}"));
        assert_eq!(is_granted, self.settle(replica, now, asked_at), "the claim of {replica}");
        self.hear(replica, is_granted, asked_at);
    }

    /// Some replicas claim while the storage lets nobody write. They have read their clocks; time passes; then it goes on.
    async fn claim_late(&mut self) {
        let blocking = self.db.begin_write().await.unwrap();
        let mut begun: Vec<Begun> = Vec::new();
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
        // In the order in which they came: that is the order in which the storage serves them.
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

    /// A replica works part by part, asks before each, and may pause after that without noticing.
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

    /// A process is lost, and another takes its place, under another name.
    async fn lose(&mut self, replica: usize) {
        self.world.note(format_args!("{replica} is lost"));
        self.replicas[replica] = self.start();
    }

    /// A claim arrives, its answer does not, and the process is lost. What stands in the table keeps others out for a term.
    async fn lose_answer(&mut self, replica: usize) {
        let Begun { now, asked_at, claim, .. } = self.ask(replica);
        let is_granted = claim.await.unwrap();
        self.storage.keep();
        self.world.note(format_args!("{replica} claims at {now:?} and never hears: {is_granted}"));
        assert_eq!(is_granted, self.settle(replica, now, asked_at), "the claim of {replica}");
        self.replicas[replica] = self.start();
    }

    /// All processes are lost, and of the last claim as much as was not heard of.
    async fn lose_power(&mut self) {
        let replica = self.world.place_in(self.replicas.len());
        let Begun { now, asked_at, claim, .. } = self.ask(replica);
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

    /// Whether the claim that nobody heard of is there: what stood before it may have ended for somebody.
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
