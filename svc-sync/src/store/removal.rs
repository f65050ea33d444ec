//! Removing all that there is of a workspace, some rows at a time.

use cairn_chassis::lifecycle::Rows;
use cairn_chassis::sql::Db;
use cairn_chassis::sql::removal::Table;
use cairn_chassis::{removed_table, statements};

statements! {
    pub(super) fn statements;

    /// In the order in which rows can go: what refers to others goes before them.
    pub(crate) const TABLES: &[Table] = &[
        removed_table!("sync_batches", "workspace_id, run_id, phase, place", 100),
        // Up to 5 MiB each.
        removed_table!("sync_pieces", "workspace_id, run_id, place", 50),
        removed_table!("sync_details", "workspace_id, run_id", 50),
        removed_table!("sync_entries", "workspace_id, origin, name, kind, path", 2_000),
        removed_table!("sync_runs", "workspace_id, id", 500),
    ];
}

/// The rows that are removed with a workspace.
pub(crate) const fn rows(db: Db) -> Rows {
    Rows { db, service: "sync", tables: TABLES }
}
