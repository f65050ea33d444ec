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
use super::sqlite::{self, Keep};
use super::watch::{self, Usage, Watch};
use super::{Config, Dialect, Error, Kind, Migration, migrate, statistics};
use crate::deadline;
use crate::fair_semaphore::{Busy, FairSemaphore, Permit, Share};

/// sqlx goes on knocking at a server that is down until this has passed.
const POSTGRES_WAIT_LIMIT: Duration = Duration::from_secs(3);
/// A statement outside of a transaction ends after this at the latest: no caller waits for longer.
const POSTGRES_STATEMENT_LIMIT: &str = "60s";
/// Reads of one workspace that wait for a permit.
const MOST_WAITING: usize = 256;
/// How long a read waits for its permit, if its caller does.
const PERMIT_LIMIT: Duration = Duration::from_secs(10);
/// How long SQLite waits for another process's lock.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Between two tries of what SQLite does not wait for by itself.
const BUSY_PAUSE: Duration = Duration::from_millis(10);
/// An idle connection gives its memory back after this.
const IDLE_LIMIT: Duration = Duration::from_secs(60);
/// A connection that was idle for longer is asked whether it still lives before it is used.
const TRUSTED_IDLE: Duration = Duration::from_secs(5);
/// Page cache of each SQLite connection; negative numbers are KiB (SQLite, PRAGMA cache_size).
const SQLITE_CACHE: &str = "-1024";
/// Statements that the writing connection keeps prepared: those that begin a write stand there behind `BEGIN` and behind each
/// savepoint. sqlx keeps a hundred.
const WRITER_STATEMENTS: usize = 200;
/// The write-ahead log is cut back to this after a burst.
const SQLITE_LOG_LIMIT: &str = "16777216";

const BEGIN_WRITE: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";
/// One snapshot for several reads: SQLite's ordinary transactions have it.
const BEGIN_READ: Dialect =
    Dialect { sqlite: "BEGIN", postgres: "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY" };
/// SQLite's one writer needs no further lock.
const LOCK_NAME: &str = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))";

/// Something of either engine. [`on_db!`](crate::on_db) matches it.
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
    /// A PostgreSQL server; the service's tables stand in a schema of its own.
    Postgres(PostgresPool),
}

/// SQLite takes one writer at a time: writers wait in a fair queue for the one connection instead of polling a lock, and
/// those that come together share a commit.
#[derive(Debug, Clone)]
pub struct SqlitePools {
    writer: sqlite::Writer,
    readers: sqlite::Pool,
    /// Of the readers.
    fair: FairSemaphore,
    _watch: Arc<Watch>,
}

/// Connections to a PostgreSQL server.
#[derive(Debug, Clone)]
pub struct PostgresPool {
    pool: PgPool,
    fair: FairSemaphore,
    service: &'static str,
    _watch: Arc<Watch>,
}

impl Db {
    /// Opens the storage of a service and brings its tables up to date.
    ///
    /// `service` names the PostgreSQL schema that holds the service's tables (made when it is missing), so that
    /// services may share one database without knowing each other's tables. The schema is set as `search_path` when a
    /// connection starts; a connection pooler between them must pass startup options on, or pool per session.
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
                make_file(&pools.writer).await?;
                Self::Sqlite(pools)
            }
            Target::Postgres(url) => Self::Postgres(open_postgres(url, service, config.connections)?),
        };
        migrate::run(&db, service, migrations).await?;
        statistics::tell_once(&db).await?;
        Ok(db)
    }

    /// Opens the storage of a service to look at it: nothing is made and nothing migrated. `None` when the service has no
    /// tables there.
    ///
    /// # Errors
    /// When the database cannot be reached, or was written by another version.
    pub async fn open_existing(
        config: &Config,
        service: &'static str,
        migrations: &[Migration],
    ) -> Result<Option<Self>, Error> {
        let Some(db) = Self::look_at(config, service)? else { return Ok(None) };
        if migrate::is_current(&db, service, migrations).await? {
            return Ok(Some(db));
        }
        db.close().await;
        Ok(None)
    }

    /// Connections to a storage, which is not asked for anything yet; `None` when there is no such file.
    pub(super) fn look_at(config: &Config, service: &'static str) -> Result<Option<Self>, Error> {
        Ok(Some(match &config.target {
            Target::Sqlite(path) if !path.exists() => return Ok(None),
            Target::Sqlite(path) => Self::Sqlite(open_sqlite(path, service, config.connections)),
            Target::Postgres(url) => Self::Postgres(open_postgres(url, service, config.connections)?),
        }))
    }

    /// For [`on_db!`](crate::on_db): where to read.
    pub const fn engine(&self) -> Engine<&sqlite::Pool, &PgPool> {
        match self {
            Self::Sqlite(pools) => Engine::Sqlite(&pools.readers),
            Self::Postgres(server) => Engine::Postgres(&server.pool),
        }
    }

    /// Where one statement writes without a transaction around it.
    pub const fn writer(&self) -> Writer<'_> {
        Writer(self)
    }

    /// Begins a transaction that may write. On SQLite it is the only one until it ends, so keep it short: whoever wrote just
    /// before may wait for the same commit.
    ///
    /// # Errors
    /// When no connection can be had.
    pub async fn begin_write(&self) -> Result<Tx, Error> {
        Ok(match self {
            Self::Sqlite(pools) => Tx::Sqlite(sqlite::Transaction::Writing(pools.writer.begin().await?)),
            Self::Postgres(server) => Tx::Postgres(server.begin(BEGIN_WRITE).await?),
        })
    }

    /// Begins a transaction whose reads all see one moment.
    ///
    /// # Errors
    /// When no connection can be had.
    pub async fn begin_read(&self) -> Result<Tx, Error> {
        Ok(match self {
            Self::Sqlite(pools) => Tx::Sqlite(pools.readers.begin(BEGIN_READ.sqlite).await?),
            Self::Postgres(server) => Tx::Postgres(server.begin(BEGIN_READ.postgres).await?),
        })
    }

    /// Waits for a permit to read at length: what takes longer the more a workspace holds, such as a query of records. Hold
    /// it while the statements run, and ask for no second one meanwhile.
    ///
    /// One workspace has at most half of the connections for that, and all of them together leave one to what is read
    /// in no time.
    ///
    /// # Errors
    /// [`Kind::Busy`] when the workspace has too much under way.
    pub async fn reading_fairly(&self, workspace: WorkspaceId) -> Result<Permit, Error> {
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

    /// How many statements were read with since the storage was opened, with those that begin and end transactions, for
    /// tests of what a request costs: on SQLite each is a message to another thread and one back. `None` on PostgreSQL.
    #[cfg(any(test, feature = "testing"))]
    pub fn statements_read(&self) -> Option<u64> {
        match self {
            Self::Sqlite(pools) => Some(pools.readers.sent()),
            Self::Postgres(_) => None,
        }
    }

    /// The same of what was sent to write.
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

    /// Closes every connection once what runs on it has ended.
    pub async fn close(&self) {
        match self {
            Self::Sqlite(pools) => {
                pools.readers.close().await;
                // Last, so that SQLite folds the write-ahead log into the database file.
                pools.writer.close().await;
            }
            Self::Postgres(server) => server.pool.close().await,
        }
    }
}

impl PostgresPool {
    /// Whether whoever wants a connection now waits for another to give one back.
    fn is_busy(&self) -> bool {
        let Usage { used, most, .. } = usage(&self.pool);
        used >= most
    }

    /// Begins a transaction whose statements end with the call that it is for. One that is for no call has no limit.
    async fn begin(&self, statement: &'static str) -> Result<Transaction<'static, Postgres>, sqlx::Error> {
        // To PostgreSQL, 0 is no limit.
        let left = deadline::current()
            .map_or(0, |deadline| deadline.saturating_duration_since(Instant::now()).as_millis().max(1));
        // One message, so that it costs no round trip. A constant and a number.
        let text = AssertSqlSafe(format!("{statement}; SET LOCAL statement_timeout = {left}"));
        let pool = self.pool.clone();
        // A task of its own, since sqlx rolls back only what has begun: if the caller went away while BEGIN is on its way,
        // the connection would return to the pool inside a transaction, and what it writes next would never be committed.
        // The task goes on to the end, and what nobody takes from it is rolled back.
        let (began, is_busy) = (Instant::now(), self.is_busy());
        let begun = tokio::spawn(async move { pool.begin_with(text).await }).await;
        if is_busy {
            watch::record_wait(self.service, began.elapsed());
        }
        begun.unwrap_or_else(|error| Err(sqlx::Error::Io(std::io::Error::other(error))))
    }
}

/// The share of one workspace in what is read at length.
fn share(connections: u32) -> Share {
    let connections = usize::try_from(connections).unwrap_or(usize::MAX);
    Share {
        at_once: connections.saturating_sub(1).max(1),
        of_one_workspace: (connections / 2).max(1),
        waiting: MOST_WAITING,
        max_wait: PERMIT_LIMIT,
    }
}

/// Where one statement writes; see [`Db::writer`].
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

    /// Makes what was written last.
    ///
    /// # Errors
    /// When the database refuses; nothing was written then, unless the connection broke on the way.
    pub async fn commit(self) -> Result<(), Error> {
        self.commit_then(|| {}).await
    }

    /// Makes what was written last, and then does something that takes no time. On SQLite it is done even when the caller
    /// has gone away meanwhile, and for one writer after the other in the order of their writes.
    ///
    /// # Errors
    /// As [`commit`](Self::commit); nothing is done then.
    pub async fn commit_then(self, then: impl FnOnce() + Send + 'static) -> Result<(), Error> {
        match self {
            Self::Sqlite(transaction) => transaction.commit(Box::new(then)).await?,
            Self::Postgres(transaction) => {
                transaction.commit().await?;
                then();
            }
        }
        Ok(())
    }

    /// Drops what was written, and waits until that is done.
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

    /// Waits until no other transaction holds that name, and holds it until this one ends. Take it before anything
    /// else, so that what is read afterwards is what the previous holder left.
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
    let writer = sqlite::Writer::new(sqlite::Pool::new(writing, service, 1, Keep::Always));
    let readers_pool = sqlite::Pool::new(reading, service, readers, Keep::WhileWanted);
    let looked_at = (writer.clone(), readers_pool.clone());
    let look = move || Usage::sum([looked_at.0.usage(), looked_at.1.usage()].into_iter());
    let watch = Watch::begin(service, look);
    let fair = FairSemaphore::new(share(readers));
    SqlitePools { writer, readers: readers_pool, fair, _watch: watch }
}

/// Makes the writing connection, and with it the file when it is missing. Of several that turn a new file to write-ahead
/// logging at once, SQLite refuses all but one whatever the busy timeout, since waiting could deadlock; so the refused
/// ones come again.
async fn make_file(writer: &sqlite::Writer) -> Result<(), Error> {
    let started = tokio::time::Instant::now();
    loop {
        match writer.connect().await.map_err(Error::from) {
            Err(error) if error.kind() == Kind::Conflict && started.elapsed() < BUSY_TIMEOUT => {
                tokio::time::sleep(BUSY_PAUSE).await;
            }
            made => return made,
        }
    }
}

fn open_postgres(url: &str, service: &'static str, connections: u32) -> Result<PostgresPool, Error> {
    let options: PgConnectOptions = url.parse()?;
    let options = options.application_name(&format!("cairn-{service}")).options([
        ("search_path", service),
        ("statement_timeout", POSTGRES_STATEMENT_LIMIT),
        // Ours are short statements: compiling one costs more than it ever saves.
        ("jit", "off"),
        // A table that has grown since it was last analysed looks small, and would be read in full.
        ("enable_seqscan", "off"),
    ]);
    let pool = PoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(POSTGRES_WAIT_LIMIT)
        .idle_timeout(IDLE_LIMIT)
        // sqlx would ask before every use, a round trip each.
        .test_before_acquire(false)
        .before_acquire(|connection: &mut PgConnection, idle| {
            Box::pin(async move {
                if idle.idle_for > TRUSTED_IDLE {
                    connection.ping().await?;
                }
                Ok(true)
            })
        })
        .connect_lazy_with(options);
    let looked_at = pool.clone();
    let watch = Watch::begin(service, move || usage(&looked_at));
    Ok(PostgresPool { pool, fair: FairSemaphore::new(share(connections)), service, _watch: watch })
}

fn usage(pool: &PgPool) -> Usage {
    let (open, idle) = (pool.size(), u32::try_from(pool.num_idle()).unwrap_or(u32::MAX));
    Usage { used: open.saturating_sub(idle), idle, most: pool.options().get_max_connections() }
}
