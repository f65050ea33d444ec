//! Copies the readable rows of a corrupt file, table by table.
//!
//! A table without damage is copied with one statement. For any other, the keys are collected from everywhere they can be
//! read: from the table, scanned from both ends up to the damage, and from its indexes, which hold each key a second time.
//! Then each row is copied by its key, and the keys whose rows cannot be read are reported as lost.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use futures::StreamExt as _;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, Connection as _, Sqlite, SqliteConnection};

use super::MAX_LISTED;
use crate::sql::{Config, Db, Error, Tables};

/// The losses of one table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    /// Its name.
    pub table: String,
    /// Rows whose key was found, but that cannot be read.
    pub rows: u64,
    /// The keys of some of them, 20 at most.
    pub named: Vec<String>,
    /// Whether there may be more lost rows, whose keys cannot be read either.
    pub may_have_more: bool,
}

/// The result of a salvage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Salvaged {
    /// The new file has all rows but these.
    Copied(Vec<Lost>),
    /// Not even the table names can be read. No new file is written.
    Nothing,
}

/// How a single row is selected.
enum Key {
    /// By its rowid. The columns are those of the primary key, for reports.
    Rowid(Vec<String>),
    /// By the columns of its primary key.
    Primary(Vec<String>),
}

struct Table {
    /// Quoted.
    name: String,
    columns: Vec<String>,
    key: Key,
    /// Without partial indexes.
    indexes: Vec<Index>,
}

struct Index {
    /// Quoted.
    name: String,
    is_primary: bool,
}

/// Copies the readable rows of a corrupt file into a new one, which is created with the tables of this version. The corrupt
/// file is not changed, except that SQLite may checkpoint its log into it.
///
/// # Errors
/// When the corrupt file is of another version, or the new one cannot be written.
pub async fn salvage(damaged: &Path, fresh: &Path, tables: Tables) -> Result<Salvaged, Error> {
    remove(fresh)?;
    Db::open(&Config::sqlite(fresh), tables.service, tables.migrations).await?.close().await;
    let options = SqliteConnectOptions::new()
        .filename(fresh)
        .foreign_keys(false)
        // The file is synced once, at the end.
        .pragma("synchronous", "OFF");
    let mut connection = SqliteConnection::connect_with(&options).await?;
    let copied = copy(&mut connection, damaged, tables).await;
    // Checkpointed, so that the file is complete without its log.
    run(&mut connection, "PRAGMA main.wal_checkpoint(TRUNCATE)".to_owned()).await?;
    connection.close().await?;
    match copied? {
        Some(lost) => {
            std::fs::File::open(fresh).and_then(|file| file.sync_all()).map_err(sqlx::Error::Io)?;
            Ok(Salvaged::Copied(lost))
        }
        None => {
            remove(fresh)?;
            Ok(Salvaged::Nothing)
        }
    }
}

/// Removes the files of a database, if they exist.
fn remove(path: &Path) -> Result<(), Error> {
    for suffix in ["", "-wal", "-shm"] {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        match std::fs::remove_file(PathBuf::from(name)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(sqlx::Error::Io(error).into());
            }
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

async fn copy(
    connection: &mut SqliteConnection,
    damaged: &Path,
    known: Tables,
) -> Result<Option<Vec<Lost>>, Error> {
    let path = damaged.display().to_string();
    let attached = sqlx::query("ATTACH DATABASE $1 AS damaged").bind(&path).execute(&mut *connection).await;
    if attached.is_err() {
        return Ok(None);
    }
    let tables = texts(connection, "SELECT name FROM damaged.sqlite_schema WHERE type = 'table'").await;
    if tables.is_none_or(|names| names.is_empty()) {
        return Ok(None);
    }
    if let Some(applied) = texts(connection, "SELECT name FROM damaged.migrations").await {
        let is_ours = applied.len() == known.migrations.len()
            && known.migrations.iter().all(|migration| applied.iter().any(|name| name == migration.name));
        if !is_ours {
            return Err(Error::corrupt(
                "the damaged database is of another version: mend it with the version that wrote it",
            ));
        }
    }
    let mut lost = Vec::new();
    let names = "SELECT name FROM main.sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' \
                 AND name <> 'migrations' ORDER BY name";
    for name in texts(connection, names).await.unwrap_or_default() {
        let table = Table::read(connection, &name).await?;
        lost.extend(copy_table(connection, &name, &table).await?);
    }
    Ok(Some(lost))
}

/// The texts of one column; `None` when they cannot be read.
async fn texts(connection: &mut SqliteConnection, sql: &str) -> Option<Vec<String>> {
    sqlx::query_scalar::<Sqlite, String>(AssertSqlSafe(sql.to_owned())).fetch_all(connection).await.ok()
}

impl Table {
    /// Reads a table's schema from the new file.
    async fn read(connection: &mut SqliteConnection, name: &str) -> Result<Self, Error> {
        let columns: Vec<(String, i64)> =
            sqlx::query_as("SELECT name, pk FROM pragma_table_info($1, 'main') ORDER BY cid")
                .bind(name)
                .fetch_all(&mut *connection)
                .await?;
        let mut primary: Vec<(i64, String)> = columns
            .iter()
            .filter(|(_, place)| *place > 0)
            .map(|(column, place)| (*place, quoted(column)))
            .collect();
        primary.sort();
        let primary: Vec<String> = primary.into_iter().map(|(_, column)| column).collect();
        let without_rowid: i64 =
            sqlx::query_scalar("SELECT wr FROM pragma_table_list WHERE schema = 'main' AND name = $1")
                .bind(name)
                .fetch_one(&mut *connection)
                .await?;
        let key = if without_rowid == 1 { Key::Primary(primary) } else { Key::Rowid(primary) };
        let indexes: Vec<(String, String)> =
            sqlx::query_as("SELECT name, origin FROM pragma_index_list($1, 'main') WHERE partial = 0")
                .bind(name)
                .fetch_all(&mut *connection)
                .await?;
        let index =
            |(name, origin): (String, String)| Index { name: quoted(&name), is_primary: origin == "pk" };
        Ok(Self {
            name: quoted(name),
            columns: columns.iter().map(|(column, _)| quoted(column)).collect(),
            key,
            indexes: indexes.into_iter().map(index).collect(),
        })
    }

    /// The statement that copies the rows of that condition.
    fn copy_statement(&self, condition: &str) -> String {
        let (name, columns) = (&self.name, self.columns.join(", "));
        // Rows keep their rowid, so that `OR IGNORE` skips one that was copied before.
        let rowid = match self.key {
            Key::Rowid(_) => "rowid, ",
            Key::Primary(_) => "",
        };
        format!(
            "INSERT OR IGNORE INTO main.{name} ({rowid}{columns}) \
             SELECT {rowid}{columns} FROM damaged.{name} NOT INDEXED {condition}"
        )
    }

    /// Queries that collect keys, each in another way. They select a condition that selects the row, and its key for reports.
    fn key_queries(&self) -> Vec<String> {
        let name = &self.name;
        let (condition, order) = match &self.key {
            Key::Rowid(_) => ("'rowid = ' || rowid".to_owned(), vec!["rowid".to_owned()]),
            Key::Primary(columns) => (condition_of(columns), columns.clone()),
        };
        let mut all = Vec::new();
        for direction in ["ASC", "DESC"] {
            let order: Vec<String> = order.iter().map(|column| format!("{column} {direction}")).collect();
            let order = order.join(", ");
            all.push(format!("SELECT {condition}, NULL FROM damaged.{name} NOT INDEXED ORDER BY {order}"));
        }
        for index in &self.indexes {
            let label = match &self.key {
                Key::Rowid(columns) if index.is_primary => condition_of(columns),
                // That index is the table itself.
                Key::Primary(_) if index.is_primary => continue,
                Key::Rowid(_) | Key::Primary(_) => "NULL".to_owned(),
            };
            all.push(format!("SELECT {condition}, {label} FROM damaged.{name} INDEXED BY {}", index.name));
        }
        all
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// An SQL expression that yields the condition which selects a row by its values in these columns.
fn condition_of(columns: &[String]) -> String {
    let parts: Vec<String> =
        columns.iter().map(|column| format!("'{column} = ' || quote({column})")).collect();
    parts.join(" || ' AND ' || ")
}

async fn copy_table(
    connection: &mut SqliteConnection,
    name: &str,
    table: &Table,
) -> Result<Option<Lost>, Error> {
    let empty = format!("DELETE FROM main.{}", table.name);
    run(connection, empty.clone()).await?;
    if run(connection, table.copy_statement("")).await.is_ok() && is_whole(connection, &table.name).await {
        return Ok(None);
    }
    run(connection, empty).await?;
    let (rows, is_complete) = keys(connection, table).await;
    let mut lost = Lost { table: name.to_owned(), rows: 0, named: Vec::new(), may_have_more: !is_complete };
    for (condition, label) in rows {
        let copied = run(connection, table.copy_statement(&format!("WHERE {condition}"))).await;
        if copied.is_ok_and(|rows| rows == 1) {
            continue;
        }
        lost.rows += 1;
        if lost.named.len() < MAX_LISTED {
            lost.named.push(label.unwrap_or(condition).replace('"', ""));
        }
    }
    Ok((lost.rows > 0 || lost.may_have_more).then_some(lost))
}

/// Whether as many rows were copied as the table has: `OR IGNORE` skips rows that violate a constraint.
async fn is_whole(connection: &mut SqliteConnection, name: &str) -> bool {
    let sql = format!(
        "SELECT (SELECT COUNT(*) FROM main.{name}) = (SELECT COUNT(*) FROM damaged.{name} NOT INDEXED)"
    );
    let same = sqlx::query_scalar::<Sqlite, i64>(AssertSqlSafe(sql)).fetch_one(connection).await;
    same.is_ok_and(|same| same == 1)
}

/// The conditions that select the rows, with their keys for reports; and whether one of the queries ran to its end.
async fn keys(connection: &mut SqliteConnection, table: &Table) -> (BTreeMap<String, Option<String>>, bool) {
    let (mut found, mut is_complete) = (BTreeMap::<String, Option<String>>::new(), false);
    for query in table.key_queries() {
        let mut rows =
            sqlx::query_as::<Sqlite, (String, Option<String>)>(AssertSqlSafe(query)).fetch(&mut *connection);
        let mut reached_end = true;
        while let Some(row) = rows.next().await {
            let Ok((condition, label)) = row else {
                reached_end = false;
                break;
            };
            let known = found.entry(condition).or_default();
            if known.is_none() {
                *known = label;
            }
        }
        is_complete |= reached_end;
    }
    (found, is_complete)
}

async fn run(connection: &mut SqliteConnection, sql: String) -> Result<u64, sqlx::Error> {
    let done = sqlx::raw_sql(AssertSqlSafe(sql)).execute(connection).await?;
    Ok(done.rows_affected())
}
