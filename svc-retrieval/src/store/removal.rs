//! Removing all that was counted of a workspace, some rows at a time.

use cairn_chassis::on_db;
use cairn_chassis::sql::{Error, Text, Tx};
use cairn_proto::ids::WorkspaceId;

/// Some rows ($2) of a workspace ($1) in a table with that key.
macro_rules! some_of {
    ($table:literal, $key:literal) => {
        concat!(
            "DELETE FROM ",
            $table,
            " WHERE (",
            $key,
            ") IN (SELECT ",
            $key,
            " FROM ",
            $table,
            " WHERE workspace_id = $1 LIMIT $2)"
        )
    };
}

/// Each table.
pub(crate) const TABLES: &[(&str, &str)] = &[
    (
        "retrieval_counts",
        some_of!(
            "retrieval_counts",
            "workspace_id, day, operation, channel, strategy, plan, principal_kind, principal_id"
        ),
    ),
    ("retrieval_latencies", some_of!("retrieval_latencies", "workspace_id, day, operation, bucket")),
    ("retrieval_documents", some_of!("retrieval_documents", "workspace_id, day, document_id")),
    ("retrieval_firsts", some_of!("retrieval_firsts", "workspace_id, channel, milestone")),
];

#[cfg(test)]
pub(super) fn statements() -> Vec<cairn_chassis::sql::Statement> {
    TABLES.iter().map(|(_, statement)| (*statement).into()).collect()
}

/// Removes rows of each table; how many.
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
    use cairn_chassis::sql::Engine;
    use cairn_chassis::testing::engines;

    use super::*;
    use crate::store::{MIGRATIONS, SCHEMA};

    /// Whoever adds a table of workspaces' rows says here how they go.
    #[tokio::test]
    async fn every_table_of_workspaces_is_emptied() {
        for test in engines().await {
            let db = test.open(SCHEMA, MIGRATIONS).await.unwrap();
            let Engine::Sqlite(connection) = db.engine() else { continue };
            let tables: Vec<String> = sqlx::query_scalar(
                "SELECT m.name FROM sqlite_schema m JOIN pragma_table_info(m.name) p \
                 ON p.name = 'workspace_id' WHERE m.type = 'table' AND m.name <> 'workspace_states'",
            )
            .fetch_all(connection)
            .await
            .unwrap();
            let is_emptied = |table: &String| TABLES.iter().any(|(emptied, _)| *emptied == table.as_str());
            let kept: Vec<_> = tables.iter().filter(|table| !is_emptied(table)).collect();
            assert!(!tables.is_empty() && kept.is_empty(), "a deleted workspace leaves rows in {kept:?}");
        }
    }
}
