//! Removing all that there is of a workspace, some rows at a time.

use cairn_chassis::sql::{Error, Statement, Statements, Text, Tx};
use cairn_chassis::{execute, some_rows_of, statements};
use cairn_proto::ids::WorkspaceId;

macro_rules! table {
    ($name:literal, $key:literal, $limit:literal) => {
        Table { name: $name, limit: $limit, remove: some_rows_of!($name, $key) }
    };
}

statements! {
    pub(super) fn statements;

    /// In the order in which rows can go: what refers to others goes before them.
    pub(crate) const TABLES: &[Table] = &[
        table!("extractions", "workspace_id, document_id", 500),
        // Up to 1 MiB each.
        table!("upload_pieces", "workspace_id, document_id, place", 50),
        table!("ingested_documents", "workspace_id, id", 500),
        table!("source_documents", "workspace_id, id", 500),
        table!("source_runs", "workspace_id, source_id, id", 500),
        table!("provider_operations", "workspace_id, source_id, day, ledger", 500),
        table!("sources", "workspace_id, id", 100),
        // Up to 5 MiB each.
        table!("bodies", "workspace_id, hash", 50),
        table!("workspace_usage", "workspace_id", 1),
        table!("feed_changes", "workspace_id, position", 2_000),
        table!("feed_heads", "workspace_id", 1),
    ];
}

/// A table with how much of it one transaction takes.
#[derive(Debug)]
pub(crate) struct Table {
    #[cfg_attr(not(test), expect(dead_code, reason = "a test compares it with the schema"))]
    pub(crate) name: &'static str,
    limit: i64,
    remove: &'static str,
}

impl Statements for Table {
    fn list(&self, into: &mut Vec<Statement>) {
        self.remove.list(into);
    }
}

/// Removals of one workspace follow each other.
pub(crate) async fn lock(tx: &mut Tx, workspace: WorkspaceId) -> Result<(), Error> {
    tx.lock_name(&format!("ingest-removal-{workspace}")).await
}

/// Removes rows of the first table that has any; how many.
pub(crate) async fn remove_some(tx: &mut Tx, workspace: WorkspaceId) -> Result<u64, Error> {
    for table in TABLES {
        let done = execute!(tx, table.remove, Text(workspace), table.limit)?;
        if done > 0 {
            return Ok(done);
        }
    }
    Ok(0)
}
