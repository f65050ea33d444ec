//! Brings a service's tables up to date.
//!
//! Migrations are embedded in the binary, applied in the order of their list, all that are missing in one transaction,
//! and recorded with a hash of their text. When nothing is missing, opening costs one read. On PostgreSQL processes
//! that start together wait for each other on an advisory lock.
//!
//! Each says in its first line whether it expands or contracts ([`Step`]), and that is recorded beside it. So a binary
//! which meets a migration that it does not know can tell whether it may go on: a rolling upgrade and its way back have
//! older and newer processes on one database (docs/adr/0075).

use sqlx::FromRow;

use super::standing::{Applied, Standing};
use super::{Db, Engine, Error, statistics};
use crate::on_db;

/// The release that migrates, for whoever meets its migrations later.
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// How many columns the table has had since steps are recorded; before, it had two.
const COLUMNS_WITH_STEPS: i64 = 4;

/// One step of a service's tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Migration {
    /// The file's name without its ending: `0001_files`. Never changes once released.
    pub name: &'static str,
    /// The step on SQLite; its first line is `-- expand` or `-- contract`.
    pub sqlite: &'static str,
    /// The step on PostgreSQL, which begins alike.
    pub postgres: &'static str,
}

/// What a migration means for binaries of the release before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// They go on reading and writing: something is added that they need not know.
    Expand,
    /// They would read or write wrongly: something that they use is gone or means something else.
    Contract,
}

impl Step {
    /// The word in the first line of a file and in the table.
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

/// A migration from `migrations/sqlite/NAME.sql` and `migrations/postgres/NAME.sql` of the crate that says it.
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
    /// What both engines' texts say in their first line; without a word it contracts, so that nobody goes on who
    /// should not.
    pub fn step(&self) -> Step {
        match (divided(self.sqlite).0, divided(self.postgres).0) {
            (Some(Step::Expand), Some(Step::Expand)) => Step::Expand,
            _ => Step::Contract,
        }
    }

    /// What is wrong with how it says its step; nothing when both engines' texts begin with the same word.
    pub fn fault(&self) -> Option<String> {
        let said = [divided(self.sqlite).0, divided(self.postgres).0];
        let fault = match said {
            [Some(sqlite), Some(postgres)] if sqlite == postgres => return self.takes_away(sqlite),
            [Some(_), Some(_)] => "its two texts say different steps",
            _ => "the first line of each text must be `-- expand` or `-- contract`",
        };
        Some(format!("{}: {fault}", self.name))
    }

    /// What an expanding step cannot do, as far as words tell.
    fn takes_away(&self, step: Step) -> Option<String> {
        const TAKING: [&str; 5] =
            ["DROP TABLE", "DROP COLUMN", "RENAME COLUMN", "SET NOT NULL", "DROP CONSTRAINT"];
        if step == Step::Contract {
            return None;
        }
        let taken = TAKING
            .into_iter()
            .find(|words| [self.sqlite, self.postgres].iter().any(|text| text.contains(words)))?;
        Some(format!("{}: it has `{taken}` and says that it expands", self.name))
    }

    fn text(&self, db: &Db) -> &'static str {
        match db.engine() {
            Engine::Sqlite(_) => self.sqlite,
            Engine::Postgres(_) => self.postgres,
        }
    }

    /// Of what is done, not of the line that says which step it is.
    fn hash(&self, db: &Db) -> String {
        blake3::hash(divided(self.text(db)).1.as_bytes()).to_hex().to_string()
    }
}

/// The step that a text begins with, and what follows that line; the whole text when it says none.
fn divided(text: &str) -> (Option<Step>, &str) {
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    let said = first.trim_end().strip_prefix("-- ").unwrap_or_default();
    // A reason may stand behind it.
    let word = said.split_once(':').map_or(said, |(word, _)| word);
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
    let found = standing(db, migrations).await?;
    if found.to_apply(service)?.is_empty() {
        found.warn_of_newer(service);
        return Ok(());
    }
    let mut tx = db.begin_write().await?;
    // Every service of the deployment may start at once, and CREATE SCHEMA races with itself.
    tx.lock_name("cairn:migrations").await?;
    if let Engine::Postgres(connection) = tx.engine() {
        // The name is one of the mesh's own services, never input.
        let create = sqlx::AssertSqlSafe(format!("CREATE SCHEMA IF NOT EXISTS \"{service}\""));
        let known: i64 =
            sqlx::query_scalar("SELECT COUNT(*) FROM pg_catalog.pg_namespace WHERE nspname = $1")
                .bind(service)
                .fetch_one(&mut *connection)
                .await?;
        if known == 0 {
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
    // Another process may have been faster.
    let rows: Vec<Row> = on_db!(tx, |c| sqlx::query_as(LIST_APPLIED).fetch_all(c).await)?;
    let found = compared(db, rows, migrations);
    for migration in found.to_apply(service)? {
        apply(db, &mut tx, service, migration).await?;
    }
    if let Engine::Sqlite(connection) = tx.engine() {
        statistics::tell(connection).await?;
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

/// Whether the service's tables are there, as this version wants them; written to is nothing.
pub(super) async fn is_current(
    db: &Db,
    service: &'static str,
    migrations: &[Migration],
) -> Result<bool, Error> {
    let found = standing(db, migrations).await?;
    if found.is_empty() {
        return Ok(false);
    }
    match found.to_apply(service)?.first() {
        None => Ok(true),
        Some(migration) => Err(Error::config(format!(
            "the database lacks the migration {}: it was written by an older version; start this one on it once",
            migration.name
        ))),
    }
}

/// What the database has of these migrations, and beside them; nothing is written.
pub(super) async fn standing(db: &Db, migrations: &[Migration]) -> Result<Standing, Error> {
    // On SQLite through the writer, which makes the file when it is missing.
    let columns: i64 = match db.writer().engine() {
        Engine::Sqlite(pool) => sqlx::query_scalar(SQLITE_COLUMNS).fetch_one(pool).await?,
        Engine::Postgres(pool) => sqlx::query_scalar(POSTGRES_COLUMNS).fetch_one(pool).await?,
    };
    let rows: Vec<Row> = match columns {
        0 => Vec::new(),
        COLUMNS_WITH_STEPS.. => on_db!(db.writer(), |c| sqlx::query_as(LIST_APPLIED).fetch_all(c).await)?,
        _ => on_db!(db.writer(), |c| sqlx::query_as(LIST_WITHOUT_STEPS).fetch_all(c).await)?,
    };
    Ok(compared(db, rows, migrations))
}

fn compared(db: &Db, rows: Vec<Row>, migrations: &[Migration]) -> Standing {
    let mut found = Standing::default();
    for row in rows {
        let Row { name, hash, step, version } = row;
        let known = migrations.iter().find(|migration| migration.name == name);
        match known {
            Some(known) if known.hash(db) != hash => found.changed.push(name),
            Some(known) => found.applied.push(known.name),
            None => {
                // What does not say its step is from before steps were recorded.
                let step = step.as_deref().and_then(Step::of).unwrap_or(Step::Contract);
                found.newer.push(Applied { name, step, version });
            }
        }
    }
    let is_there = |migration: &&Migration| {
        found.applied.contains(&migration.name) || found.changed.iter().any(|name| name == migration.name)
    };
    found.missing = migrations.iter().filter(|migration| !is_there(migration)).copied().collect();
    found
}
