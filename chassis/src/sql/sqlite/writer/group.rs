//! The callers that share one transaction and its commit.

use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::super::failure::Failure;
use super::savepoint::Savepoint;

/// At this size, each member's share of the cost of the commit is negligible.
const MAX_TOGETHER: usize = 64;

/// The result of a commit.
pub(super) type Outcome = Result<(), Failure>;

/// Runs right after a successful commit.
pub(in crate::sql) type CommitHook = Box<dyn FnOnce() + Send>;

/// The callers whose writes are in one transaction that is not committed yet.
pub(super) struct Group {
    started_at: Instant,
    /// In the order of their writes.
    pub(super) members: Vec<Member>,
    /// The savepoint of the next caller.
    pub(super) savepoint: Savepoint,
    /// Whether the savepoint of the previous caller is still set.
    pub(super) previous_is_set: bool,
}

/// A caller that has written and waits for the commit.
pub(super) struct Member {
    pub(super) reply: oneshot::Sender<Outcome>,
    pub(super) hook: CommitHook,
}

impl Group {
    pub(super) fn new() -> Self {
        let (savepoint, previous_is_set) = (Savepoint::Odd, false);
        Self { started_at: Instant::now(), members: Vec::new(), savepoint, previous_is_set }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Whether it must commit before it takes another member.
    pub(super) fn is_full(&self, max_age: Duration) -> bool {
        self.members.len() >= MAX_TOGETHER || self.started_at.elapsed() >= max_age
    }

    /// The caller that wrote after the savepoint has finished, and its savepoint stays set until the next one is set.
    pub(super) const fn advance_savepoint(&mut self) {
        self.savepoint = self.savepoint.other();
        self.previous_is_set = true;
    }

    /// Runs the hooks of a successful commit and reports the outcome to every member. A member that no longer waits gets
    /// no reply, but its hook runs.
    pub(super) fn finish(&mut self, outcome: &Outcome) {
        for Member { reply, hook } in self.members.drain(..) {
            if outcome.is_ok() {
                hook();
            }
            let _cancelled = reply.send(outcome.clone());
        }
    }
}
