//! Work is charged where it is done, and the clock is looked at after so much of it: so a script ends with its time,
//! whatever it does, and the looks cost nothing that could be measured.

use std::cell::Cell;
use std::time::Duration;

use crate::context::{Halt, Stop};
use crate::session::Watch;

/// So much work is done between two looks at the clock. A step is about what it takes to look at a byte, so this is well
/// below a millisecond.
const STEPS_BETWEEN_LOOKS: u64 = 1 << 18;

/// Counts the work of one run, and ends it in time.
pub(crate) struct Meter<'a> {
    watch: &'a dyn Watch,
    wall_clock: Duration,
    /// Steps until the next look.
    left: Cell<u64>,
}

impl<'a> Meter<'a> {
    pub(crate) fn new(watch: &'a dyn Watch, wall_clock: Duration) -> Self {
        Self { watch, wall_clock, left: Cell::new(STEPS_BETWEEN_LOOKS) }
    }

    /// Counts work that is done, or about to be: an upper bound of it will do.
    pub(crate) fn charge(&self, steps: u64) -> Result<(), Halt> {
        match self.left.get().checked_sub(steps) {
            Some(left) => {
                self.left.set(left);
                Ok(())
            }
            None => self.look(),
        }
    }

    /// Counts the work of looking at so many bytes.
    pub(crate) fn charge_bytes(&self, bytes: usize) -> Result<(), Halt> {
        self.charge(bytes as u64)
    }

    /// Looks at the clock and at whether the caller is still there.
    pub(crate) fn look(&self) -> Result<(), Halt> {
        self.left.set(STEPS_BETWEEN_LOOKS);
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
            meter.charge(STEPS_BETWEEN_LOOKS / 100).unwrap();
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
        assert_eq!(meter.charge(STEPS_BETWEEN_LOOKS), Err(Halt::Stop(Stop::Time)));
        let meter = Meter::new(&alone, Duration::MAX);
        assert_eq!(meter.charge(2 * STEPS_BETWEEN_LOOKS), Err(Halt::Stop(Stop::Cancelled)));
    }
}
