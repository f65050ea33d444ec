//! Simulation of runs (docs/adr/0101): processes whose clocks differ, workers that pause between two calls of their provider for
//! longer than they hold their run, come back when somebody else has it, or are lost; a shelf that changes all the while.
//!
//! Nobody takes a run whose holder is sure of it. A worker that has lost its run asks nobody and writes nothing. And the end is
//! that of a run which nobody disturbed: each document once, as the shelf has it.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_trait::async_trait;
use cairn_chassis::testing::TestDb;
use cairn_chassis::testing::simulation::{self, SkewedClock, World};
use cairn_providers::testing::Requests;
use cairn_providers::{Account, Call, ExternalId, Fault, Fetched, Page, Position, Traits, Version};
use tokio::sync::Notify;

use super::*;

/// By how much a clock is wrong at most.
const ERROR: Duration = Duration::from_secs(20);
/// For how long a claim holds, less what two clocks differ by.
const SURE: Duration = Duration::from_secs(60 - 2 * ERROR.as_secs());
const PROCESSES: u64 = 3;

#[test]
fn runs_end_as_if_nobody_had_disturbed_them() {
    simulation::run("runs of sources", 20, |world| simulation::block_on(walk(world)));
}

async fn walk(world: &mut World) {
    let mut walk = Box::pin(Walk::begin(world)).await;
    for _ in 0..walk.world.between(20, 50) {
        Box::pin(walk.step()).await;
    }
    Box::pin(walk.end()).await;
}

/// How many calls of its provider a worker may make before it pauses.
#[derive(Debug, Default)]
struct Gate {
    calls: AtomicUsize,
    opened: Notify,
    is_blocked: AtomicBool,
    changed: Notify,
}

impl Gate {
    async fn pass(&self) {
        let take_one = |left: usize| left.checked_sub(1);
        while self.calls.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take_one).is_err() {
            self.is_blocked.store(true, Ordering::SeqCst);
            self.changed.notify_one();
            self.opened.notified().await;
        }
    }

    fn open_for(&self, calls: usize) {
        self.is_blocked.store(false, Ordering::SeqCst);
        self.calls.store(calls, Ordering::SeqCst);
        self.opened.notify_one();
    }

    async fn blocked(&self) {
        while !self.is_blocked.load(Ordering::SeqCst) {
            self.changed.notified().await;
        }
    }
}

/// Connects a process to the shelf, through its gate.
#[derive(Debug)]
struct Gated {
    shelf: Shelf,
    guard: Guard,
    gate: Arc<Gate>,
}

impl Connect for Gated {
    fn modes(&self, _: ProviderKind) -> &'static [SourceMode] {
        &[SourceMode::Indexed]
    }

    fn connect(
        &self,
        _: ProviderKind,
        _: &Value,
        _: Option<&Value>,
        _: Option<SourceMode>,
    ) -> Result<Box<dyn Provider>, Vec<Violation>> {
        Ok(Box::new(Behind { shelf: self.shelf.provider(), gate: Arc::clone(&self.gate) }))
    }

    fn guard(&self) -> &Guard {
        &self.guard
    }
}

/// The shelf behind a gate.
#[derive(Debug)]
struct Behind {
    shelf: Box<dyn Provider>,
    gate: Arc<Gate>,
}

#[async_trait]
impl Provider for Behind {
    fn traits(&self) -> Traits {
        self.shelf.traits()
    }

    async fn check(&self, call: &Call) -> Result<Account, Fault> {
        self.gate.pass().await;
        self.shelf.check(call).await
    }

    async fn list(&self, call: &Call, from: Option<&Position>) -> Result<Page, Fault> {
        self.gate.pass().await;
        self.shelf.list(call, from).await
    }

    async fn changes(&self, call: &Call, from: &Position) -> Result<Page, Fault> {
        self.gate.pass().await;
        self.shelf.changes(call, from).await
    }

    async fn fetch(&self, call: &Call, id: &ExternalId, known: Option<&Version>) -> Result<Fetched, Fault> {
        self.gate.pass().await;
        self.shelf.fetch(call, id, known).await
    }
}

/// One process of ingest, with a worker or without.
struct Process {
    runner: Runner,
    clock: Arc<SkewedClock>,
    gate: Arc<Gate>,
    worker: Option<Pin<Box<dyn Future<Output = ()>>>>,
}

impl Process {
    fn start(stand: &Stand) -> Self {
        let clock = Arc::new(SkewedClock::new(Arc::clone(&stand.clock)));
        let shared: Arc<dyn Clock> = Arc::<SkewedClock>::clone(&clock);
        let gate = Arc::new(Gate::default());
        let (shelf, guard) = (stand.shelf.clone(), Guard::new(&[]).unwrap());
        let connect = Arc::new(Gated { shelf, guard, gate: Arc::clone(&gate) });
        let runner = stand.runner.clone();
        let context = Context { clock: shared, ..runner.context };
        let runner = Runner::new(context, connect, runner.extractor, runner.keyring, runner.entropy);
        Self { runner, clock, gate, worker: None }
    }
}

/// What somebody could tell that a worker did.
#[derive(Debug, PartialEq)]
struct Traces {
    head: u64,
    asked: Requests,
    run: Run,
}

struct Walk<'a> {
    world: &'a mut World,
    stand: Stand,
    source: SourceId,
    processes: Vec<Process>,
    /// Whose the newest claim is, and when it was made.
    held: Option<(usize, Timestamp)>,
    there: BTreeMap<String, String>,
}

impl<'a> Walk<'a> {
    async fn begin(world: &'a mut World) -> Self {
        let test = TestDb::in_memory();
        let db = test.open(store::SCHEMA, store::MIGRATIONS).await.unwrap();
        let (changes, deletions) = match world.below(3) {
            0 => (Changes::None, Deletions::FromListing),
            1 => (Changes::Exact, Deletions::FromChanges),
            _ => (Changes::HighWater { overlap: HOUR }, Deletions::FromListing),
        };
        world.note(format_args!("{changes:?}, {deletions:?}"));
        let stand =
            Stand::new(Bench::new(test, db).await, Shelf::new(Listing::Exhaustive, changes, deletions));
        stand.shelf.set_page_size(3);
        let source = stand.connect("shelf").await;
        let processes = (0..PROCESSES).map(|_| Process::start(&stand)).collect();
        Self { world, stand, source, processes, held: None, there: BTreeMap::new() }
    }

    async fn step(&mut self) {
        let process = self.world.place_in(self.processes.len());
        match self.world.below(16) {
            0..=3 => self.change_shelf(),
            4 => self.wish().await,
            5..=7 => self.claim(process).await,
            8..=11 => self.work_on(process).await,
            12 => self.lose(process),
            13..=14 => self.pass(),
            _ => self.adjust_clock(process),
        }
    }

    async fn end(&mut self) {
        for process in &mut self.processes {
            process.worker = None;
        }
        // A run that too many workers were lost at fails, and a removal of many is held back once.
        for _ in 0..4 {
            self.stand.clock.advance(HOUR * 3);
            let _ = self.stand.sources.sync(&self.stand.caller, &self.source.to_string(), true).await;
            Box::pin(self.stand.work()).await;
            self.stand.clock.advance(LEASE);
        }
        let run = self.stand.last(self.source).await;
        assert!(is_over(&run) && run.complete, "{run:?}");
        assert_eq!(self.stand.texts(self.source).await, self.there);
        assert_eq!(self.stand.visible().await.len(), self.there.len(), "each document once");
        self.stand.assert_sound("at the end").await;
    }

    fn change_shelf(&mut self) {
        let (name, text) = (format!("{:02}", self.world.below(12)), format!("text {}", self.world.below(4)));
        if self.world.one_in(4) {
            self.world.note(format_args!("the shelf has {name} no more"));
            self.stand.shelf.remove(&name);
            self.there.remove(&name);
        } else {
            self.world.note(format_args!("the shelf has {name}: {text}"));
            self.stand.shelf.put(&name, &text);
            self.there.insert(name, text);
        }
    }

    async fn wish(&mut self) {
        let full = self.world.one_in(3);
        // Ids of runs sort by time.
        self.stand.clock.advance(Duration::from_millis(10));
        let wished = self.stand.sources.sync(&self.stand.caller, &self.source.to_string(), full).await;
        self.world.note(format_args!("somebody wishes a run, full: {full}; queued: {}", wished.is_ok()));
    }

    /// A process without a worker looks for a run, as its machine does.
    async fn claim(&mut self, number: usize) {
        if self.processes[number].worker.is_some() {
            return;
        }
        let runner = self.processes[number].runner.clone();
        runner.queue_due().await.unwrap();
        let (db, now) = (&runner.context.db, runner.context.clock.now());
        let Some(run) = store::source_runs::claimable(db, now, 100).await.unwrap().into_iter().next() else {
            return;
        };
        let at = self.stand.clock.now();
        if let (SourceRunStatus::Running, Some((holder, claimed_at))) = (run.state, self.held) {
            assert!(at >= claimed_at.plus(SURE), "{number} may take the run that {holder} is sure of");
        }
        let run = runner.claim(run).await.unwrap().expect("it is to be had");
        self.world.note(format_args!("{number} has run {}", run.id));
        self.held = Some((number, at));
        let process = &mut self.processes[number];
        process.gate.calls.store(0, Ordering::SeqCst);
        process.worker = Some(Box::pin(async move { runner.perform(run, &CancellationToken::new()).await }));
    }

    /// A worker goes on for some calls of its provider, whether or not its run is still its own.
    async fn work_on(&mut self, number: usize) {
        if self.processes[number].worker.is_none() {
            return;
        }
        let calls = self.world.between(1, 6);
        let is_holder = self.held.is_some_and(|(holder, _)| holder == number);
        self.world.note(format_args!("{number} works for {calls} calls, holder: {is_holder}"));
        let before = self.traces().await;
        let process = &mut self.processes[number];
        process.gate.open_for(usize::try_from(calls).unwrap());
        let is_done = match process.worker.as_mut() {
            Some(work) => tokio::select! {
                biased;
                () = work => true,
                () = process.gate.blocked() => false,
            },
            None => true,
        };
        if is_done {
            self.world.note(format_args!("{number} is done"));
            process.worker = None;
        }
        if !is_holder {
            assert_eq!(self.traces().await, before, "{number} works on what is no longer its own");
        }
    }

    async fn traces(&self) -> Traces {
        let (feed, workspace) = (&self.stand.runner.context.feed, self.stand.caller.workspace);
        let head = feed.head(workspace).await.unwrap();
        Traces { head, asked: self.stand.shelf.requests(), run: self.stand.last(self.source).await }
    }

    /// A process is lost between two calls, and another takes its place.
    fn lose(&mut self, number: usize) {
        self.world.note(format_args!("{number} is lost"));
        self.processes[number] = Process::start(&self.stand);
    }

    fn pass(&mut self) {
        let longest = if self.world.one_in(2) { LEASE * 2 } else { LEASE / 6 };
        let time = Duration::from_millis(self.world.below(u64::try_from(longest.as_millis()).unwrap()));
        self.world.note(format_args!("{time:?} pass"));
        self.stand.clock.advance(time);
    }

    fn adjust_clock(&mut self, number: usize) {
        let most = i64::try_from(ERROR.as_micros()).unwrap();
        let error = i64::try_from(self.world.below(2 * ERROR.as_micros() as u64)).unwrap() - most;
        self.world.note(format_args!("the clock of {number} is wrong by {error} µs"));
        self.processes[number].clock.set_error(error);
    }
}
