//! The states of items: location, version, and whether they are in trash.

use cairn_chassis::sql::{Db, Dialect, Error, Text, Tx, json_list};
use cairn_chassis::{fetch, list_statement, statements};
use cairn_proto::ids::{AssetId, DatabaseId, FileId, FolderId, RecordId, WorkspaceId};
use uuid::Uuid;

use super::page::to_count;
use crate::model::{DatabaseState, FileState, FolderState, RecordState};

/// The number of live items directly in the folder `$id`.
macro_rules! children {
    ($id:literal) => {
        concat!(
            "(SELECT COUNT(*) FROM folders c WHERE c.workspace_id = $1 AND c.parent_id = ",
            $id,
            " AND c.deleted_at IS NULL) + (SELECT COUNT(*) FROM files c WHERE c.workspace_id = $1 AND c.folder_id = ",
            $id,
            " AND c.deleted_at IS NULL) + (SELECT COUNT(*) FROM databases c WHERE c.workspace_id = $1 \
             AND c.folder_id = ",
            $id,
            " AND c.deleted_at IS NULL)"
        )
    };
}

statements! {
    pub(super) fn statements;

    const FILES: Dialect = list_statement!(
        "SELECT id, folder_id, name, version, content_hash, tags, deleted_at IS NOT NULL AS in_trash FROM files \
         WHERE workspace_id = $1 AND id IN ",
        "$2",
        ""
    );

    const FOLDERS: Dialect = list_statement!(
        concat!(
            "SELECT id, parent_id, name, deleted_at IS NOT NULL AS in_trash, ",
            children!("folders.id"),
            " AS children FROM folders WHERE workspace_id = $1 AND id IN "
        ),
        "$2",
        ""
    );

    const DATABASES: Dialect = list_statement!(
        "SELECT d.id, d.folder_id, d.name, d.updated_at AS version, d.deleted_at IS NOT NULL AS in_trash, \
         (SELECT COUNT(*) FROM records r WHERE r.workspace_id = $1 AND r.database_id = d.id AND r.deleted_at IS NULL) \
         AS records FROM databases d WHERE d.workspace_id = $1 AND d.id IN ",
        "$2",
        ""
    );

    const RECORDS: Dialect = list_statement!(
        "SELECT r.id, r.database_id, r.version, (r.deleted_at IS NOT NULL OR d.deleted_at IS NOT NULL) AS in_trash \
         FROM records r JOIN databases d ON d.workspace_id = r.workspace_id AND d.id = r.database_id \
         WHERE r.workspace_id = $1 AND r.id IN ",
        "$2",
        ""
    );

    const MEMORIES: Dialect = list_statement!(
        "SELECT id, version, deleted_at IS NOT NULL AS in_trash FROM memories WHERE workspace_id = $1 AND id IN ",
        "$2",
        ""
    );

    const ASSETS: Dialect =
        list_statement!("SELECT id FROM assets WHERE workspace_id = $1 AND id IN ", "$2", "");

    const CHILDREN: &str = concat!("SELECT ", children!("$2"));
}

#[derive(Debug, sqlx::FromRow)]
struct FileRow {
    id: Text<FileId>,
    folder_id: Option<Text<FolderId>>,
    name: String,
    version: i64,
    content_hash: String,
    tags: String,
    in_trash: bool,
}

#[derive(Debug, sqlx::FromRow)]
struct FolderRow {
    id: Text<FolderId>,
    parent_id: Option<Text<FolderId>>,
    name: String,
    in_trash: bool,
    children: i64,
}

#[derive(Debug, sqlx::FromRow)]
struct DatabaseRow {
    id: Text<DatabaseId>,
    folder_id: Option<Text<FolderId>>,
    name: String,
    version: i64,
    in_trash: bool,
    records: i64,
}

#[derive(Debug, sqlx::FromRow)]
struct RecordRow {
    id: Text<RecordId>,
    database_id: Text<DatabaseId>,
    version: i64,
    in_trash: bool,
}

/// Those of these files that exist.
pub(crate) async fn files(db: &Db, workspace: WorkspaceId, ids: &[FileId]) -> Result<Vec<FileState>, Error> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let rows: Vec<FileRow> = fetch!(all, db, FILES, Text(workspace), json_list(ids))?;
    let read = |row: FileRow| {
        Ok(FileState {
            id: row.id.0,
            in_trash: row.in_trash,
            folder_id: row.folder_id.map(|id| id.0),
            name: row.name,
            version: to_count(row.version),
            content_hash: row.content_hash,
            tags: super::files::read_tags(&row.tags)?,
        })
    };
    rows.into_iter().map(read).collect()
}

/// Those of these folders that exist.
pub(crate) async fn folders(
    db: &Db,
    workspace: WorkspaceId,
    ids: &[FolderId],
) -> Result<Vec<FolderState>, Error> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let rows: Vec<FolderRow> = fetch!(all, db, FOLDERS, Text(workspace), json_list(ids))?;
    let read = |row: FolderRow| FolderState {
        id: row.id.0,
        in_trash: row.in_trash,
        parent_id: row.parent_id.map(|id| id.0),
        name: row.name,
        children: to_count(row.children),
    };
    Ok(rows.into_iter().map(read).collect())
}

/// Those of these databases that exist.
pub(crate) async fn databases(
    db: &Db,
    workspace: WorkspaceId,
    ids: &[DatabaseId],
) -> Result<Vec<DatabaseState>, Error> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let rows: Vec<DatabaseRow> = fetch!(all, db, DATABASES, Text(workspace), json_list(ids))?;
    let read = |row: DatabaseRow| DatabaseState {
        id: row.id.0,
        in_trash: row.in_trash,
        folder_id: row.folder_id.map(|id| id.0),
        name: row.name,
        version: to_count(row.version),
        records: to_count(row.records),
    };
    Ok(rows.into_iter().map(read).collect())
}

/// Those of these records that exist.
pub(crate) async fn records(
    db: &Db,
    workspace: WorkspaceId,
    ids: &[RecordId],
) -> Result<Vec<RecordState>, Error> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let rows: Vec<RecordRow> = fetch!(all, db, RECORDS, Text(workspace), json_list(ids))?;
    let read = |row: RecordRow| RecordState {
        id: row.id.0,
        database_id: row.database_id.0,
        in_trash: row.in_trash,
        version: to_count(row.version),
    };
    Ok(rows.into_iter().map(read).collect())
}

/// Those of these memories that exist: their ids, their versions, and whether they are in trash.
pub(crate) async fn memories(
    db: &Db,
    workspace: WorkspaceId,
    ids: &[Uuid],
) -> Result<Vec<(String, u64, bool)>, Error> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let rows: Vec<(String, i64, bool)> = fetch!(all, db, MEMORIES, Text(workspace), json_list(ids))?;
    Ok(rows.into_iter().map(|(id, version, in_trash)| (id, to_count(version), in_trash)).collect())
}

/// Those of these assets that exist.
pub(crate) async fn assets(db: &Db, workspace: WorkspaceId, ids: &[AssetId]) -> Result<Vec<AssetId>, Error> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let rows: Vec<Text<AssetId>> = fetch!(scalars, db, ASSETS, Text(workspace), json_list(ids))?;
    Ok(rows.into_iter().map(|id| id.0).collect())
}

/// The number of live items directly in a folder.
pub(crate) async fn children(tx: &mut Tx, workspace: WorkspaceId, id: FolderId) -> Result<u64, Error> {
    let count: i64 = fetch!(scalar, tx, CHILDREN, Text(workspace), Text(id))?;
    Ok(to_count(count))
}
