//! Assets and the objects that hold their bytes.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::sql::{Db, Dialect, Error, Text, Tx, json_list};
use cairn_chassis::{execute, fetch, list_statement, statements};
use cairn_proto::ids::{AssetId, DatabaseId, ObjectId, PropertyId, WorkspaceId};

use super::page::{to_column, to_count};
use crate::model::{Asset, Author, StoredObject};

statements! {
    pub(super) fn statements;

    const GET: &str = "SELECT a.id, a.name, a.media_type, a.hash, o.object_id, o.size_bytes, a.created_at, a.author_kind, \
         a.author_id, a.author_name FROM assets a \
         JOIN asset_objects o ON o.workspace_id = a.workspace_id AND o.hash = a.hash \
         WHERE a.workspace_id = $1 AND a.id = $2";

    /// After the id `$2`.
    const LIST: &str = "SELECT a.id, a.name, a.media_type, a.hash, o.object_id, o.size_bytes, a.created_at, a.author_kind, \
         a.author_id, a.author_name FROM assets a \
         JOIN asset_objects o ON o.workspace_id = a.workspace_id AND o.hash = a.hash \
         WHERE a.workspace_id = $1 AND a.id > $2 ORDER BY a.id LIMIT $3";

    const COUNT: &str = "SELECT COUNT(*) FROM assets WHERE workspace_id = $1";

    const EXISTING: Dialect =
        list_statement!("SELECT id FROM assets WHERE workspace_id = $1 AND id IN ", "$2", " ORDER BY id");

    /// Only live records have cells.
    const NAMED: Dialect = list_statement!(
        "SELECT DISTINCT c.target_id, c.database_id, c.property_id FROM record_cells c \
         WHERE c.workspace_id = $1 AND c.target_id IN ",
        "$2",
        ""
    );

    const INSERT: &str = "INSERT INTO assets (workspace_id, id, name, media_type, hash, created_at, author_kind, author_id, \
         author_name) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";

    const DELETE: &str = "DELETE FROM assets WHERE workspace_id = $1 AND id = $2 RETURNING hash";

    const OBJECT_OF: &str =
        "SELECT hash, object_id, size_bytes FROM asset_objects WHERE workspace_id = $1 AND hash = $2";

    const INSERT_OBJECT: &str =
        "INSERT INTO asset_objects (workspace_id, hash, object_id, size_bytes) VALUES ($1, $2, $3, $4)";

    const DELETE_UNUSED_OBJECT: &str = "DELETE FROM asset_objects WHERE workspace_id = $1 AND hash = $2 \
         AND NOT EXISTS (SELECT 1 FROM assets a WHERE a.workspace_id = $1 AND a.hash = $2) RETURNING object_id, size_bytes";

    const KNOWN_OBJECTS: Dialect = list_statement!(
        "SELECT object_id FROM asset_objects WHERE workspace_id = $1 AND object_id IN ",
        "$2",
        ""
    );

    /// Across workspaces, for a backup.
    pub(crate) const ALL_OBJECTS: &str = "SELECT workspace_id, object_id, size_bytes FROM asset_objects";

    /// Across workspaces, after the key `$1`, `$2`.
    const LIST_ALL: &str = "SELECT workspace_id, hash, object_id, size_bytes FROM asset_objects \
         WHERE (workspace_id, hash) > ($1, $2) ORDER BY workspace_id, hash LIMIT $3";
}

#[derive(Debug, sqlx::FromRow)]
struct Row {
    id: Text<AssetId>,
    name: String,
    media_type: String,
    created_at: Timestamp,
    author_kind: String,
    author_id: String,
    author_name: String,
    #[sqlx(flatten)]
    object: ObjectRow,
}

#[derive(Debug, sqlx::FromRow)]
struct ObjectRow {
    hash: String,
    object_id: Text<ObjectId>,
    size_bytes: i64,
}

impl Row {
    fn into_asset(self, workspace: WorkspaceId) -> Asset {
        Asset {
            id: self.id.0,
            workspace_id: workspace,
            name: self.name,
            media_type: self.media_type,
            kept: self.object.into_kept(),
            created_at: self.created_at,
            author: Author { kind: self.author_kind, id: self.author_id, name: self.author_name },
        }
    }
}

impl ObjectRow {
    fn into_kept(self) -> StoredObject {
        StoredObject { object: self.object_id.0, hash: self.hash, size_bytes: to_count(self.size_bytes) }
    }
}

/// A reference to an asset from a live record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AssetReference {
    pub(crate) asset: AssetId,
    pub(crate) database: DatabaseId,
    pub(crate) property: PropertyId,
}

/// Locks the assets of the workspace until the transaction ends, so that neither the references to an object nor the
/// stored size change in between.
pub(crate) async fn lock(tx: &mut Tx, workspace: WorkspaceId) -> Result<(), Error> {
    tx.lock_name(&format!("content-assets-{workspace}")).await
}

pub(crate) async fn get(db: &Db, workspace: WorkspaceId, id: AssetId) -> Result<Option<Asset>, Error> {
    let row: Option<Row> = fetch!(optional, db, GET, Text(workspace), Text(id))?;
    Ok(row.map(|row| row.into_asset(workspace)))
}

/// Assets in the order of their ids, after an id; the empty id is before all.
pub(crate) async fn list(
    db: &Db,
    workspace: WorkspaceId,
    after: &str,
    limit: i64,
) -> Result<Vec<Asset>, Error> {
    let rows: Vec<Row> = fetch!(all, db, LIST, Text(workspace), after, limit)?;
    Ok(rows.into_iter().map(|row| row.into_asset(workspace)).collect())
}

/// The number of assets.
pub(crate) async fn count(db: &Db, workspace: WorkspaceId) -> Result<u64, Error> {
    let count: i64 = fetch!(scalar, db, COUNT, Text(workspace))?;
    Ok(to_count(count))
}

/// Those of these assets that exist.
pub(crate) async fn existing(
    db: &Db,
    workspace: WorkspaceId,
    ids: &[AssetId],
) -> Result<Vec<AssetId>, Error> {
    let rows: Vec<Text<AssetId>> = fetch!(scalars, db, EXISTING, Text(workspace), json_list(ids))?;
    Ok(rows.into_iter().map(|row| row.0).collect())
}

/// The references to these assets from live records.
pub(crate) async fn references(
    db: &Db,
    workspace: WorkspaceId,
    ids: &[AssetId],
) -> Result<Vec<AssetReference>, Error> {
    let rows: Vec<(Text<AssetId>, Text<DatabaseId>, Text<PropertyId>)> =
        fetch!(all, db, NAMED, Text(workspace), json_list(ids))?;
    let read = |(asset, database, property): (Text<AssetId>, Text<DatabaseId>, Text<PropertyId>)| {
        AssetReference { asset: asset.0, database: database.0, property: property.0 }
    };
    Ok(rows.into_iter().map(read).collect())
}

/// Inserts an asset; the row of its object must exist.
pub(crate) async fn insert(tx: &mut Tx, asset: &Asset) -> Result<(), Error> {
    execute!(
        tx,
        INSERT,
        Text(asset.workspace_id),
        Text(asset.id),
        &asset.name,
        &asset.media_type,
        &asset.kept.hash,
        asset.created_at,
        &asset.author.kind,
        &asset.author.id,
        &asset.author.name
    )
    .map(drop)
}

/// Deletes an asset; returns the hash of its object if the asset existed.
pub(crate) async fn delete(
    tx: &mut Tx,
    workspace: WorkspaceId,
    id: AssetId,
) -> Result<Option<String>, Error> {
    fetch!(optional_scalar, tx, DELETE, Text(workspace), Text(id))
}

/// The object of the workspace with that content hash.
pub(crate) async fn object_by_hash(
    tx: &mut Tx,
    workspace: WorkspaceId,
    hash: &str,
) -> Result<Option<StoredObject>, Error> {
    let row: Option<ObjectRow> = fetch!(optional, tx, OBJECT_OF, Text(workspace), hash)?;
    Ok(row.map(ObjectRow::into_kept))
}

/// Inserts the row of an object that was stored completely.
pub(crate) async fn insert_object(
    tx: &mut Tx,
    workspace: WorkspaceId,
    kept: &StoredObject,
) -> Result<(), Error> {
    execute!(tx, INSERT_OBJECT, Text(workspace), &kept.hash, Text(kept.object), to_column(kept.size_bytes))
        .map(drop)
}

/// Deletes the row of the object with that hash unless an asset refers to it; returns the object and its size if it
/// was deleted.
pub(crate) async fn delete_unused_object(
    tx: &mut Tx,
    workspace: WorkspaceId,
    hash: &str,
) -> Result<Option<(ObjectId, u64)>, Error> {
    let row: Option<(Text<ObjectId>, i64)> =
        fetch!(optional, tx, DELETE_UNUSED_OBJECT, Text(workspace), hash)?;
    Ok(row.map(|(object, size)| (object.0, to_count(size))))
}

/// Those of these objects that have a row.
pub(crate) async fn existing_objects(
    db: &Db,
    workspace: WorkspaceId,
    objects: &[ObjectId],
) -> Result<Vec<ObjectId>, Error> {
    let rows: Vec<Text<ObjectId>> = fetch!(scalars, db, KNOWN_OBJECTS, Text(workspace), json_list(objects))?;
    Ok(rows.into_iter().map(|row| row.0).collect())
}

#[derive(Debug, sqlx::FromRow)]
struct RowOfWorkspace {
    workspace_id: Text<WorkspaceId>,
    #[sqlx(flatten)]
    object: ObjectRow,
}

/// Objects of all workspaces in the order of workspace and hash, after a given pair.
pub(crate) async fn list_all(
    db: &Db,
    workspace: &str,
    hash: &str,
    limit: i64,
) -> Result<Vec<(WorkspaceId, StoredObject)>, Error> {
    let rows: Vec<RowOfWorkspace> = fetch!(all, db, LIST_ALL, workspace, hash, limit)?;
    Ok(rows.into_iter().map(|row| (row.workspace_id.0, row.object.into_kept())).collect())
}
