//! A fresh database on every engine, for contract suites that run on each.

use std::path::Path;

use tempfile::TempDir;

use super::postgres;
use crate::sql::{Config, Db, Engine, Error, Migration};

/// A fresh, empty database; its file is deleted on drop.
#[derive(Debug)]
pub struct TestDb {
    /// `sqlite` or `postgres`, for assertion messages.
    pub engine: &'static str,
    /// The storage configuration for a service.
    pub config: Config,
    folder: Option<TempDir>,
}

/// The tmpfs, if the OS has one.
const TMPFS: &str = "/dev/shm";

impl TestDb {
    /// A fresh SQLite database on tmpfs, if the OS has one, which avoids disk waits: for simulations, which open many.
    ///
    /// # Panics
    /// When there is no temporary folder.
    #[expect(clippy::panic, reason = "for tests only")]
    pub fn in_memory() -> Self {
        let has_tmpfs = Path::new(TMPFS).is_dir();
        let folder = if has_tmpfs { TempDir::new_in(TMPFS) } else { TempDir::new() };
        let folder = folder.unwrap_or_else(|error| panic!("no temporary folder: {error}"));
        let config = Config::sqlite(folder.path().join("test.db"));
        Self { engine: "sqlite", config, folder: Some(folder) }
    }

    /// The folder of its files; `None` on PostgreSQL.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_ref().map(TempDir::path)
    }

    /// Opens it as a service would.
    ///
    /// # Errors
    /// When the migrations fail.
    pub async fn open(&self, service: &'static str, migrations: &[Migration]) -> Result<Db, Error> {
        Db::open(&self.config, service, migrations).await
    }
}

/// A fresh database on SQLite, always, and one on PostgreSQL when it is installed. A missing engine is reported
/// (`skipped: …`), and is a failure when `CAIRN_REQUIRE_ENGINES` names it.
///
/// # Panics
/// When there is no temporary folder, or a required engine is missing.
#[expect(clippy::panic, clippy::print_stderr, reason = "for tests only")]
pub async fn engines() -> Vec<TestDb> {
    let folder = TempDir::new().unwrap_or_else(|error| panic!("no temporary folder: {error}"));
    let config = Config::sqlite(folder.path().join("test.db"));
    let mut engines = vec![TestDb { engine: "sqlite", config, folder: Some(folder) }];
    match postgres::database().await {
        Ok(url) => {
            let config = Config::postgres(url);
            engines.push(TestDb { engine: "postgres", config, folder: None });
        }
        Err(why) if postgres::is_required() => panic!("CAIRN_REQUIRE_ENGINES wants postgres: {why}"),
        Err(why) => eprintln!("skipped: postgres: {why}"),
    }
    engines
}

/// The tables with workspace rows that are not among `emptied`: a test that they are none ensures that every new table is
/// purged with its workspace. Empty on PostgreSQL, which has the same tables.
///
/// # Errors
/// When the database cannot be read.
pub async fn tables_left(db: &Db, emptied: &[&str]) -> Result<Vec<String>, Error> {
    const TABLES: &str = "SELECT m.name FROM sqlite_schema m JOIN pragma_table_info(m.name) p \
         ON p.name = 'workspace_id' WHERE m.type = 'table'";
    let Engine::Sqlite(connection) = db.engine() else { return Ok(Vec::new()) };
    let mut tables: Vec<String> = sqlx::query_scalar(TABLES).fetch_all(connection).await?;
    tables.retain(|table| !emptied.contains(&table.as_str()));
    Ok(tables)
}
