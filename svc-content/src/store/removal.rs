//! The removal of everything of a workspace, in batches.

use cairn_chassis::lifecycle::Rows;
use cairn_chassis::sql::removal::Table;
use cairn_chassis::sql::{Db, Dialect, Error, Text, json_list};
use cairn_chassis::{execute, fetch, list_statement, removed_table, statements};
use cairn_proto::ids::{ObjectId, WorkspaceId};

statements! {
    pub(super) fn statements;

    /// A folder without a parent can be deleted in any order.
    const LIFT_FOLDERS: &str = "UPDATE folders SET parent_id = NULL WHERE (workspace_id, id) IN \
         (SELECT workspace_id, id FROM folders WHERE workspace_id = $1 AND parent_id IS NOT NULL LIMIT $2)";

    /// Referencing rows first. `asset_objects` is missing here: an object is deleted before its row.
    pub(crate) const TABLES: &[Table] = &[
        removed_table!("record_cells", "workspace_id, record_id, property_id, place", 2_000),
        removed_table!("record_versions", "workspace_id, record_id, version", 500),
        removed_table!("records", "workspace_id, id", 500),
        removed_table!("record_counts", "workspace_id, database_id", 500),
        removed_table!("former_options", "workspace_id, database_id, id", 500),
        removed_table!("former_properties", "workspace_id, database_id, id", 500),
        removed_table!("databases", "workspace_id, id", 100),
        removed_table!("memory_members", "workspace_id, memory_id, id", 500),
        // Up to a thousand members each.
        removed_table!("memory_versions", "workspace_id, memory_id, version", 200),
        removed_table!("memories", "workspace_id, id", 500),
        removed_table!("file_versions", "workspace_id, file_id, version", 500),
        removed_table!("files", "workspace_id, id", 500),
        // Up to 5 MiB each.
        removed_table!("bodies", "workspace_id, hash", 50),
        Table { name: "folders", limit: 500, remove: LIFT_FOLDERS },
        removed_table!("folders", "workspace_id, id", 500),
        removed_table!("assets", "workspace_id, id", 500),
        removed_table!("trash", "workspace_id, deletion_id", 500),
        removed_table!("activity", "workspace_id, happened_at, position, place", 2_000),
        removed_table!("workspace_usage", "workspace_id", 1),
        removed_table!("feed_changes", "workspace_id, position", 2_000),
        removed_table!("feed_heads", "workspace_id", 1),
    ];

    const OBJECTS: &str = "SELECT object_id FROM asset_objects WHERE workspace_id = $1 LIMIT $2";

    const REMOVE_OBJECTS: Dialect =
        list_statement!("DELETE FROM asset_objects WHERE workspace_id = $1 AND object_id IN ", "$2", "");
}

/// The rows that are removed with a workspace.
pub(crate) const fn rows(db: Db) -> Rows {
    Rows { db, service: "content", tables: TABLES }
}

/// A batch of the objects of a workspace.
pub(crate) async fn objects(db: &Db, workspace: WorkspaceId, limit: i64) -> Result<Vec<ObjectId>, Error> {
    let rows: Vec<Text<ObjectId>> = fetch!(scalars, db, OBJECTS, Text(workspace), limit)?;
    Ok(rows.into_iter().map(|row| row.0).collect())
}

/// Deletes the rows of objects that were deleted.
pub(crate) async fn remove_objects(
    db: &Db,
    workspace: WorkspaceId,
    objects: &[ObjectId],
) -> Result<(), Error> {
    let writer = db.writer();
    execute!(writer, REMOVE_OBJECTS, Text(workspace), json_list(objects)).map(drop)
}
