//! Brings a service's tables up to date.
//!
//! Migrations are embedded in the binary, applied in the order of their list, all that are missing in one transaction,
//! and recorded with a hash of their text. When nothing is missing, opening costs one read. On PostgreSQL processes
//! that start together wait for each other on an advisory lock.

use super::{Db, Engine, Error};
use crate::on_db;

/// One step of a service's tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Migration {
    /// The file's name without its ending: `0001_files`. Never changes once released.
    pub name: &'static str,
    /// The step on SQLite.
    pub sqlite: &'static str,
    /// The step on PostgreSQL.
    pub postgres: &'static str,
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

const CREATE_MIGRATIONS: &str =
    "CREATE TABLE IF NOT EXISTS migrations (name TEXT NOT NULL PRIMARY KEY, hash TEXT NOT NULL)";
const LIST_APPLIED: &str = "SELECT name, hash FROM migrations";
const RECORD: &str = "INSERT INTO migrations (name, hash) VALUES ($1, $2)";
const SQLITE_HAS_TABLE: &str = "SELECT COUNT(*) FROM sqlite_schema WHERE name = 'migrations'";
const POSTGRES_HAS_TABLE: &str = "SELECT COUNT(*) FROM pg_catalog.pg_tables \
     WHERE schemaname = current_schema() AND tablename = 'migrations'";

impl Migration {
    fn hash(&self, db: &Db) -> String {
        let text = match db.engine() {
            Engine::Sqlite(_) => self.sqlite,
            Engine::Postgres(_) => self.postgres,
        };
        blake3::hash(text.as_bytes()).to_hex().to_string()
    }
}

pub(super) async fn run(db: &Db, service: &'static str, migrations: &[Migration]) -> Result<(), Error> {
    if missing(db, &applied(db).await?, migrations)?.is_empty() {
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
    // Another process may have been faster.
    let applied = on_db!(tx, |c| sqlx::query_as(LIST_APPLIED).fetch_all(c).await)?;
    for migration in missing(db, &applied, migrations)? {
        tracing::info!(service, migration = migration.name, "migrating");
        match tx.engine() {
            Engine::Sqlite(c) => sqlx::raw_sql(migration.sqlite).execute(c).await.map(|_| ()),
            Engine::Postgres(c) => sqlx::raw_sql(migration.postgres).execute(c).await.map(|_| ()),
        }
        .map_err(|error| Error::from(error).within(format!("migration {} failed", migration.name)))?;
        let hash = migration.hash(db);
        on_db!(tx, |c| sqlx::query(RECORD).bind(migration.name).bind(&hash).execute(c).await.map(|_| ()))?;
    }
    tx.commit().await
}

/// Whether the service's tables are there, as this version wants them; written to is nothing.
pub(super) async fn is_current(db: &Db, migrations: &[Migration]) -> Result<bool, Error> {
    let applied = applied(db).await?;
    if applied.is_empty() {
        return Ok(false);
    }
    match missing(db, &applied, migrations)?.first() {
        None => Ok(true),
        Some(migration) => Err(Error::config(format!(
            "the database lacks the migration {}: it was written by an older version; start this one on it once",
            migration.name
        ))),
    }
}

async fn applied(db: &Db) -> Result<Vec<(String, String)>, Error> {
    // On SQLite through the writer, which makes the file when it is missing.
    let tables: i64 = match db.writer().engine() {
        Engine::Sqlite(pool) => sqlx::query_scalar(SQLITE_HAS_TABLE).fetch_one(pool).await?,
        Engine::Postgres(pool) => sqlx::query_scalar(POSTGRES_HAS_TABLE).fetch_one(pool).await?,
    };
    if tables == 0 {
        return Ok(Vec::new());
    }
    on_db!(db.writer(), |c| sqlx::query_as(LIST_APPLIED).fetch_all(c).await)
}

fn missing<'a>(
    db: &Db,
    applied: &[(String, String)],
    migrations: &'a [Migration],
) -> Result<Vec<&'a Migration>, Error> {
    for (name, hash) in applied {
        let Some(known) = migrations.iter().find(|migration| migration.name == name) else {
            return Err(Error::config(format!(
                "the database has the migration {name}, which this version does not know: it was written by a newer \
                 one; start that, or restore a backup from before the upgrade"
            )));
        };
        if known.hash(db) != *hash {
            return Err(Error::config(format!("the migration {name} was changed after it had been applied")));
        }
    }
    let is_missing = |migration: &&Migration| !applied.iter().any(|(name, _)| name == migration.name);
    Ok(migrations.iter().filter(is_missing).collect())
}
