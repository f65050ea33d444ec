//! Histograms of latencies.

use std::collections::BTreeMap;

use cairn_chassis::sql::{Dialect, Error, Tx};
use cairn_proto::ids::WorkspaceId;
use serde_json::json;

use super::count;
use crate::analytics::{Bucket, Day, LatencyKey};

macro_rules! add {
    ($select:literal) => {
        concat!(
            "INSERT INTO retrieval_latencies (workspace_id, day, operation, bucket, answers) ",
            $select,
            " ON CONFLICT (workspace_id, day, operation, bucket) \
             DO UPDATE SET answers = retrieval_latencies.answers + excluded.answers"
        )
    };
}

const ADD: Dialect = Dialect {
    sqlite: add!(
        "SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4 FROM json_each($1) WHERE true"
    ),
    postgres: add!(
        "SELECT r ->> 0, CAST(r ->> 1 AS BIGINT), r ->> 2, CAST(r ->> 3 AS BIGINT), CAST(r ->> 4 AS BIGINT) \
         FROM jsonb_array_elements(CAST(CAST($1 AS TEXT) AS JSONB)) AS list (r)"
    ),
};

const LIST: &str = "SELECT day, operation, bucket, answers FROM retrieval_latencies \
     WHERE workspace_id = $1 AND day BETWEEN $2 AND $3";

const DELETE_BEFORE: &str = "DELETE FROM retrieval_latencies WHERE day < $1";

#[cfg(test)]
pub(super) fn statements() -> Vec<cairn_chassis::sql::Statement> {
    vec![ADD.into(), LIST.into(), DELETE_BEFORE.into()]
}

#[derive(Debug, sqlx::FromRow)]
struct Row {
    day: i64,
    operation: String,
    bucket: i64,
    answers: i64,
}

/// One bucket of the histogram of a day and operation.
#[derive(Debug)]
pub(crate) struct Answers {
    pub(crate) day: Day,
    pub(crate) operation: String,
    pub(crate) bucket: Bucket,
    pub(crate) count: u64,
}

/// Adds to the histograms.
pub(crate) async fn add(tx: &mut Tx, latencies: &BTreeMap<LatencyKey, u64>) -> Result<(), Error> {
    let rows = latencies.iter().map(|(key, answers)| {
        json!([key.workspace, key.day.number(), key.operation.as_str(), key.bucket.number(), answers])
    });
    super::write(tx, ADD, rows.collect()).await
}

/// The histograms of these days.
pub(crate) async fn list(
    tx: &mut Tx,
    workspace: WorkspaceId,
    days: (Day, Day),
) -> Result<Vec<Answers>, Error> {
    let rows: Vec<Row> = super::fetch_days(tx, LIST, workspace, days).await?;
    let answers = |row: Row| Answers {
        day: Day::from_number(row.day),
        operation: row.operation,
        bucket: Bucket::from_number(row.bucket),
        count: count(row.answers),
    };
    Ok(rows.into_iter().map(answers).collect())
}

/// Deletes the rows of all days before; returns their number.
pub(crate) async fn delete_before(tx: &mut Tx, before: Day) -> Result<u64, Error> {
    super::delete_before(tx, DELETE_BEFORE, before).await
}
