//! Removes all rows of a workspace, in batches.

use cairn_chassis::sql::{Error, Text, Tx};
use cairn_chassis::{on_db, some_rows_of};
use cairn_proto::ids::WorkspaceId;

/// Each table with its statement.
pub(crate) const TABLES: &[(&str, &str)] = &[
    (
        "retrieval_counts",
        some_rows_of!(
            "retrieval_counts",
            "workspace_id, day, operation, channel, strategy, plan, principal_kind, principal_id"
        ),
    ),
    ("retrieval_latencies", some_rows_of!("retrieval_latencies", "workspace_id, day, operation, bucket")),
    ("retrieval_documents", some_rows_of!("retrieval_documents", "workspace_id, day, document_id")),
    ("retrieval_firsts", some_rows_of!("retrieval_firsts", "workspace_id, channel, milestone")),
    ("questions", some_rows_of!("questions", "workspace_id, id")),
    ("question_logs", some_rows_of!("question_logs", "workspace_id")),
    ("golden_questions", some_rows_of!("golden_questions", "workspace_id, id")),
];

#[cfg(test)]
pub(super) fn statements() -> Vec<cairn_chassis::sql::Statement> {
    TABLES.iter().map(|(_, statement)| (*statement).into()).collect()
}

/// Removes up to `limit` rows of each table; returns their number.
pub(crate) async fn remove_some(tx: &mut Tx, workspace: WorkspaceId, limit: i64) -> Result<u64, Error> {
    let mut removed = 0;
    for (_, statement) in TABLES {
        removed += on_db!(tx, |c| sqlx::query(*statement)
            .bind(Text(workspace))
            .bind(limit)
            .execute(c)
            .await
            .map(|done| done.rows_affected()))?;
    }
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use cairn_chassis::testing::{engines, tables_left};

    use super::*;
    use crate::store::{MIGRATIONS, SCHEMA};

    /// A new table with rows of workspaces must be added to `TABLES`.
    #[tokio::test]
    async fn every_table_of_workspaces_is_emptied() {
        // The states of workspaces stay: they reject late writes.
        let emptied: Vec<&str> = TABLES.iter().map(|(table, _)| *table).chain(["workspace_states"]).collect();
        for test in engines().await {
            let db = test.open(SCHEMA, MIGRATIONS).await.unwrap();
            let left = tables_left(&db, &emptied).await.unwrap();
            assert!(left.is_empty(), "a deleted workspace leaves rows in {left:?}");
        }
    }
}
