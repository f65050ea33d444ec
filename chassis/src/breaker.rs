//! A circuit breaker.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::clock::{Clock, Timestamp};

/// When a breaker opens, and for how long.
#[derive(Debug, Clone, Copy)]
pub struct Threshold {
    /// Consecutive failures after which it opens.
    pub failures: u32,
    /// How long it rejects attempts then. Afterwards it lets one attempt through in each such pause, until one succeeds.
    pub pause: Duration,
}

/// A circuit breaker.
///
/// A caller that was let through may be cancelled before it reports a result. So half-open is not a state of its own: each
/// attempt that is let through starts a new pause.
#[derive(Debug)]
pub struct Breaker {
    threshold: Threshold,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    failures: u32,
    /// The start and the length of the last pause.
    paused_at: Timestamp,
    pause: Duration,
}

impl State {
    /// When the clock was set back since, the rest of the pause is unknown, and an attempt is let through.
    fn is_paused(&self, now: Timestamp) -> bool {
        (self.paused_at..self.paused_at.plus(self.pause)).contains(&now)
    }

    const fn pause(&mut self, now: Timestamp, pause: Duration) {
        self.paused_at = now;
        self.pause = pause;
    }
}

impl Breaker {
    /// A closed breaker.
    pub fn new(threshold: Threshold, clock: Arc<dyn Clock>) -> Self {
        let state = State { failures: 0, paused_at: Timestamp::from_micros(0), pause: Duration::ZERO };
        Self { threshold, clock, state: Mutex::new(state) }
    }

    /// Whether an attempt may be made now.
    pub fn allows(&self) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.failures < self.threshold.failures {
            return true;
        }
        let now = self.clock.now();
        if state.is_paused(now) {
            return false;
        }
        state.pause(now, self.threshold.pause);
        true
    }

    /// Records a success; returns whether it closed an open breaker.
    pub fn succeeded(&self) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut state.failures) >= self.threshold.failures
    }

    /// Records a failure, with the retry-after of the other side if it has sent one. Returns whether it opened a closed breaker.
    pub fn failed(&self, at_least: Option<Duration>) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let before = state.failures;
        state.failures = before.saturating_add(1);
        if state.failures < self.threshold.failures {
            return false;
        }
        let pause = at_least.unwrap_or_default().max(self.threshold.pause);
        state.pause(self.clock.now(), pause);
        before < self.threshold.failures
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;
    use crate::testing::simulation::SkewedClock;

    const PAUSE: Duration = Duration::from_secs(10);

    #[test]
    fn opens_after_failures_in_a_row_and_lets_one_through_after_the_pause() {
        let clock = Arc::new(ManualClock::new(Timestamp::from_seconds(1_000)));
        let shared: Arc<dyn Clock> = Arc::clone(&clock) as _;
        let breaker = Breaker::new(Threshold { failures: 2, pause: PAUSE }, shared);
        assert!(!breaker.failed(None));
        assert!(!breaker.succeeded(), "it was closed all the time");
        assert!(!breaker.failed(None));
        assert!(breaker.allows(), "two failures, but not in a row");
        assert!(breaker.failed(None), "it opens");
        assert!(!breaker.allows());

        clock.advance(PAUSE);
        assert!(breaker.allows());
        assert!(!breaker.allows(), "one is on its way");
        // It was never heard of again.
        clock.advance(PAUSE);
        assert!(breaker.allows());
        assert!(!breaker.failed(None), "it was open already");
        assert!(!breaker.allows());
        clock.advance(PAUSE);
        assert!(breaker.allows());
        assert!(breaker.succeeded(), "it closes");
        assert!(breaker.allows() && breaker.allows());
    }

    #[test]
    fn stays_open_as_long_as_the_other_side_asked_for() {
        let clock = Arc::new(ManualClock::new(Timestamp::from_seconds(1_000)));
        let shared: Arc<dyn Clock> = Arc::clone(&clock) as _;
        let breaker = Breaker::new(Threshold { failures: 1, pause: PAUSE }, shared);
        breaker.failed(Some(PAUSE * 3));
        clock.advance(PAUSE * 2);
        assert!(!breaker.allows());
        clock.advance(PAUSE);
        assert!(breaker.allows());
    }

    #[test]
    fn a_clock_that_goes_back_makes_no_pause_longer() {
        let time = Arc::new(ManualClock::new(Timestamp::from_seconds(10_000)));
        let clock = Arc::new(SkewedClock::new(time));
        let shared: Arc<dyn Clock> = Arc::clone(&clock) as _;
        let breaker = Breaker::new(Threshold { failures: 1, pause: PAUSE }, shared);
        breaker.failed(None);
        assert!(!breaker.allows());
        clock.set_error(-3_600_000_000);
        assert!(breaker.allows(), "an hour is no pause");
        assert!(!breaker.allows(), "and the attempt is one");
    }
}
