//! Every statement is accepted by every engine.

use cairn_chassis::doctor;
use cairn_chassis::sql::{self, plans};

use super::*;

#[tokio::test]
async fn every_engine_takes_every_statement() {
    for bench in benches().await {
        let mut all = store::statements();
        all.extend(doctor::statements(&crate::doctor::checks()));
        all.extend(doctor::mends(&crate::doctor::checks()));
        all.extend(store::doctor::mends());
        sql::prepare_all(&bench.context.db, &all).await.unwrap();
    }
}

/// Parts of statements that are to read all rows of a table or of a workspace.
const READ_ALL: &[&str] = &[
    // What compares an index looks at all.
    "SELECT c.workspace_id, c.item_id, c.kind, c.op, c.position",
    // A workspace has few webhooks, and each keeps a bounded number of deliveries.
    "FROM webhook_deliveries WHERE workspace_id = $1 GROUP BY webhook_id",
    "FROM webhooks",
    "UPDATE webhooks SET holder = NULL, lease_until = NULL, look_at = $1",
    // Few rows, looked at now and then.
    "FROM workspace_states WHERE suspended",
    "FROM workspace_states WHERE changed_at < $1",
    // A sweep, of few pieces.
    "DELETE FROM upload_pieces WHERE document_id < $1",
    // Whoever replaces the key seals all of them anew; they are few.
    "UPDATE sources SET credentials = $2, sealing = $3",
    "UPDATE webhooks SET secrets = $2, sealing = $3",
    // A workspace is removed in parts, whichever rows come first.
    " WHERE workspace_id = $1 LIMIT $2",
    // What is counted or added up is read.
    "COUNT(*)",
    // Times are compared with those of all.
    "COALESCE(occurred_at, created_at) >",
    "COALESCE(d.updated_at, d.changed_at) >",
    // A workspace has few sources and runs of them, and what they used is kept for few days.
    "FROM sources",
    "JOIN sources s ON s.workspace_id = $1",
    "FROM source_runs",
    "UPDATE source_runs SET lease_until = $1",
    "FROM provider_operations WHERE workspace_id = $1 AND day = $2",
    "DELETE FROM provider_operations WHERE day < $1",
];

#[tokio::test]
async fn no_statement_reads_all_to_find_some() {
    let found =
        plans::findings(store::SCHEMA, store::MIGRATIONS, &store::statements(), READ_ALL).await.unwrap();
    assert!(found.is_empty(), "{found:#?}");
}
