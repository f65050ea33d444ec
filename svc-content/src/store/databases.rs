//! Databases with their location, properties and views.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::feed::{Kind, Op, Reserved};
use cairn_chassis::sql::{Db, Dialect, Engine, Error, PostgresOnly, Text, Tx, json_list};
use cairn_chassis::{execute, fetch, list_statement, statements};
use cairn_proto::ids::{DatabaseId, FolderId, RecordId, WorkspaceId};
use sqlx::{Executor, Postgres, Sqlite};

use super::kinds::trash_kind;
use super::page::{
    ByScope, ListScope, below, below_folders, by_scope, count_of, folders_of, page_of, parts_of_way,
    to_column, to_count, way,
};
use crate::model::{Cursor, Database};

macro_rules! located {
    ($order:literal) => {
        concat!(
            " SELECT page.*, ",
            way!("page"),
            " AS way, COALESCE(counted.live, 0) AS record_count FROM page \
             LEFT JOIN record_counts counted ON counted.workspace_id = $1 AND counted.database_id = page.id ",
            $order
        )
    };
}

macro_rules! list {
    ($engine:ident, $filter:expr) => {
        page_of!("databases", $filter, located!("ORDER BY page.name, page.id"))
    };
}

macro_rules! count {
    ($engine:ident, $filter:expr) => {
        count_of!("databases", $filter)
    };
}

statements! {
    pub(super) fn statements;

    const GET: &str = concat!(
        "WITH RECURSIVE page AS (SELECT * FROM databases WHERE workspace_id = $1 AND id = $2 AND deleted_at IS NULL)",
        located!("")
    );

    const GET_TRASHED: &str = concat!(
        "WITH RECURSIVE page AS (SELECT * FROM databases \
         WHERE workspace_id = $1 AND id = $2 AND deleted_at IS NOT NULL)",
        located!("")
    );

    const GET_MANY: Dialect = list_statement!(
        "WITH RECURSIVE page AS (SELECT * FROM databases WHERE workspace_id = $1 AND deleted_at IS NULL AND id IN ",
        "$2",
        concat!(")", located!(""))
    );

    const LIST_TRASHED: &str = concat!(
        "WITH RECURSIVE page AS (SELECT * FROM databases WHERE workspace_id = $1 AND deleted_at IS NOT NULL)",
        located!("ORDER BY page.name, page.id")
    );

    const WRITTEN_AT: &str =
        "SELECT updated_at FROM databases WHERE workspace_id = $1 AND id = $2 AND deleted_at IS NULL";

    /// Writers of records take a shared lock on the row, a change of the database an exclusive one.
    const LOCK_SHARED: PostgresOnly =
        PostgresOnly("SELECT 1 FROM databases WHERE workspace_id = $1 AND id = $2 FOR SHARE");

    const LOCK: PostgresOnly = PostgresOnly("SELECT 1 FROM databases WHERE workspace_id = $1 AND id = $2 FOR UPDATE");

    const LIST: ByScope = by_scope!(list, "WITH RECURSIVE ", ", ", "folder_id", "folder_id", "$5");

    const COUNT: ByScope = by_scope!(count, "", "", "folder_id", "folder_id", "$2");

    const INSERT: &str = "INSERT INTO databases (workspace_id, id, folder_id, name, description, icon, properties, views, \
         created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";

    const UPDATE: &str = "UPDATE databases SET folder_id = $3, name = $4, description = $5, icon = $6, properties = $7, \
         views = $8, updated_at = $9 WHERE workspace_id = $1 AND id = $2";

    const RESTORE: &str = "UPDATE databases SET deleted_at = NULL, deletion_id = NULL, folder_id = $3, updated_at = $4 \
         WHERE workspace_id = $1 AND id = $2";

    /// Referencing rows first. The trash entries of records that were deleted by themselves go too: they could not be
    /// restored.
    const PURGE: [&str; 8] = [
        concat!(
            "DELETE FROM trash WHERE workspace_id = $1 AND kind = ",
            trash_kind!(record),
            " AND item_id IN \
         (SELECT id FROM records WHERE workspace_id = $1 AND database_id = $2 AND deletion_id IS NOT NULL)"
        ),
        "DELETE FROM record_cells WHERE workspace_id = $1 AND record_id IN \
         (SELECT id FROM records WHERE workspace_id = $1 AND database_id = $2)",
        "DELETE FROM record_versions WHERE workspace_id = $1 AND record_id IN \
         (SELECT id FROM records WHERE workspace_id = $1 AND database_id = $2)",
        "DELETE FROM records WHERE workspace_id = $1 AND database_id = $2",
        "DELETE FROM record_counts WHERE workspace_id = $1 AND database_id = $2",
        "DELETE FROM former_options WHERE workspace_id = $1 AND database_id = $2",
        "DELETE FROM former_properties WHERE workspace_id = $1 AND database_id = $2",
        "DELETE FROM databases WHERE workspace_id = $1 AND id = $2",
    ];

    /// The size of the values of the records of a database, with all versions.
    const RECORD_BYTES: &str = "SELECT CAST(COALESCE(SUM(kept.bytes), 0) AS BIGINT) FROM (\
         SELECT OCTET_LENGTH(field_values) AS bytes FROM records WHERE workspace_id = $1 AND database_id = $2 UNION ALL \
         SELECT OCTET_LENGTH(v.field_values) FROM records r \
         JOIN record_versions v ON v.workspace_id = $1 AND v.record_id = r.id \
         WHERE r.workspace_id = $1 AND r.database_id = $2) AS kept";

    const LIVE_RECORDS: &str =
        "SELECT COUNT(*) FROM records WHERE workspace_id = $1 AND database_id = $2 AND deleted_at IS NULL";

    const LIVE_RECORD_IDS: &str =
        "SELECT id FROM records WHERE workspace_id = $1 AND database_id = $2 AND deleted_at IS NULL ORDER BY id";

    /// `$3` is the position to start after, `$4` the kind, `$5` the operation, `$6` the time.
    const PUBLISH_RECORDS: &str = "INSERT INTO feed_changes (workspace_id, position, kind, item_id, op, at) \
         SELECT $1, $3 + ROW_NUMBER() OVER (ORDER BY id), $4, id, $5, $6 FROM records \
         WHERE workspace_id = $1 AND database_id = $2 AND deleted_at IS NULL";
}

#[derive(Debug, sqlx::FromRow)]
struct Row {
    id: Text<DatabaseId>,
    folder_id: Option<Text<FolderId>>,
    name: String,
    description: Option<String>,
    icon: Option<String>,
    properties: String,
    views: String,
    created_at: Timestamp,
    updated_at: Timestamp,
    deleted_at: Option<Timestamp>,
    way: Option<String>,
    record_count: i64,
}

impl Row {
    fn into_database(self, workspace_id: WorkspaceId) -> Result<Database, Error> {
        let way = parts_of_way(self.way.as_deref());
        let folders = way.map(|(ids, _)| folders_of(ids)).transpose()?.unwrap_or_default();
        let path = match way {
            Some((_, above)) => format!("/{above}/{}", self.name),
            None => format!("/{}", self.name),
        };
        let corrupt = |_| Error::corrupt("a database's properties or views are not what was written");
        Ok(Database {
            id: self.id.0,
            workspace_id,
            folder_id: self.folder_id.map(|id| id.0),
            folders,
            path,
            name: self.name,
            description: self.description,
            icon: self.icon,
            properties: serde_json::from_str(&self.properties).map_err(corrupt)?,
            views: serde_json::from_str(&self.views).map_err(corrupt)?,
            record_count: to_count(self.record_count),
            created_at: self.created_at,
            updated_at: self.updated_at,
            deleted_at: self.deleted_at,
        })
    }
}

fn into_databases(rows: Vec<Row>, workspace: WorkspaceId) -> Result<Vec<Database>, Error> {
    rows.into_iter().map(|row| row.into_database(workspace)).collect()
}

fn json<T: serde::Serialize>(value: &T) -> Result<String, Error> {
    serde_json::to_string(value).map_err(|_| Error::corrupt("a database's schema cannot be written as JSON"))
}

/// A live database with its location, read inside a transaction or outside.
pub(crate) async fn get<'e, S, P>(
    on: Engine<S, P>,
    workspace: WorkspaceId,
    id: DatabaseId,
) -> Result<Option<Database>, Error>
where
    S: Executor<'e, Database = Sqlite>,
    P: Executor<'e, Database = Postgres>,
{
    let row: Option<Row> = fetch!(optional, on, GET, Text(workspace), Text(id))?;
    row.map(|row| row.into_database(workspace)).transpose()
}

/// A database in trash.
pub(crate) async fn get_trashed(
    tx: &mut Tx,
    workspace: WorkspaceId,
    id: DatabaseId,
) -> Result<Option<Database>, Error> {
    let row: Option<Row> = fetch!(optional, tx, GET_TRASHED, Text(workspace), Text(id))?;
    row.map(|row| row.into_database(workspace)).transpose()
}

/// Those of these databases that are live, in no particular order.
pub(crate) async fn get_many<'e, S, P>(
    on: Engine<S, P>,
    workspace: WorkspaceId,
    ids: &[DatabaseId],
) -> Result<Vec<Database>, Error>
where
    S: Executor<'e, Database = Sqlite>,
    P: Executor<'e, Database = Postgres>,
{
    let rows = fetch!(all, on, GET_MANY, Text(workspace), json_list(ids))?;
    into_databases(rows, workspace)
}

/// Every database in trash, in the order of name, then id.
pub(crate) async fn list_trashed(db: &Db, workspace: WorkspaceId) -> Result<Vec<Database>, Error> {
    let rows = fetch!(all, db, LIST_TRASHED, Text(workspace))?;
    into_databases(rows, workspace)
}

/// Takes a shared lock on the database until the transaction ends. Lock order: a folder, where one is needed, is
/// locked before.
pub(crate) async fn lock_shared(tx: &mut Tx, workspace: WorkspaceId, id: DatabaseId) -> Result<(), Error> {
    super::page::lock(tx, LOCK_SHARED, workspace, id).await
}

/// The time of the last write of a live database.
pub(crate) async fn written_at(
    tx: &mut Tx,
    workspace: WorkspaceId,
    id: DatabaseId,
) -> Result<Option<Timestamp>, Error> {
    fetch!(optional_scalar, tx, WRITTEN_AT, Text(workspace), Text(id))
}

/// Takes an exclusive lock on the database until the transaction ends.
pub(crate) async fn lock(tx: &mut Tx, workspace: WorkspaceId, id: DatabaseId) -> Result<(), Error> {
    super::page::lock(tx, LOCK, workspace, id).await
}

/// Live databases in the order of name, then id, after the cursor.
pub(crate) async fn list(
    db: &Db,
    workspace: WorkspaceId,
    scope: &ListScope,
    after: Option<&Cursor>,
    limit: i64,
) -> Result<Vec<Database>, Error> {
    into_databases(LIST.page(db, workspace, scope, None, (after, limit)).await?, workspace)
}

/// The number of live databases.
pub(crate) async fn count(db: &Db, workspace: WorkspaceId, scope: &ListScope) -> Result<u64, Error> {
    COUNT.count(db, workspace, scope, None).await
}

/// Inserts a new database.
pub(crate) async fn insert(tx: &mut Tx, database: &Database) -> Result<(), Error> {
    let (properties, views) = (json(&database.properties)?, json(&database.views)?);
    execute!(
        tx,
        INSERT,
        Text(database.workspace_id),
        Text(database.id),
        database.folder_id.map(Text),
        &database.name,
        &database.description,
        &database.icon,
        &properties,
        &views,
        database.created_at,
        database.updated_at
    )
    .map(drop)
}

/// Updates the mutable columns of a database.
pub(crate) async fn update(tx: &mut Tx, database: &Database) -> Result<(), Error> {
    let (properties, views) = (json(&database.properties)?, json(&database.views)?);
    execute!(
        tx,
        UPDATE,
        Text(database.workspace_id),
        Text(database.id),
        database.folder_id.map(Text),
        &database.name,
        &database.description,
        &database.icon,
        &properties,
        &views,
        database.updated_at
    )
    .map(drop)
}

/// Restores a database from trash into its folder.
pub(crate) async fn restore(tx: &mut Tx, database: &Database) -> Result<(), Error> {
    execute!(
        tx,
        RESTORE,
        Text(database.workspace_id),
        Text(database.id),
        database.folder_id.map(Text),
        database.updated_at
    )
    .map(drop)
}

/// Deletes a database permanently, with everything in it.
pub(crate) async fn purge(tx: &mut Tx, workspace: WorkspaceId, id: DatabaseId) -> Result<(), Error> {
    for sql in PURGE {
        execute!(tx, sql, Text(workspace), Text(id))?;
    }
    Ok(())
}

/// The size of the values of the records of a database and of their versions, in bytes.
pub(crate) async fn record_bytes(tx: &mut Tx, workspace: WorkspaceId, id: DatabaseId) -> Result<u64, Error> {
    let bytes: i64 = fetch!(scalar, tx, RECORD_BYTES, Text(workspace), Text(id))?;
    Ok(to_count(bytes))
}

/// Counts the live records of a database, without the stored count.
pub(crate) async fn live_records(tx: &mut Tx, workspace: WorkspaceId, id: DatabaseId) -> Result<u64, Error> {
    let count: i64 = fetch!(scalar, tx, LIVE_RECORDS, Text(workspace), Text(id))?;
    Ok(to_count(count))
}

/// The live records of a database.
pub(crate) async fn live_record_ids(
    tx: &mut Tx,
    workspace: WorkspaceId,
    id: DatabaseId,
) -> Result<Vec<RecordId>, Error> {
    let rows: Vec<Text<RecordId>> = fetch!(scalars, tx, LIVE_RECORD_IDS, Text(workspace), Text(id))?;
    Ok(rows.into_iter().map(|row| row.0).collect())
}

/// Appends the live records of a database to the feed, at reserved positions.
pub(crate) async fn publish_records(
    tx: &mut Tx,
    workspace: WorkspaceId,
    id: DatabaseId,
    op: Op,
    reserved: Reserved,
    at: Timestamp,
) -> Result<(), Error> {
    execute!(
        tx,
        PUBLISH_RECORDS,
        Text(workspace),
        Text(id),
        to_column(reserved.before),
        i64::from(i32::from(Kind::Record)),
        i64::from(i32::from(op)),
        at
    )
    .map(drop)
}
