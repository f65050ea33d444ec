//! The connection pool of one SQLite file.
//!
//! sqlx's own pool pings each connection that is returned. For SQLite that is a round trip to the connection's thread, as
//! much as a small read itself, and the next borrower waits for it. Here a connection whose last statement completed is
//! returned directly; only one whose caller was cancelled is cleaned up first (docs/adr/0023).

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

use self::prefix::Prefix;
pub(super) use self::writer::{CommitHook, Turn, Writer};
use super::interrupter::Interrupter;
use super::usage::{Usage, record_wait};
use crate::deadline;

mod failure;
mod prefix;
mod writer;

/// One item of a statement's result: a row, or at its end the number of changed rows.
type Step = Either<SqliteQueryResult, SqliteRow>;

/// The result code of a ROLLBACK outside of a transaction, and of a ROLLBACK TO an unknown savepoint.
const SQLITE_ERROR: &str = "1";
/// How long a caller waits for a connection.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);
/// A connection that is idle for this long is closed, which frees its memory.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// A bounded pool, fair to its waiters; cheap to clone. A statement runs on any connection of it:
/// `sqlx::query(…).execute(&pool)`.
#[derive(Clone)]
pub struct Pool(Arc<Inner>);

struct Inner {
    options: SqliteConnectOptions,
    /// The service that owns the storage.
    service: &'static str,
    max: u32,
    permits: Arc<Semaphore>,
    /// A stack: the connection that was used last is taken first, so that the others become idle and are closed.
    idle: Mutex<Vec<Idle>>,
    /// How many messages were sent to connection threads: one for each statement, those of transactions included.
    sent: AtomicU64,
}

struct Idle {
    connection: SqliteConnection,
    interrupter: Interrupter,
    since: Instant,
}

impl fmt::Debug for Pool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Pool").field("max", &self.0.max).finish_non_exhaustive()
    }
}

/// Whether a statement that ends a transaction or a savepoint was refused because none is open.
fn is_not_open(error: &Error) -> bool {
    matches!(error, Error::Database(refusal) if refusal.code().as_deref() == Some(SQLITE_ERROR))
}

/// Whether idle connections stay open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IdlePolicy {
    /// They do, for the single writer: it is needed again soon, and closing it checkpoints the log.
    KeepOpen,
    /// They are closed after [`IDLE_TIMEOUT`].
    CloseAfterTimeout,
}

impl Pool {
    /// A pool of at most `max` connections, which are opened on demand.
    pub(super) fn new(
        options: SqliteConnectOptions,
        service: &'static str,
        max: u32,
        idle_policy: IdlePolicy,
    ) -> Self {
        let count = usize::try_from(max).unwrap_or(usize::MAX).clamp(1, Semaphore::MAX_PERMITS);
        let permits = Arc::new(Semaphore::new(count));
        let (idle, sent) = (Mutex::default(), AtomicU64::new(0));
        let inner = Inner { options, service, max: max.max(1), permits, idle, sent };
        let pool = Self(Arc::new(inner));
        if idle_policy == IdlePolicy::CloseAfterTimeout {
            tokio::spawn(close_idle(Arc::downgrade(&pool.0)));
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
        // Statements are interrupted at the deadline of the current call.
        interrupter.set_deadline(deadline::current());
        let pool = Arc::clone(&self.0);
        let borrowed = Borrowed { connection, interrupter, pool, _permit: permit };
        Ok(PooledConnection { borrowed: Some(borrowed), prefix: None, prefix_failed: false })
    }

    async fn wait(&self) -> Result<OwnedSemaphorePermit, Error> {
        let started_at = Instant::now();
        let permit = tokio::time::timeout(ACQUIRE_TIMEOUT, Arc::clone(&self.0.permits).acquire_owned()).await;
        record_wait(self.0.service, started_at.elapsed());
        permit.map_err(|_elapsed| Error::PoolTimedOut)?.map_err(|_| Error::PoolClosed)
    }

    /// How many connections are in use, idle and allowed.
    pub(super) fn usage(&self) -> Usage {
        let free = u32::try_from(self.0.permits.available_permits()).unwrap_or(u32::MAX);
        let idle = u32::try_from(self.0.idle().len()).unwrap_or(u32::MAX);
        Usage { used: self.0.max.saturating_sub(free), idle, max: self.0.max }
    }

    /// How many messages were sent to connection threads: one for each statement.
    #[cfg(any(test, feature = "testing"))]
    pub(super) fn sent(&self) -> u64 {
        self.0.sent.load(Ordering::Relaxed)
    }

    /// Begins a transaction with that statement, on a connection of its own.
    pub(super) async fn begin(&self, statement: &'static str) -> Result<Transaction, Error> {
        let mut pooled = self.acquire().await?;
        sqlx::query(statement).execute(&mut pooled).await?;
        Ok(Transaction::Own(pooled))
    }

    fn service(&self) -> &'static str {
        self.0.service
    }

    /// Closes every connection once it is returned; later callers get an error.
    pub(super) async fn close(&self) {
        let all = self.0.permits.acquire_many(self.0.max).await;
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

    /// Removes the connections that have been idle since that moment or longer: those at the bottom of the stack.
    fn take_idle(&self, since: Instant) -> Vec<Idle> {
        let mut idle = self.idle();
        let count = idle.iter().take_while(|one| one.since <= since).count();
        idle.drain(..count).collect()
    }
}

/// Closes idle connections until the pool is dropped.
async fn close_idle(pool: Weak<Inner>) {
    let mut ticks = tokio::time::interval(IDLE_TIMEOUT / 2);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let now = ticks.tick().await;
        let Some(pool) = pool.upgrade() else { return };
        let expired = now.checked_sub(IDLE_TIMEOUT).map(|since| pool.take_idle(since)).unwrap_or_default();
        for Idle { connection, .. } in expired {
            connection.close().await.ok();
        }
    }
}

/// A connection borrowed from the pool. [`PooledConnection::done`] returns it; dropped without it, a transaction that may be
/// open on it is rolled back first.
pub struct PooledConnection {
    /// None after it was returned.
    borrowed: Option<Borrowed>,
    /// Statements to be sent with the next one.
    prefix: Option<Prefix>,
    /// Whether the prefix was sent already and its first statement failed.
    prefix_failed: bool,
}

struct Borrowed {
    connection: SqliteConnection,
    interrupter: Interrupter,
    pool: Arc<Inner>,
    /// Released when the connection is returned.
    _permit: OwnedSemaphorePermit,
}

crate::debug_fields!(PooledConnection);

impl PooledConnection {
    /// A placeholder without a connection.
    const fn none() -> Self {
        Self { borrowed: None, prefix: None, prefix_failed: false }
    }

    /// A statement that still runs at the deadline is interrupted; without one, none is.
    fn set_deadline(&self, deadline: Option<std::time::Instant>) {
        if let Some(borrowed) = &self.borrowed {
            borrowed.interrupter.set_deadline(deadline);
        }
    }

    /// Interrupts the running statement.
    fn interrupt(&self) {
        if let Some(borrowed) = &self.borrowed {
            borrowed.interrupter.interrupt();
        }
    }

    /// Whether a transaction was rolled back on it since [`clear_rollback`](Self::clear_rollback), by a statement or by SQLite.
    fn was_rolled_back(&self) -> bool {
        self.borrowed.as_ref().is_some_and(|borrowed| borrowed.interrupter.was_rolled_back())
    }

    fn clear_rollback(&self) {
        if let Some(borrowed) = &self.borrowed {
            borrowed.interrupter.clear_rollback();
        }
    }

    /// Returns when the statements that were sent before have ended.
    async fn ping(&mut self) -> Result<(), Error> {
        self.connection()?.ping().await
    }

    /// Closes the connection, with any transaction that is open on it.
    fn discard(mut self) {
        drop(self.borrowed.take());
    }

    /// Returns the connection to the pool. No transaction may be open on it.
    pub(super) fn done(mut self) {
        if let Some(borrowed) = self.borrowed.take() {
            borrowed.return_to_pool();
        }
    }

    /// Returns the connection after a statement outside of a transaction, unless its thread has crashed.
    fn done_with<T>(self, result: Result<T, Error>) -> Result<T, Error> {
        if !matches!(result, Err(Error::WorkerCrashed)) {
            self.done();
        }
        result
    }

    /// Sends that prefix with the next statement.
    const fn set_prefix(&mut self, prefix: Prefix) {
        self.prefix = Some(prefix);
        self.prefix_failed = false;
    }

    /// Removes the prefix; whether one was still pending.
    const fn take_prefix(&mut self) -> bool {
        self.prefix.take().is_some()
    }

    /// Runs a statement after its prefix, and returns the steps of the statement alone. A prefix whose first statement fails
    /// is sent again with the next statement.
    async fn run_with_prefix<'q, E>(&mut self, prefix: Prefix, statement: E) -> Result<Vec<Step>, Error>
    where
        E: 'q + Execute<'q, Sqlite>,
    {
        let joined = prefix.join(statement)?;
        // In this future and not before: one that is dropped without being polled has sent nothing.
        self.prefix = None;
        let mut steps = Vec::new();
        let result = async {
            let mut running = self.connection()?.fetch_many(joined);
            while let Some(step) = running.try_next().await? {
                steps.push(step);
            }
            Ok::<(), Error>(())
        };
        let result = result.await;
        if let Err(error) = result {
            if steps.is_empty() && !matches!(error, Error::WorkerCrashed) {
                self.prefix = Some(prefix);
                self.prefix_failed = true;
            }
            return Err(error);
        }
        // Each statement of the prefix yields one step.
        Ok(steps.split_off(prefix.statements.min(steps.len())))
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
        // Nobody waits for a statement that still runs.
        borrowed.interrupter.interrupt();
        // Without a runtime the connection is closed, which rolls back as well.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(borrowed.clean_up());
        }
    }
}

impl Borrowed {
    fn return_to_pool(self) {
        let Self { connection, interrupter, pool, .. } = self;
        pool.idle().push(Idle { connection, interrupter, since: Instant::now() });
    }

    /// Rolls back and returns the connection to the pool. It is closed if that fails.
    async fn clean_up(mut self) {
        // The ping returns when what ran before has ended.
        if let Err(error) = self.connection.ping().await {
            tracing::warn!(%error, "a connection to SQLite is given up");
            return;
        }
        self.interrupter.set_deadline(None);
        match sqlx::query("ROLLBACK").execute(&mut self.connection).await {
            Ok(_) => self.return_to_pool(),
            Err(error) if is_not_open(&error) => self.return_to_pool(),
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
        if let Some(prefix) = self.prefix {
            let steps = async move {
                Ok(stream::iter(self.run_with_prefix(prefix, query).await?.into_iter().map(Ok)))
            };
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
        if let Some(prefix) = self.prefix {
            return async move {
                let steps = self.run_with_prefix(prefix, query).await?;
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

    /// Reads all rows before it yields the first, so that a slow consumer holds no connection.
    fn fetch_many<'e, 'q: 'e, E>(self, query: E) -> BoxStream<'e, Result<Step, Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Sqlite>,
    {
        let steps = async move {
            let mut pooled = self.acquire().await?;
            let steps: Result<Vec<Step>, Error> = (&mut pooled).fetch_many(query).try_collect().await;
            Ok(stream::iter(pooled.done_with(steps)?.into_iter().map(Ok)))
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
            pooled.done_with(row)
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
            pooled.done_with(statement)
        })
    }
}

/// A transaction; dropped without [`commit`](Self::commit) it rolls back.
#[derive(Debug)]
pub enum Transaction {
    /// On a connection of its own.
    Own(PooledConnection),
    /// On the writing connection.
    Writing(Turn),
}

impl Transaction {
    /// The connection on which its statements run.
    pub(super) const fn connection(&mut self) -> &mut PooledConnection {
        match self {
            Self::Own(pooled) => pooled,
            Self::Writing(turn) => turn.connection(),
        }
    }

    pub(super) async fn commit(self, hook: CommitHook) -> Result<(), Error> {
        match self {
            Self::Own(pooled) => {
                end(pooled, "COMMIT").await?;
                hook();
                Ok(())
            }
            Self::Writing(turn) => turn.commit(hook).await,
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
    // COMMIT is short, and a caller that is told that it was interrupted must be able to rely on that.
    pooled.set_deadline(None);
    sqlx::query(statement).execute(&mut pooled).await?;
    pooled.done();
    Ok(())
}

#[cfg(test)]
mod tests;
