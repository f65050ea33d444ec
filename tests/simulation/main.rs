//! Simulations of the guarantees of storage: seeded random walks over feeds, units of work and leases, on simulated
//! time and on a disk that loses power (docs/RELIABILITY.md, docs/adr/0101). Those of crate-private parts are in their
//! crates: `gateway/src/rate_limit/simulation.rs`, `svc-retrieval/src/indexing/simulation.rs`,
//! `svc-ingest/src/tests/runs/simulation.rs`, `svc-sync/src/tests/simulation.rs`.
//!
//! ```sh
//! cargo test --test simulation                                                  # as in CI
//! CAIRN_SIMULATION_SEEDS=100000 cargo test --release --test simulation          # overnight
//! CAIRN_TEST_SEED=42 cargo test --test simulation simulation_of_a_feed          # replays one seed
//! ```
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking; clippy knows that of test functions, but not of their helpers"
)]

mod feed;
mod leases;
mod storage;
mod units;

use cairn_chassis::testing::simulation;

#[test]
fn simulation_of_a_feed_that_loses_power() {
    simulation::run("feed", 140, feed::walk);
}

#[test]
fn simulation_of_units_of_work_that_share_a_commit() {
    simulation::run("units of work", 60, units::walk);
}

#[test]
fn simulation_of_leases_on_clocks_that_differ() {
    simulation::run("leases", 212, leases::walk);
}
