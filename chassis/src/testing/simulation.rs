//! Deterministic simulation: seeded random runs of a component, compared with a model of its guarantees (docs/adr/0101).
//!
//! A run draws every choice from its [`World`] and logs each step there. Time is a [`ManualClock`] that only steps advance, and
//! the calls of a step complete, or are cancelled, before the next step begins: so a seed reproduces its run. A run that fails
//! prints its seed and its steps.
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

/// The variable with the number of seeds for all simulations together.
const SEEDS: &str = "CAIRN_SIMULATION_SEEDS";
/// The variable with a single seed to reproduce.
const SEED: &str = "CAIRN_TEST_SEED";
/// The number of seeds that the CI gate has time for.
const DEFAULT_SEEDS: u64 = 1_000;

/// Runs a simulation with consecutive seeds: its share, in thousandths, of the seeds of all simulations. The first seed is
/// random, so that repeated runs cover more seeds.
///
/// # Panics
/// When a simulation does, after its seed and its steps are printed.
pub fn run(name: &str, per_thousand: u64, walk: impl Fn(&mut World)) {
    let (first, count) = match number_of(SEED) {
        Some(seed) => (seed, 1),
        None => (random(), share(number_of(SEEDS).unwrap_or(DEFAULT_SEEDS), per_thousand)),
    };
    for place in 0..count {
        let mut world = World::new(first.wrapping_add(place));
        let ended = catch_unwind(AssertUnwindSafe(|| walk(&mut world)));
        if let Err(panicked) = ended {
            world.print_steps(name);
            resume_unwind(panicked);
        }
    }
    eprintln!("{name}: {count} walks from seed {first} on");
}

/// Runs a future on a new single-threaded runtime, which is dropped afterwards with all of its tasks.
///
/// # Panics
/// When the runtime cannot be created.
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

/// The source of a run's choices (SplitMix64), and the log of its steps.
#[derive(Debug)]
pub struct World {
    seed: u64,
    state: u64,
    steps: Vec<String>,
}

impl World {
    /// The initial state for a seed.
    pub const fn new(seed: u64) -> Self {
        Self { seed, state: seed, steps: Vec::new() }
    }

    /// The seed.
    pub const fn seed(&self) -> u64 {
        self.seed
    }

    /// A number in `0..limit`; 0 when the range is empty.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.next().checked_rem(limit).unwrap_or(0)
    }

    /// A number in `min..=max`.
    pub fn between(&mut self, min: u64, max: u64) -> u64 {
        min.saturating_add(self.below(max.saturating_sub(min).saturating_add(1)))
    }

    /// True with a probability of one in `times`.
    pub fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// An index of a list of that length.
    pub fn place_in(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap_or(0)
    }

    /// Logs a step, for the report of a failed run.
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

    fn print_steps(&self, name: &str) {
        eprintln!("{name}: {SEED}={} fails after these steps:", self.seed);
        for (place, step) in self.steps.iter().enumerate() {
            eprintln!("{place:>5}  {step}");
        }
    }
}

/// The clock of one process: the true time plus a clock error.
#[derive(Debug)]
pub struct SkewedClock {
    time: Arc<ManualClock>,
    error_micros: AtomicI64,
}

impl SkewedClock {
    /// A clock without an error.
    pub const fn new(time: Arc<ManualClock>) -> Self {
        Self { time, error_micros: AtomicI64::new(0) }
    }

    /// Sets the error in microseconds; positive when the clock is ahead of the true time.
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
