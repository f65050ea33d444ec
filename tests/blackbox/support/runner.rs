//! Runs one scenario against its topology's shared deployment, and shows the deployment's log when it fails.

use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::OnceLock;

use super::deployment::{Deployment, Topology};

type Scenario<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

static SINGLE_PROCESS: OnceLock<Shared> = OnceLock::new();
static MESH: OnceLock<Shared> = OnceLock::new();

/// A static is never dropped: watchdogs kill its processes when this process exits.
enum Shared {
    Running(Box<Deployment>),
    Skipped(String),
    Failed,
}

/// Runs the scenario to completion on a runtime of its own.
pub(crate) fn run(topology: Topology, scenario: impl FnOnce(&Deployment) -> Scenario<'_>) {
    let place = match topology {
        Topology::SingleProcess => &SINGLE_PROCESS,
        Topology::Mesh => &MESH,
    };
    match place.get_or_init(|| start(topology)) {
        Shared::Running(deployment) => run_on(deployment, scenario),
        Shared::Skipped(why) => announce_skip(why),
        Shared::Failed => {
            panic!("the {topology:?} deployment did not start; the first test to want it says why")
        }
    }
}

/// Runs a test that starts its own deployments.
pub(crate) fn run_alone(test: impl Future<Output = ()>) {
    runtime().block_on(test);
}

/// Reports a skipped test where `cargo test` shows it even for tests that pass.
pub(crate) fn announce_skip(why: &str) {
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    announce(&format!("skipped: {test}: {why}"));
}

/// Prints where `cargo test` shows it even for tests that pass.
pub(crate) fn announce(what: &str) {
    let line = format!("{what}\n");
    // Not eprintln: the test harness captures that unless the test fails.
    std::io::stderr().write_all(line.as_bytes()).unwrap();
}

fn start(topology: Topology) -> Shared {
    let started = catch_unwind(|| runtime().block_on(Deployment::start(topology)));
    match started {
        Ok(Ok(deployment)) => Shared::Running(Box::new(deployment)),
        Ok(Err(why)) => Shared::Skipped(why),
        // The panic's message is already in this test's output.
        Err(_) => Shared::Failed,
    }
}

fn run_on(deployment: &Deployment, scenario: impl FnOnce(&Deployment) -> Scenario<'_>) {
    let outcome = catch_unwind(AssertUnwindSafe(|| runtime().block_on(scenario(deployment))));
    if let Err(panic) = outcome {
        deployment.show_logs();
        resume_unwind(panic);
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}
