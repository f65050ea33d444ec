//! Applies a service's migrations.
//!
//! Migrations are embedded in the binary. All missing ones are applied in order in one transaction, and recorded with a hash
//! of their text. When none is missing, opening costs one read. On PostgreSQL, processes that start at the same time
//! serialize on an advisory lock.
//!
//! The first line of each says whether it expands or contracts the schema ([`Step`]), and that is recorded with it. So a
//! binary that finds an unknown migration can tell whether it may continue: during a rolling upgrade and a rollback, older
//! and newer processes share one database (docs/adr/0075).

use sqlx::FromRow;

use super::migration_status::{Applied, MigrationStatus};
use super::{Db, Engine, Error, statistics};
use crate::on_db;

/// Recorded with each migration.
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The number of columns of a table that records steps; older tables have two.
const COLUMNS_WITH_STEPS: i64 = 4;

/// One schema change of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Migration {
    /// The file's name without its ending: `0001_files`. Never changes once released.
    pub name: &'static str,
    /// The SQL for SQLite; its first line is `-- expand` or `-- contract`.
    pub sqlite: &'static str,
    /// The SQL for PostgreSQL, with the same first line.
    pub postgres: &'static str,
}

/// What a migration means for binaries of the release before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// They continue to work: it only adds what they can ignore.
    Expand,
    /// They would read or write wrong data: it removes or redefines something that they use.
    Contract,
}

impl Step {
    /// The name in the first line of a file and in the table.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Expand => "expand",
            Self::Contract => "contract",
        }
    }

    fn of(word: &str) -> Option<Self> {
        [Self::Expand, Self::Contract].into_iter().find(|step| step.word() == word)
    }
}

/// A migration from `migrations/sqlite/NAME.sql` and `migrations/postgres/NAME.sql` of the calling crate.
#[macro_export]
macro_rules! migration {
    ($name:literal) => {
        $crate::sql::Migration {
            name: $name,
            sqlite: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/migrations/sqlite/", $name, ".sql")),
            postgres: include_str!(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/migrations/postgres/",
                $name,
                ".sql"
            )),
        }
    };
}

const CREATE_MIGRATIONS: &str = "CREATE TABLE IF NOT EXISTS migrations \
     (name TEXT NOT NULL PRIMARY KEY, hash TEXT NOT NULL, step TEXT, version TEXT)";
const ADD_STEP: &str = "ALTER TABLE migrations ADD COLUMN step TEXT";
const ADD_VERSION: &str = "ALTER TABLE migrations ADD COLUMN version TEXT";
const LIST_APPLIED: &str = "SELECT name, hash, step, version FROM migrations ORDER BY name";
const LIST_WITHOUT_STEPS: &str = "SELECT name, hash, CAST(NULL AS TEXT) AS step, CAST(NULL AS TEXT) AS version \
     FROM migrations ORDER BY name";
const RECORD: &str = "INSERT INTO migrations (name, hash, step, version) VALUES ($1, $2, $3, $4)";
const SQLITE_COLUMNS: &str = "SELECT COUNT(*) FROM pragma_table_info('migrations')";
const POSTGRES_COLUMNS: &str = "SELECT COUNT(*) FROM information_schema.columns \
     WHERE table_schema = current_schema() AND table_name = 'migrations'";

impl Migration {
    /// The step that both texts declare. A migration without a declaration counts as contracting, which is the safe side.
    pub fn step(&self) -> Step {
        match (split_header(self.sqlite).0, split_header(self.postgres).0) {
            (Some(Step::Expand), Some(Step::Expand)) => Step::Expand,
            _ => Step::Contract,
        }
    }

    /// What is wrong with its declared step, for tests; `None` when both texts declare the same step and can be of it.
    pub fn fault(&self) -> Option<String> {
        let declared = [split_header(self.sqlite).0, split_header(self.postgres).0];
        let fault = match declared {
            [Some(sqlite), Some(postgres)] if sqlite == postgres => return self.contraction(sqlite),
            [Some(_), Some(_)] => "its two texts say different steps",
            _ => "the first line of each text must be `-- expand` or `-- contract`",
        };
        Some(format!("{}: {fault}", self.name))
    }

    /// A statement that contracts the schema, in a migration that is declared as expanding. Only keywords are searched for.
    fn contraction(&self, step: Step) -> Option<String> {
        const CONTRACTING: [&str; 5] =
            ["DROP TABLE", "DROP COLUMN", "RENAME COLUMN", "SET NOT NULL", "DROP CONSTRAINT"];
        if step == Step::Contract {
            return None;
        }
        let found = CONTRACTING
            .into_iter()
            .find(|keywords| [self.sqlite, self.postgres].iter().any(|text| text.contains(keywords)))?;
        Some(format!("{}: it has `{found}` and says that it expands", self.name))
    }

    fn text(&self, db: &Db) -> &'static str {
        match db.engine() {
            Engine::Sqlite(_) => self.sqlite,
            Engine::Postgres(_) => self.postgres,
        }
    }

    /// The hash of the statements, without the line that declares the step.
    fn hash(&self, db: &Db) -> String {
        blake3::hash(split_header(self.text(db)).1.as_bytes()).to_hex().to_string()
    }
}

/// The step that the first line declares, and the text after that line; the whole text when it declares none.
fn split_header(text: &str) -> (Option<Step>, &str) {
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    let header = first.trim_end().strip_prefix("-- ").unwrap_or_default();
    // A reason may follow after a colon.
    let word = header.split_once(':').map_or(header, |(word, _)| word);
    match Step::of(word) {
        Some(step) => (Some(step), rest),
        None => (None, text),
    }
}

#[derive(FromRow)]
struct Row {
    name: String,
    hash: String,
    step: Option<String>,
    version: Option<String>,
}

pub(super) async fn run(db: &Db, service: &'static str, migrations: &[Migration]) -> Result<(), Error> {
    let status = status(db, migrations).await?;
    if status.to_apply(service)?.is_empty() {
        status.warn_of_newer(service);
        return Ok(());
    }
    let mut tx = db.begin_write().await?;
    // Every service of the deployment may start at once, and concurrent CREATE SCHEMA statements can fail.
    tx.lock_name("cairn:migrations").await?;
    if let Engine::Postgres(connection) = tx.engine() {
        // The name is one of the mesh's own services, never input.
        let create = sqlx::AssertSqlSafe(format!("CREATE SCHEMA IF NOT EXISTS \"{service}\""));
        let existing: i64 =
            sqlx::query_scalar("SELECT COUNT(*) FROM pg_catalog.pg_namespace WHERE nspname = $1")
                .bind(service)
                .fetch_one(&mut *connection)
                .await?;
        if existing == 0 {
            sqlx::raw_sql(create).execute(connection).await?;
        }
    }
    on_db!(tx, |c| sqlx::raw_sql(CREATE_MIGRATIONS).execute(c).await.map(|_| ()))?;
    let columns: i64 = match tx.engine() {
        Engine::Sqlite(c) => sqlx::query_scalar(SQLITE_COLUMNS).fetch_one(c).await?,
        Engine::Postgres(c) => sqlx::query_scalar(POSTGRES_COLUMNS).fetch_one(c).await?,
    };
    if columns < COLUMNS_WITH_STEPS {
        on_db!(tx, |c| sqlx::raw_sql(ADD_STEP).execute(c).await.map(|_| ()))?;
        on_db!(tx, |c| sqlx::raw_sql(ADD_VERSION).execute(c).await.map(|_| ()))?;
    }
    // Read again under the lock: another process may have applied them meanwhile.
    let rows: Vec<Row> = on_db!(tx, |c| sqlx::query_as(LIST_APPLIED).fetch_all(c).await)?;
    let status = compare(db, rows, migrations);
    for migration in status.to_apply(service)? {
        apply(db, &mut tx, service, migration).await?;
    }
    if let Engine::Sqlite(connection) = tx.engine() {
        statistics::write(connection).await?;
    }
    tx.commit().await
}

async fn apply(
    db: &Db,
    tx: &mut super::Tx,
    service: &'static str,
    migration: &Migration,
) -> Result<(), Error> {
    let step = migration.step().word();
    tracing::info!(service, migration = migration.name, step, "migrating");
    match tx.engine() {
        Engine::Sqlite(c) => sqlx::raw_sql(migration.sqlite).execute(c).await.map(|_| ()),
        Engine::Postgres(c) => sqlx::raw_sql(migration.postgres).execute(c).await.map(|_| ()),
    }
    .map_err(|error| Error::from(error).within(format!("migration {} failed", migration.name)))?;
    let hash = migration.hash(db);
    on_db!(tx, |c| sqlx::query(RECORD)
        .bind(migration.name)
        .bind(&hash)
        .bind(step)
        .bind(VERSION)
        .execute(c)
        .await
        .map(|_| ()))
}

/// Whether the service's tables exist and are up to date; nothing is written.
///
/// # Errors
/// When a migration is missing, or was applied by an incompatible version.
pub(super) async fn is_current(
    db: &Db,
    service: &'static str,
    migrations: &[Migration],
) -> Result<bool, Error> {
    let status = status(db, migrations).await?;
    if status.is_empty() {
        return Ok(false);
    }
    match status.to_apply(service)?.first() {
        None => Ok(true),
        Some(migration) => Err(Error::config(format!(
            "the database lacks the migration {}: it was written by an older version; start this one on it once",
            migration.name
        ))),
    }
}

/// Compares these migrations with those of the database; nothing is written.
pub(super) async fn status(db: &Db, migrations: &[Migration]) -> Result<MigrationStatus, Error> {
    // On SQLite through the writer, which creates the file when it is missing.
    let columns: i64 = match db.writer().engine() {
        Engine::Sqlite(pool) => sqlx::query_scalar(SQLITE_COLUMNS).fetch_one(pool).await?,
        Engine::Postgres(pool) => sqlx::query_scalar(POSTGRES_COLUMNS).fetch_one(pool).await?,
    };
    let rows: Vec<Row> = match columns {
        0 => Vec::new(),
        COLUMNS_WITH_STEPS.. => on_db!(db.writer(), |c| sqlx::query_as(LIST_APPLIED).fetch_all(c).await)?,
        _ => on_db!(db.writer(), |c| sqlx::query_as(LIST_WITHOUT_STEPS).fetch_all(c).await)?,
    };
    Ok(compare(db, rows, migrations))
}

fn compare(db: &Db, rows: Vec<Row>, migrations: &[Migration]) -> MigrationStatus {
    let mut status = MigrationStatus::default();
    for row in rows {
        let Row { name, hash, step, version } = row;
        let known = migrations.iter().find(|migration| migration.name == name);
        match known {
            Some(known) if known.hash(db) != hash => status.changed.push(name),
            Some(known) => status.applied.push(known.name),
            None => {
                // A row without a step was written before steps were recorded.
                let step = step.as_deref().and_then(Step::of).unwrap_or(Step::Contract);
                status.newer.push(Applied { name, step, version });
            }
        }
    }
    let is_applied = |migration: &&Migration| {
        status.applied.contains(&migration.name) || status.changed.iter().any(|name| name == migration.name)
    };
    status.missing = migrations.iter().filter(|migration| !is_applied(migration)).copied().collect();
    status
}
