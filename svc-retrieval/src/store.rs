//! The tables of svc-retrieval: SQL only, no rule.

pub(crate) mod counts;
pub(crate) mod documents;
pub(crate) mod firsts;
pub(crate) mod latencies;

use cairn_chassis::sql::{Dialect, Error, Migration, Tx};
use cairn_chassis::{jobs, migration, on_db};
use serde_json::Value;

/// The schema of these tables on PostgreSQL.
pub(crate) const SCHEMA: &str = "retrieval";
pub(crate) const MIGRATIONS: &[Migration] = &[jobs::MIGRATION, migration!("0002_analytics")];

/// Rows that one statement takes; a larger statement would hold the one writer of SQLite for long.
const ROWS_AT_ONCE: usize = 1_000;

/// Writes rows, in the order in which they come, by a statement whose one parameter is a JSON array of arrays.
async fn write(tx: &mut Tx, statement: Dialect, rows: Vec<Value>) -> Result<(), Error> {
    let sql = statement.of(tx.engine());
    for some in rows.chunks(ROWS_AT_ONCE) {
        let list = Value::from(some).to_string();
        on_db!(tx, |c| sqlx::query(sql).bind(&list).execute(c).await.map(|_| ()))?;
    }
    Ok(())
}

/// A count as it stands in a column.
fn count(column: i64) -> u64 {
    u64::try_from(column).unwrap_or_default()
}

/// Every statement, for the test that prepares them all.
#[cfg(test)]
pub(crate) fn statements() -> Vec<cairn_chassis::sql::Statement> {
    let mut all = jobs::statements();
    all.extend(cairn_chassis::doctor::statements(crate::doctor::CHECKS));
    all.extend(counts::statements());
    all.extend(documents::statements());
    all.extend(firsts::statements());
    all.extend(latencies::statements());
    all
}
