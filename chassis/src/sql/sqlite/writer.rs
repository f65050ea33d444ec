//! The single writing connection, with group commit.
//!
//! A small write spends most of its time waiting for the disk. Callers that arrive while another one writes wait in a queue;
//! a caller that finishes while others wait passes the connection on with its transaction still open, and the last one
//! commits for all of them. A caller gets its result after that commit and not before, so an acknowledged write is on the
//! disk, as if each had committed alone. Each further caller of the group writes after a savepoint, so its rollback leaves
//! the writes of the others alone (docs/adr/0090). `BEGIN` and `SAVEPOINT` are no messages of their own: they are sent with
//! the caller's first statement.
//!
//! ```text
//! first    BEGIN IMMEDIATE … (passes on)
//! second                     SAVEPOINT … (passes on)
//! third                                    RELEASE; SAVEPOINT … COMMIT
//! replies                                                              first, second, third
//! ```

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt as _, StreamExt as _, TryFutureExt as _, TryStreamExt as _, stream};
use sqlx::sqlite::{SqliteRow, SqliteStatement, SqliteTypeInfo};
use sqlx::{Error, Execute, Executor, SqlStr, Sqlite};
use tokio::sync::oneshot;
use tokio::time::Instant;

pub(in crate::sql) use self::group::CommitHook;
pub(in crate::sql) use self::turn::Turn;
use super::{ACQUIRE_TIMEOUT, Pool, PooledConnection, Step};
use crate::sql::usage::{Usage, record_wait};

mod group;
mod savepoint;
mod turn;

/// The first caller of a group waits for all that join it: for at most this long, and one write more.
const MAX_GROUP_AGE: Duration = Duration::from_millis(5);

/// Hands the writing connection to one caller after the other, in the order in which they ask; cheap to clone. A statement
/// runs on it by itself: `sqlx::query(…).execute(&writer)`.
#[derive(Clone)]
pub struct Writer(Arc<Shared>);

struct Shared {
    /// A pool of one connection.
    pool: Pool,
    /// [`MAX_GROUP_AGE`], except in tests.
    max_group_age: Duration,
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    /// Whether a caller has the turn.
    is_taken: bool,
    waiters: VecDeque<oneshot::Sender<Turn>>,
}

impl fmt::Debug for Writer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Writer").field(&self.0.pool).finish()
    }
}

impl Writer {
    /// On a pool of one connection.
    pub(in crate::sql) fn new(pool: Pool) -> Self {
        Self::with_max_group_age(pool, MAX_GROUP_AGE)
    }

    fn with_max_group_age(pool: Pool, max_group_age: Duration) -> Self {
        Self(Arc::new(Shared { pool, max_group_age, queue: Mutex::default() }))
    }

    /// Opens the connection, if none is open.
    pub(in crate::sql) async fn connect(&self) -> Result<(), Error> {
        let _turn = self.turn().await?;
        self.0.pool.acquire().await.map(PooledConnection::done)
    }

    /// Begins a transaction that may write; `BEGIN` is sent with its first statement. It may join the transaction of other
    /// callers.
    pub(in crate::sql) async fn begin(&self) -> Result<Turn, Error> {
        let mut turn = self.turn().await?;
        turn.open().await?;
        Ok(turn)
    }

    /// How many connections are in use, idle and allowed.
    pub(in crate::sql) fn usage(&self) -> Usage {
        self.0.pool.usage()
    }

    /// How many messages were sent to the connection's thread.
    #[cfg(any(test, feature = "testing"))]
    pub(in crate::sql) fn sent(&self) -> u64 {
        self.0.pool.sent()
    }

    /// Closes the connection once it is free; later callers get an error.
    pub(in crate::sql) async fn close(&self) {
        self.0.pool.close().await;
    }

    async fn turn(&self) -> Result<Turn, Error> {
        let next_turn = {
            let mut queue = self.0.queue();
            if !queue.is_taken {
                queue.is_taken = true;
                return Ok(Turn::new(Arc::clone(&self.0)));
            }
            let (sender, receiver) = oneshot::channel();
            queue.waiters.push_back(sender);
            receiver
        };
        let started_at = Instant::now();
        let turn = tokio::time::timeout(ACQUIRE_TIMEOUT, next_turn).await;
        record_wait(self.0.pool.service(), started_at.elapsed());
        turn.map_err(|_elapsed| Error::PoolTimedOut)?.map_err(|_| Error::PoolClosed)
    }

    /// A turn for one statement, which needs a transaction only to share it.
    async fn single_statement_turn(&self) -> Result<Turn, Error> {
        let mut turn = self.turn().await?;
        turn.open_single().await?;
        Ok(turn)
    }
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has_waiters(&self) -> bool {
        !self.queue().waiters.is_empty()
    }

    /// The first in the queue that still waits.
    fn next_waiter(&self) -> Option<oneshot::Sender<Turn>> {
        let mut queue = self.queue();
        while let Some(next) = queue.waiters.pop_front() {
            if !next.is_closed() {
                return Some(next);
            }
        }
        None
    }

    /// Gives a new turn to the next in the queue, after one that left no transaction open.
    fn end_turn(self: Arc<Self>) {
        loop {
            let next = {
                let mut queue = self.queue();
                let next = queue.waiters.pop_front();
                queue.is_taken = next.is_some();
                next
            };
            let Some(next) = next else { return };
            match next.send(Turn::new(Arc::clone(&self))) {
                Ok(()) => return,
                // The waiter was cancelled meanwhile: the next one is tried.
                Err(turn) => turn.defuse(),
            }
        }
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
            let mut turn = self.single_statement_turn().await?;
            let steps: Result<Vec<Step>, Error> = turn.connection().fetch_many(query).try_collect().await;
            Ok(stream::iter(turn.finish_single(steps).await?.into_iter().map(Ok)))
        };
        steps.try_flatten_stream().boxed()
    }

    fn fetch_optional<'e, 'q: 'e, E>(self, query: E) -> BoxFuture<'e, Result<Option<SqliteRow>, Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Sqlite>,
    {
        async move {
            let mut turn = self.single_statement_turn().await?;
            let row = turn.connection().fetch_optional(query).await;
            turn.finish_single(row).await
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
            let mut turn = self.single_statement_turn().await?;
            let statement = turn.connection().prepare_with(sql, parameters).await;
            turn.finish_single(statement).await
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests;
