//! Every statement is accepted by every engine.

use cairn_chassis::doctor;
use cairn_chassis::sql::plans;

use super::*;

#[tokio::test]
async fn every_engine_takes_every_statement() {
    for bench in benches().await {
        let mut all = store::statements();
        all.extend(doctor::statements(crate::doctor::CHECKS));
        all.extend(doctor::mends(crate::doctor::CHECKS));
        sql::prepare_all(&bench.service.context().db, &all).await.unwrap();
    }
}

/// Parts of statements that are to read all rows of a table or of a workspace.
const READ_ALL: &[&str] = &[
    // Few rows, looked at now and then.
    "FROM workspace_states WHERE suspended",
    "FROM workspace_states WHERE changed_at < $1",
    // A workspace is removed in parts, whichever rows come first.
    " WHERE workspace_id = $1 LIMIT $2",
    // Pieces of archives are few, and swept now and then.
    "DELETE FROM sync_pieces WHERE (run_id",
    // A workspace has few runs: they are removed after some weeks.
    "FROM sync_runs",
    "UPDATE sync_runs SET lease_until = $1",
];

#[tokio::test]
async fn no_statement_reads_all_to_find_some() {
    let found =
        plans::findings(store::SCHEMA, store::MIGRATIONS, &store::statements(), READ_ALL).await.unwrap();
    assert!(found.is_empty(), "{found:#?}");
}
