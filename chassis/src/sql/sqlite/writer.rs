//! The one connection that writes, and commits that callers share.
//!
//! Most of what a small write takes is the wait until the disk has it. Callers that come while another one writes stand in
//! line; whoever ends with somebody behind passes the connection on with its transaction still open, and the last one
//! commits for all. Each is told after that commit and not before, so what was acknowledged is on the disk, as it is when
//! each commits alone. What a caller does in the transaction of others stands behind a savepoint: taken back, it takes
//! nothing of theirs along (docs/adr/0090). To begin, or to set a savepoint, is no message of its own: it goes with the
//! caller's first statement.
//!
//! ```text
//! first    BEGIN IMMEDIATE … (passes on)
//! second                     SAVEPOINT … (passes on)
//! third                                    RELEASE; SAVEPOINT … COMMIT
//! told                                                                 first, second, third
//! ```

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{fmt, mem};

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt as _, StreamExt as _, TryFutureExt as _, TryStreamExt as _, stream};
use sqlx::sqlite::{SqliteRow, SqliteStatement, SqliteTypeInfo};
use sqlx::{Error, Execute, Executor, SqlStr, Sqlite};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::Instant;

use self::savepoint::Savepoint;
use super::failure::Failure;
use super::{Ahead, Pool, PooledConnection, Step, WAIT_LIMIT, is_not_open};
use crate::sql::watch::{Usage, record_wait};

mod savepoint;

/// The first of those who share a commit waits for all that come after it: for at most so long, and one write more.
const LONGEST: Duration = Duration::from_millis(5);
/// Of so many, each one's share of the commit is nothing to speak of.
const MOST_TOGETHER: usize = 64;

const BEGIN: Ahead = Ahead { text: "BEGIN IMMEDIATE", statements: 1 };

/// What became of a commit.
type Outcome = Result<(), Failure>;

/// What is done right after a commit, and only then.
pub(in crate::sql) type Then = Box<dyn FnOnce() + Send>;

/// Lends the writing connection to one caller after the other, in the order in which they ask; cheap to clone. A statement
/// runs on it by itself: `sqlx::query(…).execute(&writer)`.
#[derive(Clone)]
pub struct Writer(Arc<Shared>);

struct Shared {
    /// Of one connection.
    pool: Pool,
    /// [`LONGEST`], unless a test has all the time.
    longest: Duration,
    line: Mutex<Line>,
}

#[derive(Default)]
struct Line {
    /// Whether somebody's turn it is.
    is_taken: bool,
    waiting: VecDeque<oneshot::Sender<Turn>>,
}

impl fmt::Debug for Writer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Writer").field(&self.0.pool).finish()
    }
}

impl Writer {
    /// On a pool of one connection.
    pub(in crate::sql) fn new(pool: Pool) -> Self {
        Self::of_groups(pool, LONGEST)
    }

    fn of_groups(pool: Pool, longest: Duration) -> Self {
        Self(Arc::new(Shared { pool, longest, line: Mutex::default() }))
    }

    /// Makes the connection, if there is none.
    pub(in crate::sql) async fn connect(&self) -> Result<(), Error> {
        let _turn = self.turn().await?;
        self.0.pool.acquire().await.map(PooledConnection::done)
    }

    /// Begins a transaction that may write, with its first statement. It may stand in one with those of other callers.
    pub(in crate::sql) async fn begin(&self) -> Result<Turn, Error> {
        let mut turn = self.turn().await?;
        turn.open().await?;
        Ok(turn)
    }

    /// How many connections are lent, open and possible.
    pub(in crate::sql) fn usage(&self) -> Usage {
        self.0.pool.usage()
    }

    /// How many messages were sent to the connection's thread.
    #[cfg(any(test, feature = "testing"))]
    pub(in crate::sql) fn sent(&self) -> u64 {
        self.0.pool.sent()
    }

    /// Closes the connection once nobody has it; nobody gets it any more.
    pub(in crate::sql) async fn close(&self) {
        self.0.pool.close().await;
    }

    async fn turn(&self) -> Result<Turn, Error> {
        let waiting = {
            let mut line = self.0.line();
            if !line.is_taken {
                line.is_taken = true;
                return Ok(Turn::new(Arc::clone(&self.0)));
            }
            let (sender, receiver) = oneshot::channel();
            line.waiting.push_back(sender);
            receiver
        };
        let began = Instant::now();
        let turn = tokio::time::timeout(WAIT_LIMIT, waiting).await;
        record_wait(self.0.pool.service(), began.elapsed());
        turn.map_err(|_elapsed| Error::PoolTimedOut)?.map_err(|_| Error::PoolClosed)
    }

    /// A turn for one statement, which needs no transaction unless it shares one.
    async fn turn_of_one(&self) -> Result<Turn, Error> {
        let mut turn = self.turn().await?;
        if turn.group.is_empty() && self.0.line().waiting.is_empty() {
            turn.pooled = self.0.pool.acquire().await?;
            turn.stage = Stage::Alone;
        } else {
            turn.open().await?;
        }
        Ok(turn)
    }
}

impl Shared {
    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whoever has waited longest and still does.
    fn next(&self) -> Option<oneshot::Sender<Turn>> {
        let mut line = self.line();
        while let Some(next) = line.waiting.pop_front() {
            if !next.is_closed() {
                return Some(next);
            }
        }
        None
    }

    /// Ends a turn that has left nothing open.
    fn end_turn(self: Arc<Self>) {
        loop {
            let next = {
                let mut line = self.line();
                let next = line.waiting.pop_front();
                line.is_taken = next.is_some();
                next
            };
            let Some(next) = next else { return };
            match next.send(Turn::new(Arc::clone(&self))) {
                Ok(()) => return,
                // Gone meanwhile: the turn is still ours.
                Err(mut turn) => turn.stage = Stage::Over,
            }
        }
    }
}

/// How far a caller has come in its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// It has done nothing so far, or nothing that it could take back.
    Idle,
    /// It has a transaction or a savepoint, unless it has sent no statement so far.
    Open,
    /// It runs a statement outside of any transaction.
    Alone,
    /// It commits for all.
    Committing,
    /// Somebody else puts in order what it left.
    Cleaning,
    /// There is nothing to be done any more.
    Over,
}

/// Those whose writes stand in one transaction.
struct Group {
    began: Instant,
    /// In the order in which they wrote.
    members: Vec<Member>,
    /// That of whoever writes behind them.
    savepoint: Savepoint,
    /// Whether that of the one before is there.
    is_behind_other: bool,
}

struct Member {
    tell: oneshot::Sender<Outcome>,
    then: Then,
}

impl Group {
    fn new() -> Self {
        let (savepoint, is_behind_other) = (Savepoint::Odd, false);
        Self { began: Instant::now(), members: Vec::new(), savepoint, is_behind_other }
    }

    const fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    fn is_complete(&self, longest: Duration) -> bool {
        self.members.len() >= MOST_TOGETHER || self.began.elapsed() >= longest
    }

    /// Whoever wrote behind the savepoint has ended, and left it there.
    const fn leave_savepoint(&mut self) {
        self.savepoint = self.savepoint.other();
        self.is_behind_other = true;
    }

    /// Whoever went away need not know, but what was to be done after the commit is done.
    fn tell(&mut self, outcome: &Outcome) {
        for Member { tell, then } in self.members.drain(..) {
            if outcome.is_ok() {
                then();
            }
            let _gone = tell.send(outcome.clone());
        }
    }
}

/// The turn of one caller, and a transaction of its own or its part in one of several. Dropped without
/// [`commit`](Self::commit), its part is rolled back.
pub struct Turn {
    writer: Arc<Shared>,
    /// Empty while nothing is open.
    pooled: PooledConnection,
    group: Group,
    stage: Stage,
}

impl fmt::Debug for Turn {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let members = self.group.members.len();
        formatter.debug_struct("Turn").field("stage", &self.stage).field("members", &members).finish()
    }
}

impl Turn {
    fn new(writer: Arc<Shared>) -> Self {
        Self { writer, pooled: PooledConnection::none(), group: Group::new(), stage: Stage::Idle }
    }

    /// Where its statements run.
    pub(in crate::sql) const fn connection(&mut self) -> &mut PooledConnection {
        &mut self.pooled
    }

    async fn open(&mut self) -> Result<(), Error> {
        let first = if !self.group.is_empty() {
            // SQLite rolls everything back when it ends a statement that writes, and here others would lose what is theirs.
            self.pooled.set_deadline(None);
            self.group.savepoint.set(self.group.is_behind_other)
        } else {
            self.pooled = self.writer.pool.acquire().await?;
            self.pooled.forget_rollback();
            self.group = Group::new();
            BEGIN
        };
        self.pooled.send_ahead(first);
        self.stage = Stage::Open;
        Ok(())
    }

    /// Answers when what it wrote is on the disk and `then` was done, which happens in the order of the writes and whether
    /// or not the caller still waits.
    pub(in crate::sql) async fn commit(mut self, then: Then) -> Result<(), Error> {
        if self.pooled.was_rolled_back() {
            // By a statement that failed, which took along what others had written.
            return Err(self.give_up(Failure::rolled_back()).into());
        }
        let (is_alone, did_nothing) = (self.group.is_empty(), self.pooled.take_ahead());
        if is_alone && did_nothing {
            self.end_alone();
            then();
            return Ok(());
        }
        if !is_alone && !did_nothing {
            self.group.leave_savepoint();
        }
        self.join(then).await
    }

    /// Ends the turn, and answers when the group is committed.
    async fn join(mut self, then: Then) -> Result<(), Error> {
        let (tell, told) = oneshot::channel();
        self.group.members.push(Member { tell, then });
        self.stage = Stage::Idle;
        if let Some(turn) = self.pass_on() {
            turn.write_out().await;
        }
        told.await.map_err(|_| Error::WorkerCrashed)?.map_err(Error::from)
    }

    /// Takes back what this caller wrote. Behind others, it answers when what they wrote is on the disk: the caller has seen
    /// it, goes on by it, and would not find it yet.
    pub(in crate::sql) async fn rollback(mut self) -> Result<(), Error> {
        if self.pooled.was_rolled_back() {
            self.give_up(Failure::rolled_back());
            return Ok(());
        }
        self.pooled.set_deadline(None);
        self.take_back().await?;
        if !self.group.is_empty() {
            return self.join(Box::new(|| {})).await;
        }
        self.end_alone();
        Ok(())
    }

    /// Takes back what was written since the turn began, if anything was.
    async fn take_back(&mut self) -> Result<(), Error> {
        // A transaction that could not begin may have met one that was left open: it ends here.
        if self.pooled.take_ahead() && !self.pooled.was_refused {
            return Ok(());
        }
        if self.group.is_empty() {
            return self.undo("ROLLBACK").await.map(drop);
        }
        if self.undo(self.group.savepoint.take_back()).await? {
            self.group.leave_savepoint();
            return Ok(());
        }
        // The savepoint was never set, so nothing was written behind it. Whether the one before was released, nobody knows.
        if self.group.is_behind_other {
            self.undo(self.group.savepoint.other().release()).await?;
            self.group.is_behind_other = false;
        }
        Ok(())
    }

    /// Whether that was open which the statement ends.
    async fn undo(&mut self, statement: &'static str) -> Result<bool, Error> {
        match sqlx::query(statement).execute(&mut self.pooled).await {
            Ok(_) => Ok(true),
            Err(error) if is_not_open(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Gives the connection back, on which nothing is open.
    fn end_alone(&mut self) {
        self.take_connection().done();
        self.stage = Stage::Idle;
    }

    /// Ends the turn for one statement with what became of that.
    async fn end<T>(mut self, ended: Result<T, Error>) -> Result<T, Error> {
        match (self.stage, ended) {
            (Stage::Alone, Err(Error::WorkerCrashed)) => Err(Error::WorkerCrashed),
            (Stage::Alone, ended) => {
                self.end_alone();
                ended
            }
            (_, Ok(done)) => self.commit(Box::new(|| {})).await.map(|()| done),
            (_, Err(error)) => {
                self.rollback().await?;
                Err(error)
            }
        }
    }

    /// Gives the turn to the next in line with what is open, unless nobody is there or the group is complete.
    fn pass_on(mut self) -> Option<Self> {
        self.stage = Stage::Idle;
        if self.group.is_complete(self.writer.longest) {
            return Some(self);
        }
        while let Some(next) = self.writer.next() {
            // What is written by others must not end with the call of one.
            self.pooled.set_deadline(None);
            match next.send(self) {
                Ok(()) => return None,
                Err(turn) => self = turn,
            }
        }
        Some(self)
    }

    /// Commits for all that wrote, and tells them.
    async fn write_out(mut self) {
        self.stage = Stage::Committing;
        // It takes no time, and whoever hears that it was ended should be able to believe that.
        self.pooled.set_deadline(None);
        let outcome = sqlx::query("COMMIT").execute(&mut self.pooled).await;
        self.settle(outcome.map(drop)).await;
    }

    async fn settle(&mut self, outcome: Result<(), Error>) {
        match outcome {
            Ok(()) => {
                self.group.tell(&Ok(()));
                self.take_connection().done();
            }
            Err(error) => {
                let failure = Failure::of(&error);
                // Told when nothing of it is open any more.
                if !is_not_open(&error) && self.undo("ROLLBACK").await.is_err() {
                    self.take_connection().discard();
                }
                self.give_up(failure);
            }
        }
        self.stage = Stage::Idle;
    }

    /// Tells all that wrote that nothing is left of it. No transaction is open any more.
    fn give_up(&mut self, failure: Failure) -> Failure {
        self.group.tell(&Err(failure.clone()));
        self.take_connection().done();
        self.stage = Stage::Idle;
        failure
    }

    fn take_connection(&mut self) -> PooledConnection {
        mem::replace(&mut self.pooled, PooledConnection::none())
    }

    /// Puts in order what somebody left who went away at that stage.
    async fn clean(mut self, left: Stage) {
        // It answers when what ran before has ended.
        if let Err(error) = self.pooled.ping().await {
            tracing::warn!(%error, "the connection that writes to SQLite is given up");
            self.take_connection().discard();
            self.group.tell(&Err(Failure::of(&error)));
            self.stage = Stage::Idle;
            return;
        }
        self.pooled.set_deadline(None);
        if self.pooled.was_rolled_back() {
            self.give_up(Failure::rolled_back());
            return;
        }
        if left == Stage::Committing {
            return self.commit_again().await;
        }
        let taken_back = match left {
            Stage::Open | Stage::Alone => self.take_back().await,
            Stage::Idle | Stage::Committing | Stage::Cleaning | Stage::Over => Ok(()),
        };
        match taken_back {
            Ok(()) if !self.group.is_empty() => {
                if let Some(turn) = self.pass_on() {
                    turn.write_out().await;
                }
            }
            taken_back => self.settle(taken_back).await,
        }
    }

    /// Whoever committed went away before it heard what became of that.
    async fn commit_again(mut self) {
        let outcome = match sqlx::query("COMMIT").execute(&mut self.pooled).await {
            Ok(_) => Ok(()),
            // It was not rolled back either, so it is on the disk.
            Err(error) if is_not_open(&error) && !self.pooled.was_rolled_back() => Ok(()),
            Err(error) => Err(error),
        };
        self.settle(outcome).await;
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let left = mem::replace(&mut self.stage, Stage::Over);
        if left == Stage::Over {
            return;
        }
        if left == Stage::Idle && self.group.is_empty() {
            return Arc::clone(&self.writer).end_turn();
        }
        if left == Stage::Cleaning || Handle::try_current().is_err() {
            // The process ends: a connection that is closed rolls back, and nobody is told anything.
            self.take_connection().discard();
            self.group.members.clear();
            return Arc::clone(&self.writer).end_turn();
        }
        if self.group.is_empty() {
            // Nobody waits for what may still run.
            self.pooled.interrupt();
        }
        let turn = Self {
            writer: Arc::clone(&self.writer),
            pooled: self.take_connection(),
            group: mem::replace(&mut self.group, Group::new()),
            stage: Stage::Cleaning,
        };
        tokio::spawn(turn.clean(left));
    }
}

impl<'c> Executor<'c> for &'c Writer {
    type Database = Sqlite;

    fn fetch_many<'e, 'q: 'e, E>(self, query: E) -> BoxStream<'e, Result<Step, Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Sqlite>,
    {
        let steps = async move {
            let mut turn = self.turn_of_one().await?;
            let steps: Result<Vec<Step>, Error> = turn.connection().fetch_many(query).try_collect().await;
            Ok(stream::iter(turn.end(steps).await?.into_iter().map(Ok)))
        };
        steps.try_flatten_stream().boxed()
    }

    fn fetch_optional<'e, 'q: 'e, E>(self, query: E) -> BoxFuture<'e, Result<Option<SqliteRow>, Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Sqlite>,
    {
        async move {
            let mut turn = self.turn_of_one().await?;
            let row = turn.connection().fetch_optional(query).await;
            turn.end(row).await
        }
        .boxed()
    }

    fn prepare_with<'e>(
        self,
        sql: SqlStr,
        parameters: &'e [SqliteTypeInfo],
    ) -> BoxFuture<'e, Result<SqliteStatement, Error>>
    where
        'c: 'e,
    {
        async move {
            let mut turn = self.turn_of_one().await?;
            let statement = turn.connection().prepare_with(sql, parameters).await;
            turn.end(statement).await
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests;
