//! Plan tests: no statement may scan a table, or all rows of a workspace, to find a few rows.
//!
//! Engines choose a plan by their statistics of a table's size, so each statement is explained on empty tables, on tables that
//! have grown since the last ANALYZE, and on large ones ([`Size`]).

use std::collections::BTreeMap;

use self::catalog::Table;
use super::{Db, Engine, Error, Migration, Statement};
use crate::testing::engines;

mod catalog;
mod postgres;
mod rows;
mod sqlite;

const ENGINES: usize = 2;

/// The size of the tables when a plan is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// No rows, as after the migrations.
    Empty,
    /// Rows without statistics.
    Fresh,
    /// Many rows, with statistics if the engine gathers any.
    Large,
}

/// A finding about a statement of a service, or about an entry of the test's allow-list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// A statement scans a whole table, or all rows of a workspace.
    ReadsAll {
        /// Its text.
        statement: &'static str,
        /// The name of the engine.
        engine: &'static str,
        /// The sizes at which it does.
        sizes: Vec<Size>,
        /// The line of the plan.
        line: String,
    },
    /// An entry of the allow-list that matches no such statement.
    Needless(String),
}

/// Checks the plans of a service's statements on every engine and at every [`Size`], except statements that contain one of the
/// texts in `allowed`. Needless entries of `allowed` are reported only when every engine is installed.
///
/// # Errors
/// When the tables cannot be filled, or an engine cannot explain a statement.
///
/// # Panics
/// As [`engines`] does.
pub async fn findings(
    service: &'static str,
    migrations: &[Migration],
    statements: &[Statement],
    allowed: &[&str],
) -> Result<Vec<Finding>, Error> {
    let (mut found, mut needless) = (Vec::new(), allowed.to_vec());
    let engines = engines().await;
    for test in &engines {
        let db = test.open(service, migrations).await?;
        for ((statement, line), sizes) in whole_reads(&db, statements).await? {
            needless.retain(|part| !statement.contains(part));
            if !allowed.iter().any(|part| statement.contains(part)) {
                found.push(Finding::ReadsAll { statement, engine: test.engine, sizes, line });
            }
        }
        db.close().await;
    }
    if engines.len() == ENGINES {
        found.extend(needless.into_iter().map(|part| Finding::Needless(part.to_owned())));
    }
    Ok(found)
}

/// The statements with the plan lines that scan everything, and the sizes at which they do.
async fn whole_reads(
    db: &Db,
    statements: &[Statement],
) -> Result<BTreeMap<(&'static str, String), Vec<Size>>, Error> {
    let tables = catalog::read(db).await?;
    let mut found = BTreeMap::<_, Vec<Size>>::new();
    for size in [Size::Empty, Size::Fresh, Size::Large] {
        rows::fill(db, &tables, size).await?;
        for statement in statements.iter().filter_map(|statement| statement.of(db.engine())) {
            for line in lines(db, &tables, size, statement).await? {
                let sizes = found.entry((statement, line)).or_default();
                // A plan may have the same line twice.
                if !sizes.contains(&size) {
                    sizes.push(size);
                }
            }
        }
    }
    Ok(found)
}

async fn lines(db: &Db, tables: &[Table], size: Size, statement: &'static str) -> Result<Vec<String>, Error> {
    match db.engine() {
        Engine::Sqlite(pool) => sqlite::whole_reads(pool, tables, statement).await,
        Engine::Postgres(pool) => postgres::whole_reads(pool, tables, size, statement).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: Migration = Migration {
        name: "0001_files",
        sqlite: "CREATE TABLE files (workspace_id TEXT NOT NULL, id TEXT NOT NULL, folder_id TEXT, name TEXT, \
                 PRIMARY KEY (workspace_id, id)) WITHOUT ROWID; \
             CREATE INDEX files_by_folder ON files (workspace_id, folder_id); \
             CREATE TABLE usage (workspace_id TEXT NOT NULL PRIMARY KEY, bytes BIGINT NOT NULL)",
        postgres: "CREATE TABLE files (workspace_id TEXT NOT NULL, id TEXT NOT NULL, folder_id TEXT, name TEXT, \
                 PRIMARY KEY (workspace_id, id)); \
             CREATE INDEX files_by_folder ON files (workspace_id, folder_id); \
             CREATE TABLE usage (workspace_id TEXT NOT NULL PRIMARY KEY, bytes BIGINT NOT NULL)",
    };
    const OF_WORKSPACE: &str = "SELECT COUNT(*) FROM files WHERE workspace_id = $1";
    const OF_ALL: &str = "SELECT COUNT(*) FROM files f WHERE name = $1";
    const BY_INDEX: [&str; 3] = [
        "SELECT id FROM files WHERE workspace_id = $1 AND id = $2",
        "SELECT f.id FROM files f WHERE f.workspace_id = $1 AND f.folder_id = $2 ORDER BY id",
        // One row of each workspace.
        "SELECT bytes FROM usage WHERE workspace_id = $1",
    ];

    #[tokio::test]
    async fn what_reads_all_is_told_and_what_is_allowed_in_vain() {
        let with_others = BY_INDEX.into_iter().chain([OF_WORKSPACE, OF_ALL]);
        let statements: Vec<Statement> = with_others.map(Statement::from).collect();
        let found = findings("plans", &[FILES], &statements, &[]).await.unwrap();
        for engine in engines().await {
            for text in [OF_WORKSPACE, OF_ALL] {
                let is_told = |finding: &Finding| {
                    matches!(finding, Finding::ReadsAll { statement, engine: of, sizes, .. }
                        if *statement == text && *of == engine.engine && sizes.contains(&Size::Large))
                };
                assert!(found.iter().any(is_told), "{}: {text}: {found:#?}", engine.engine);
            }
        }
        let by_index = |finding: &Finding| matches!(finding, Finding::ReadsAll { statement, .. } if BY_INDEX.contains(statement));
        assert!(!found.iter().any(by_index), "{found:#?}");
        let (allowed, needless) = ("SELECT COUNT(*)", "FROM folders");
        let left = findings("plans", &[FILES], &statements, &[allowed, needless]).await.unwrap();
        assert!(left.iter().all(|finding| *finding == Finding::Needless(needless.to_owned())), "{left:#?}");
    }
}
