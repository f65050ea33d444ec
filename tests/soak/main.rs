//! The soak test: a day's mixed traffic on `cairn up`, compressed into as little time as it takes. Clients delete what
//! they no longer need, so memory, open files, threads, tables, index and logs must be stable (docs/RELIABILITY.md).
//!
//! By default it runs for seconds, which checks that everything is answered and sampled; `CAIRN_SOAK_SECONDS` sets the
//! duration, and from ten minutes on the samples are judged:
//!
//! ```sh
//! CAIRN_SOAK_SECONDS=3600 cargo test --release --test soak -- --nocapture
//! ```
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking; clippy knows that of test functions, but not of their helpers"
)]

mod judgement;
mod meter;
#[expect(dead_code, reason = "the fault driver alone draws beside a stream")]
#[path = "../faults/numbers.rs"]
mod numbers;
mod report;
mod samples;
mod traffic;
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
use std::time::Duration;

use cairn_chassis::entropy::{Entropy as _, OsEntropy};
use tokio::task::LocalSet;

use crate::judgement::Verdict;
use crate::meter::Meter;
use crate::numbers::Numbers;
use crate::samples::Sample;
use crate::traffic::{Client, Grounds, MAX_KEPT, SYNCED};
use crate::up::Up;

const SECONDS: &str = "CAIRN_SOAK_SECONDS";
const SEED: &str = "CAIRN_TEST_SEED";
/// Enough to exercise everything once.
const DEFAULT_SECONDS: u64 = 20;
/// A shorter run is still warming up.
const JUDGED_FROM: Duration = Duration::from_secs(600);
/// Latencies are compared only in runs that are long enough to average out noise.
const DRIFT_JUDGED_FROM: Duration = Duration::from_secs(3_600);
/// The maximum ratio of a median in the second half to that in the first.
const MAX_DRIFT: f64 = 2.0;
const CLIENTS: u64 = 4;
/// The number of samples in a run, at most one per second.
const SAMPLES: u32 = 120;

#[test]
fn mixed_traffic_leaves_nothing_behind() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    LocalSet::new().block_on(&runtime, soak());
}

async fn soak() {
    let lasting = Duration::from_secs(number_of(SECONDS).unwrap_or(DEFAULT_SECONDS));
    let seed = number_of(SEED).unwrap_or_else(random);
    say(&format!("{SEED}={seed}"));
    let mut numbers = Numbers::new(seed);
    let mut up = Up::start(&[]).await;
    let grounds = Rc::new(Grounds::prepare(&up).await);
    let meter = Rc::new(Meter::new());
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let client = Client::new(number, &up, Rc::clone(&grounds), Rc::clone(&meter), numbers.fork());
            tokio::task::spawn_local(client.run())
        })
        .collect();

    let mut samples = Vec::new();
    let pause = (lasting / SAMPLES).max(Duration::from_secs(1));
    while meter.elapsed() < lasting {
        tokio::time::sleep(pause).await;
        samples.push(look(&up, &meter).await);
    }
    grounds.stop();
    for client in clients {
        client.await.unwrap();
    }
    samples.push(look(&up, &meter).await);
    let unsound = up.stop().await.err();

    let verdicts = judgement::judge(&samples);
    say(&report::table(&meter, &samples, &verdicts));
    let mut wrong = meter.failures();
    wrong.extend(unsound.map(|said| format!("cairn doctor: {said}")));
    wrong.extend(unmet(&meter));
    wrong.extend(beyond(samples.last().unwrap(), meter.late()));
    if lasting >= JUDGED_FROM {
        wrong.extend(verdicts.iter().filter(|verdict| !verdict.holds()).map(grows));
    }
    if lasting >= DRIFT_JUDGED_FROM {
        wrong.extend(drift(&meter));
    }
    assert!(wrong.is_empty(), "{SEED}={seed}: {wrong:#?}");
}

async fn look(up: &Up, meter: &Meter) -> Sample {
    let process = up.process.as_ref().unwrap().id();
    samples::take(process, up.data.path(), meter.elapsed(), meter.writes()).await
}

/// Kinds without a single answer: such a run says nothing about them.
fn unmet(meter: &Meter) -> Vec<String> {
    let latencies = meter.latencies().into_iter();
    let unmet = latencies.filter(|(_, [first, second])| first.count + second.count == 0);
    unmet.map(|(kind, _)| format!("{} was never answered", kind.name())).collect()
}

/// The initial contents of a workspace.
const STARTER_FILES: u64 = 1;

/// Tables with more rows than the clients have kept. A request that timed out may have taken effect.
fn beyond(last: &Sample, late: usize) -> Vec<String> {
    let (held, late) = (CLIENTS * MAX_KEPT as u64, late as u64);
    let most = [
        ("content.files", held + SYNCED + STARTER_FILES),
        ("content.records", held),
        ("content.memories", held),
        ("content.trash", 0),
        ("ingest.ingested_documents", held),
        ("sync.sync_pieces", 0),
    ];
    let beyond = most.into_iter().filter_map(|(name, most)| {
        let (found, most) = (last.values[name], most + late);
        (found > most).then(|| format!("{name} holds {found} rows, and clients keep {most} at most"))
    });
    beyond.collect()
}

fn grows(verdict: &Verdict) -> String {
    let Verdict { name, halves: [first, second], growth, allowed } = verdict;
    format!("{name} was {first:.0}, then {second:.0}, grew by {growth:.0} and might have by {allowed:.0}")
}

fn drift(meter: &Meter) -> Vec<String> {
    let latencies = meter.latencies().into_iter();
    let slower = latencies
        .filter(|(_, [first, second])| second.median.as_secs_f64() > first.median.as_secs_f64() * MAX_DRIFT);
    let tell = |(kind, [first, second]): (meter::Kind, [meter::Latency; 2])| {
        format!("{} took {:?} in the median, then {:?}", kind.name(), first.median, second.median)
    };
    slower.map(tell).collect()
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
