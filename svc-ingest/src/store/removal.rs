//! Removes all rows of a workspace, in batches.

use cairn_chassis::lifecycle::Rows;
use cairn_chassis::sql::Db;
use cairn_chassis::sql::removal::Table;
use cairn_chassis::{removed_table, statements};

statements! {
    pub(super) fn statements;

    /// Referencing tables before those that they refer to.
    pub(crate) const TABLES: &[Table] = &[
        removed_table!("extractions", "workspace_id, document_id", 500),
        // Up to 1 MiB each.
        removed_table!("upload_pieces", "workspace_id, document_id, place", 50),
        removed_table!("ingested_documents", "workspace_id, id", 500),
        removed_table!("source_documents", "workspace_id, id", 500),
        removed_table!("source_runs", "workspace_id, source_id, id", 500),
        removed_table!("provider_operations", "workspace_id, source_id, day, ledger", 500),
        removed_table!("sources", "workspace_id, id", 100),
        // Up to a hundred changes each.
        removed_table!("webhook_deliveries", "workspace_id, webhook_id, id", 100),
        removed_table!("webhooks", "workspace_id, id", 100),
        // Up to 5 MiB each.
        removed_table!("bodies", "workspace_id, hash", 50),
        removed_table!("workspace_usage", "workspace_id", 1),
        removed_table!("feed_changes", "workspace_id, position", 2_000),
        removed_table!("feed_heads", "workspace_id", 1),
    ];
}

/// The tables whose rows are removed with a workspace.
pub(crate) const fn rows(db: Db) -> Rows {
    Rows { db, service: "ingest", tables: TABLES }
}
