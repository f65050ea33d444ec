//! A caller's exclusive use of the writing connection, and the transaction that it passes on.

use std::sync::Arc;
use std::{fmt, mem};

use sqlx::Error;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::super::failure::Failure;
use super::super::{PooledConnection, Prefix, is_not_open};
use super::Shared;
use super::group::{CommitHook, Group, Member};

const BEGIN: Prefix = Prefix { text: "BEGIN IMMEDIATE", statements: 1 };

/// What is in progress in a turn, and so what has to be cleaned up when it is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Nothing that could be rolled back.
    Idle,
    /// A transaction or a savepoint, set by the first statement.
    Open,
    /// One statement outside of a transaction.
    Single,
    /// The commit of the group.
    Committing,
    /// A spawned task cleans up after a dropped turn.
    CleaningUp,
    /// The turn has ended.
    Done,
}

/// The turn of one caller, with a transaction of its own or its part in the transaction of a group. Dropped without
/// [`commit`](Self::commit), its part is rolled back.
pub struct Turn {
    writer: Arc<Shared>,
    /// Empty while no transaction is open.
    pooled: PooledConnection,
    pub(super) group: Group,
    stage: Stage,
}

impl fmt::Debug for Turn {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let members = self.group.members.len();
        formatter.debug_struct("Turn").field("stage", &self.stage).field("members", &members).finish()
    }
}

impl Turn {
    pub(super) fn new(writer: Arc<Shared>) -> Self {
        Self { writer, pooled: PooledConnection::none(), group: Group::new(), stage: Stage::Idle }
    }

    /// The connection on which its statements run.
    pub(in crate::sql) const fn connection(&mut self) -> &mut PooledConnection {
        &mut self.pooled
    }

    /// Opens a transaction, or a savepoint in that of the group.
    pub(super) async fn open(&mut self) -> Result<(), Error> {
        let prefix = if !self.group.is_empty() {
            // SQLite rolls back the whole transaction when it interrupts a statement that writes: other members would lose
            // their writes.
            self.pooled.set_deadline(None);
            self.group.savepoint.set(self.group.previous_is_set)
        } else {
            self.pooled = self.writer.pool.acquire().await?;
            self.pooled.clear_rollback();
            self.group = Group::new();
            BEGIN
        };
        self.pooled.set_prefix(prefix);
        self.stage = Stage::Open;
        Ok(())
    }

    /// Prepares for one statement, which needs a transaction only to share it.
    pub(super) async fn open_single(&mut self) -> Result<(), Error> {
        if !self.group.is_empty() || self.writer.has_waiters() {
            return self.open().await;
        }
        self.pooled = self.writer.pool.acquire().await?;
        self.stage = Stage::Single;
        Ok(())
    }

    /// Ends a turn that nobody received, without passing it on again.
    pub(super) fn defuse(mut self) {
        self.stage = Stage::Done;
    }

    /// Returns when its writes are on the disk and `hook` has run. Hooks run in the order of the writes, also for callers
    /// that no longer wait.
    pub(in crate::sql) async fn commit(mut self, hook: CommitHook) -> Result<(), Error> {
        if self.pooled.was_rolled_back() {
            // By a failed statement, together with the writes of the other members.
            return Err(self.fail_group(Failure::rolled_back()).into());
        }
        let (is_alone, is_unused) = (self.group.is_empty(), self.pooled.take_prefix());
        if is_alone && is_unused {
            self.release_connection();
            hook();
            return Ok(());
        }
        if !is_alone && !is_unused {
            self.group.advance_savepoint();
        }
        self.join_group(hook).await
    }

    /// Ends the turn, and returns when the group is committed.
    async fn join_group(mut self, hook: CommitHook) -> Result<(), Error> {
        let (reply, outcome) = oneshot::channel();
        self.group.members.push(Member { reply, hook });
        self.stage = Stage::Idle;
        if let Some(turn) = self.pass_on() {
            turn.commit_group().await;
        }
        outcome.await.map_err(|_| Error::WorkerCrashed)?.map_err(Error::from)
    }

    /// Rolls back the writes of this caller. In a group, it returns when the writes of the members before it are on the disk:
    /// the caller has read them and acts on them, but a read outside of this transaction would not find them yet.
    pub(in crate::sql) async fn rollback(mut self) -> Result<(), Error> {
        if self.pooled.was_rolled_back() {
            self.fail_group(Failure::rolled_back());
            return Ok(());
        }
        self.pooled.set_deadline(None);
        self.rollback_own().await?;
        if !self.group.is_empty() {
            return self.join_group(Box::new(|| {})).await;
        }
        self.release_connection();
        Ok(())
    }

    /// Rolls back what was written since the turn began.
    async fn rollback_own(&mut self) -> Result<(), Error> {
        // A BEGIN that was refused may have met a transaction that was left open: that one is rolled back here.
        if self.pooled.take_prefix() && !self.pooled.prefix_failed {
            return Ok(());
        }
        if self.group.is_empty() {
            return self.execute_if_open("ROLLBACK").await.map(drop);
        }
        if self.execute_if_open(self.group.savepoint.rollback()).await? {
            self.group.advance_savepoint();
            return Ok(());
        }
        // The savepoint was never set, so nothing was written after it. The previous one may have been released already.
        if self.group.previous_is_set {
            self.execute_if_open(self.group.savepoint.other().release()).await?;
            self.group.previous_is_set = false;
        }
        Ok(())
    }

    /// Ends a transaction or a savepoint; whether it was open.
    async fn execute_if_open(&mut self, statement: &'static str) -> Result<bool, Error> {
        match sqlx::query(statement).execute(&mut self.pooled).await {
            Ok(_) => Ok(true),
            Err(error) if is_not_open(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns the connection to the pool. No transaction is open on it.
    fn release_connection(&mut self) {
        self.take_connection().done();
        self.stage = Stage::Idle;
    }

    /// Ends a turn of [`open_single`](Self::open_single) with the result of its statement.
    pub(super) async fn finish_single<T>(mut self, result: Result<T, Error>) -> Result<T, Error> {
        match (self.stage, result) {
            (Stage::Single, Err(Error::WorkerCrashed)) => Err(Error::WorkerCrashed),
            (Stage::Single, result) => {
                self.release_connection();
                result
            }
            (_, Ok(value)) => self.commit(Box::new(|| {})).await.map(|()| value),
            (_, Err(error)) => {
                self.rollback().await?;
                Err(error)
            }
        }
    }

    /// Passes the turn and its open transaction to the next in the queue. Returns the turn when nobody waits or the group is
    /// full.
    fn pass_on(mut self) -> Option<Self> {
        self.stage = Stage::Idle;
        if self.group.is_full(self.writer.max_group_age) {
            return Some(self);
        }
        while let Some(next) = self.writer.next_waiter() {
            // The deadline of one caller must not interrupt the statements of another.
            self.pooled.set_deadline(None);
            match next.send(self) {
                Ok(()) => return None,
                Err(turn) => self = turn,
            }
        }
        Some(self)
    }

    /// Commits for every member of the group, and reports the outcome to them.
    async fn commit_group(mut self) {
        self.stage = Stage::Committing;
        // COMMIT is short, and a caller that is told that it was interrupted must be able to rely on that.
        self.pooled.set_deadline(None);
        let committed = sqlx::query("COMMIT").execute(&mut self.pooled).await;
        self.finish_commit(committed.map(drop)).await;
    }

    async fn finish_commit(&mut self, committed: Result<(), Error>) {
        match committed {
            Ok(()) => {
                self.group.finish(&Ok(()));
                self.take_connection().done();
            }
            Err(error) => {
                let failure = Failure::of(&error);
                // Before the members hear of the failure, so that the transaction is closed by then.
                if !is_not_open(&error) && self.execute_if_open("ROLLBACK").await.is_err() {
                    self.take_connection().discard();
                }
                self.fail_group(failure);
            }
        }
        self.stage = Stage::Idle;
    }

    /// Reports to every member that its writes were rolled back. No transaction is open any more.
    fn fail_group(&mut self, failure: Failure) -> Failure {
        self.group.finish(&Err(failure.clone()));
        self.take_connection().done();
        self.stage = Stage::Idle;
        failure
    }

    fn take_connection(&mut self) -> PooledConnection {
        mem::replace(&mut self.pooled, PooledConnection::none())
    }

    /// Cleans up after a turn that was dropped at that stage.
    async fn clean_up(mut self, dropped_at: Stage) {
        // The ping returns when what ran before has ended.
        if let Err(error) = self.pooled.ping().await {
            tracing::warn!(%error, "the connection that writes to SQLite is given up");
            self.take_connection().discard();
            self.group.finish(&Err(Failure::of(&error)));
            self.stage = Stage::Idle;
            return;
        }
        self.pooled.set_deadline(None);
        if self.pooled.was_rolled_back() {
            self.fail_group(Failure::rolled_back());
            return;
        }
        if dropped_at == Stage::Committing {
            return self.commit_again().await;
        }
        let rolled_back = match dropped_at {
            Stage::Open | Stage::Single => self.rollback_own().await,
            Stage::Idle | Stage::Committing | Stage::CleaningUp | Stage::Done => Ok(()),
        };
        match rolled_back {
            Ok(()) if !self.group.is_empty() => {
                if let Some(turn) = self.pass_on() {
                    turn.commit_group().await;
                }
            }
            rolled_back => self.finish_commit(rolled_back).await,
        }
    }

    /// Repeats a commit whose caller was cancelled before it had the result.
    async fn commit_again(mut self) {
        let committed = match sqlx::query("COMMIT").execute(&mut self.pooled).await {
            Ok(_) => Ok(()),
            // No transaction is open and none was rolled back, so the first COMMIT succeeded.
            Err(error) if is_not_open(&error) && !self.pooled.was_rolled_back() => Ok(()),
            Err(error) => Err(error),
        };
        self.finish_commit(committed).await;
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let dropped_at = mem::replace(&mut self.stage, Stage::Done);
        if dropped_at == Stage::Done {
            return;
        }
        if dropped_at == Stage::Idle && self.group.is_empty() {
            return Arc::clone(&self.writer).end_turn();
        }
        if dropped_at == Stage::CleaningUp || Handle::try_current().is_err() {
            // The runtime is shutting down: closing the connection rolls back, and the members get no outcome.
            self.take_connection().discard();
            self.group.members.clear();
            return Arc::clone(&self.writer).end_turn();
        }
        if self.group.is_empty() {
            // Nobody waits for a statement that still runs.
            self.pooled.interrupt();
        }
        let turn = Self {
            writer: Arc::clone(&self.writer),
            pooled: self.take_connection(),
            group: mem::replace(&mut self.group, Group::new()),
            stage: Stage::CleaningUp,
        };
        tokio::spawn(turn.clean_up(dropped_at));
    }
}
