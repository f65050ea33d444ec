//! Databases, records and cells of all workspaces as they are stored, for the doctor, and its repairs.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::sql::{Dialect, Error, Text, Tx, json_list};
use cairn_chassis::{execute, fetch, list_statement, statements};
use cairn_proto::ids::{DatabaseId, PropertyId, RecordId, WorkspaceId};

use super::records::values_of;
use crate::model::{Cell, Database, Record};
use crate::store::bodies::Body;

statements! {
    pub(super) fn statements;

    /// After the key `$1`, `$2`.
    const DATABASES: &str = "SELECT workspace_id, id, properties, views FROM databases \
         WHERE (workspace_id, id) > ($1, $2) ORDER BY workspace_id, id LIMIT $3";

    /// Live ones, after the id `$3`.
    const RECORDS: &str = "SELECT id, database_id, field_values, title, searched FROM records \
         WHERE workspace_id = $1 AND database_id = $2 AND id > $3 AND deleted_at IS NULL ORDER BY id LIMIT $4";

    const CELLS: Dialect = list_statement!(
        "SELECT record_id, property_id, place, number_key, text_key, rest, target_id FROM record_cells \
         WHERE workspace_id = $1 AND record_id IN ",
        "$2",
        ""
    );

    const QUERIES: &str = "SELECT 'workspace ' || workspace_id || ' memory ' || memory_id || ' member ' || id, query \
         FROM memory_members WHERE query IS NOT NULL";
}

statements! {
    /// The statements of repairs. Only the doctor reads whole tables.
    pub(crate) fn mends;

    /// Referenced bodies that do not exist.
    const MISSING_BODIES: &str = "SELECT DISTINCT r.workspace_id, r.content_hash FROM (\
         SELECT workspace_id, content_hash FROM files UNION ALL SELECT workspace_id, content_hash FROM file_versions) AS r \
         LEFT JOIN bodies b ON b.workspace_id = r.workspace_id AND b.hash = r.content_hash WHERE b.hash IS NULL";

    const VERSIONS_OF_BODY: &str =
        "SELECT file_id, version FROM file_versions WHERE workspace_id = $1 AND content_hash = $2 \
         UNION SELECT id, version FROM files WHERE workspace_id = $1 AND content_hash = $2";

    const REPLACE_BODY: [&str; 2] = [
        "UPDATE files SET content_hash = $3, size_bytes = $4 WHERE workspace_id = $1 AND content_hash = $2",
        "UPDATE file_versions SET content_hash = $3, size_bytes = $4 WHERE workspace_id = $1 AND content_hash = $2",
    ];

    const PUBLISH_FILES: [&str; 2] = [
        "INSERT INTO feed_changes (workspace_id, position, kind, item_id, op, at) \
         SELECT f.workspace_id, h.position + ROW_NUMBER() OVER (ORDER BY f.id), 1, f.id, 1, h.updated_at FROM files f \
         JOIN feed_heads h ON h.workspace_id = f.workspace_id \
         WHERE f.workspace_id = $1 AND f.content_hash = $2 AND f.deleted_at IS NULL",
        "UPDATE feed_heads SET position = (SELECT MAX(c.position) FROM feed_changes c \
         WHERE c.workspace_id = feed_heads.workspace_id) \
         WHERE workspace_id = $1 AND EXISTS (SELECT 1 FROM feed_changes c WHERE c.workspace_id = feed_heads.workspace_id)",
    ];

    const SET_DERIVED: &str =
        "UPDATE records SET title = $3, searched = $4 WHERE workspace_id = $1 AND id = $2";

    const VALUES_OF_VERSION: &str = "UPDATE records SET field_values = (SELECT v.field_values FROM record_versions v \
         WHERE v.workspace_id = records.workspace_id AND v.record_id = records.id AND v.version = records.version) \
         WHERE workspace_id = $1 AND id = $2 AND EXISTS (SELECT 1 FROM record_versions v \
         WHERE v.workspace_id = records.workspace_id AND v.record_id = records.id AND v.version = records.version \
         AND v.field_values <> records.field_values)";

    /// Records that differ from their newest version, where that version is not older than the record.
    const DIVERGED: &str = "SELECT r.workspace_id, r.id, r.field_values, v.version, v.field_values AS kept FROM records r \
         JOIN record_versions v ON v.workspace_id = r.workspace_id AND v.record_id = r.id WHERE v.version >= r.version \
         AND v.version = (SELECT MAX(n.version) FROM record_versions n \
         WHERE n.workspace_id = r.workspace_id AND n.record_id = r.id) \
         AND (v.field_values <> r.field_values OR COALESCE(v.content_file_id, '') <> COALESCE(r.content_file_id, ''))";

    const INSERT_AS_NEWEST: [&str; 2] = [
        "UPDATE records SET version = $3 WHERE workspace_id = $1 AND id = $2",
        "INSERT INTO record_versions (workspace_id, record_id, version, field_values, content_file_id, created_at, \
         author_kind, author_id, author_name) \
         SELECT workspace_id, id, version, field_values, content_file_id, updated_at, '', '', '' FROM records \
         WHERE workspace_id = $1 AND id = $2",
    ];

    const RESET_TO_NEWEST: &str =
        "UPDATE records SET version = $3, field_values = $4 WHERE workspace_id = $1 AND id = $2";

    const ASSETS_OF_OBJECT: &str = "SELECT id, name FROM assets WHERE workspace_id = $1 AND hash = $2";

    const DELETE_OBJECT: [&str; 2] = [
        "DELETE FROM assets WHERE workspace_id = $1 AND hash = $2",
        "DELETE FROM asset_objects WHERE workspace_id = $1 AND hash = $2",
    ];
}

/// Bodies that files or versions refer to and that do not exist: the workspace and the hash of each.
pub(crate) async fn missing_bodies(tx: &mut Tx) -> Result<Vec<(String, String)>, Error> {
    fetch!(all, tx, MISSING_BODIES)
}

/// The files and versions that refer to a body.
pub(crate) async fn versions_of_body(
    tx: &mut Tx,
    workspace: WorkspaceId,
    hash: &str,
) -> Result<Vec<(String, i64)>, Error> {
    fetch!(all, tx, VERSIONS_OF_BODY, Text(workspace), hash)
}

/// Makes everything that refers to one body refer to another, existing one, and appends the files to the feed.
pub(crate) async fn replace_body(
    tx: &mut Tx,
    workspace: WorkspaceId,
    hash: &str,
    fresh: &Body,
) -> Result<(), Error> {
    let size = i64::try_from(fresh.size_bytes).unwrap_or(i64::MAX);
    for sql in REPLACE_BODY {
        execute!(tx, sql, Text(workspace), hash, &fresh.hash, size)?;
    }
    let [tell, move_head] = PUBLISH_FILES;
    execute!(tx, tell, Text(workspace), &fresh.hash)?;
    execute!(tx, move_head, Text(workspace)).map(drop)
}

/// Updates the columns that are derived from the values of a record.
pub(crate) async fn set_derived(
    tx: &mut Tx,
    workspace: WorkspaceId,
    record: RecordId,
    title: &str,
    searched: &str,
) -> Result<(), Error> {
    execute!(tx, SET_DERIVED, Text(workspace), Text(record), title, searched).map(drop)
}

/// Sets the values of a record to those of its newest version; returns whether they differed.
pub(crate) async fn values_of_version(
    tx: &mut Tx,
    workspace: WorkspaceId,
    record: &str,
) -> Result<bool, Error> {
    Ok(execute!(tx, VALUES_OF_VERSION, Text(workspace), record)? > 0)
}

/// A record that differs from its newest version.
#[derive(Debug, sqlx::FromRow)]
pub(crate) struct DivergedRecord {
    pub(crate) workspace_id: String,
    pub(crate) id: String,
    field_values: String,
    /// The number of the newest version.
    version: i64,
    kept: String,
}

impl DivergedRecord {
    /// Whether the values of the record can be parsed.
    pub(crate) fn is_readable(&self) -> bool {
        values_of(&self.field_values).is_ok()
    }

    /// Whether the values of the newest version can be parsed.
    pub(crate) fn is_newest_readable(&self) -> bool {
        values_of(&self.kept).is_ok()
    }
}

/// Every record that differs from its newest version.
pub(crate) async fn diverged(tx: &mut Tx) -> Result<Vec<DivergedRecord>, Error> {
    fetch!(all, tx, DIVERGED)
}

/// Inserts the current state of a record as a new version.
pub(crate) async fn insert_as_newest(tx: &mut Tx, record: &DivergedRecord) -> Result<(), Error> {
    let [set_version, insert_version] = INSERT_AS_NEWEST;
    let version = record.version.saturating_add(1);
    execute!(tx, set_version, &record.workspace_id, &record.id, version)?;
    execute!(tx, insert_version, &record.workspace_id, &record.id).map(drop)
}

/// Sets the values of a record to those of its newest version.
pub(crate) async fn reset_to_newest(tx: &mut Tx, record: &DivergedRecord) -> Result<(), Error> {
    execute!(tx, RESET_TO_NEWEST, &record.workspace_id, &record.id, record.version, &record.kept).map(drop)
}

/// The assets whose content has that hash: id and name.
pub(crate) async fn assets_of_object(
    tx: &mut Tx,
    workspace: WorkspaceId,
    hash: &str,
) -> Result<Vec<(String, String)>, Error> {
    fetch!(all, tx, ASSETS_OF_OBJECT, Text(workspace), hash)
}

/// Deletes the rows of an object and of its assets.
pub(crate) async fn delete_object(tx: &mut Tx, workspace: WorkspaceId, hash: &str) -> Result<(), Error> {
    for sql in DELETE_OBJECT {
        execute!(tx, sql, Text(workspace), hash)?;
    }
    Ok(())
}

/// A database as it is stored.
#[derive(Debug)]
pub(crate) struct Schema {
    pub(crate) workspace: WorkspaceId,
    pub(crate) id: String,
    properties: String,
    views: String,
}

impl Schema {
    /// The parsed schema; `None` when it is corrupt.
    pub(crate) fn read(&self) -> Option<Database> {
        Some(Database {
            id: self.id.parse().ok()?,
            workspace_id: self.workspace,
            folder_id: None,
            folders: Vec::new(),
            path: String::new(),
            name: String::new(),
            description: None,
            icon: None,
            properties: serde_json::from_str(&self.properties).ok()?,
            views: serde_json::from_str(&self.views).ok()?,
            record_count: 0,
            created_at: Timestamp::from_micros(0),
            updated_at: Timestamp::from_micros(0),
            deleted_at: None,
        })
    }
}

/// A record as it is stored.
#[derive(Debug, sqlx::FromRow)]
pub(crate) struct StoredRecord {
    pub(crate) id: String,
    database_id: Text<DatabaseId>,
    field_values: String,
    pub(crate) title: String,
    pub(crate) searched: String,
}

impl StoredRecord {
    /// The parsed record; `None` when it is corrupt.
    pub(crate) fn read(&self) -> Option<Record> {
        Some(Record {
            id: self.id.parse().ok()?,
            database_id: self.database_id.0,
            values: serde_json::from_str(&self.field_values).ok()?,
            content_file_id: None,
            version: 0,
            created_at: Timestamp::from_micros(0),
            updated_at: Timestamp::from_micros(0),
        })
    }
}

#[derive(Debug, sqlx::FromRow)]
struct CellRow {
    record_id: Text<RecordId>,
    property_id: Text<PropertyId>,
    place: i64,
    number_key: Option<f64>,
    text_key: Option<String>,
    rest: Option<String>,
    target_id: Option<String>,
}

/// Databases of all workspaces, including those in trash, after a given one.
pub(crate) async fn databases(tx: &mut Tx, after: (&str, &str), limit: i64) -> Result<Vec<Schema>, Error> {
    type Columns = (Text<WorkspaceId>, String, String, String);
    let rows: Vec<Columns> = fetch!(all, tx, DATABASES, after.0, after.1, limit)?;
    let read = |(workspace, id, properties, views): Columns| Schema {
        workspace: workspace.0,
        id,
        properties,
        views,
    };
    Ok(rows.into_iter().map(read).collect())
}

/// Live records of a database in the order of their ids, after a given one.
pub(crate) async fn records(
    tx: &mut Tx,
    workspace: WorkspaceId,
    database: DatabaseId,
    after: &str,
    limit: i64,
) -> Result<Vec<StoredRecord>, Error> {
    fetch!(all, tx, RECORDS, Text(workspace), Text(database), after, limit)
}

/// The cells of these records.
pub(crate) async fn cells(
    tx: &mut Tx,
    workspace: WorkspaceId,
    records: &[&str],
) -> Result<Vec<(RecordId, Cell)>, Error> {
    let rows: Vec<CellRow> = fetch!(all, tx, CELLS, Text(workspace), json_list(records))?;
    let read = |row: CellRow| {
        let cell = Cell {
            property: row.property_id.0,
            // A negative place is invalid and matches no cell.
            place: usize::try_from(row.place).unwrap_or(usize::MAX),
            number: row.number_key,
            text: row.text_key,
            rest: row.rest,
            target: row.target_id,
        };
        (row.record_id.0, cell)
    };
    Ok(rows.into_iter().map(read).collect())
}

/// The queries of memory members, each with a description of its member.
pub(crate) async fn queries(tx: &mut Tx) -> Result<Vec<(String, String)>, Error> {
    fetch!(all, tx, QUERIES)
}
