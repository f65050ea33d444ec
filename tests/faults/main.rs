//! The fault driver. A mesh of real processes on PostgreSQL, Redis and, in half of all runs, Qdrant's stand-in is
//! killed, stopped, delayed and partitioned while clients use it; so is one process on SQLite, whose disk and clock
//! fail besides. A model knows what was acknowledged (docs/RELIABILITY.md).
//!
//! A plain run makes the same choices each time, as CI should; with `CAIRN_FAULT_SECONDS`, the duration of the faults,
//! each run chooses its own seed. `CAIRN_TEST_SEED` replays a seed, and `CAIRN_FAULT_KEPT_SECONDS` is the duration of
//! each seed in `seeds.txt`, which are replayed first:
//!
//! ```sh
//! CAIRN_FAULT_SECONDS=600 cargo test --test faults -- --nocapture
//! ```
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking; clippy knows that of test functions, but not of their helpers"
)]

mod access;
mod audit;
mod client;
mod cluster;
mod faults;
mod ledger;
mod link;
mod numbers;
mod orders;
mod qdrant;
mod runs;
mod single;
mod stage;
mod storm;
mod tables;
#[path = "../soak/up.rs"]
mod up;
#[path = "../blackbox/support"]
#[expect(dead_code, reason = "the harness of the black-box tests has more than this test needs")]
mod support {
    pub(crate) mod callers;
    pub(crate) mod http;
    pub(crate) mod process;
    pub(crate) mod scratch;
    pub(crate) mod wait;
}

use std::io::Write as _;
use std::rc::Rc;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use cairn_chassis::entropy::{Entropy as _, OsEntropy};
use tokio::task::LocalSet;
use tokio::time::Instant;

use crate::client::{Client, Grounds};
use crate::cluster::{Cluster, Index};
use crate::ledger::{Ledger, Violations};
use crate::numbers::Numbers;
use crate::single::Single;
use crate::stage::Stage;

const SECONDS: &str = "CAIRN_FAULT_SECONDS";
const KEPT_SECONDS: &str = "CAIRN_FAULT_KEPT_SECONDS";
const SEED: &str = "CAIRN_TEST_SEED";
/// Seeds that once found a bug: a shape and a seed per line.
const KEPT_SEEDS: &str = include_str!("seeds.txt");
/// The seed of a plain run; it selects Qdrant for the mesh.
const DEFAULT_SEED: u64 = 2_201_296_318_271_278_941;
const CLIENTS: u64 = 4;
/// After the last fault, everything must answer again by itself within this time (docs/RELIABILITY.md).
const RECOVERED_WITHIN: Duration = Duration::from_secs(30);

/// How often processes that exited by themselves are looked for.
const TEND_PAUSE: Duration = Duration::from_millis(500);

/// The two shapes must not compete for the machine.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

#[test]
fn nothing_acknowledged_is_lost_and_nothing_hidden_is_seen() {
    let all = phases(Cluster::SHAPE, Cluster::DEFAULT_SECONDS);
    alone(async {
        // A mesh keeps its index engine.
        for index in [Index::Embedded, Index::Qdrant] {
            let phases: Vec<Phase> = all.iter().copied().filter(|it| Index::of(it.seed) == index).collect();
            if phases.is_empty() {
                continue;
            }
            say(&format!("mesh: index {index:?}"));
            match Cluster::start(index).await {
                Ok(cluster) => drive(cluster, phases).await,
                Err(why) => return say(&format!("skipped: faults: {why}")),
            }
        }
    });
}

#[test]
fn one_process_loses_nothing_though_its_disk_and_its_clock_fail() {
    alone(async { drive(Single::start().await, phases(Single::SHAPE, Single::DEFAULT_SECONDS)).await });
}

fn alone(test: impl Future<Output = ()>) {
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    LocalSet::new().block_on(&runtime, test);
}

/// A period of faults with its own seed.
#[derive(Debug, Clone, Copy)]
struct Phase {
    seed: u64,
    lasting: Duration,
}

async fn drive<S: Stage>(mut stage: S, phases: Vec<Phase>) {
    let violations = Violations::default();
    let grounds = Rc::new(Grounds::prepare(stage.access()).await);
    let (mut ledgers, mut seeds) = (Vec::new(), Vec::new());
    for (place, phase) in phases.into_iter().enumerate() {
        say(&format!("{} {SEED}={}", S::SHAPE, phase.seed));
        seeds.push(phase.seed);
        let first = place as u64 * CLIENTS;
        ledgers.extend(play(&stage, &grounds, phase, first, &violations).await);
    }
    let silent_since = Instant::now();
    let shelved = audit::source(&grounds).await;
    audit::silence(&ledgers, silent_since).await;
    audit::ended_runs(&grounds).await;
    let told = audit::ledgers(stage.access(), &grounds, &ledgers, &violations).await;
    audit::index(stage.access(), &ledgers, &violations).await;
    if !violations.is_empty() {
        stage.show_logs();
    }
    stage.check_data(&violations).await;

    let found = violations.take();
    assert!(found.is_empty(), "{} {SEED}={seeds:?}: {} violations: {found:#?}", S::SHAPE, found.len());
    say(&format!("{}: {told}, {shelved} of a source", S::SHAPE));
}

/// Injects faults while clients work, and waits for the recovery; returns the ledgers.
async fn play<S: Stage>(
    stage: &S,
    grounds: &Rc<Grounds>,
    phase: Phase,
    first: u64,
    violations: &Violations,
) -> Vec<Ledger> {
    let mut numbers = Numbers::new(phase.seed);
    grounds.begin();
    let clients: Vec<_> = (first..first + CLIENTS)
        .map(|number| {
            let (grounds, violations) = (Rc::clone(grounds), violations.clone());
            let client = Client::new(number, stage.access(), grounds, numbers.fork(), violations);
            tokio::task::spawn_local(client.run())
        })
        .collect();
    let course = async {
        let count = storm::rage(stage, &mut numbers, phase.lasting, violations).await;
        (count, audit::recovery(stage.access(), grounds).await)
    };
    let (count, recovered) = tokio::select! {
        over = course => over,
        () = tend(stage, violations) => unreachable!("it goes on for as long as it is awaited"),
    };
    // In CI the machine is shared with other jobs; longer runs report it.
    if number_of(SECONDS).is_some() && recovered > RECOVERED_WITHIN {
        violations.note(format!("everything answered only {recovered:?} after the last fault"));
    }
    grounds.stop();
    let mut ledgers = Vec::new();
    for client in clients {
        ledgers.push(client.await.unwrap());
    }
    say(&format!("{count} faults; answering again {:.1} s after the last", recovered.as_secs_f32()));
    ledgers
}

/// Restarts processes that exit by themselves, for as long as this is polled.
async fn tend<S: Stage>(stage: &S, violations: &Violations) {
    loop {
        stage.tend(violations);
        tokio::time::sleep(TEND_PAUSE).await;
    }
}

/// The recorded seeds, if requested, and then one of this run.
fn phases(shape: &str, usual_seconds: u64) -> Vec<Phase> {
    let mut phases = Vec::new();
    if let Some(seconds) = number_of(KEPT_SECONDS) {
        let lasting = Duration::from_secs(seconds);
        let lines = KEPT_SEEDS.lines().filter(|line| !line.starts_with('#'));
        let kept = lines.filter_map(|line| line.strip_prefix(shape)?.split_whitespace().next()?.parse().ok());
        phases.extend(kept.map(|seed| Phase { seed, lasting }));
    }
    let (seconds, seed) = (number_of(SECONDS), number_of(SEED));
    let explored = || seconds.map(|_| random());
    let seed = seed.or_else(explored).unwrap_or(DEFAULT_SEED);
    phases.push(Phase { seed, lasting: Duration::from_secs(seconds.unwrap_or(usual_seconds)) });
    phases
}

/// Prints a message that `cargo test` shows even for passing tests.
fn say(what: &str) {
    std::io::stderr().write_all(format!("{what}\n").as_bytes()).unwrap();
}

fn number_of(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

fn random() -> u64 {
    let mut bytes = [0; 8];
    OsEntropy.fill(&mut bytes);
    u64::from_le_bytes(bytes)
}
