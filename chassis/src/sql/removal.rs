//! Removing all that a service keeps of a workspace, some rows at a time.

use cairn_proto::ids::WorkspaceId;

use super::{Error, Statement, Statements, Text, Tx};
use crate::execute;

/// A table with how much of it one transaction takes; [`removed_table!`](crate::removed_table) makes one.
#[derive(Debug)]
pub struct Table {
    /// For tests, which compare it with the schema.
    pub name: &'static str,
    /// Rows.
    pub limit: i64,
    /// Removes so many rows (`$2`) of a workspace (`$1`), or lets go of what keeps them.
    pub remove: &'static str,
}

/// A [`Table`](crate::sql::removal::Table): its name, its key (`"workspace_id, …"`), and how many rows one transaction takes.
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

/// Removes rows of the first table that has any; how many. Removals of one workspace follow each other: `service` names
/// whose they are.
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
        let done = execute!(tx, table.remove, Text(workspace), table.limit)?;
        if done > 0 {
            return Ok(done);
        }
    }
    Ok(0)
}
