//! Checks the plans of SQLite.

use sqlx::{AssertSqlSafe, Row as _, SqlSafeStr as _};

use super::catalog::Table;
use crate::sql::{Error, SqlitePool};

/// Separates statements that are sent together.
const SEPARATOR: &str = "; ";

/// The lines of the plans of a text that scan everything.
pub(super) async fn whole_reads(
    pool: &SqlitePool,
    tables: &[Table],
    text: &'static str,
) -> Result<Vec<String>, Error> {
    let mut lines = Vec::new();
    for statement in text.split(SEPARATOR) {
        lines.extend(whole_reads_of_one(pool, tables, statement).await?);
    }
    Ok(lines)
}

async fn whole_reads_of_one(
    pool: &SqlitePool,
    tables: &[Table],
    statement: &'static str,
) -> Result<Vec<String>, Error> {
    let explain = AssertSqlSafe(format!("EXPLAIN QUERY PLAN {statement}")).into_sql_str();
    let rows = sqlx::raw_sql(explain).fetch_all(pool).await;
    let rows = rows.map_err(|error| Error::from(error).within(format!("cannot explain {statement}")))?;
    let lines = rows.iter().map(|row| row.try_get::<String, _>("detail"));
    let lines = lines.collect::<Result<Vec<_>, _>>()?;
    Ok(lines.into_iter().filter(|line| is_whole(line, statement, tables)).collect())
}

/// Whether a line scans all rows of a table, or all of a workspace. Virtual tables are list parameters (`json_each`).
fn is_whole(line: &str, text: &str, tables: &[Table]) -> bool {
    let mut words = line.split_whitespace();
    let (Some(how), Some(name)) = (words.next(), words.next()) else { return false };
    let is_of = |table: &&Table| table.name == name || is_alias(text, &table.name, name);
    let Some(table) = tables.iter().find(is_of) else { return false };
    match how {
        "SCAN" => !line.contains("VIRTUAL TABLE"),
        // An automatic index is built from all rows.
        "SEARCH" if line.contains(" USING AUTOMATIC ") => true,
        "SEARCH" => line.ends_with("(workspace_id=?)") && !table.is_single(),
        _ => false,
    }
}

/// Whether the text has `FROM table alias` or `JOIN table alias`.
fn is_alias(text: &str, table: &str, alias: &str) -> bool {
    let words: Vec<&str> = text.split(|c: char| c.is_whitespace() || "(),".contains(c)).collect();
    words.windows(2).any(|pair| pair == [table, alias])
}
