//! Removes all rows of a workspace, in batches.

use cairn_chassis::lifecycle::Rows;
use cairn_chassis::sql::Db;
use cairn_chassis::sql::removal::Table;
use cairn_chassis::{removed_table, statements};

statements! {
    pub(super) fn statements;

    /// Referencing tables before those that they refer to.
    pub(crate) const TABLES: &[Table] = &[
        removed_table!("sync_batches", "workspace_id, run_id, phase, place", 100),
        // Up to 5 MiB each.
        removed_table!("sync_pieces", "workspace_id, run_id, place", 50),
        removed_table!("sync_details", "workspace_id, run_id", 50),
        removed_table!("sync_entries", "workspace_id, origin, name, kind, path", 2_000),
        removed_table!("sync_runs", "workspace_id, id", 500),
    ];
}

/// The tables whose rows are removed with a workspace.
pub(crate) const fn rows(db: Db) -> Rows {
    Rows { db, service: "sync", tables: TABLES }
}
