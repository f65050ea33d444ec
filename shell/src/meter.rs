//! Work is charged where it is done, and the clock is checked after a fixed amount of it: so every script ends in time,
//! and the checks cost nothing measurable.

use std::cell::Cell;
use std::time::Duration;

use crate::context::{Halt, Stop};
use crate::session::Watch;

/// Steps between two checks of the clock. A step costs about as much as examining a byte, so this is well below a
/// millisecond.
const STEPS_BETWEEN_CHECKS: u64 = 1 << 18;

/// Counts the work of one run, and ends it in time.
pub(crate) struct Meter<'a> {
    watch: &'a dyn Watch,
    wall_clock: Duration,
    /// Steps until the next check.
    left: Cell<u64>,
}

impl<'a> Meter<'a> {
    pub(crate) fn new(watch: &'a dyn Watch, wall_clock: Duration) -> Self {
        Self { watch, wall_clock, left: Cell::new(STEPS_BETWEEN_CHECKS) }
    }

    /// Charges work that is done or about to be done; an upper bound is fine.
    pub(crate) fn charge(&self, steps: u64) -> Result<(), Halt> {
        match self.left.get().checked_sub(steps) {
            Some(left) => {
                self.left.set(left);
                Ok(())
            }
            None => self.look(),
        }
    }

    /// Charges the examination of bytes.
    pub(crate) fn charge_bytes(&self, bytes: usize) -> Result<(), Halt> {
        self.charge(bytes as u64)
    }

    /// Checks the clock and for cancellation.
    pub(crate) fn look(&self) -> Result<(), Halt> {
        self.left.set(STEPS_BETWEEN_CHECKS);
        if self.watch.cancelled() {
            return Err(Halt::Stop(Stop::Cancelled));
        }
        if self.watch.elapsed() > self.wall_clock {
            return Err(Halt::Stop(Stop::Time));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::StepClock;

    #[test]
    fn the_clock_is_looked_at_once_for_so_much_work() {
        let clock = StepClock::default();
        let meter = Meter::new(&clock, Duration::MAX);
        for _ in 0..1_000 {
            meter.charge(STEPS_BETWEEN_CHECKS / 100).unwrap();
        }
        assert_eq!(clock.looks(), 9);
        meter.charge(u64::MAX).unwrap();
        assert_eq!(clock.looks(), 10);
    }

    #[test]
    fn a_charge_ends_what_has_no_time_or_no_caller_left() {
        let (late, alone) = (StepClock::stepping(Duration::from_secs(1)), StepClock::leaving_after(0));
        let meter = Meter::new(&late, Duration::ZERO);
        assert_eq!(meter.charge(1), Ok(()));
        assert_eq!(meter.charge(STEPS_BETWEEN_CHECKS), Err(Halt::Stop(Stop::Time)));
        let meter = Meter::new(&alone, Duration::MAX);
        assert_eq!(meter.charge(2 * STEPS_BETWEEN_CHECKS), Err(Halt::Stop(Stop::Cancelled)));
    }
}
