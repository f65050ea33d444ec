//! The tree of folders, and the deletion of subtrees.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::feed::{Kind, Op, Reserved};
use cairn_chassis::sql::{Db, Dialect, Engine, Error, PostgresOnly, Text, Tx, json_list, json_rows};
use cairn_chassis::{execute, fetch, list_statement, rows_as_json, statements};
use cairn_proto::ids::{DeletionId, FolderId, WorkspaceId};
use sqlx::{Executor, Postgres, Sqlite};

use super::page::{
    ByScope, ListScope, below, below_folders, by_scope, count_of, folders_of, page_of, to_column, to_count,
};
use crate::model::{Cursor, Deletion, Folder};

macro_rules! columns {
    () => {
        "id, name, created_at, updated_at, ids, path"
    };
}

/// Each folder of `page` with the folders above it, from the root. The columns of the folder are carried through the
/// recursion: joining the result with `page` afterwards takes quadratic time.
macro_rules! located {
    ($selected:expr) => {
        concat!(
            "up (id, name, created_at, updated_at, parent_id, ids, path, depth) AS (\
             SELECT id, name, created_at, updated_at, parent_id, id, name, 1 FROM page UNION ALL \
             SELECT up.id, up.name, up.created_at, up.updated_at, p.parent_id, p.id || '/' || up.ids, \
             p.name || '/' || up.path, up.depth + 1 \
             FROM up JOIN folders p ON p.workspace_id = $1 AND p.id = up.parent_id WHERE up.depth < 128) SELECT ",
            $selected,
            " FROM up WHERE parent_id IS NULL"
        )
    };
}

macro_rules! list {
    ($engine:ident, $filter:expr) => {
        page_of!("folders", $filter, concat!(", ", located!(rows_as_json!($engine, columns!()))))
    };
}

macro_rules! count {
    ($engine:ident, $filter:expr) => {
        count_of!("folders", $filter)
    };
}

macro_rules! get_many {
    ($engine:ident) => {
        list_statement!(
            "WITH RECURSIVE page AS (SELECT * FROM folders WHERE workspace_id = $1 AND deleted_at IS NULL AND id IN ",
            "$2",
            concat!("), ", located!(rows_as_json!($engine, columns!())))
        )
    };
}

/// `$2` is the deletion, `$3` the position to start after, `$4` the kind, `$5` the operation, `$6` the time.
macro_rules! publish {
    ($table:literal) => {
        publish!($table, "")
    };
    ($table:literal, $which:literal) => {
        concat!(
            "INSERT INTO feed_changes (workspace_id, position, kind, item_id, op, at) \
             SELECT $1, $3 + ROW_NUMBER() OVER (ORDER BY id), $4, id, $5, $6 FROM ",
            $table,
            " WHERE workspace_id = $1 AND deletion_id = $2",
            $which
        )
    };
}

statements! {
    pub(super) fn statements;

    const GET: &str = concat!(
        "WITH RECURSIVE page AS (SELECT * FROM folders WHERE workspace_id = $1 AND id = $2 AND deleted_at IS NULL), ",
        located!(columns!())
    );

    const GET_MANY: Dialect = Dialect { sqlite: get_many!(sqlite).sqlite, postgres: get_many!(postgres).postgres };

    /// A deletion updates the row, so it waits for transactions that put something into the folder, and they wait for
    /// it.
    const LOCK_SHARED: PostgresOnly =
        PostgresOnly("SELECT 1 FROM folders WHERE workspace_id = $1 AND id = $2 FOR SHARE");

    const LIST: ByScope = by_scope!(list, "WITH RECURSIVE ", ", ", "parent_id", "id", "$5");

    const COUNT: ByScope = by_scope!(count, "", "", "parent_id", "id", "$2");

    const IDS_BELOW: Dialect = below_folders!("$2", " SELECT id FROM below ORDER BY id");

    /// Live or in trash.
    const ALL_BELOW: Dialect = list_statement!(
        "WITH RECURSIVE below (id) AS (SELECT id FROM folders WHERE workspace_id = $1 AND id IN ",
        "$2",
        " UNION SELECT c.id FROM below JOIN folders c ON c.workspace_id = $1 AND c.parent_id = below.id) \
         SELECT id FROM below"
    );

    const HEIGHT: &str = "WITH RECURSIVE down (id, height) AS (\
         SELECT id, 1 FROM folders WHERE workspace_id = $1 AND id = $2 AND deleted_at IS NULL UNION ALL \
         SELECT c.id, down.height + 1 FROM down JOIN folders c ON c.workspace_id = $1 AND c.parent_id = down.id \
         WHERE c.deleted_at IS NULL AND down.height < 128) SELECT CAST(COALESCE(MAX(height), 0) AS BIGINT) FROM down";

    const INSERT: &str = "INSERT INTO folders (workspace_id, id, parent_id, name, created_at, updated_at) \
         VALUES ($1, $2, $3, $4, $5, $6)";

    const UPDATE: &str =
        "UPDATE folders SET parent_id = $3, name = $4, updated_at = $5 WHERE workspace_id = $1 AND id = $2";

    const TRASH_FOLDERS: &str = concat!(
        "WITH RECURSIVE below (id) AS (\
         SELECT id FROM folders WHERE workspace_id = $1 AND deleted_at IS NULL AND id = $2",
        below!(),
        " UPDATE folders SET deleted_at = $3, deletion_id = $4 \
         WHERE workspace_id = $1 AND id IN (SELECT id FROM below)"
    );

    const TRASH_FILES: &str = "UPDATE files SET deleted_at = $2, deletion_id = $3 \
         WHERE workspace_id = $1 AND deleted_at IS NULL \
         AND folder_id IN (SELECT id FROM folders WHERE workspace_id = $1 AND deletion_id = $3)";

    const TRASH_DATABASES: &str = "UPDATE databases SET deleted_at = $2, deletion_id = $3 \
         WHERE workspace_id = $1 AND deleted_at IS NULL \
         AND folder_id IN (SELECT id FROM folders WHERE workspace_id = $1 AND deletion_id = $3)";

    const PUBLISH_FOLDERS: &str = publish!("folders");

    const PUBLISH_FILES: &str = publish!(
        "files",
        " AND folder_id IN (SELECT id FROM folders WHERE workspace_id = $1 AND deletion_id = $2)"
    );

    const PUBLISH_DATABASES: &str = publish!("databases");
}

/// [`Row`] as an element of a JSON array.
#[derive(serde::Deserialize)]
struct ListedRow(FolderId, String, Timestamp, Timestamp, String, String);

impl From<ListedRow> for Row {
    fn from(row: ListedRow) -> Self {
        let ListedRow(id, name, created_at, updated_at, ids, path) = row;
        Self { id: Text(id), name, created_at, updated_at, ids, path }
    }
}

/// Decodes a JSON text of rows, in no particular order.
fn read_folders(rows: &str, workspace: WorkspaceId) -> Result<Vec<Folder>, Error> {
    json_rows::<ListedRow>(rows)?.into_iter().map(|row| Row::from(row).into_folder(workspace)).collect()
}

#[derive(Debug, sqlx::FromRow)]
struct Row {
    id: Text<FolderId>,
    name: String,
    created_at: Timestamp,
    updated_at: Timestamp,
    ids: String,
    path: String,
}

impl Row {
    fn into_folder(self, workspace_id: WorkspaceId) -> Result<Folder, Error> {
        let mut folders_above = folders_of(&self.ids)?;
        folders_above.pop();
        Ok(Folder {
            id: self.id.0,
            workspace_id,
            folders_above,
            name: self.name,
            path: format!("/{}", self.path),
            created_at: self.created_at,
            updated_at: self.updated_at,
        })
    }
}

/// A live folder with its location, read inside a transaction or outside.
pub(crate) async fn get<'e, S, P>(
    on: Engine<S, P>,
    workspace: WorkspaceId,
    id: FolderId,
) -> Result<Option<Folder>, Error>
where
    S: Executor<'e, Database = Sqlite>,
    P: Executor<'e, Database = Postgres>,
{
    let row: Option<Row> = fetch!(optional, on, GET, Text(workspace), Text(id))?;
    row.map(|row| row.into_folder(workspace)).transpose()
}

/// Those of these folders that are live, in no particular order.
pub(crate) async fn get_many(
    db: &Db,
    workspace: WorkspaceId,
    ids: &[FolderId],
) -> Result<Vec<Folder>, Error> {
    let rows: String = fetch!(scalar, db, GET_MANY, Text(workspace), json_list(ids))?;
    read_folders(&rows, workspace)
}

/// Takes a shared lock on a live folder until the transaction ends, so that it stays live, and reads it. Lock order:
/// folders before files, as deletions do.
pub(crate) async fn lock_shared(
    tx: &mut Tx,
    workspace: WorkspaceId,
    id: FolderId,
) -> Result<Option<Folder>, Error> {
    super::page::lock(tx, LOCK_SHARED, workspace, id).await?;
    get(tx.engine(), workspace, id).await
}

/// Locks the shape of the tree of the workspace until the transaction ends.
pub(crate) async fn lock_tree(tx: &mut Tx, workspace: WorkspaceId) -> Result<(), Error> {
    tx.lock_name(&format!("content:tree:{workspace}")).await
}

/// Live folders in the order of name, then id, after the cursor.
pub(crate) async fn list(
    db: &Db,
    workspace: WorkspaceId,
    scope: &ListScope,
    after: Option<&Cursor>,
    limit: i64,
) -> Result<Vec<Folder>, Error> {
    let rows = LIST.page_as_json(db, workspace, scope, None, (after, limit)).await?;
    let mut folders = read_folders(&rows, workspace)?;
    folders.sort_by(|one, other| (&one.name, one.id).cmp(&(&other.name, other.id)));
    Ok(folders)
}

/// The number of live folders.
pub(crate) async fn count(db: &Db, workspace: WorkspaceId, scope: &ListScope) -> Result<u64, Error> {
    COUNT.count(db, workspace, scope, None).await
}

/// Those of these folders that are live, and all live folders below them.
pub(crate) async fn ids_below<'e, S, P>(
    on: Engine<S, P>,
    workspace: WorkspaceId,
    folders: &[FolderId],
) -> Result<Vec<FolderId>, Error>
where
    S: Executor<'e, Database = Sqlite>,
    P: Executor<'e, Database = Postgres>,
{
    let rows: Vec<Text<FolderId>> = fetch!(scalars, on, IDS_BELOW, Text(workspace), json_list(folders))?;
    Ok(rows.into_iter().map(|row| row.0).collect())
}

/// These folders and all folders below them, live or in trash.
pub(crate) async fn all_below(
    db: &Db,
    workspace: WorkspaceId,
    folders: &[FolderId],
) -> Result<Vec<FolderId>, Error> {
    let rows: Vec<Text<FolderId>> = fetch!(scalars, db, ALL_BELOW, Text(workspace), json_list(folders))?;
    Ok(rows.into_iter().map(|row| row.0).collect())
}

/// The height of the subtree of a folder: 1 for a folder without subfolders.
pub(crate) async fn height(tx: &mut Tx, workspace: WorkspaceId, id: FolderId) -> Result<u64, Error> {
    let height: i64 = fetch!(scalar, tx, HEIGHT, Text(workspace), Text(id))?;
    Ok(to_count(height))
}

/// Inserts a new folder.
pub(crate) async fn insert(tx: &mut Tx, folder: &Folder) -> Result<(), Error> {
    execute!(
        tx,
        INSERT,
        Text(folder.workspace_id),
        Text(folder.id),
        folder.parent_id().map(Text),
        &folder.name,
        folder.created_at,
        folder.updated_at
    )
    .map(drop)
}

/// Updates the mutable columns of a folder.
pub(crate) async fn update(tx: &mut Tx, folder: &Folder) -> Result<(), Error> {
    execute!(
        tx,
        UPDATE,
        Text(folder.workspace_id),
        Text(folder.id),
        folder.parent_id().map(Text),
        &folder.name,
        folder.updated_at
    )
    .map(drop)
}

/// The numbers of items that a deletion moved to trash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TrashCounts {
    pub(crate) folders: u64,
    pub(crate) files: u64,
    pub(crate) databases: u64,
}

impl TrashCounts {
    /// The number of all items.
    pub(crate) const fn items(self) -> u64 {
        self.folders + self.files + self.databases
    }
}

/// Moves a folder with everything in it to trash. Lock order: folders first, since whoever puts a file into a folder
/// holds a lock on it.
pub(crate) async fn trash(tx: &mut Tx, deletion: &Deletion) -> Result<TrashCounts, Error> {
    let folders = execute!(
        tx,
        TRASH_FOLDERS,
        Text(deletion.workspace),
        &deletion.item_id,
        deletion.at,
        Text(deletion.id)
    )?;
    let files = execute!(tx, TRASH_FILES, Text(deletion.workspace), deletion.at, Text(deletion.id))?;
    let databases = execute!(tx, TRASH_DATABASES, Text(deletion.workspace), deletion.at, Text(deletion.id))?;
    Ok(TrashCounts { folders, files, databases })
}

/// Appends the deletion of all its items to the feed, at reserved positions: folders, then files, then databases.
/// Records need no entry: they are hidden while their database is in trash.
pub(crate) async fn publish_trash(
    tx: &mut Tx,
    workspace: WorkspaceId,
    deletion: DeletionId,
    taken: TrashCounts,
    reserved: Reserved,
    at: Timestamp,
) -> Result<(), Error> {
    let parts = [
        (PUBLISH_FOLDERS, Kind::Folder, reserved.before),
        (PUBLISH_FILES, Kind::File, reserved.before + taken.folders),
        (PUBLISH_DATABASES, Kind::Database, reserved.before + taken.folders + taken.files),
    ];
    for (sql, kind, before) in parts {
        execute!(
            tx,
            sql,
            Text(workspace),
            Text(deletion),
            to_column(before),
            i64::from(i32::from(kind)),
            i64::from(i32::from(Op::Delete)),
            at
        )?;
    }
    Ok(())
}
