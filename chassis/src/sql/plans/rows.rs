//! Generated rows: of the right types and with distinct keys, but without a meaning.

use std::ops::RangeInclusive;

use sqlx::sqlite::{SqliteConnectOptions, SqliteSynchronous};
use sqlx::{AssertSqlSafe, Connection as _, PgPool, SqliteConnection};

use super::Size;
use super::catalog::{Column, TENANT, Table};
use crate::sql::{Db, Engine, Error, SqlitePool};

const FRESH: u64 = 2_000;
/// Enough rows that a few dozen look-ups cost less than a scan of a workspace.
const LARGE: u64 = 40_000;
/// The same for an engine without measured statistics.
const LARGE_UNCOUNTED: u64 = 10_000;
const WORKSPACES: u64 = 2;
/// Rows of a workspace with equal values in a column that is no key.
const EQUAL_ROWS: u64 = 8;
/// The suffixes of columns with few distinct values, and the number of values. It is coprime to the other numbers here, so
/// that columns are not correlated.
const LOW_CARDINALITY: [&str; 4] = ["kind", "op", "state", "status"];
const FEW_VALUES: u64 = 7;
/// One row in this many has a value in a nullable column.
const NON_NULL: u64 = 15;
/// One row in this many is true in a boolean column.
const TRUE: u64 = 11;

const FILE: &str = "SELECT file FROM pragma_database_list WHERE name = 'main'";
/// Disables foreign keys: generated rows reference rows that do not exist.
const DISABLE_FOREIGN_KEYS: &str = "SET LOCAL session_replication_role = replica";

/// Grows tables from the previous size to this one. SQLite needs no ANALYZE then: its statistics are synthetic.
pub(super) async fn fill(db: &Db, tables: &[Table], size: Size) -> Result<(), Error> {
    let numbers = match (size, db.engine()) {
        (Size::Empty, _) => return Ok(()),
        (Size::Fresh, _) => 1..=FRESH,
        (Size::Large, Engine::Sqlite(_)) => FRESH + 1..=LARGE_UNCOUNTED,
        (Size::Large, Engine::Postgres(_)) => FRESH + 1..=LARGE,
    };
    match db.engine() {
        Engine::Sqlite(pool) => in_sqlite(pool, tables, &numbers).await,
        Engine::Postgres(pool) => in_postgres(pool, tables, &numbers, size).await,
    }
}

/// On a connection of its own, since foreign keys can be disabled only for a whole connection and not in a transaction.
async fn in_sqlite(pool: &SqlitePool, tables: &[Table], numbers: &RangeInclusive<u64>) -> Result<(), Error> {
    let file: String = sqlx::query_scalar(FILE).fetch_one(pool).await?;
    let options = SqliteConnectOptions::new()
        .filename(file)
        .foreign_keys(false)
        .pragma("ignore_check_constraints", "ON")
        .synchronous(SqliteSynchronous::Off);
    let mut connection = SqliteConnection::connect_with(&options).await?;
    for table in tables {
        let (columns, values) = listed(table, Engine::Sqlite(()))?;
        let (first, last) = (numbers.start(), numbers.end());
        let insert = AssertSqlSafe(format!(
            "WITH RECURSIVE numbers (n) AS (SELECT {first} UNION ALL SELECT n + 1 FROM numbers WHERE n < {last}) \
             INSERT INTO \"{}\" ({columns}) SELECT {values} FROM numbers WHERE TRUE ON CONFLICT DO NOTHING",
            table.name
        ));
        sqlx::raw_sql(insert)
            .execute(&mut connection)
            .await
            .map_err(|error| Error::from(error).within(format!("cannot fill {}", table.name)))?;
    }
    connection.close().await?;
    Ok(())
}

async fn in_postgres(
    pool: &PgPool,
    tables: &[Table],
    numbers: &RangeInclusive<u64>,
    size: Size,
) -> Result<(), Error> {
    let mut tx = pool.begin().await?;
    sqlx::raw_sql(DISABLE_FOREIGN_KEYS).execute(&mut *tx).await?;
    for table in tables {
        let (columns, values) = listed(table, Engine::Postgres(()))?;
        let (first, last) = (numbers.start(), numbers.end());
        let insert = AssertSqlSafe(format!(
            "INSERT INTO \"{}\" ({columns}) SELECT {values} \
             FROM generate_series(CAST({first} AS BIGINT), {last}) AS numbers (n) ON CONFLICT DO NOTHING",
            table.name
        ));
        sqlx::raw_sql(insert)
            .execute(&mut *tx)
            .await
            .map_err(|error| Error::from(error).within(format!("cannot fill {}", table.name)))?;
    }
    tx.commit().await?;
    if size == Size::Large {
        sqlx::raw_sql("ANALYZE").execute(pool).await?;
    }
    Ok(())
}

/// The columns of a table, and what row `n` has there.
fn listed(table: &Table, engine: Engine) -> Result<(String, String), Error> {
    let names: Vec<String> = table.columns.iter().map(|column| format!("\"{}\"", column.name)).collect();
    let values: Vec<String> =
        table.columns.iter().map(|column| value(table, column, engine)).collect::<Result<_, _>>()?;
    Ok((names.join(", "), values.join(", ")))
}

fn value(table: &Table, column: &Column, engine: Engine) -> Result<String, Error> {
    let number = number(table, &column.name);
    let text = match engine {
        Engine::Sqlite(()) => format!("printf('%012d', {number})"),
        Engine::Postgres(()) => format!("lpad(CAST({number} AS TEXT), 12, '0')"),
    };
    let value = match column.kind.as_str() {
        "TEXT" => text,
        "BIGINT" | "INTEGER" => number,
        "DOUBLE PRECISION" | "REAL" => format!("CAST({number} AS DOUBLE PRECISION)"),
        "BLOB" => format!("CAST({text} AS BLOB)"),
        "BYTEA" => format!("convert_to({text}, 'UTF8')"),
        "BOOLEAN" => format!("{number} % {TRUE} = 0"),
        other => return Err(Error::config(format!("no rows are made of {other}, as in {}", table.name))),
    };
    // Nullable key columns always have a value: without it, rows would not be distinct.
    if column.is_required {
        return Ok(value);
    }
    Ok(format!("CASE WHEN n % {NON_NULL} = 0 THEN {value} END"))
}

/// The last column of a key makes its rows distinct.
fn number(table: &Table, column: &str) -> String {
    let ends_key = table.keys().any(|key| {
        let last = key.iter().flatten().rfind(|name| *name != TENANT);
        last.is_some_and(|name| name == column)
    });
    if ends_key || table.is_key(column) {
        return "n".to_owned();
    }
    if column == TENANT {
        return format!("(n % {WORKSPACES})");
    }
    if LOW_CARDINALITY.iter().any(|end| column.ends_with(end)) {
        return format!("(n % {FEW_VALUES})");
    }
    format!("(n / {} * {WORKSPACES} + n % {WORKSPACES})", WORKSPACES * EQUAL_ROWS)
}

#[cfg(test)]
mod tests {
    use super::super::catalog::Index;
    use super::*;

    #[test]
    fn keys_are_told_apart_by_their_last_column() {
        let index = |is_unique: bool, columns: &[&str]| {
            let columns = columns.iter().map(|name| Some((*name).to_owned())).collect();
            Index { name: String::new(), is_unique, columns }
        };
        let indexes = vec![
            index(true, &[TENANT, "record_id", "place"]),
            index(true, &["token"]),
            index(false, &[TENANT, "due_at"]),
        ];
        let table = Table { name: "cells".to_owned(), columns: Vec::new(), indexes };
        assert_eq!(number(&table, TENANT), "(n % 2)");
        assert_eq!(number(&table, "record_id"), "(n / 16 * 2 + n % 2)");
        assert_eq!(number(&table, "place"), "n");
        assert_eq!(number(&table, "token"), "n");
        assert_eq!(number(&table, "due_at"), "(n / 16 * 2 + n % 2)");
        assert_eq!(number(&table, "index_state"), "(n % 7)");
    }
}
