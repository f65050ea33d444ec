//! Connections to one SQLite file, lent one at a time.
//!
//! sqlx's own pool asks each connection that comes back whether it still lives. For SQLite that is a message to the
//! connection's thread and one back, as much as a small read itself, and the next borrower waits for it. Here a
//! connection whose last statement ended well goes straight back, and only one whose end nobody saw is cleaned first
//! (docs/adr/0023).

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use std::{fmt, future};

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt as _, StreamExt as _, TryFutureExt as _, TryStreamExt as _, stream};
use sqlx::sqlite::{SqliteConnectOptions, SqliteQueryResult, SqliteRow, SqliteStatement, SqliteTypeInfo};
use sqlx::{Connection as _, Either, Error, Execute, Executor, SqlStr, Sqlite, SqliteConnection};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError};
use tokio::time::{Instant, MissedTickBehavior};

use self::ahead::Ahead;
pub(super) use self::writer::{Then, Turn, Writer};
use super::interrupter::Interrupter;
use super::watch::{Usage, record_wait};
use crate::deadline;

mod ahead;
mod failure;
mod writer;

/// A step of a statement that runs: a row, or how many rows were changed.
type Step = Either<SqliteQueryResult, SqliteRow>;

/// SQLITE_ERROR, with which a ROLLBACK is answered outside of a transaction, and a ROLLBACK TO where there is no such savepoint.
const NOT_OPEN: &str = "1";
/// How long a caller waits for a connection.
const WAIT_LIMIT: Duration = Duration::from_secs(10);
/// A connection that nobody wanted for this long is closed, which gives its memory back.
const IDLE_LIMIT: Duration = Duration::from_secs(60);

/// Lends at most so many connections at once, in the order in which they were asked for; cheap to clone. A statement
/// runs on any of them: `sqlx::query(…).execute(&pool)`.
#[derive(Clone)]
pub struct Pool(Arc<Inner>);

struct Inner {
    options: SqliteConnectOptions,
    /// Whose storage it is.
    service: &'static str,
    most: u32,
    permits: Arc<Semaphore>,
    /// The one used last is on top, so that a quiet time needs few of them.
    idle: Mutex<Vec<Idle>>,
    /// What connections' threads were sent: statements, with those that begin and end transactions.
    sent: AtomicU64,
}

struct Idle {
    connection: SqliteConnection,
    interrupter: Interrupter,
    since: Instant,
}

impl fmt::Debug for Pool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Pool").field("most", &self.0.most).finish_non_exhaustive()
    }
}

/// Whether a statement that ends a transaction or a savepoint was refused because there is none.
fn is_not_open(error: &Error) -> bool {
    matches!(error, Error::Database(refusal) if refusal.code().as_deref() == Some(NOT_OPEN))
}

/// Whether connections that nobody wants stay open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    /// They do: the one writer is always wanted soon, and closing it folds the log into the file.
    Always,
    /// They are closed after a while.
    WhileWanted,
}

impl Pool {
    /// A pool of at most that many connections. None is made before it is wanted.
    pub(super) fn new(options: SqliteConnectOptions, service: &'static str, most: u32, keep: Keep) -> Self {
        let count = usize::try_from(most).unwrap_or(usize::MAX).clamp(1, Semaphore::MAX_PERMITS);
        let permits = Arc::new(Semaphore::new(count));
        let (idle, sent) = (Mutex::default(), AtomicU64::new(0));
        let inner = Inner { options, service, most: most.max(1), permits, idle, sent };
        let pool = Self(Arc::new(inner));
        if keep == Keep::WhileWanted {
            tokio::spawn(close_unwanted(Arc::downgrade(&pool.0)));
        }
        pool
    }

    /// Waits for a connection.
    pub(super) async fn acquire(&self) -> Result<PooledConnection, Error> {
        let permit = match Arc::clone(&self.0.permits).try_acquire_owned() {
            Ok(permit) => permit,
            Err(TryAcquireError::Closed) => return Err(Error::PoolClosed),
            Err(TryAcquireError::NoPermits) => self.wait().await?,
        };
        let idle = self.0.idle().pop();
        let (connection, interrupter) = match idle {
            Some(Idle { connection, interrupter, .. }) => (connection, interrupter),
            None => {
                let mut connection = SqliteConnection::connect_with(&self.0.options).await?;
                let interrupter = Interrupter::attach(&mut connection).await?;
                (connection, interrupter)
            }
        };
        // What is read for a call ends with it.
        interrupter.set_deadline(deadline::current());
        let pool = Arc::clone(&self.0);
        let borrowed = Borrowed { connection, interrupter, pool, _permit: permit };
        Ok(PooledConnection { borrowed: Some(borrowed), ahead: None, was_refused: false })
    }

    async fn wait(&self) -> Result<OwnedSemaphorePermit, Error> {
        let began = Instant::now();
        let permit = tokio::time::timeout(WAIT_LIMIT, Arc::clone(&self.0.permits).acquire_owned()).await;
        record_wait(self.0.service, began.elapsed());
        permit.map_err(|_elapsed| Error::PoolTimedOut)?.map_err(|_| Error::PoolClosed)
    }

    /// How many connections are lent, open and possible.
    pub(super) fn usage(&self) -> Usage {
        let free = u32::try_from(self.0.permits.available_permits()).unwrap_or(u32::MAX);
        let idle = u32::try_from(self.0.idle().len()).unwrap_or(u32::MAX);
        Usage { used: self.0.most.saturating_sub(free), idle, most: self.0.most }
    }

    /// How many messages were sent to the threads of connections: one for each statement.
    #[cfg(any(test, feature = "testing"))]
    pub(super) fn sent(&self) -> u64 {
        self.0.sent.load(Ordering::Relaxed)
    }

    /// Begins a transaction with that statement, which has a connection to itself.
    pub(super) async fn begin(&self, statement: &'static str) -> Result<Transaction, Error> {
        let mut pooled = self.acquire().await?;
        sqlx::query(statement).execute(&mut pooled).await?;
        Ok(Transaction::Own(pooled))
    }

    fn service(&self) -> &'static str {
        self.0.service
    }

    /// Closes every connection once it is back; nobody gets one any more.
    pub(super) async fn close(&self) {
        let all = self.0.permits.acquire_many(self.0.most).await;
        self.0.permits.close();
        drop(all);
        let idle = std::mem::take(&mut *self.0.idle());
        for Idle { connection, .. } in idle {
            if let Err(error) = connection.close().await {
                tracing::debug!(%error, "a connection to SQLite did not close well");
            }
        }
    }
}

impl Inner {
    fn idle(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes out what has been idle since before a moment: those at the bottom.
    fn unwanted(&self, since: Instant) -> Vec<Idle> {
        let mut idle = self.idle();
        let count = idle.iter().take_while(|one| one.since <= since).count();
        idle.drain(..count).collect()
    }
}

/// Closes connections that nobody has wanted for a while, for as long as there is a pool.
async fn close_unwanted(pool: Weak<Inner>) {
    let mut looks = tokio::time::interval(IDLE_LIMIT / 2);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let now = looks.tick().await;
        let Some(pool) = pool.upgrade() else { return };
        let unwanted = now.checked_sub(IDLE_LIMIT).map(|since| pool.unwanted(since)).unwrap_or_default();
        for Idle { connection, .. } in unwanted {
            connection.close().await.ok();
        }
    }
}

/// A connection out of the pool, to run statements on. It goes back with [`PooledConnection::done`]; dropped without it, a transaction
/// that may be open on it is rolled back first.
pub struct PooledConnection {
    /// None once it went back.
    borrowed: Option<Borrowed>,
    /// What goes to the connection's thread with the next statement.
    ahead: Option<Ahead>,
    /// It has gone there already, and was refused.
    was_refused: bool,
}

struct Borrowed {
    connection: SqliteConnection,
    interrupter: Interrupter,
    pool: Arc<Inner>,
    /// Free again when the connection is back.
    _permit: OwnedSemaphorePermit,
}

crate::debug_fields!(PooledConnection);

impl PooledConnection {
    /// The place of a connection that is not there yet, or not any more.
    const fn none() -> Self {
        Self { borrowed: None, ahead: None, was_refused: false }
    }

    /// What runs on it is ended at that moment; without one, nothing is.
    fn set_deadline(&self, deadline: Option<std::time::Instant>) {
        if let Some(borrowed) = &self.borrowed {
            borrowed.interrupter.set_deadline(deadline);
        }
    }

    /// Ends what runs on it.
    fn interrupt(&self) {
        if let Some(borrowed) = &self.borrowed {
            borrowed.interrupter.interrupt();
        }
    }

    /// Whether a transaction was rolled back on it since [`forget_rollback`](Self::forget_rollback), by whatever.
    fn was_rolled_back(&self) -> bool {
        self.borrowed.as_ref().is_some_and(|borrowed| borrowed.interrupter.was_rolled_back())
    }

    fn forget_rollback(&self) {
        if let Some(borrowed) = &self.borrowed {
            borrowed.interrupter.forget_rollback();
        }
    }

    /// Answers when what was asked of it before has ended.
    async fn ping(&mut self) -> Result<(), Error> {
        self.connection()?.ping().await
    }

    /// Closes the connection, whatever is open on it.
    fn discard(mut self) {
        drop(self.borrowed.take());
    }

    /// Gives the connection back, on which nothing is open any more.
    pub(super) fn done(mut self) {
        if let Some(borrowed) = self.borrowed.take() {
            borrowed.give_back();
        }
    }

    /// Gives the connection back after a statement outside of a transaction, unless its thread is gone.
    fn settle<T>(self, ended: Result<T, Error>) -> Result<T, Error> {
        if !matches!(ended, Err(Error::WorkerCrashed)) {
            self.done();
        }
        ended
    }

    /// Has that go with the next statement.
    const fn send_ahead(&mut self, ahead: Ahead) {
        self.ahead = Some(ahead);
        self.was_refused = false;
    }

    /// Has nothing go with the next statement; whether something would have, since no statement was sent so far.
    const fn take_ahead(&mut self) -> bool {
        self.ahead.take().is_some()
    }

    /// Runs a statement with what goes ahead of it; answers the steps of the statement alone. Where the first of what goes ahead
    /// fails, it goes with the next statement.
    async fn run_behind<'q, E>(&mut self, ahead: Ahead, statement: E) -> Result<Vec<Step>, Error>
    where
        E: 'q + Execute<'q, Sqlite>,
    {
        let joined = ahead.join(statement)?;
        // Not before it is sent: whoever never waited for a statement has begun nothing.
        self.ahead = None;
        let mut steps = Vec::new();
        let ended = async {
            let mut running = self.connection()?.fetch_many(joined);
            while let Some(step) = running.try_next().await? {
                steps.push(step);
            }
            Ok::<(), Error>(())
        };
        let ended = ended.await;
        if let Err(error) = ended {
            if steps.is_empty() && !matches!(error, Error::WorkerCrashed) {
                self.ahead = Some(ahead);
                self.was_refused = true;
            }
            return Err(error);
        }
        // Each of them ends with one step.
        Ok(steps.split_off(ahead.statements.min(steps.len())))
    }

    fn connection(&mut self) -> Result<&mut SqliteConnection, Error> {
        let borrowed = self.borrowed.as_mut().ok_or(Error::PoolClosed)?;
        borrowed.pool.sent.fetch_add(1, Ordering::Relaxed);
        Ok(&mut borrowed.connection)
    }
}

impl Drop for PooledConnection {
    fn drop(&mut self) {
        let Some(borrowed) = self.borrowed.take() else { return };
        // Nobody waits for what may still run.
        borrowed.interrupter.interrupt();
        // Without a runtime the connection is closed, which rolls back as well.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(borrowed.clean());
        }
    }
}

impl Borrowed {
    fn give_back(self) {
        let Self { connection, interrupter, pool, .. } = self;
        pool.idle().push(Idle { connection, interrupter, since: Instant::now() });
    }

    /// Rolls back and gives back. What cannot be rolled back is closed.
    async fn clean(mut self) {
        // It answers when what ran before has ended.
        if let Err(error) = self.connection.ping().await {
            tracing::warn!(%error, "a connection to SQLite is given up");
            return;
        }
        self.interrupter.set_deadline(None);
        match sqlx::query("ROLLBACK").execute(&mut self.connection).await {
            Ok(_) => self.give_back(),
            Err(error) if is_not_open(&error) => self.give_back(),
            Err(error) => tracing::warn!(%error, "a connection to SQLite is given up"),
        }
    }
}

impl<'c> Executor<'c> for &'c mut PooledConnection {
    type Database = Sqlite;

    fn fetch_many<'e, 'q: 'e, E>(self, query: E) -> BoxStream<'e, Result<Step, Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Sqlite>,
    {
        if let Some(ahead) = self.ahead {
            let steps =
                async move { Ok(stream::iter(self.run_behind(ahead, query).await?.into_iter().map(Ok))) };
            return steps.try_flatten_stream().boxed();
        }
        match self.connection() {
            Ok(connection) => connection.fetch_many(query),
            Err(error) => stream::once(future::ready(Err(error))).boxed(),
        }
    }

    fn fetch_optional<'e, 'q: 'e, E>(self, query: E) -> BoxFuture<'e, Result<Option<SqliteRow>, Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Sqlite>,
    {
        if let Some(ahead) = self.ahead {
            return async move {
                let steps = self.run_behind(ahead, query).await?;
                Ok(steps.into_iter().find_map(Either::right))
            }
            .boxed();
        }
        match self.connection() {
            Ok(connection) => connection.fetch_optional(query),
            Err(error) => future::ready(Err(error)).boxed(),
        }
    }

    fn prepare_with<'e>(
        self,
        sql: SqlStr,
        parameters: &'e [SqliteTypeInfo],
    ) -> BoxFuture<'e, Result<SqliteStatement, Error>>
    where
        'c: 'e,
    {
        match self.connection() {
            Ok(connection) => connection.prepare_with(sql, parameters),
            Err(error) => future::ready(Err(error)).boxed(),
        }
    }
}

impl<'c> Executor<'c> for &'c Pool {
    type Database = Sqlite;

    /// All rows are read before the first is handed out, so that a slow reader holds no connection.
    fn fetch_many<'e, 'q: 'e, E>(self, query: E) -> BoxStream<'e, Result<Step, Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Sqlite>,
    {
        let steps = async move {
            let mut pooled = self.acquire().await?;
            let steps: Result<Vec<Step>, Error> = (&mut pooled).fetch_many(query).try_collect().await;
            Ok(stream::iter(pooled.settle(steps)?.into_iter().map(Ok)))
        };
        steps.try_flatten_stream().boxed()
    }

    fn fetch_optional<'e, 'q: 'e, E>(self, query: E) -> BoxFuture<'e, Result<Option<SqliteRow>, Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Sqlite>,
    {
        Box::pin(async move {
            let mut pooled = self.acquire().await?;
            let row = (&mut pooled).fetch_optional(query).await;
            pooled.settle(row)
        })
    }

    fn prepare_with<'e>(
        self,
        sql: SqlStr,
        parameters: &'e [SqliteTypeInfo],
    ) -> BoxFuture<'e, Result<SqliteStatement, Error>>
    where
        'c: 'e,
    {
        Box::pin(async move {
            let mut pooled = self.acquire().await?;
            let statement = (&mut pooled).prepare_with(sql, parameters).await;
            pooled.settle(statement)
        })
    }
}

/// A transaction; dropped without [`commit`](Self::commit) it rolls back.
#[derive(Debug)]
pub enum Transaction {
    /// On a connection of its own.
    Own(PooledConnection),
    /// On the one that writes.
    Writing(Turn),
}

impl Transaction {
    /// Where its statements run.
    pub(super) const fn connection(&mut self) -> &mut PooledConnection {
        match self {
            Self::Own(pooled) => pooled,
            Self::Writing(turn) => turn.connection(),
        }
    }

    pub(super) async fn commit(self, then: Then) -> Result<(), Error> {
        match self {
            Self::Own(pooled) => {
                end(pooled, "COMMIT").await?;
                then();
                Ok(())
            }
            Self::Writing(turn) => turn.commit(then).await,
        }
    }

    pub(super) async fn rollback(self) -> Result<(), Error> {
        match self {
            Self::Own(pooled) => end(pooled, "ROLLBACK").await,
            Self::Writing(turn) => turn.rollback().await,
        }
    }
}

async fn end(mut pooled: PooledConnection, statement: &'static str) -> Result<(), Error> {
    // It takes no time, and whoever hears that it was ended should be able to believe that.
    pooled.set_deadline(None);
    sqlx::query(statement).execute(&mut pooled).await?;
    pooled.done();
    Ok(())
}

#[cfg(test)]
mod tests;
