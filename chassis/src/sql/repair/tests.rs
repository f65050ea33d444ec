use std::os::unix::fs::FileExt as _;

use tempfile::TempDir;

use super::*;
use crate::sql::{Migration, Tables};

const TEXT: &str = "-- expand
CREATE TABLE notes (workspace TEXT NOT NULL, id TEXT NOT NULL, text BLOB NOT NULL, PRIMARY KEY (workspace, id));
CREATE TABLE names (workspace TEXT NOT NULL, id TEXT NOT NULL, name TEXT, PRIMARY KEY (workspace, id)) WITHOUT ROWID;
CREATE INDEX names_by_name ON names (workspace, name, id);
CREATE INDEX named ON names (workspace, name) WHERE name IS NOT NULL;
";
const MIGRATIONS: &[Migration] = &[Migration { name: "0001_notes", sqlite: TEXT, postgres: TEXT }];
const TABLES: Tables = Tables { service: "notes", migrations: MIGRATIONS };
const ROWS: i64 = 500;
const PAGE: u64 = 4096;
/// The first bytes of pages with rows, and of pages with keys (SQLite, "Database File Format").
const LEAF_OF_TABLE: u8 = 13;

async fn filled(folder: &TempDir) -> Config {
    let config = Config::sqlite(folder.path().join("notes.db"));
    let db = crate::sql::Db::open(&config, TABLES.service, TABLES.migrations).await.unwrap();
    for table in ["notes (workspace, id, text)", "names (workspace, id, name)"] {
        let sql = format!(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {ROWS}) \
             INSERT INTO {table} SELECT 'w', 'id' || i, hex(zeroblob(60)) || i FROM n"
        );
        let crate::sql::Engine::Sqlite(writer) = db.writer().engine() else { unreachable!("it is SQLite") };
        sqlx::query(sqlx::AssertSqlSafe(sql)).execute(writer).await.unwrap();
    }
    db.close().await;
    config
}

async fn open(config: &Config) -> SqliteConnection {
    let options = SqliteConnectOptions::new().filename(config.file().unwrap());
    SqliteConnection::connect_with(&options).await.unwrap()
}

async fn count(config: &Config, table: &str) -> i64 {
    let mut connection = open(config).await;
    let sql = sqlx::AssertSqlSafe(format!("SELECT COUNT(*) FROM {table}"));
    sqlx::query_scalar(sql).fetch_one(&mut connection).await.unwrap()
}

/// Writes noise over these pages, counted from 0, among those that begin with that byte.
fn damage(config: &Config, kind: u8, places: &[usize]) {
    let path = config.file().unwrap();
    let bytes = std::fs::read(path).unwrap();
    let pages = bytes.chunks(4096).enumerate().skip(1);
    let of_kind: Vec<usize> = pages.filter(|(_, page)| page[0] == kind).map(|(number, _)| number).collect();
    let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    for place in places {
        file.write_all_at(&[0xa5; 4096], of_kind[*place] as u64 * PAGE).unwrap();
    }
}

#[tokio::test]
async fn a_sound_file_is_sound() {
    let folder = TempDir::new().unwrap();
    let config = filled(&folder).await;
    assert_eq!(examine(&config).await.unwrap(), Vec::<String>::new());
    assert_eq!(examine(&Config::sqlite(folder.path().join("none.db"))).await.unwrap(), Vec::<String>::new());
    std::fs::write(folder.path().join("empty.db"), "").unwrap();
    assert_eq!(examine(&Config::sqlite(folder.path().join("empty.db"))).await.unwrap().len(), 1);
    std::fs::write(folder.path().join("noise.db"), [7_u8; 9000]).unwrap();
    assert_eq!(examine(&Config::sqlite(folder.path().join("noise.db"))).await.unwrap().len(), 1);
    let fresh = folder.path().join("fresh.db");
    assert_eq!(salvage(&folder.path().join("noise.db"), &fresh, TABLES).await.unwrap(), Salvaged::Nothing);
    assert!(!fresh.exists());
}

#[tokio::test]
async fn an_index_is_built_again() {
    let folder = TempDir::new().unwrap();
    let config = filled(&folder).await;
    let mut connection = open(&config).await;
    // The index is told another text than the table has.
    for sql in [
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_schema SET sql = 'CREATE INDEX names_by_name ON names (workspace, id, name)' \
         WHERE name = 'names_by_name'",
    ] {
        sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
    }
    connection.close().await.unwrap();
    let faults = examine(&config).await.unwrap();
    assert!(only_in_indexes(&faults), "{faults:?}");
    assert!(reindex(&config).await.unwrap());
    assert_eq!(examine(&config).await.unwrap(), Vec::<String>::new());
    assert_eq!(count(&config, "names").await, ROWS);
}

#[tokio::test]
async fn what_can_be_read_of_a_damaged_table_is_kept_and_the_rest_is_named() {
    let folder = TempDir::new().unwrap();
    let config = filled(&folder).await;
    damage(&config, LEAF_OF_TABLE, &[4, 7]);
    assert!(!examine(&config).await.unwrap().is_empty());
    let fresh = Config::sqlite(folder.path().join("fresh.db"));
    for _ in 0..2 {
        // Again over what a first try has left.
        let done = salvage(config.file().unwrap(), fresh.file().unwrap(), TABLES).await.unwrap();
        let Salvaged::Copied(lost) = done else { unreachable!("{done:?}") };
        let [lost] = lost.as_slice() else { unreachable!("{lost:?}") };
        assert_eq!((lost.table.as_str(), lost.may_have_more), ("notes", false));
        assert!(lost.rows > 10 && lost.named[0].starts_with("workspace = 'w' AND id = 'id"), "{lost:?}");
        assert_eq!(count(&fresh, "notes").await + i64::try_from(lost.rows).unwrap(), ROWS);
        assert_eq!(count(&fresh, "names").await, ROWS);
        assert_eq!(examine(&fresh).await.unwrap(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_file_of_another_version_is_left_alone() {
    let folder = TempDir::new().unwrap();
    let config = filled(&folder).await;
    let mut connection = open(&config).await;
    sqlx::query("DELETE FROM migrations").execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    let refused = salvage(config.file().unwrap(), &folder.path().join("fresh.db"), TABLES).await.unwrap_err();
    assert!(refused.to_string().contains("another version"), "{refused}");
}
