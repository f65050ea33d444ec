//! How often documents were retrieved.

use std::collections::BTreeMap;

use cairn_chassis::on_db;
use cairn_chassis::sql::{Dialect, Error, Text, Tx};
use cairn_proto::ids::WorkspaceId;
use serde_json::json;
use uuid::Uuid;

use super::count;
use crate::analytics::{Day, DocumentCounts, DocumentKey};

macro_rules! add {
    ($select:literal) => {
        concat!(
            "INSERT INTO retrieval_documents (workspace_id, day, document_id, kind, retrievals, best) ",
            $select,
            " ON CONFLICT (workspace_id, day, document_id) \
             DO UPDATE SET retrievals = retrieval_documents.retrievals + excluded.retrievals, \
             best = retrieval_documents.best + excluded.best"
        )
    };
}

const ADD: Dialect = Dialect {
    sqlite: add!(
        "SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5 FROM json_each($1) \
         WHERE true"
    ),
    postgres: add!(
        "SELECT r ->> 0, CAST(r ->> 1 AS BIGINT), r ->> 2, r ->> 3, CAST(r ->> 4 AS BIGINT), \
         CAST(r ->> 5 AS BIGINT) FROM jsonb_array_elements(CAST(CAST($1 AS TEXT) AS JSONB)) AS list (r)"
    ),
};

const LIST_TOP: &str = "SELECT document_id, MIN(kind) AS kind, CAST(SUM(retrievals) AS BIGINT) AS retrievals, \
     CAST(SUM(best) AS BIGINT) AS best FROM retrieval_documents WHERE workspace_id = $1 AND day BETWEEN $2 AND $3 \
     GROUP BY document_id ORDER BY 3 DESC, 4 DESC, document_id LIMIT $4";

const DELETE_BEFORE: &str = "DELETE FROM retrieval_documents WHERE day < $1";

/// Keeps the $2 most frequent documents of each workspace on a day.
const TRIM: &str = "DELETE FROM retrieval_documents WHERE day = $1 AND (workspace_id, document_id) IN (\
     SELECT workspace_id, document_id FROM (SELECT workspace_id, document_id, ROW_NUMBER() OVER (\
     PARTITION BY workspace_id ORDER BY retrievals DESC, best DESC, document_id) AS place \
     FROM retrieval_documents WHERE day = $1) AS ranked WHERE place > $2)";

#[cfg(test)]
pub(super) fn statements() -> Vec<cairn_chassis::sql::Statement> {
    vec![ADD.into(), LIST_TOP.into(), DELETE_BEFORE.into(), TRIM.into()]
}

#[derive(Debug, sqlx::FromRow)]
struct Row {
    document_id: Text<Uuid>,
    kind: String,
    retrievals: i64,
    best: i64,
}

/// A retrieved document.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) id: Uuid,
    pub(crate) kind: String,
    pub(crate) counts: DocumentCounts,
}

/// Adds to the counts.
pub(crate) async fn add(tx: &mut Tx, documents: &BTreeMap<DocumentKey, DocumentCounts>) -> Result<(), Error> {
    let rows = documents.iter().map(|(key, counts)| {
        let (workspace, day, kind) = (key.workspace, key.day.number(), key.kind.as_str_name());
        json!([workspace, day, key.document, kind, counts.retrievals, counts.best])
    });
    super::write(tx, ADD, rows.collect()).await
}

/// The most frequently retrieved documents of these days.
pub(crate) async fn list_top(
    tx: &mut Tx,
    workspace: WorkspaceId,
    days: (Day, Day),
    limit: i64,
) -> Result<Vec<Found>, Error> {
    let rows: Vec<Row> = on_db!(tx, |c| sqlx::query_as(LIST_TOP)
        .bind(Text(workspace))
        .bind(days.0.number())
        .bind(days.1.number())
        .bind(limit)
        .fetch_all(c)
        .await)?;
    let found = |row: Row| Found {
        id: row.document_id.0,
        kind: row.kind,
        counts: DocumentCounts { retrievals: count(row.retrievals), best: count(row.best) },
    };
    Ok(rows.into_iter().map(found).collect())
}

/// Deletes the rows of all days before; returns their number.
pub(crate) async fn delete_before(tx: &mut Tx, before: Day) -> Result<u64, Error> {
    super::delete_before(tx, DELETE_BEFORE, before).await
}

/// Deletes all but the most frequent documents of each workspace on a day; returns the number of deleted rows.
pub(crate) async fn trim(tx: &mut Tx, day: Day, keep: i64) -> Result<u64, Error> {
    on_db!(tx, |c| sqlx::query(TRIM)
        .bind(day.number())
        .bind(keep)
        .execute(c)
        .await
        .map(|done| done.rows_affected()))
}
