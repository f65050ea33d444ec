//! The tables of svc-retrieval: SQL only, no business rules.

pub(crate) mod counts;
pub(crate) mod documents;
pub(crate) mod firsts;
pub(crate) mod golden;
pub(crate) mod latencies;
pub(crate) mod questions;
pub(crate) mod removal;

use cairn_chassis::sql::{Dialect, Error, Migration, Text, Tx};
use cairn_chassis::{jobs, lifecycle, migration, on_db};
use cairn_proto::ids::WorkspaceId;
use serde_json::Value;
use sqlx::FromRow;
use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;

use crate::analytics::Day;

/// The schema of these tables on PostgreSQL.
pub(crate) const SCHEMA: &str = "retrieval";
pub(crate) const MIGRATIONS: &[Migration] = &[
    jobs::MIGRATION,
    migration!("0002_analytics"),
    lifecycle::MIGRATION,
    migration!("0003_questions"),
    migration!("0004_golden"),
];

/// The maximum number of rows per statement: a larger one would block SQLite's only writer for too long.
const ROWS_PER_STATEMENT: usize = 1_000;

/// Writes rows in the given order, with a statement whose only parameter is a JSON array of arrays.
async fn write(tx: &mut Tx, statement: Dialect, rows: Vec<Value>) -> Result<(), Error> {
    let sql = statement.of(tx.engine());
    for some in rows.chunks(ROWS_PER_STATEMENT) {
        let list = Value::from(some).to_string();
        on_db!(tx, |c| sqlx::query(sql).bind(&list).execute(c).await.map(|_| ()))?;
    }
    Ok(())
}

/// Runs a query over the days $2 to $3 of a workspace ($1).
async fn fetch_days<R>(
    tx: &mut Tx,
    sql: &'static str,
    workspace: WorkspaceId,
    days: (Day, Day),
) -> Result<Vec<R>, Error>
where
    R: for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow> + Send + Unpin,
{
    on_db!(tx, |c| sqlx::query_as(sql)
        .bind(Text(workspace))
        .bind(days.0.number())
        .bind(days.1.number())
        .fetch_all(c)
        .await)
}

/// Deletes the rows of all days before $1; returns their number.
async fn delete_before(tx: &mut Tx, sql: &'static str, before: Day) -> Result<u64, Error> {
    on_db!(tx, |c| sqlx::query(sql).bind(before.number()).execute(c).await.map(|done| done.rows_affected()))
}

/// A count from a signed column.
fn count(column: i64) -> u64 {
    u64::try_from(column).unwrap_or_default()
}

/// All statements, for the test that prepares them.
#[cfg(test)]
pub(crate) fn statements() -> Vec<cairn_chassis::sql::Statement> {
    let mut all = jobs::statements();
    all.extend(lifecycle::statements());
    all.extend(cairn_chassis::doctor::statements(crate::doctor::CHECKS));
    all.extend(counts::statements());
    all.extend(documents::statements());
    all.extend(firsts::statements());
    all.extend(golden::statements());
    all.extend(latencies::statements());
    all.extend(questions::statements());
    all.extend(removal::statements());
    all
}
