//! Removing all that there is of a workspace, some rows at a time.

use cairn_chassis::sql::{Db, Dialect, Error, Statement, Statements, Text, Tx, json_list};
use cairn_chassis::{execute, fetch, list_statement, some_rows_of, statements};
use cairn_proto::ids::{ObjectId, WorkspaceId};

macro_rules! table {
    ($name:literal, $key:literal, $limit:literal) => {
        Table { name: $name, limit: $limit, remove: some_rows_of!($name, $key) }
    };
}

statements! {
    pub(super) fn statements;

    /// A folder that is in no other can go in any order.
    const LIFT_FOLDERS: &str = "UPDATE folders SET parent_id = NULL WHERE (workspace_id, id) IN \
         (SELECT workspace_id, id FROM folders WHERE workspace_id = $1 AND parent_id IS NOT NULL LIMIT $2)";

    /// In the order in which rows can go: what refers to others goes before them. Only `asset_objects` is not here, since an
    /// object goes before its row does.
    pub(crate) const TABLES: &[Table] = &[
        table!("record_cells", "workspace_id, record_id, property_id, place", 2_000),
        table!("record_versions", "workspace_id, record_id, version", 500),
        table!("records", "workspace_id, id", 500),
        table!("record_counts", "workspace_id, database_id", 500),
        table!("former_options", "workspace_id, database_id, id", 500),
        table!("former_properties", "workspace_id, database_id, id", 500),
        table!("databases", "workspace_id, id", 100),
        table!("memory_members", "workspace_id, memory_id, id", 500),
        table!("memories", "workspace_id, id", 500),
        table!("file_versions", "workspace_id, file_id, version", 500),
        table!("files", "workspace_id, id", 500),
        // Up to 5 MiB each.
        table!("bodies", "workspace_id, hash", 50),
        Table { name: "folders", limit: 500, remove: LIFT_FOLDERS },
        table!("folders", "workspace_id, id", 500),
        table!("assets", "workspace_id, id", 500),
        table!("trash", "workspace_id, deletion_id", 500),
        table!("workspace_usage", "workspace_id", 1),
        table!("feed_changes", "workspace_id, position", 2_000),
        table!("feed_heads", "workspace_id", 1),
    ];

    const OBJECTS: &str = "SELECT object_id FROM asset_objects WHERE workspace_id = $1 LIMIT $2";

    const REMOVE_OBJECTS: Dialect =
        list_statement!("DELETE FROM asset_objects WHERE workspace_id = $1 AND object_id IN ", "$2", "");
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
    tx.lock_name(&format!("content-removal-{workspace}")).await
}

/// Removes, or lets go of, rows of the first table that has any; how many.
pub(crate) async fn remove_some(tx: &mut Tx, workspace: WorkspaceId) -> Result<u64, Error> {
    for table in TABLES {
        let done = execute!(tx, table.remove, Text(workspace), table.limit)?;
        if done > 0 {
            return Ok(done);
        }
    }
    Ok(0)
}

/// Some of the objects that a workspace has.
pub(crate) async fn objects(db: &Db, workspace: WorkspaceId, limit: i64) -> Result<Vec<ObjectId>, Error> {
    let rows: Vec<Text<ObjectId>> = fetch!(scalars, db, OBJECTS, Text(workspace), limit)?;
    Ok(rows.into_iter().map(|row| row.0).collect())
}

/// Removes the rows of objects that are gone.
pub(crate) async fn remove_objects(
    db: &Db,
    workspace: WorkspaceId,
    objects: &[ObjectId],
) -> Result<(), Error> {
    let writer = db.writer();
    execute!(writer, REMOVE_OBJECTS, Text(workspace), json_list(objects)).map(drop)
}
