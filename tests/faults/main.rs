//! The fault driver: a mesh of real processes on PostgreSQL and Redis that is killed, stopped, slowed and cut apart while
//! clients use it, and a model that knows what was acknowledged (docs/RELIABILITY.md).
//!
//! `CAIRN_TEST_SEED` replays a run's choices, `CAIRN_FAULT_SECONDS` says how long faults go on:
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

mod audit;
mod client;
mod cluster;
mod faults;
mod ledger;
mod link;
mod numbers;
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
use tokio::time::Instant;

use crate::client::Client;
use crate::cluster::Cluster;
use crate::faults::Fault;
use crate::ledger::Violations;
use crate::numbers::Numbers;

const SECONDS: &str = "CAIRN_FAULT_SECONDS";
const SEED: &str = "CAIRN_TEST_SEED";
/// Long enough for a dozen faults.
const USUAL_SECONDS: u64 = 45;
const CLIENTS: u64 = 4;

#[test]
fn nothing_acknowledged_is_lost_and_nothing_hidden_is_seen() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    LocalSet::new().block_on(&runtime, async {
        match Cluster::start().await {
            Ok(cluster) => drive(cluster).await,
            Err(why) => say(&format!("skipped: faults: {why}")),
        }
    });
}

async fn drive(mut cluster: Cluster) {
    let seed = number_of(SEED).unwrap_or_else(random);
    let lasting = Duration::from_secs(number_of(SECONDS).unwrap_or(USUAL_SECONDS));
    say(&format!("{SEED}={seed}"));
    let mut numbers = Numbers::new(seed);
    let violations = Violations::default();
    let grounds = Rc::new(client::Grounds::prepare(&cluster).await);
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let client =
                Client::new(number, &cluster, Rc::clone(&grounds), numbers.fork(), violations.clone());
            tokio::task::spawn_local(client.run())
        })
        .collect();

    let (began, mut count) = (Instant::now(), 0_usize);
    while began.elapsed() < lasting {
        let fault = Fault::choose(&mut numbers);
        say(&format!("{:>6.1} s: {fault}", began.elapsed().as_secs_f32()));
        fault.happen(&mut cluster).await;
        count += 1;
        tokio::time::sleep(Duration::from_millis(numbers.below(1_500))).await;
    }
    let recovered = audit::recovery(&cluster, &grounds).await;
    grounds.stop();
    let mut ledgers = Vec::new();
    for client in clients {
        ledgers.push(client.await.unwrap());
    }
    let told = audit::ledgers(&cluster, &grounds, &ledgers, &violations).await;
    audit::databases(&mut cluster, &violations).await;

    let found = violations.take();
    if !found.is_empty() {
        cluster.show_logs();
    }
    assert!(found.is_empty(), "{SEED}={seed}: {} violations: {found:#?}", found.len());
    say(&format!("{count} faults; answering again {:.1} s after the last; {told}", recovered.as_secs_f32()));
}

/// Says something where `cargo test` shows it even for tests that pass.
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
