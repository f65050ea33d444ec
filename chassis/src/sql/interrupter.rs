//! Interrupts the running statement of a SQLite connection at the deadline of its call, or when its caller was cancelled.
//! SQLite calls a handler for that at intervals while it executes (`sqlite3_progress_handler`). A second hook records
//! rollbacks, which SQLite does on its own after some failures (`sqlite3_rollback_hook`).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use sqlx::{Error, SqliteConnection};

/// Virtual machine instructions between two calls of the handler: some microseconds of work, against which reading the clock
/// is cheap. A single instruction may take long, such as a search in a long text.
const INSTRUCTIONS_PER_CHECK: i32 = 128;
const NEVER: u64 = u64::MAX;
const IMMEDIATELY: u64 = 0;

/// The deadline of the statements of one connection; cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Interrupter(Arc<State>);

#[derive(Debug)]
struct State {
    created_at: Instant,
    /// Microseconds after `created_at`.
    deadline: AtomicU64,
    /// Whether a transaction was rolled back.
    rolled_back: AtomicBool,
}

impl Interrupter {
    /// Installs the handlers on a connection, without a deadline.
    pub(super) async fn attach(connection: &mut SqliteConnection) -> Result<Self, Error> {
        let interrupter = Self::new();
        let (on_progress, on_rollback) = (interrupter.clone(), interrupter.clone());
        let mut handle = connection.lock_handle().await?;
        handle.set_progress_handler(INSTRUCTIONS_PER_CHECK, move || on_progress.should_continue());
        handle.set_rollback_hook(move || on_rollback.0.rolled_back.store(true, Ordering::Release));
        drop(handle);
        Ok(interrupter)
    }

    fn new() -> Self {
        let (deadline, rolled_back) = (AtomicU64::new(NEVER), AtomicBool::new(false));
        Self(Arc::new(State { created_at: Instant::now(), deadline, rolled_back }))
    }

    /// A statement that still runs at the deadline is interrupted; without one, none is.
    pub(super) fn set_deadline(&self, deadline: Option<Instant>) {
        let micros = deadline.map_or(NEVER, |deadline| self.micros(deadline));
        self.0.deadline.store(micros, Ordering::Relaxed);
    }

    /// Interrupts the running statement.
    pub(super) fn interrupt(&self) {
        self.0.deadline.store(IMMEDIATELY, Ordering::Relaxed);
    }

    /// Whether a transaction was rolled back since the last [`clear_rollback`](Self::clear_rollback).
    pub(super) fn was_rolled_back(&self) -> bool {
        self.0.rolled_back.load(Ordering::Acquire)
    }

    pub(super) fn clear_rollback(&self) {
        self.0.rolled_back.store(false, Ordering::Release);
    }

    fn should_continue(&self) -> bool {
        match self.0.deadline.load(Ordering::Relaxed) {
            NEVER => true,
            deadline => self.micros(Instant::now()) < deadline,
        }
    }

    fn micros(&self, moment: Instant) -> u64 {
        u64::try_from(moment.saturating_duration_since(self.0.created_at).as_micros()).unwrap_or(NEVER)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn it_is_off_until_it_is_set() {
        let interrupter = Interrupter::new();
        assert!(interrupter.should_continue());
        interrupter.set_deadline(Some(Instant::now() + Duration::from_secs(3_600)));
        assert!(interrupter.should_continue());
        interrupter.set_deadline(Some(Instant::now()));
        assert!(!interrupter.should_continue());
        interrupter.set_deadline(None);
        assert!(interrupter.should_continue());
        interrupter.interrupt();
        assert!(!interrupter.should_continue());
    }
}
