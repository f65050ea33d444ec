//! The processes that work for a workspace, two of them on clocks that differ: how they take runs, stand still, are lost and come back.

use std::time::Duration;

use cairn_chassis::clock::{Clock, ManualClock, Timestamp};
use cairn_chassis::testing::simulation::{SkewedClock, World};
use cairn_proto::ids::SyncRunId;

use super::super::*;
use super::Working;
use super::gate::Gate;
use crate::context::Context;
use crate::model::Run;
use crate::runs::Runner;

/// For how long a claim holds.
const TERM: Duration = Duration::from_secs(30);
/// By how much a clock is wrong at most.
const ERROR: Duration = Duration::from_secs(10);
/// For how long a claim holds, less what two clocks differ by.
const SURE: Duration = Duration::from_secs(TERM.as_secs() - 2 * ERROR.as_secs());
const PROCESSES: usize = 2;

/// All processes, and who of them has a run.
pub(super) struct Crew {
    time: Arc<ManualClock>,
    processes: Vec<Process>,
    /// Whose the newest claim is, and when it was made.
    held: Option<(usize, Timestamp)>,
    /// Counts what a call must not arrive behind: such a call would have been on its way for longer than any may be.
    epoch: u64,
}

/// One process of sync, with a worker or without.
struct Process {
    runner: Runner,
    clock: Arc<SkewedClock>,
    gate: Arc<Gate>,
    worker: Option<Worker>,
}

struct Worker {
    run: SyncRunId,
    /// How far the walk was when it took its run.
    epoch: u64,
    work: Working,
}

impl Process {
    fn start(bench: &Bench, time: &Arc<ManualClock>) -> Self {
        let clock = Arc::new(SkewedClock::new(Arc::clone(time)));
        let shared: Arc<dyn Clock> = Arc::<SkewedClock>::clone(&clock);
        let gate = Arc::new(Gate::default());
        let content = gate.guard(&bench.content, &bench.rights);
        // Whoever stands still in the midst of an archive keeps nobody else from reading one.
        let reader = Reader::in_this_process();
        let context = Context { clock: shared, content, reader, ..bench.service.context().clone() };
        Self { runner: Runner::new(context), clock, gate, worker: None }
    }
}

impl Crew {
    pub(super) fn start(bench: &Bench, time: Arc<ManualClock>) -> Self {
        let processes = (0..PROCESSES).map(|_| Process::start(bench, &time)).collect();
        Self { time, processes, held: None, epoch: 0 }
    }

    /// What workers without a run have on its way is lost from here on.
    pub(super) const fn forbid_later_calls(&mut self) {
        self.epoch += 1;
    }

    /// All workers are lost.
    pub(super) fn leave(&mut self) {
        for process in &mut self.processes {
            process.worker = None;
        }
    }

    /// So much time passes that nobody is sure of a run any more.
    pub(super) fn expire(&self) {
        self.time.advance(2 * TERM + 2 * ERROR);
    }

    /// A process takes a run, or goes on with the one that it has, for some calls; whether whoever had the run is done with it.
    pub(super) async fn work(&mut self, world: &mut World, bench: &Bench) -> bool {
        let number = world.place_in(PROCESSES);
        if self.processes[number].worker.is_none() {
            self.claim(number, world, bench).await;
        }
        let is_holder = self.held.is_some_and(|(holder, _)| holder == number);
        let Some(worker) = &self.processes[number].worker else { return false };
        let (run, epoch) = (worker.run, worker.epoch);
        if !is_holder && epoch < self.epoch {
            world.note(format_args!("{number} is lost, and what it had on its way"));
            self.processes[number] = Process::start(bench, &self.time);
            return false;
        }
        let (passes, is_refused) = (world.between(1, 9), world.one_in(4));
        world.note(format_args!("{number} goes on for {passes}, holder: {is_holder}, refused: {is_refused}"));
        let before = bench.find(run).await;
        let is_done = Box::pin(self.processes[number].go_on(passes, is_refused)).await;
        if is_done {
            world.note(format_args!("{number} is done"));
        }
        if !is_holder {
            assert_eq!(bench.find(run).await, before, "{number} writes about what is no longer its own");
            return false;
        }
        if is_done {
            self.held = None;
        }
        is_done
    }

    async fn claim(&mut self, number: usize, world: &mut World, bench: &Bench) {
        let (db, now) = (&bench.service.context().db, self.processes[number].clock.now());
        let Some(run) = store::runs::claimable(db, now, 1).await.unwrap().pop() else { return };
        let at = self.time.now();
        if let (RunStatus::Running, Some((holder, claimed_at))) = (run.state, self.held) {
            assert!(at >= claimed_at.plus(SURE), "{number} may take the run that {holder} is sure of");
        }
        let runner = self.processes[number].runner.clone();
        let run = runner.claim(run).await.unwrap().expect("it is to be had");
        world.note(format_args!("{number} has the run, {:?}", run.phase));
        self.held = Some((number, at));
        let (id, epoch) = (run.id, self.epoch);
        let work: Working = Box::pin(async move { runner.perform(run, &CancellationToken::new()).await });
        self.processes[number].worker = Some(Worker { run: id, epoch, work });
    }

    /// A process is lost between two calls and another takes its place, or its clock is set.
    pub(super) fn disturb(&mut self, world: &mut World, bench: &Bench) {
        let number = world.place_in(PROCESSES);
        if world.one_in(2) {
            world.note(format_args!("{number} is lost"));
            self.processes[number] = Process::start(bench, &self.time);
        }
        let most = i64::try_from(ERROR.as_micros()).unwrap();
        let error = i64::try_from(world.below(2 * ERROR.as_micros() as u64)).unwrap() - most;
        world.note(format_args!("the clock of {number} is wrong by {error} µs"));
        self.processes[number].clock.set_error(error);
    }

    pub(super) fn pass(&self, world: &mut World) {
        let longest = if world.one_in(3) { TERM / 6 } else { 3 * TERM };
        let time = Duration::from_millis(world.below(u64::try_from(longest.as_millis()).unwrap()));
        world.note(format_args!("{time:?} pass"));
        self.time.advance(time);
    }
}

impl Process {
    /// Its worker goes on to its gate; whether it came to its end.
    async fn go_on(&mut self, passes: u64, is_refused: bool) -> bool {
        let Self { gate, worker, .. } = self;
        gate.open_for(passes, is_refused);
        let Some(Worker { work, .. }) = worker else { return false };
        let is_done = tokio::select! {
            biased;
            () = work => true,
            () = gate.stopped() => false,
        };
        if is_done {
            *worker = None;
        }
        is_done
    }
}

impl Bench {
    /// A run as it is now.
    pub(super) async fn find(&self, id: SyncRunId) -> Run {
        store::runs::get(&self.service.context().db, workspace(), id).await.unwrap().unwrap()
    }
}
