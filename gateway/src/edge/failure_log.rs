//! Rate limit for the log of failed requests. When thousands of requests per second fail, a log line for each would
//! cost more than the refusals themselves and fill the disk; the metrics count them all.

use std::sync::{Mutex, PoisonError};

use cairn_chassis::clock::Timestamp;

/// Failures logged per second.
const MAX_A_SECOND: u32 = 20;

/// How many failures were logged in the current second, and how many were suppressed since the last logged one.
#[derive(Debug, Default)]
pub(super) struct FailureLog {
    window: Mutex<Window>,
}

#[derive(Debug, Default)]
struct Window {
    second: i64,
    logged: u32,
    left_out: u64,
}

impl FailureLog {
    /// Records a failure. `Some(suppressed)` if it should be logged, with the number of failures suppressed since
    /// the last logged one.
    pub(super) fn admit(&self, now: Timestamp) -> Option<u64> {
        let second = now.as_seconds();
        let mut window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        if second != window.second {
            window.second = second;
            window.logged = 0;
        }
        if window.logged == MAX_A_SECOND {
            window.left_out += 1;
            return None;
        }
        window.logged += 1;
        Some(std::mem::take(&mut window.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_logged_in_part_and_what_was_left_out_is_told() {
        let failures = FailureLog::default();
        let at = |second: i64| failures.admit(Timestamp::from_seconds(second));
        let first: Vec<Option<u64>> = (0..25).map(|_| at(0)).collect();
        assert_eq!(first.iter().filter(|logged| logged.is_some()).count(), 20);
        assert_eq!(first.last(), Some(&None));
        assert_eq!(at(1), Some(5), "the next second tells what was left out");
        assert_eq!(at(1), Some(0));
    }

    #[test]
    fn a_clock_that_is_set_back_silences_nothing() {
        let failures = FailureLog::default();
        let at = |second: i64| failures.admit(Timestamp::from_seconds(second));
        let logged = (0..30).filter(|_| at(10).is_some()).count();
        assert_eq!(logged, 20);
        assert_eq!(at(9), Some(10));
    }
}
