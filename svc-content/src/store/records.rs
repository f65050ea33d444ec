//! Records, their versions, and who names a file.

use std::collections::HashMap;
use std::str::FromStr;

use cairn_chassis::clock::Timestamp;
use cairn_chassis::sql::{
    Db, Dialect, Engine, Error, PostgresOnly, SqliteOnly, Text, Tx, json_list, json_rows,
};
use cairn_chassis::{append_entries, execute, fetch, list_statement, statements};
use cairn_proto::ids::{DatabaseId, DeletionId, FileId, RecordId, WorkspaceId};
use sqlx::{Executor, Postgres, Sqlite};

use super::activity::{self, insert_activity};
use super::cells::insert_cells;
use super::ending::{self, Ended, Ending, end};
use super::page::{to_column, to_count};
use super::usage::add_usage;
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

/// The database, as long as it is what it was at the time `$15`.
macro_rules! held_database {
    () => {
        "SELECT 1 FROM databases WHERE workspace_id = $1 AND id = $3 AND updated_at = $15 AND deleted_at IS NULL"
    };
}

/// What holds of a row that is written only where the database is what it was.
macro_rules! if_held {
    (sqlite) => {
        concat!(" WHERE EXISTS (", held_database!(), ")")
    };
    (postgres) => {
        " WHERE EXISTS (SELECT 1 FROM held)"
    };
}

/// On SQLite, a record with its first version and its cells, and that the database has one more.
macro_rules! insert_whole {
    () => {
        concat!(
            insert_record!(sqlite),
            "; ",
            insert_first_version!(sqlite),
            "; ",
            insert_cells!(sqlite, "$14"),
            if_held!(sqlite),
            "; ",
            count!(concat!("SELECT $1, $3, 1", if_held!(sqlite)))
        )
    };
}

macro_rules! insert_record {
    ($engine:ident) => {
        concat!(
            "INSERT INTO records (workspace_id, id, database_id, field_values, content_file_id, title, searched, version, \
             created_at, updated_at) SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10",
            if_held!($engine)
        )
    };
}

macro_rules! insert_first_version {
    ($engine:ident) => {
        concat!(
            "INSERT INTO record_versions (workspace_id, record_id, version, field_values, content_file_id, created_at, \
             author_kind, author_id, author_name) SELECT $1, $2, $8, $4, $5, $9, $11, $12, $13",
            if_held!($engine)
        )
    };
}

/// Which database has how many live records more.
macro_rules! count {
    ($rows:expr) => {
        concat!(
            "INSERT INTO record_counts (workspace_id, database_id, live) ",
            $rows,
            " ON CONFLICT (workspace_id, database_id) DO UPDATE SET live = record_counts.live + excluded.live"
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

    /// A record with its first version and its cells, and that the database has one more, where the database is what it was at
    /// $15: SQLite takes all in one message. Nothing is answered where it is not.
    const INSERT: Dialect = Dialect {
        sqlite: concat!(insert_whole!(), " RETURNING live"),
        // A change of the database is waited for, and then looked at.
        postgres: concat!(
            "WITH held AS (",
            held_database!(),
            " FOR SHARE), record AS (",
            insert_record!(postgres),
            "), version AS (",
            insert_first_version!(postgres),
            "), cells AS (",
            insert_cells!(postgres, "$14"),
            if_held!(postgres),
            ") ",
            count!(concat!("SELECT $1, $3, 1", if_held!(postgres))),
            " RETURNING live"
        ),
    };

    /// The same with what the change ends with. On PostgreSQL rows that refer to others lock these last of all in a statement,
    /// behind the feed's head, which others wait for who hold them.
    const INSERT_AND_END: SqliteOnly = SqliteOnly(concat!(
        insert_whole!(),
        "; ",
        end!("$9", "$16", "$17", "$18", "$19", "$11, $12, $13, $20", "$21", "$22"),
        " AND EXISTS (",
        held_database!(),
        ")"
    ));

    const UPDATE: &str = "UPDATE records SET field_values = $3, content_file_id = $4, title = $5, searched = $6, \
         version = $7, updated_at = $8 WHERE workspace_id = $1 AND id = $2";

    /// The same with the version that it is then and its cells. PostgreSQL would store the new cells before it removes the old
    /// ones, or after.
    const REPLACE: SqliteOnly = SqliteOnly(concat!(
        "UPDATE records SET field_values = $4, content_file_id = $5, title = $6, searched = $7, version = $8, \
         updated_at = $9 WHERE workspace_id = $1 AND id = $2; \
         INSERT INTO record_versions (workspace_id, record_id, version, field_values, content_file_id, created_at, \
         author_kind, author_id, author_name) VALUES ($1, $2, $8, $4, $5, $9, $10, $11, $12); \
         DELETE FROM record_cells WHERE workspace_id = $1 AND record_id = $2; ",
        insert_cells!(sqlite, "$13")
    ));

    const COUNT: &str = count!("VALUES ($1, $2, $3)");

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

/// Stores a new record as its author's version, with what it is found by, and counts it. Until the transaction ends, the database
/// stays what it is, and its other writers wait. `false`, and nothing is stored, where it is not any more what was read.
pub(crate) async fn insert(
    tx: &mut Tx,
    database: &Database,
    record: &Record,
    author: &Author,
) -> Result<bool, Error> {
    let (values, made) = (values_column(record)?, cells(database, &record.values));
    let live: Option<i64> = fetch!(
        optional_scalar,
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
        super::cells::list(&made),
        database.updated_at
    )?;
    Ok(live.is_some())
}

/// Stores a new record as [`insert`] does and ends the change that made it, at the record's time: on SQLite in one message. None,
/// where the database is not any more what was read: the change is to be taken back then.
pub(crate) async fn insert_and_end(
    tx: &mut Tx,
    database: &Database,
    record: &Record,
    end: &Ending<'_>,
) -> Result<Option<Ended>, Error> {
    let (workspace, author) = (database.workspace_id, &end.actor.author);
    let Engine::Sqlite(connection) = tx.engine() else {
        if !insert(tx, database, record, author).await? {
            return Ok(None);
        }
        return ending::write(tx, workspace, end).await.map(Some);
    };
    let made = cells(database, &record.values);
    let row: Option<ending::Row> = sqlx::query_as(INSERT_AND_END.0)
        .bind(Text(workspace))
        .bind(Text(record.id))
        .bind(Text(record.database_id))
        .bind(values_column(record)?)
        .bind(record.content_file_id.map(Text))
        .bind(database.title_of(&record.values))
        .bind(searched(&made))
        .bind(to_column(record.version))
        .bind(record.created_at)
        .bind(record.updated_at)
        .bind(&author.kind)
        .bind(&author.id)
        .bind(&author.name)
        .bind(super::cells::list(&made))
        .bind(database.updated_at)
        .bind(end.told.count)
        .bind(&end.told.list)
        .bind(end.growth.files)
        .bind(end.growth.bytes)
        .bind(end.actor.channel)
        .bind(activity::rows(end.done)?)
        .bind(activity::undone(end.actor))
        .fetch_optional(connection)
        .await?;
    Ok(row.map(Ended::read))
}

/// Stores what may change of a record.
async fn update(tx: &mut Tx, database: &Database, record: &Record) -> Result<(), Error> {
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

/// Stores what a record is now, as its author's new version, with what it is found by.
pub(crate) async fn replace(
    tx: &mut Tx,
    database: &Database,
    record: &Record,
    author: &Author,
) -> Result<(), Error> {
    let workspace = database.workspace_id;
    let Engine::Sqlite(connection) = tx.engine() else {
        update(tx, database, record).await?;
        insert_version(tx, workspace, record, author, record.updated_at).await?;
        super::cells::forget_record(tx, workspace, record.id).await?;
        return super::cells::insert(tx, database, record).await;
    };
    let made = cells(database, &record.values);
    sqlx::query(REPLACE.0)
        .bind(Text(workspace))
        .bind(Text(record.id))
        .bind(Text(record.database_id))
        .bind(values_column(record)?)
        .bind(record.content_file_id.map(Text))
        .bind(database.title_of(&record.values))
        .bind(searched(&made))
        .bind(to_column(record.version))
        .bind(record.updated_at)
        .bind(&author.kind)
        .bind(&author.id)
        .bind(&author.name)
        .bind(super::cells::list(&made))
        .execute(connection)
        .await?;
    Ok(())
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
async fn insert_version(
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
