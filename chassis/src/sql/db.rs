//! Connections and transactions of either engine.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cairn_proto::ids::WorkspaceId;
use sqlx::pool::PoolOptions;
use sqlx::postgres::{PgConnectOptions, PgPool};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, Postgres, Transaction};

use super::config::Target;
use super::sqlite::{self, IdlePolicy};
use super::usage::{self, Usage, UsageReporter};
use super::{Config, Dialect, Error, Kind, Migration, migrate, statistics};
use crate::deadline;
use crate::fair_semaphore::{Busy, FairSemaphore, Permit, Share};

/// sqlx keeps trying to connect to a server that is down until this has passed.
const POSTGRES_ACQUIRE_TIMEOUT: Duration = Duration::from_secs(3);
/// The limit of statements outside of a transaction: no caller waits for longer.
const POSTGRES_STATEMENT_TIMEOUT: &str = "60s";
/// Reads of one workspace that wait for a permit.
const MAX_WAITING: usize = 256;
/// How long a read waits for its permit, unless the deadline of its caller is sooner.
const PERMIT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long SQLite waits for another process's lock.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// The pause between retries where SQLite ignores the busy timeout.
const BUSY_PAUSE: Duration = Duration::from_millis(10);
/// An idle connection is closed after this, which frees its memory.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// A connection that was idle for longer is pinged before it is used.
const PING_AFTER_IDLE: Duration = Duration::from_secs(5);
/// Page cache of each SQLite connection; negative numbers are KiB (SQLite, PRAGMA cache_size).
const SQLITE_CACHE: &str = "-1024";
/// The statement cache of the writing connection. sqlx's default is 100, but a statement that may begin a write is cached
/// three times: after `BEGIN` and after each of the two savepoints.
const WRITER_STATEMENTS: usize = 200;
/// The write-ahead log is truncated to this after a burst.
const SQLITE_LOG_LIMIT: &str = "16777216";

const BEGIN_WRITE: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";
/// One snapshot for all reads, as every SQLite transaction has it.
const BEGIN_READ: Dialect =
    Dialect { sqlite: "BEGIN", postgres: "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY" };
/// For PostgreSQL alone: SQLite has a single writer.
const LOCK_NAME: &str = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))";

/// A value for either engine. [`on_db!`](crate::on_db) matches it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine<S = (), P = ()> {
    /// SQLite.
    Sqlite(S),
    /// PostgreSQL.
    Postgres(P),
}

impl<S, P> Engine<S, P> {
    /// For [`on_db!`](crate::on_db), in functions that take a `Db` and a `Tx` alike: itself.
    pub fn engine(self) -> Self {
        self
    }
}

/// Expands one expression for each engine, on a connection named as you like, and turns sqlx's error into
/// [`sql::Error`](crate::sql::Error).
///
/// The first argument is a `&Db` (reads), a `db.writer()` (one writing statement without a transaction), a `&mut Tx`,
/// or the [`Engine`](crate::sql::Engine) of one of these. The expression is a `Result<_, sqlx::Error>` of the same type on both engines.
///
/// ```ignore
/// on_db!(db, |c| sqlx::query_as::<_, Row>(GET).bind(Text(id)).fetch_optional(c).await)
/// ```
#[macro_export]
macro_rules! on_db {
    ($target:expr, |$connection:ident| $body:expr) => {
        match $target.engine() {
            $crate::sql::Engine::Sqlite($connection) => ($body).map_err($crate::sql::Error::from),
            $crate::sql::Engine::Postgres($connection) => ($body).map_err($crate::sql::Error::from),
        }
    };
}

/// The storage of one service; cheap to clone.
#[derive(Debug, Clone)]
pub enum Db {
    /// An embedded database file.
    Sqlite(SqlitePools),
    /// A PostgreSQL server; the service's tables are in a schema of their own.
    Postgres(PostgresPool),
}

/// SQLite allows one writer at a time: writers wait in a fair queue for the single connection instead of polling a lock, and
/// concurrent ones share a commit.
#[derive(Debug, Clone)]
pub struct SqlitePools {
    writer: sqlite::Writer,
    readers: sqlite::Pool,
    /// The permits of long reads.
    fair: FairSemaphore,
    _usage_reporter: Arc<UsageReporter>,
}

/// Connections to a PostgreSQL server.
#[derive(Debug, Clone)]
pub struct PostgresPool {
    pool: PgPool,
    fair: FairSemaphore,
    service: &'static str,
    _usage_reporter: Arc<UsageReporter>,
}

impl Db {
    /// Opens the storage of a service and brings its tables up to date.
    ///
    /// `service` names the PostgreSQL schema that holds the service's tables (created when it is missing), so that
    /// services may share one database without knowing each other's tables. The schema is set as `search_path` when a
    /// connection starts; a connection pooler in between must forward startup options, or pool per session.
    ///
    /// # Errors
    /// When the database cannot be reached or written, or was written by a newer version.
    pub async fn open(
        config: &Config,
        service: &'static str,
        migrations: &[Migration],
    ) -> Result<Self, Error> {
        let db = match &config.target {
            Target::Sqlite(path) => {
                let pools = open_sqlite(path, service, config.connections);
                create_file(&pools.writer).await?;
                Self::Sqlite(pools)
            }
            Target::Postgres(url) => Self::Postgres(open_postgres(url, service, config.connections)?),
        };
        migrate::run(&db, service, migrations).await?;
        statistics::write_if_missing(&db).await?;
        Ok(db)
    }

    /// Opens the storage of a service for inspection: nothing is created or migrated. `None` when the service has no tables
    /// there.
    ///
    /// # Errors
    /// When the database cannot be reached, or was written by another version.
    pub async fn open_existing(
        config: &Config,
        service: &'static str,
        migrations: &[Migration],
    ) -> Result<Option<Self>, Error> {
        let Some(db) = Self::connect_lazily(config, service)? else { return Ok(None) };
        if migrate::is_current(&db, service, migrations).await? {
            return Ok(Some(db));
        }
        db.close().await;
        Ok(None)
    }

    /// The pools of a storage, without a connection so far; `None` when there is no such file.
    pub(super) fn connect_lazily(config: &Config, service: &'static str) -> Result<Option<Self>, Error> {
        Ok(Some(match &config.target {
            Target::Sqlite(path) if !path.exists() => return Ok(None),
            Target::Sqlite(path) => Self::Sqlite(open_sqlite(path, service, config.connections)),
            Target::Postgres(url) => Self::Postgres(open_postgres(url, service, config.connections)?),
        }))
    }

    /// The pool for reads, for [`on_db!`](crate::on_db).
    pub const fn engine(&self) -> Engine<&sqlite::Pool, &PgPool> {
        match self {
            Self::Sqlite(pools) => Engine::Sqlite(&pools.readers),
            Self::Postgres(server) => Engine::Postgres(&server.pool),
        }
    }

    /// For a single writing statement without a transaction.
    pub const fn writer(&self) -> Writer<'_> {
        Writer(self)
    }

    /// Begins a transaction that may write. On SQLite it holds the single writer until it ends, so keep it short: the callers
    /// that wrote just before may wait for the same commit.
    ///
    /// # Errors
    /// When no connection is available.
    pub async fn begin_write(&self) -> Result<Tx, Error> {
        Ok(match self {
            Self::Sqlite(pools) => Tx::Sqlite(sqlite::Transaction::Writing(pools.writer.begin().await?)),
            Self::Postgres(server) => Tx::Postgres(server.begin(BEGIN_WRITE).await?),
        })
    }

    /// Begins a transaction whose reads all see one snapshot.
    ///
    /// # Errors
    /// When no connection is available.
    pub async fn begin_read(&self) -> Result<Tx, Error> {
        Ok(match self {
            Self::Sqlite(pools) => Tx::Sqlite(pools.readers.begin(BEGIN_READ.sqlite).await?),
            Self::Postgres(server) => Tx::Postgres(server.begin(BEGIN_READ.postgres).await?),
        })
    }

    /// Waits for the permit of a long read: one whose cost grows with the workspace, such as a query of records. Hold it while
    /// the statements run, and acquire no second one meanwhile (two such callers could deadlock).
    ///
    /// Long reads of one workspace use at most half of the connections, and those of all workspaces leave one connection to
    /// short reads.
    ///
    /// # Errors
    /// [`Kind::Busy`] when too many long reads of the workspace wait already, or the permit takes too long.
    pub async fn read_permit(&self, workspace: WorkspaceId) -> Result<Permit, Error> {
        let fair = match self {
            Self::Sqlite(pools) => &pools.fair,
            Self::Postgres(server) => &server.fair,
        };
        fair.acquire(workspace).await.map_err(|Busy| Error::busy())
    }

    /// Whether other processes may write to the same tables.
    pub const fn is_shared(&self) -> bool {
        matches!(self, Self::Postgres(_))
    }

    /// How many statements were sent to readers since the storage was opened, `BEGIN` and `COMMIT` included, for tests of
    /// what a request costs: on SQLite each is a round trip to another thread. `None` on PostgreSQL.
    #[cfg(any(test, feature = "testing"))]
    pub fn statements_read(&self) -> Option<u64> {
        match self {
            Self::Sqlite(pools) => Some(pools.readers.sent()),
            Self::Postgres(_) => None,
        }
    }

    /// The same for the writer.
    #[cfg(any(test, feature = "testing"))]
    pub fn statements_written(&self) -> Option<u64> {
        match self {
            Self::Sqlite(pools) => Some(pools.writer.sent()),
            Self::Postgres(_) => None,
        }
    }

    /// Checks that the database answers.
    ///
    /// # Errors
    /// When it does not.
    pub async fn ping(&self) -> Result<(), Error> {
        on_db!(self, |c| sqlx::query("SELECT 1").execute(c).await.map(|_| ()))
    }

    /// Closes every connection once its running statements have ended.
    pub async fn close(&self) {
        match self {
            Self::Sqlite(pools) => {
                pools.readers.close().await;
                // Last, so that SQLite checkpoints the write-ahead log into the database file.
                pools.writer.close().await;
            }
            Self::Postgres(server) => server.pool.close().await,
        }
    }
}

impl PostgresPool {
    /// Whether every connection is in use, so that a caller has to wait.
    fn is_exhausted(&self) -> bool {
        let Usage { used, max, .. } = usage(&self.pool);
        used >= max
    }

    /// Begins a transaction whose statements end at the deadline of the current call. Outside of a call there is no limit.
    async fn begin(&self, statement: &'static str) -> Result<Transaction<'static, Postgres>, sqlx::Error> {
        // To PostgreSQL, 0 is no limit.
        let timeout = deadline::current()
            .map_or(0, |deadline| deadline.saturating_duration_since(Instant::now()).as_millis().max(1));
        // One message saves a round trip. It is safe: a constant and a number.
        let text = AssertSqlSafe(format!("{statement}; SET LOCAL statement_timeout = {timeout}"));
        let pool = self.pool.clone();
        // In a task of its own, for cancellation safety: sqlx rolls back only a transaction whose BEGIN has completed. If the
        // caller were cancelled while BEGIN is in flight, the connection would return to the pool inside a transaction, and
        // later writes on it would never be committed. The task runs to its end, and dropping its result rolls back.
        let (started_at, is_exhausted) = (Instant::now(), self.is_exhausted());
        let transaction = tokio::spawn(async move { pool.begin_with(text).await }).await;
        if is_exhausted {
            usage::record_wait(self.service, started_at.elapsed());
        }
        transaction.unwrap_or_else(|error| Err(sqlx::Error::Io(std::io::Error::other(error))))
    }
}

/// The limits of long reads for a pool of that size.
fn share(connections: u32) -> Share {
    let connections = usize::try_from(connections).unwrap_or(usize::MAX);
    Share {
        at_once: connections.saturating_sub(1).max(1),
        per_workspace: (connections / 2).max(1),
        waiting: MAX_WAITING,
        max_wait: PERMIT_TIMEOUT,
    }
}

/// The target of a single writing statement; see [`Db::writer`].
#[derive(Debug, Clone, Copy)]
pub struct Writer<'a>(&'a Db);

impl<'a> Writer<'a> {
    /// For [`on_db!`](crate::on_db).
    pub const fn engine(self) -> Engine<&'a sqlite::Writer, &'a PgPool> {
        match self.0 {
            Db::Sqlite(pools) => Engine::Sqlite(&pools.writer),
            Db::Postgres(server) => Engine::Postgres(&server.pool),
        }
    }
}

/// A transaction; dropped without [`commit`](Self::commit) it rolls back.
#[derive(Debug)]
pub enum Tx {
    /// On SQLite.
    Sqlite(sqlite::Transaction),
    /// On PostgreSQL.
    Postgres(Transaction<'static, Postgres>),
}

impl Tx {
    /// For [`on_db!`](crate::on_db).
    pub fn engine(&mut self) -> Engine<&mut sqlite::PooledConnection, &mut PgConnection> {
        match self {
            Self::Sqlite(transaction) => Engine::Sqlite(transaction.connection()),
            Self::Postgres(transaction) => Engine::Postgres(&mut *transaction),
        }
    }

    /// Commits.
    ///
    /// # Errors
    /// When the database refuses. Nothing was written then, unless the connection broke before the answer.
    pub async fn commit(self) -> Result<(), Error> {
        self.commit_then(|| {}).await
    }

    /// Commits, and then runs a hook, which must not block. On SQLite it runs even when the caller was cancelled meanwhile,
    /// and hooks run in the order of the writes.
    ///
    /// # Errors
    /// As [`commit`](Self::commit); the hook does not run then.
    pub async fn commit_then(self, hook: impl FnOnce() + Send + 'static) -> Result<(), Error> {
        match self {
            Self::Sqlite(transaction) => transaction.commit(Box::new(hook)).await?,
            Self::Postgres(transaction) => {
                transaction.commit().await?;
                hook();
            }
        }
        Ok(())
    }

    /// Rolls back, and waits until that is done.
    ///
    /// # Errors
    /// When the connection breaks; nothing was written then either.
    pub async fn rollback(self) -> Result<(), Error> {
        match self {
            Self::Sqlite(transaction) => transaction.rollback().await?,
            Self::Postgres(transaction) => transaction.rollback().await?,
        }
        Ok(())
    }

    /// Takes the advisory lock of that name until the transaction ends. Take it before the first read, so that the transaction
    /// sees what the previous holder wrote.
    ///
    /// # Errors
    /// When the connection breaks.
    pub async fn lock_name(&mut self, name: &str) -> Result<(), Error> {
        match self {
            Self::Sqlite(_) => Ok(()),
            Self::Postgres(transaction) => {
                sqlx::query(LOCK_NAME).bind(name).execute(&mut **transaction).await?;
                Ok(())
            }
        }
    }
}

fn open_sqlite(path: &Path, service: &'static str, readers: u32) -> SqlitePools {
    let common = SqliteConnectOptions::new()
        .filename(path)
        .busy_timeout(BUSY_TIMEOUT)
        .foreign_keys(true)
        .pragma("cache_size", SQLITE_CACHE)
        .pragma("temp_store", "MEMORY");
    let writing = common
        .clone()
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        // An acknowledged write survives a power cut.
        .synchronous(SqliteSynchronous::Full)
        .statement_cache_capacity(WRITER_STATEMENTS)
        .pragma("journal_size_limit", SQLITE_LOG_LIMIT);
    let reading = common.pragma("query_only", "ON");
    let writer = sqlite::Writer::new(sqlite::Pool::new(writing, service, 1, IdlePolicy::KeepOpen));
    let readers_pool = sqlite::Pool::new(reading, service, readers, IdlePolicy::CloseAfterTimeout);
    let sampled = (writer.clone(), readers_pool.clone());
    let sample = move || Usage::sum([sampled.0.usage(), sampled.1.usage()].into_iter());
    let usage_reporter = UsageReporter::start(service, sample);
    let fair = FairSemaphore::new(share(readers));
    SqlitePools { writer, readers: readers_pool, fair, _usage_reporter: usage_reporter }
}

/// Opens the writing connection, which creates the file when it is missing. When several connections switch a new file to
/// write-ahead logging at once, SQLite refuses all but one regardless of the busy timeout, since waiting could deadlock; the
/// refused ones retry.
async fn create_file(writer: &sqlite::Writer) -> Result<(), Error> {
    let started = tokio::time::Instant::now();
    loop {
        match writer.connect().await.map_err(Error::from) {
            Err(error) if error.kind() == Kind::Conflict && started.elapsed() < BUSY_TIMEOUT => {
                tokio::time::sleep(BUSY_PAUSE).await;
            }
            connected => return connected,
        }
    }
}

fn open_postgres(url: &str, service: &'static str, connections: u32) -> Result<PostgresPool, Error> {
    let options: PgConnectOptions = url.parse()?;
    let options = options.application_name(&format!("cairn-{service}")).options([
        ("search_path", service),
        ("statement_timeout", POSTGRES_STATEMENT_TIMEOUT),
        // Our statements are short: compiling one costs more than it saves.
        ("jit", "off"),
        // The planner takes a table that has grown since its last ANALYZE for small, and would choose a sequential scan.
        ("enable_seqscan", "off"),
    ]);
    let pool = PoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(POSTGRES_ACQUIRE_TIMEOUT)
        .idle_timeout(IDLE_TIMEOUT)
        // sqlx would ping before every use, a round trip each.
        .test_before_acquire(false)
        .before_acquire(|connection: &mut PgConnection, idle| {
            Box::pin(async move {
                if idle.idle_for > PING_AFTER_IDLE {
                    connection.ping().await?;
                }
                Ok(true)
            })
        })
        .connect_lazy_with(options);
    let sampled = pool.clone();
    let usage_reporter = UsageReporter::start(service, move || usage(&sampled));
    let fair = FairSemaphore::new(share(connections));
    Ok(PostgresPool { pool, fair, service, _usage_reporter: usage_reporter })
}

fn usage(pool: &PgPool) -> Usage {
    let (open, idle) = (pool.size(), u32::try_from(pool.num_idle()).unwrap_or(u32::MAX));
    Usage { used: open.saturating_sub(idle), idle, max: pool.options().get_max_connections() }
}
