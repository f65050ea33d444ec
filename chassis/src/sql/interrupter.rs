//! Ends the statement that runs on a connection to SQLite: at the deadline of its call, or when nobody waits for it any
//! more. SQLite asks for that now and then while it works (`sqlite3_progress_handler`). And it hears when a transaction is
//! rolled back, which SQLite does by itself after some failures (`sqlite3_rollback_hook`).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use sqlx::{Error, SqliteConnection};

/// SQLite asks after so many steps of its machine, some microseconds, against which a look at the clock is little. One step
/// may take long, if it looks for a text in a long one.
const STEPS_BETWEEN_LOOKS: i32 = 128;
const NEVER: u64 = u64::MAX;
const AT_ONCE: u64 = 0;

/// When the statements of one connection end; cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Interrupter(Arc<Limit>);

#[derive(Debug)]
struct Limit {
    since: Instant,
    /// Microseconds from then on.
    until: AtomicU64,
    /// Whether a transaction was rolled back.
    rolled_back: AtomicBool,
}

impl Interrupter {
    /// Sets the handlers of a connection, with no deadline.
    pub(super) async fn attach(connection: &mut SqliteConnection) -> Result<Self, Error> {
        let interrupter = Self::new();
        let (asked, told) = (interrupter.clone(), interrupter.clone());
        let mut handle = connection.lock_handle().await?;
        handle.set_progress_handler(STEPS_BETWEEN_LOOKS, move || asked.may_go_on());
        handle.set_rollback_hook(move || told.0.rolled_back.store(true, Ordering::Release));
        drop(handle);
        Ok(interrupter)
    }

    fn new() -> Self {
        let (until, rolled_back) = (AtomicU64::new(NEVER), AtomicBool::new(false));
        Self(Arc::new(Limit { since: Instant::now(), until, rolled_back }))
    }

    /// What still runs at a moment is ended; without one, nothing is.
    pub(super) fn set_deadline(&self, deadline: Option<Instant>) {
        let until = deadline.map_or(NEVER, |deadline| self.micros(deadline));
        self.0.until.store(until, Ordering::Relaxed);
    }

    /// Ends what runs.
    pub(super) fn interrupt(&self) {
        self.0.until.store(AT_ONCE, Ordering::Relaxed);
    }

    /// Whether a transaction was rolled back since that was last forgotten.
    pub(super) fn was_rolled_back(&self) -> bool {
        self.0.rolled_back.load(Ordering::Acquire)
    }

    pub(super) fn forget_rollback(&self) {
        self.0.rolled_back.store(false, Ordering::Release);
    }

    fn may_go_on(&self) -> bool {
        match self.0.until.load(Ordering::Relaxed) {
            NEVER => true,
            until => self.micros(Instant::now()) < until,
        }
    }

    fn micros(&self, moment: Instant) -> u64 {
        u64::try_from(moment.saturating_duration_since(self.0.since).as_micros()).unwrap_or(NEVER)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn it_is_off_until_it_is_set() {
        let interrupter = Interrupter::new();
        assert!(interrupter.may_go_on());
        interrupter.set_deadline(Some(Instant::now() + Duration::from_secs(3_600)));
        assert!(interrupter.may_go_on());
        interrupter.set_deadline(Some(Instant::now()));
        assert!(!interrupter.may_go_on());
        interrupter.set_deadline(None);
        assert!(interrupter.may_go_on());
        interrupter.interrupt();
        assert!(!interrupter.may_go_on());
    }
}
