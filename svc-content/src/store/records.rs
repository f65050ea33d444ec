//! Records, their versions, and who names a file.

use std::collections::HashMap;
use std::str::FromStr;

use cairn_chassis::clock::Timestamp;
use cairn_chassis::sql::{Db, Dialect, Engine, Error, PostgresOnly, Text, Tx, json_list, json_rows};
use cairn_chassis::{execute, fetch, list_statement, statements};
use cairn_proto::ids::{DatabaseId, DeletionId, FileId, RecordId, WorkspaceId};
use sqlx::{Executor, Postgres, Sqlite};

use super::cells::insert_cells;
use super::page::{to_column, to_count};
use crate::model::{Author, Database, Fields, Kept, Record, RecordVersion, Values, cells, searched};

macro_rules! columns {
    () => {
        "SELECT id, database_id, field_values, content_file_id, version, created_at, updated_at FROM records "
    };
}

/// Where the feed is, when the database was written, and what follows, all as of one moment.
macro_rules! page_of {
    () => {
        "SELECT COALESCE((SELECT position FROM feed_heads WHERE workspace_id = $1), 0), \
         (SELECT updated_at FROM databases WHERE workspace_id = $1 AND id = $2 AND deleted_at IS NULL), "
    };
}

/// A row of a page as a JSON array. The values are put in as they are kept: to have the engine read them first costs more
/// than all the rest of the page.
macro_rules! row_of_page {
    () => {
        "'[\"' || r.id || '\",' || r.field_values || COALESCE(',\"' || r.content_file_id || '\",', ',null,') \
         || r.version || ',' || r.created_at || ',' || r.updated_at || ']'"
    };
}

/// The same beside the database.
macro_rules! row_of_many {
    () => {
        concat!("'[\"' || r.database_id || '\",' || ", row_of_page!(), " || ']'")
    };
}

macro_rules! version_columns {
    () => {
        "SELECT version, field_values, content_file_id, created_at, author_kind, author_id, author_name \
         FROM record_versions WHERE workspace_id = $1 AND record_id = $2 "
    };
}

macro_rules! insert_record {
    () => {
        "INSERT INTO records (workspace_id, id, database_id, field_values, content_file_id, title, searched, version, \
         created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"
    };
}

macro_rules! insert_first_version {
    () => {
        "INSERT INTO record_versions (workspace_id, record_id, version, field_values, content_file_id, created_at, \
         author_kind, author_id, author_name) VALUES ($1, $2, $8, $4, $5, $9, $11, $12, $13)"
    };
}

/// Which database has how many live records more.
macro_rules! count {
    ($more:literal) => {
        concat!(
            "INSERT INTO record_counts (workspace_id, database_id, live) VALUES ($1, ",
            $more,
            ") ON CONFLICT (workspace_id, database_id) DO UPDATE SET live = record_counts.live + excluded.live"
        )
    };
}

statements! {
    pub(super) fn statements;

    const GET: &str =
        concat!(columns!(), "WHERE workspace_id = $1 AND database_id = $2 AND id = $3 AND deleted_at IS NULL");

    const GET_TRASHED: &str = concat!(
        columns!(),
        "WHERE workspace_id = $1 AND database_id = $2 AND id = $3 AND deleted_at IS NOT NULL"
    );

    const GET_MANY: Dialect = Dialect {
        sqlite: concat!(
            "SELECT '[' || COALESCE(group_concat(",
            row_of_many!(),
            ", ','), '') || ']' FROM records r WHERE r.workspace_id = $1 AND r.deleted_at IS NULL \
             AND r.id IN (SELECT value FROM json_each($2))"
        ),
        postgres: concat!(
            "SELECT '[' || COALESCE(string_agg(",
            row_of_many!(),
            ", ','), '') || ']' FROM records r WHERE r.workspace_id = $1 AND r.deleted_at IS NULL \
             AND r.id IN (SELECT unnest(ARRAY(SELECT jsonb_array_elements_text(CAST(CAST($2 AS TEXT) AS JSONB)))))"
        ),
    };

    const LOCK: PostgresOnly =
        PostgresOnly("SELECT 1 FROM records WHERE workspace_id = $1 AND id = $2 FOR UPDATE");

    /// A record with its first version and its cells, and that the database has one more: SQLite takes all in one message.
    const INSERT: Dialect = Dialect {
        sqlite: concat!(
            insert_record!(),
            "; ",
            insert_first_version!(),
            "; ",
            insert_cells!(sqlite, "$14"),
            "; ",
            count!("$3, 1")
        ),
        postgres: concat!(
            "WITH record AS (",
            insert_record!(),
            "), version AS (",
            insert_first_version!(),
            "), cells AS (",
            insert_cells!(postgres, "$14"),
            ") ",
            count!("$3, 1")
        ),
    };

    const UPDATE: &str = "UPDATE records SET field_values = $3, content_file_id = $4, title = $5, searched = $6, \
         version = $7, updated_at = $8 WHERE workspace_id = $1 AND id = $2";

    const COUNT: &str = count!("$2, $3");

    const INSERT_VERSION: &str = "INSERT INTO record_versions (workspace_id, record_id, version, field_values, content_file_id, \
         created_at, author_kind, author_id, author_name) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";

    const VERSION: &str = concat!(version_columns!(), "AND version = $3");

    const VERSIONS: &str = concat!(version_columns!(), "AND version < $3 ORDER BY version DESC LIMIT $4");

    /// All in one row: the engine's driver copies each value of each row, and hands over each row by itself.
    const PAGE: Dialect = Dialect {
        sqlite: concat!(
            page_of!(),
            "(SELECT '[' || COALESCE(group_concat(",
            row_of_page!(),
            ", ','), '') || ']' FROM records r WHERE r.workspace_id = $1 AND r.deleted_at IS NULL \
             AND r.id IN (SELECT value FROM json_each($3)))"
        ),
        postgres: concat!(
            page_of!(),
            "(SELECT '[' || COALESCE(string_agg(",
            row_of_page!(),
            ", ','), '') || ']' FROM records r WHERE r.workspace_id = $1 AND r.deleted_at IS NULL \
             AND r.id IN (SELECT unnest(ARRAY(SELECT jsonb_array_elements_text(CAST(CAST($3 AS TEXT) AS JSONB))))))"
        ),
    };

    const BODIED: Dialect = list_statement!(
        "SELECT id FROM records WHERE workspace_id = $1 AND deleted_at IS NULL AND content_file_id IS NOT NULL \
         AND content_file_id IN ",
        "$2",
        " ORDER BY id"
    );

    /// Files that a folder's deletion took stand in the folders that it took.
    const BODIED_BY_TRASH: &str = "SELECT r.id FROM files f \
         JOIN records r ON r.workspace_id = $1 AND r.content_file_id = f.id AND r.deleted_at IS NULL \
         WHERE f.workspace_id = $1 AND f.deletion_id = $2 \
         AND f.folder_id IN (SELECT id FROM folders WHERE workspace_id = $1 AND deletion_id = $2) ORDER BY r.id";
}

/// A record's columns.
#[derive(Debug, sqlx::FromRow)]
pub(super) struct Row {
    id: Text<RecordId>,
    database_id: Text<DatabaseId>,
    field_values: String,
    content_file_id: Option<Text<FileId>>,
    version: i64,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl Row {
    pub(super) fn into_record(self) -> Result<Record, Error> {
        Ok(Record {
            id: self.id.0,
            database_id: self.database_id.0,
            values: values_of(&self.field_values)?,
            content_file_id: self.content_file_id.map(|id| id.0),
            version: to_count(self.version),
            created_at: self.created_at,
            updated_at: self.updated_at,
        })
    }
}

/// An element of [`PAGE`]: id, values, body, version, times.
#[derive(serde::Deserialize)]
struct KeptRow<'a, V>(&'a str, V, Option<&'a str>, i64, i64, i64);

/// An element of [`GET_MANY`]: the database, and the record.
#[derive(serde::Deserialize)]
struct HeldRow<'a>(&'a str, #[serde(borrow)] KeptRow<'a, Values>);

impl HeldRow<'_> {
    fn into_record(self) -> Result<Record, Error> {
        let Self(database, KeptRow(id, values, body, version, created_at, updated_at)) = self;
        Ok(Record {
            id: id_of(id)?,
            database_id: id_of(database)?,
            values,
            content_file_id: body.map(id_of).transpose()?,
            version: to_count(version),
            created_at: Timestamp::from_micros(created_at),
            updated_at: Timestamp::from_micros(updated_at),
        })
    }
}

impl<'a> KeptRow<'a, Fields<'a>> {
    fn into_kept(self) -> Result<Kept<'a>, Error> {
        let Self(id, values, body, version, created_at, updated_at) = self;
        Ok(Kept {
            id: id_of(id)?,
            values,
            content_file_id: body.map(id_of).transpose()?,
            version: to_count(version),
            created_at: Timestamp::from_micros(created_at),
            updated_at: Timestamp::from_micros(updated_at),
        })
    }
}

fn id_of<T: FromStr>(text: &str) -> Result<T, Error> {
    text.parse().map_err(|_| Error::corrupt("an id of a record cannot be read"))
}

#[derive(Debug, sqlx::FromRow)]
struct VersionRow {
    version: i64,
    field_values: String,
    content_file_id: Option<Text<FileId>>,
    created_at: Timestamp,
    author_kind: String,
    author_id: String,
    author_name: String,
}

impl VersionRow {
    fn into_version(self) -> Result<RecordVersion, Error> {
        Ok(RecordVersion {
            version: to_count(self.version),
            values: values_of(&self.field_values)?,
            content_file_id: self.content_file_id.map(|id| id.0),
            created_at: self.created_at,
            author: Author { kind: self.author_kind, id: self.author_id, name: self.author_name },
        })
    }
}

pub(super) fn values_of(column: &str) -> Result<Values, Error> {
    serde_json::from_str(column).map_err(|_| Error::corrupt("a record's values are not a JSON object"))
}

fn values_column(record: &Record) -> Result<String, Error> {
    serde_json::to_string(&record.values)
        .map_err(|_| Error::corrupt("a record's values cannot be written as JSON"))
}

/// A live record of a database, inside a transaction or outside.
pub(crate) async fn get<'e, S, P>(
    on: Engine<S, P>,
    workspace: WorkspaceId,
    database: DatabaseId,
    id: RecordId,
) -> Result<Option<Record>, Error>
where
    S: Executor<'e, Database = Sqlite>,
    P: Executor<'e, Database = Postgres>,
{
    let row: Option<Row> = fetch!(optional, on, GET, Text(workspace), Text(database), Text(id))?;
    row.map(Row::into_record).transpose()
}

/// A record of a database in trash.
pub(crate) async fn get_trashed(
    tx: &mut Tx,
    workspace: WorkspaceId,
    database: DatabaseId,
    id: RecordId,
) -> Result<Option<Record>, Error> {
    let row: Option<Row> = fetch!(optional, tx, GET_TRASHED, Text(workspace), Text(database), Text(id))?;
    row.map(Row::into_record).transpose()
}

/// The live ones of these records, in no order, in one statement.
pub(crate) async fn get_many(
    db: &Db,
    workspace: WorkspaceId,
    ids: &[RecordId],
) -> Result<Vec<Record>, Error> {
    read_many(db.engine(), workspace, ids).await
}

async fn read_many<'e, S, P>(
    on: Engine<S, P>,
    workspace: WorkspaceId,
    ids: &[RecordId],
) -> Result<Vec<Record>, Error>
where
    S: Executor<'e, Database = Sqlite>,
    P: Executor<'e, Database = Postgres>,
{
    let rows: String = fetch!(scalar, on, GET_MANY, Text(workspace), json_list(ids))?;
    json_rows::<HeldRow<'_>>(&rows)?.into_iter().map(HeldRow::into_record).collect()
}

/// The live ones of these records, in this order, inside a transaction or outside.
pub(crate) async fn get_in_order<'e, S, P>(
    on: Engine<S, P>,
    workspace: WorkspaceId,
    ids: &[RecordId],
) -> Result<Vec<Record>, Error>
where
    S: Executor<'e, Database = Sqlite>,
    P: Executor<'e, Database = Postgres>,
{
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let found = read_many(on, workspace, ids).await?;
    let mut by_id: HashMap<RecordId, Record> = found.into_iter().map(|record| (record.id, record)).collect();
    Ok(ids.iter().filter_map(|id| by_id.remove(id)).collect())
}

/// Live ones of some records of a database, and what was true when they were read.
#[derive(Debug, Clone)]
pub(crate) struct KeptPage {
    /// Where the feed of the workspace was.
    pub(crate) position: u64,
    /// When the database was written last; `None` when it was not live.
    pub(crate) written_at: Option<Timestamp>,
    /// In the order that is wanted.
    ids: Vec<RecordId>,
    /// A JSON array of [`KeptRow`], in no order.
    rows: String,
}

impl KeptPage {
    /// The records, in the order that was asked for; without those that are not live.
    pub(crate) fn records(&self) -> Result<Vec<Kept<'_>>, Error> {
        let rows: Vec<KeptRow<'_, Fields<'_>>> = json_rows(&self.rows)?;
        let found = rows.into_iter().map(|row| row.into_kept().map(|kept| (kept.id, kept)));
        let mut by_id: HashMap<RecordId, Kept<'_>> = found.collect::<Result<_, _>>()?;
        Ok(self.ids.iter().filter_map(|id| by_id.remove(id)).collect())
    }
}

/// The live ones of these records, in this order.
pub(crate) async fn page<'e, S, P>(
    on: Engine<S, P>,
    (workspace, database): (WorkspaceId, DatabaseId),
    ids: &[RecordId],
) -> Result<KeptPage, Error>
where
    S: Executor<'e, Database = Sqlite>,
    P: Executor<'e, Database = Postgres>,
{
    let (position, written_at, rows): (i64, Option<Timestamp>, String) =
        fetch!(one, on, PAGE, Text(workspace), Text(database), json_list(ids))?;
    Ok(KeptPage { position: to_count(position), written_at, ids: ids.to_vec(), rows })
}

/// Waits until no other transaction changes the record.
pub(crate) async fn lock(tx: &mut Tx, workspace: WorkspaceId, id: RecordId) -> Result<(), Error> {
    super::page::lock(tx, LOCK, workspace, id).await
}

/// How many bytes the values of a record are kept in.
pub(crate) fn size_of(record: &Record) -> Result<u64, Error> {
    Ok(values_column(record)?.len() as u64)
}

/// Stores a new record as its author's version, with what it is found by, and counts it. Until the transaction ends, other
/// writers of the database wait.
pub(crate) async fn insert(
    tx: &mut Tx,
    database: &Database,
    record: &Record,
    author: &Author,
) -> Result<(), Error> {
    let (values, made) = (values_column(record)?, cells(database, &record.values));
    execute!(
        tx,
        INSERT,
        Text(database.workspace_id),
        Text(record.id),
        Text(record.database_id),
        &values,
        record.content_file_id.map(Text),
        database.title_of(&record.values),
        searched(&made),
        to_column(record.version),
        record.created_at,
        record.updated_at,
        &author.kind,
        &author.id,
        &author.name,
        super::cells::list(&made)
    )
    .map(drop)
}

/// Stores what may change of a record.
pub(crate) async fn update(tx: &mut Tx, database: &Database, record: &Record) -> Result<(), Error> {
    let values = values_column(record)?;
    execute!(
        tx,
        UPDATE,
        Text(database.workspace_id),
        Text(record.id),
        &values,
        record.content_file_id.map(Text),
        database.title_of(&record.values),
        searched(&cells(database, &record.values)),
        to_column(record.version),
        record.updated_at
    )
    .map(drop)
}

/// Counts a live record more or less. Late in a transaction: until its end, other writers of the database wait.
pub(crate) async fn count(
    tx: &mut Tx,
    workspace: WorkspaceId,
    database: DatabaseId,
    more: i64,
) -> Result<(), Error> {
    execute!(tx, COUNT, Text(workspace), Text(database), more).map(drop)
}

/// Keeps what a record is now as a version.
pub(crate) async fn insert_version(
    tx: &mut Tx,
    workspace: WorkspaceId,
    record: &Record,
    author: &Author,
    at: Timestamp,
) -> Result<(), Error> {
    let values = values_column(record)?;
    execute!(
        tx,
        INSERT_VERSION,
        Text(workspace),
        Text(record.id),
        to_column(record.version),
        &values,
        record.content_file_id.map(Text),
        at,
        &author.kind,
        &author.id,
        &author.name
    )
    .map(drop)
}

/// One version of a record.
pub(crate) async fn version(
    db: &Db,
    workspace: WorkspaceId,
    id: RecordId,
    version: u64,
) -> Result<Option<RecordVersion>, Error> {
    let row: Option<VersionRow> =
        fetch!(optional, db, VERSION, Text(workspace), Text(id), to_column(version))?;
    row.map(VersionRow::into_version).transpose()
}

/// The versions of a record below a number, the newest first.
pub(crate) async fn versions(
    db: &Db,
    workspace: WorkspaceId,
    id: RecordId,
    before: i64,
    limit: i64,
) -> Result<Vec<RecordVersion>, Error> {
    let rows: Vec<VersionRow> = fetch!(all, db, VERSIONS, Text(workspace), Text(id), before, limit)?;
    rows.into_iter().map(VersionRow::into_version).collect()
}

/// The live records whose body is one of these files.
pub(crate) async fn bodied(
    tx: &mut Tx,
    workspace: WorkspaceId,
    files: &[String],
) -> Result<Vec<RecordId>, Error> {
    let rows: Vec<Text<RecordId>> = fetch!(scalars, tx, BODIED, Text(workspace), json_list(files))?;
    Ok(rows.into_iter().map(|row| row.0).collect())
}

/// The live records whose body the deletion of a folder has taken to trash.
pub(crate) async fn bodied_by_trash(
    tx: &mut Tx,
    workspace: WorkspaceId,
    deletion: DeletionId,
) -> Result<Vec<RecordId>, Error> {
    let rows: Vec<Text<RecordId>> = fetch!(scalars, tx, BODIED_BY_TRASH, Text(workspace), Text(deletion))?;
    Ok(rows.into_iter().map(|row| row.0).collect())
}
