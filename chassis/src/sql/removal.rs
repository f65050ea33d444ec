//! Deletes the rows of a workspace in batches.

use cairn_proto::ids::WorkspaceId;

use super::{Error, Statement, Statements, Text, Tx};
use crate::execute;

/// A table and its batch size; [`removed_table!`](crate::removed_table) makes one.
#[derive(Debug)]
pub struct Table {
    /// For tests, which compare it with the schema.
    pub name: &'static str,
    /// Rows of a batch.
    pub limit: i64,
    /// Deletes up to `$2` rows of the workspace `$1`, or removes the references that block their deletion.
    pub remove: &'static str,
}

/// A [`Table`](crate::sql::removal::Table): its name, its key (`"workspace_id, …"`) and its batch size.
#[macro_export]
macro_rules! removed_table {
    ($name:literal, $key:literal, $limit:literal) => {
        $crate::sql::removal::Table { name: $name, limit: $limit, remove: $crate::some_rows_of!($name, $key) }
    };
}

impl Statements for Table {
    fn list(&self, into: &mut Vec<Statement>) {
        self.remove.list(into);
    }
}

/// Deletes a batch of the first table that has rows, and returns how many it deleted. Removals of one workspace by one
/// service are serialized.
///
/// # Errors
/// When the database refuses.
pub async fn remove_some(
    tx: &mut Tx,
    service: &str,
    tables: &[Table],
    workspace: WorkspaceId,
) -> Result<u64, Error> {
    tx.lock_name(&format!("{service}-removal-{workspace}")).await?;
    for table in tables {
        let deleted = execute!(tx, table.remove, Text(workspace), table.limit)?;
        if deleted > 0 {
            return Ok(deleted);
        }
    }
    Ok(0)
}
