//! Removing all that there is of a workspace, some rows at a time.

use cairn_chassis::sql::{Db, Dialect, Error, Statement, Text, Tx, json_list};
use cairn_chassis::{list_statement, on_db};
use cairn_proto::ids::{ObjectId, WorkspaceId};

/// Some rows ($2) of a workspace ($1) in a table with that key.
macro_rules! some_of {
    ($table:literal, $key:literal) => {
        concat!(
            "DELETE FROM ",
            $table,
            " WHERE (",
            $key,
            ") IN (SELECT ",
            $key,
            " FROM ",
            $table,
            " WHERE workspace_id = $1 LIMIT $2)"
        )
    };
}

/// A folder that is in no other can go in any order.
const LIFT_FOLDERS: &str = "UPDATE folders SET parent_id = NULL WHERE (workspace_id, id) IN \
     (SELECT workspace_id, id FROM folders WHERE workspace_id = $1 AND parent_id IS NOT NULL LIMIT $2)";

/// Each table with how much of it one transaction takes, in the order in which rows can go: what refers to others goes
/// before them. Only `asset_objects` is not here, since an object goes before its row does.
pub(crate) const TABLES: &[(&str, i64, &str)] = &[
    ("record_cells", 2_000, some_of!("record_cells", "workspace_id, record_id, property_id, place")),
    ("record_versions", 500, some_of!("record_versions", "workspace_id, record_id, version")),
    ("records", 500, some_of!("records", "workspace_id, id")),
    ("record_counts", 500, some_of!("record_counts", "workspace_id, database_id")),
    ("former_options", 500, some_of!("former_options", "workspace_id, database_id, id")),
    ("former_properties", 500, some_of!("former_properties", "workspace_id, database_id, id")),
    ("databases", 100, some_of!("databases", "workspace_id, id")),
    ("memory_members", 500, some_of!("memory_members", "workspace_id, memory_id, id")),
    ("memories", 500, some_of!("memories", "workspace_id, id")),
    ("file_versions", 500, some_of!("file_versions", "workspace_id, file_id, version")),
    ("files", 500, some_of!("files", "workspace_id, id")),
    // Up to 5 MB each.
    ("bodies", 50, some_of!("bodies", "workspace_id, hash")),
    ("folders", 500, LIFT_FOLDERS),
    ("folders", 500, some_of!("folders", "workspace_id, id")),
    ("assets", 500, some_of!("assets", "workspace_id, id")),
    ("trash", 500, some_of!("trash", "workspace_id, deletion_id")),
    ("workspace_usage", 1, some_of!("workspace_usage", "workspace_id")),
    ("feed_changes", 2_000, some_of!("feed_changes", "workspace_id, position")),
    ("feed_heads", 1, some_of!("feed_heads", "workspace_id")),
];

const OBJECTS: &str = "SELECT object_id FROM asset_objects WHERE workspace_id = $1 LIMIT $2";

const REMOVE_OBJECTS: Dialect =
    list_statement!("DELETE FROM asset_objects WHERE workspace_id = $1 AND object_id IN ", "$2", "");

pub(super) fn statements() -> Vec<Statement> {
    let mut all: Vec<Statement> =
        TABLES.iter().map(|(_, _, statement)| Statement::from(*statement)).collect();
    all.extend([Statement::from(OBJECTS), Statement::from(REMOVE_OBJECTS)]);
    all
}

/// Removals of one workspace follow each other.
pub(crate) async fn lock(tx: &mut Tx, workspace: WorkspaceId) -> Result<(), Error> {
    tx.lock_name(&format!("content-removal-{workspace}")).await
}

/// Removes, or lets go of, rows of the first table that has any; how many.
pub(crate) async fn remove_some(tx: &mut Tx, workspace: WorkspaceId) -> Result<u64, Error> {
    for (_, limit, statement) in TABLES {
        let done = on_db!(tx, |c| sqlx::query(*statement)
            .bind(Text(workspace))
            .bind(*limit)
            .execute(c)
            .await
            .map(|done| done.rows_affected()))?;
        if done > 0 {
            return Ok(done);
        }
    }
    Ok(0)
}

/// Some of the objects that a workspace has.
pub(crate) async fn objects(db: &Db, workspace: WorkspaceId, limit: i64) -> Result<Vec<ObjectId>, Error> {
    let rows: Vec<Text<ObjectId>> =
        on_db!(db, |c| sqlx::query_scalar(OBJECTS).bind(Text(workspace)).bind(limit).fetch_all(c).await)?;
    Ok(rows.into_iter().map(|row| row.0).collect())
}

/// Removes the rows of objects that are gone.
pub(crate) async fn remove_objects(
    db: &Db,
    workspace: WorkspaceId,
    objects: &[ObjectId],
) -> Result<(), Error> {
    let writer = db.writer();
    let sql = REMOVE_OBJECTS.of(db.engine());
    on_db!(writer, |c| sqlx::query(sql)
        .bind(Text(workspace))
        .bind(json_list(objects))
        .execute(c)
        .await
        .map(|_| ()))
}
