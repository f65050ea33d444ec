//! Counts of retrievals by day and dimension.

use std::collections::BTreeMap;

use cairn_chassis::sql::{Dialect, Error, Tx};
use cairn_proto::ids::WorkspaceId;
use serde_json::json;

use super::count;
use crate::analytics::{CountKey, Counts, Day};

macro_rules! add {
    ($select:literal) => {
        concat!(
            "INSERT INTO retrieval_counts (workspace_id, day, operation, channel, strategy, plan, principal_kind, \
             principal_id, total, failed, empty, cached, results, content_bytes, provider_operations) ",
            $select,
            " ON CONFLICT (workspace_id, day, operation, channel, strategy, plan, principal_kind, principal_id) \
             DO UPDATE SET total = retrieval_counts.total + excluded.total, \
             failed = retrieval_counts.failed + excluded.failed, \
             empty = retrieval_counts.empty + excluded.empty, \
             cached = retrieval_counts.cached + excluded.cached, \
             results = retrieval_counts.results + excluded.results, \
             content_bytes = retrieval_counts.content_bytes + excluded.content_bytes, \
             provider_operations = retrieval_counts.provider_operations + excluded.provider_operations"
        )
    };
}

/// SQLite needs the WHERE to distinguish ON CONFLICT from the ON of a join.
const ADD: Dialect = Dialect {
    sqlite: add!(
        "SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, \
         value ->> 7, value ->> 8, value ->> 9, value ->> 10, value ->> 11, value ->> 12, value ->> 13, value ->> 14 \
         FROM json_each($1) WHERE true"
    ),
    postgres: add!(
        "SELECT r ->> 0, CAST(r ->> 1 AS BIGINT), r ->> 2, r ->> 3, r ->> 4, r ->> 5, r ->> 6, r ->> 7, \
         CAST(r ->> 8 AS BIGINT), CAST(r ->> 9 AS BIGINT), CAST(r ->> 10 AS BIGINT), CAST(r ->> 11 AS BIGINT), \
         CAST(r ->> 12 AS BIGINT), CAST(r ->> 13 AS BIGINT), CAST(r ->> 14 AS BIGINT) \
         FROM jsonb_array_elements(CAST(CAST($1 AS TEXT) AS JSONB)) AS list (r)"
    ),
};

macro_rules! sums {
    () => {
        "CAST(SUM(total) AS BIGINT) AS total, CAST(SUM(failed) AS BIGINT) AS failed, \
         CAST(SUM(empty) AS BIGINT) AS empty, CAST(SUM(cached) AS BIGINT) AS cached, \
         CAST(SUM(results) AS BIGINT) AS results, CAST(SUM(content_bytes) AS BIGINT) AS content_bytes, \
         CAST(SUM(provider_operations) AS BIGINT) AS provider_operations"
    };
}

const BY_DAY: &str = concat!(
    "SELECT day, ",
    sums!(),
    " FROM retrieval_counts WHERE workspace_id = $1 AND day BETWEEN $2 AND $3 GROUP BY day"
);

const BY_DIMENSIONS: &str = concat!(
    "SELECT operation, channel, strategy, plan, principal_kind, principal_id, ",
    sums!(),
    " FROM retrieval_counts WHERE workspace_id = $1 AND day BETWEEN $2 AND $3 \
     GROUP BY operation, channel, strategy, plan, principal_kind, principal_id"
);

const DELETE_BEFORE: &str = "DELETE FROM retrieval_counts WHERE day < $1";

#[cfg(test)]
pub(super) fn statements() -> Vec<cairn_chassis::sql::Statement> {
    vec![ADD.into(), BY_DAY.into(), BY_DIMENSIONS.into(), DELETE_BEFORE.into()]
}

#[derive(Debug, sqlx::FromRow)]
struct Sums {
    total: i64,
    failed: i64,
    empty: i64,
    cached: i64,
    results: i64,
    content_bytes: i64,
    provider_operations: i64,
}

impl From<Sums> for Counts {
    fn from(sums: Sums) -> Self {
        Self {
            total: count(sums.total),
            failed: count(sums.failed),
            empty: count(sums.empty),
            cached: count(sums.cached),
            results: count(sums.results),
            content_bytes: count(sums.content_bytes),
            provider_operations: count(sums.provider_operations),
        }
    }
}

#[derive(Debug, sqlx::FromRow)]
struct DayRow {
    day: i64,
    #[sqlx(flatten)]
    sums: Sums,
}

#[derive(Debug, sqlx::FromRow)]
struct ShareRow {
    operation: String,
    channel: String,
    strategy: String,
    plan: String,
    principal_kind: String,
    principal_id: String,
    #[sqlx(flatten)]
    sums: Sums,
}

/// The counts of one combination of dimensions.
#[derive(Debug)]
pub(crate) struct Share {
    pub(crate) operation: String,
    pub(crate) channel: String,
    pub(crate) strategy: String,
    pub(crate) plan: String,
    pub(crate) principal: (String, String),
    pub(crate) counts: Counts,
}

/// Adds to the counts.
pub(crate) async fn add(tx: &mut Tx, counts: &BTreeMap<CountKey, Counts>) -> Result<(), Error> {
    let rows = counts.iter().map(|(key, sum)| {
        json!([
            key.workspace,
            key.day.number(),
            key.operation.as_str(),
            key.channel.as_str(),
            key.strategy.as_str(),
            key.plan,
            key.principal_kind,
            key.principal_id,
            sum.total,
            sum.failed,
            sum.empty,
            sum.cached,
            sum.results,
            sum.content_bytes,
            sum.provider_operations,
        ])
    });
    super::write(tx, ADD, rows.collect()).await
}

/// The counts of each day that has any.
pub(crate) async fn by_day(
    tx: &mut Tx,
    workspace: WorkspaceId,
    days: (Day, Day),
) -> Result<Vec<(Day, Counts)>, Error> {
    let rows: Vec<DayRow> = super::fetch_days(tx, BY_DAY, workspace, days).await?;
    Ok(rows.into_iter().map(|row| (Day::from_number(row.day), row.sums.into())).collect())
}

/// The counts of these days for each combination of dimensions.
pub(crate) async fn by_dimensions(
    tx: &mut Tx,
    workspace: WorkspaceId,
    days: (Day, Day),
) -> Result<Vec<Share>, Error> {
    let rows: Vec<ShareRow> = super::fetch_days(tx, BY_DIMENSIONS, workspace, days).await?;
    let share = |row: ShareRow| Share {
        operation: row.operation,
        channel: row.channel,
        strategy: row.strategy,
        plan: row.plan,
        principal: (row.principal_kind, row.principal_id),
        counts: row.sums.into(),
    };
    Ok(rows.into_iter().map(share).collect())
}

/// Deletes the rows of all days before; returns their number.
pub(crate) async fn delete_before(tx: &mut Tx, before: Day) -> Result<u64, Error> {
    super::delete_before(tx, DELETE_BEFORE, before).await
}
