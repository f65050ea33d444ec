//! Data folders written by earlier versions of Cairn, stored as text: `tests/upgrades/kept/<version>/`.
//!
//! A database is stored as the SQL that creates it (`<service>.sql`), as `sqlite3 .dump` would print it; assets and the
//! two small files are stored as they are. Everything else in a data folder is rebuilt.

use std::fs;
use std::path::{Path, PathBuf};

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, Connection as _, SqliteConnection};

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/upgrades/kept");
const SERVICES: [&str; 5] = ["auth", "content", "ingest", "retrieval", "sync"];
/// The secret key and the first account, of this fixture only.
const FILES: [&str; 2] = ["secret.key", "bootstrap.json"];
const ASSETS: &str = "assets";
/// Excludes SQLite's internal objects.
const NOT_INTERNAL: &str = r"sql IS NOT NULL AND name NOT LIKE 'sqlite\_%' ESCAPE '\'";

/// Every stored data folder, sorted by name.
pub(crate) fn list() -> Vec<PathBuf> {
    let mut fixtures: Vec<PathBuf> =
        fs::read_dir(FIXTURES).unwrap().map(|entry| entry.unwrap().path()).collect();
    fixtures.sort();
    fixtures
}

/// The path of the fixture of that version.
pub(crate) fn path(version: &str) -> PathBuf {
    Path::new(FIXTURES).join(version)
}

/// Restores a fixture into a data folder.
pub(crate) async fn restore(fixture: &Path, data: &Path) {
    for service in SERVICES {
        let sql = fs::read_to_string(fixture.join(format!("{service}.sql"))).unwrap();
        let mut database = open(data, service).await;
        let sql = AssertSqlSafe(format!("BEGIN;\n{sql}COMMIT;\n"));
        sqlx::raw_sql(sql).execute(&mut database).await.unwrap();
        database.close().await.unwrap();
    }
    copy_files(fixture, data);
}

/// Dumps a data folder that no process is using.
pub(crate) async fn dump(data: &Path, fixture: &Path) {
    fs::create_dir_all(fixture).unwrap();
    for service in SERVICES {
        let mut database = open(data, service).await;
        let tables = schema_column(&mut database, "sql", "type = 'table'").await;
        let further = schema_column(&mut database, "sql", "type <> 'table'").await;
        let mut lines: Vec<String> = tables.into_iter().map(|sql| format!("{sql};")).collect();
        for table in schema_column(&mut database, "name", "type = 'table'").await {
            lines.extend(rows(&mut database, &table).await);
        }
        lines.extend(further.into_iter().map(|sql| format!("{sql};")));
        database.close().await.unwrap();
        fs::write(fixture.join(format!("{service}.sql")), lines.join("\n") + "\n").unwrap();
    }
    copy_files(data, fixture);
}

async fn open(folder: &Path, service: &str) -> SqliteConnection {
    let path = folder.join(format!("{service}.db"));
    // The dump does not order rows by foreign key.
    let options = SqliteConnectOptions::new().filename(path).create_if_missing(true).foreign_keys(false);
    SqliteConnection::connect_with(&options).await.unwrap()
}

async fn schema_column(database: &mut SqliteConnection, column: &str, kind: &str) -> Vec<String> {
    let sql = format!("SELECT {column} FROM sqlite_schema WHERE {NOT_INTERNAL} AND {kind} ORDER BY rowid");
    texts(database, sql).await
}

/// An INSERT statement for each row; SQLite itself quotes the values.
async fn rows(database: &mut SqliteConnection, table: &str) -> Vec<String> {
    let columns = texts(database, format!("SELECT name FROM pragma_table_info('{table}')")).await;
    let quoted: Vec<String> = columns.iter().map(|column| format!("\"{column}\"")).collect();
    let values: Vec<String> = quoted.iter().map(|column| format!("quote({column})")).collect();
    let (names, values) = (quoted.join(", "), values.join(" || ', ' || "));
    let sql =
        format!("SELECT 'INSERT INTO \"{table}\" ({names}) VALUES (' || {values} || ');' FROM \"{table}\"");
    texts(database, sql).await
}

async fn texts(database: &mut SqliteConnection, sql: String) -> Vec<String> {
    sqlx::query_scalar(AssertSqlSafe(sql)).fetch_all(database).await.unwrap()
}

/// Copies what is not a database.
fn copy_files(from: &Path, to: &Path) {
    for name in FILES {
        fs::copy(from.join(name), to.join(name)).unwrap();
    }
    let assets = from.join(ASSETS);
    for workspace in fs::read_dir(assets).unwrap().flatten() {
        let target = to.join(ASSETS).join(workspace.file_name());
        fs::create_dir_all(&target).unwrap();
        for object in fs::read_dir(workspace.path()).unwrap().flatten() {
            fs::copy(object.path(), target.join(object.file_name())).unwrap();
        }
    }
}
