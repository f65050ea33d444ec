//! Simulations: seeded walks through the states of a part, held against a model of what it promises (docs/adr/0101).
//!
//! A walk draws every choice from its [`World`] and notes each step there. Time is a [`ManualClock`] that only steps move, and
//! what a step calls has come to its end, or to the point where it is lost, before the next step begins: so a seed repeats
//! its walk. A walk that fails prints its seed and its steps.
//!
//! ```sh
//! CAIRN_SIMULATION_SEEDS=100000 cargo test --release simulation    # a night
//! CAIRN_TEST_SEED=42 cargo test simulation                         # one seed again
//! ```

use std::fmt::Display;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use tokio::runtime::Builder;

use crate::clock::{Clock, ManualClock, Timestamp};
use crate::entropy::{Entropy as _, OsEntropy};

/// How many seeds all simulations walk together.
const SEEDS: &str = "CAIRN_SIMULATION_SEEDS";
/// The one seed that is walked again.
const SEED: &str = "CAIRN_TEST_SEED";
/// What the gate has time for.
const USUAL_SEEDS: u64 = 1_000;

/// Walks with one seed after the other: with so many of each thousand that all simulations share. Each run begins at another
/// seed, so that many runs see more than one.
///
/// # Panics
/// When a walk does, after its seed and its steps are printed.
pub fn run(name: &str, per_thousand: u64, walk: impl Fn(&mut World)) {
    let (first, count) = match number_of(SEED) {
        Some(seed) => (seed, 1),
        None => (random(), share(number_of(SEEDS).unwrap_or(USUAL_SEEDS), per_thousand)),
    };
    for place in 0..count {
        let mut world = World::new(first.wrapping_add(place));
        let ended = catch_unwind(AssertUnwindSafe(|| walk(&mut world)));
        if let Err(panicked) = ended {
            world.tell(name);
            resume_unwind(panicked);
        }
    }
    eprintln!("{name}: {count} walks from seed {first} on");
}

/// Runs a walk's calls on a runtime of their own: one thread, and nothing left of it afterwards.
///
/// # Panics
/// When the system has no runtime to give.
#[expect(clippy::panic, reason = "for tests only")]
pub fn block_on<F: Future>(work: F) -> F::Output {
    match Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(work),
        Err(error) => panic!("no runtime: {error}"),
    }
}

fn share(seeds: u64, per_thousand: u64) -> u64 {
    (seeds.saturating_mul(per_thousand) / 1_000).max(1)
}

fn number_of(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

fn random() -> u64 {
    let mut bytes = [0; 8];
    OsEntropy.fill(&mut bytes);
    u64::from_le_bytes(bytes)
}

/// Where a walk's choices come from (SplitMix64), and what it did so far.
#[derive(Debug)]
pub struct World {
    seed: u64,
    state: u64,
    steps: Vec<String>,
}

impl World {
    /// The world of a seed, before the first step.
    pub const fn new(seed: u64) -> Self {
        Self { seed, state: seed, steps: Vec::new() }
    }

    /// Its seed.
    pub const fn seed(&self) -> u64 {
        self.seed
    }

    /// From 0 to the limit, which is not among them; 0 when there is nothing below it.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.next().checked_rem(limit).unwrap_or(0)
    }

    /// From the least to the most, both among them.
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        least.saturating_add(self.below(most.saturating_sub(least).saturating_add(1)))
    }

    /// Whether what happens once in so many times happens now.
    pub fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// A place in a list of that length.
    pub fn place_in(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap_or(0)
    }

    /// Notes a step, for whoever reads why a walk failed.
    pub fn note(&mut self, step: impl Display) {
        self.steps.push(step.to_string());
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn tell(&self, name: &str) {
        eprintln!("{name}: {SEED}={} fails after these steps:", self.seed);
        for (place, step) in self.steps.iter().enumerate() {
            eprintln!("{place:>5}  {step}");
        }
    }
}

/// The clock of one process: the true time, and by how much this clock is wrong.
#[derive(Debug)]
pub struct SkewedClock {
    time: Arc<ManualClock>,
    error_micros: AtomicI64,
}

impl SkewedClock {
    /// A clock that is right so far.
    pub const fn new(time: Arc<ManualClock>) -> Self {
        Self { time, error_micros: AtomicI64::new(0) }
    }

    /// Sets by how many microseconds it is ahead of the true time, or behind it.
    pub fn set_error(&self, micros: i64) {
        self.error_micros.store(micros, Ordering::SeqCst);
    }
}

impl Clock for SkewedClock {
    fn now(&self) -> Timestamp {
        let error = self.error_micros.load(Ordering::SeqCst);
        Timestamp::from_micros(self.time.now().as_micros().saturating_add(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws(seed: u64) -> Vec<u64> {
        let mut world = World::new(seed);
        (0..32).map(|_| world.between(3, 9)).collect()
    }

    #[test]
    fn a_seed_repeats_its_choices_and_another_makes_others() {
        assert_eq!(draws(7), draws(7));
        assert_ne!(draws(7), draws(8));
        assert!(draws(7).iter().all(|drawn| (3..=9).contains(drawn)));
        assert_eq!(World::new(1).below(0), 0);
    }

    #[test]
    fn a_walk_that_fails_fails_the_run() {
        let failing = || run("failing", 1, |world| assert_eq!(world.below(4), 4, "as no seed will"));
        assert!(catch_unwind(failing).is_err());
    }

    #[test]
    fn every_simulation_has_its_share_of_the_seeds() {
        assert_eq!((share(100_000, 250), share(1_000, 250), share(1, 250)), (25_000, 250, 1));
    }

    #[test]
    fn a_clock_is_wrong_by_what_it_is_set_to() {
        let time = Arc::new(ManualClock::new(Timestamp::from_seconds(1_800_000_000)));
        let clock = SkewedClock::new(Arc::clone(&time));
        clock.set_error(-5);
        time.advance(std::time::Duration::from_micros(3));
        assert_eq!(clock.now(), Timestamp::from_micros(1_800_000_000_000_000 - 2));
    }
}
