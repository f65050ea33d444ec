//! Writes of records: a record, its version, its cells and the number of live records of its database.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::sql::{Dialect, Engine, Error, SqliteOnly, Text, Tx};
use cairn_chassis::{append_entries, execute, on_db, statements};
use cairn_proto::ids::{DatabaseId, FileId, WorkspaceId};
use sqlx::query::Query;
use sqlx::{Encode, FromRow, Type};

use crate::model::{Author, Database, Record, cells, searched};
use crate::store::activity::{self, insert_activity};
use crate::store::cells::insert_cells;
use crate::store::change_end::{self, ChangeEnd, ChangeEndResult, end};
use crate::store::page::to_column;
use crate::store::usage::add_usage;

/// The database, if it was not written since the time `$15`.
macro_rules! unchanged_database {
    () => {
        "SELECT 1 FROM databases WHERE workspace_id = $1 AND id = $3 AND updated_at = $15 AND deleted_at IS NULL"
    };
}

/// The condition of an insert that depends on an unchanged database. PostgreSQL locks the row of the database in `held`.
macro_rules! if_unchanged {
    (sqlite) => {
        concat!(" WHERE EXISTS (", unchanged_database!(), ")")
    };
    (postgres) => {
        " WHERE EXISTS (SELECT 1 FROM held)"
    };
}

/// SQLite: a record with its first version and its cells, and one more live record of the database.
macro_rules! insert_and_count {
    () => {
        concat!(
            insert_record!(sqlite),
            "; ",
            insert_first_version!(sqlite),
            "; ",
            insert_cells!(sqlite, "$14"),
            if_unchanged!(sqlite),
            "; ",
            count!(concat!("SELECT $1, $3, 1", if_unchanged!(sqlite)))
        )
    };
}

macro_rules! insert_record {
    ($engine:ident) => {
        concat!(
            "INSERT INTO records (workspace_id, id, database_id, field_values, content_file_id, title, searched, version, \
             created_at, updated_at) SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10",
            if_unchanged!($engine)
        )
    };
}

macro_rules! insert_first_version {
    ($engine:ident) => {
        concat!(
            "INSERT INTO record_versions (workspace_id, record_id, version, field_values, content_file_id, created_at, \
             author_kind, author_id, author_name) SELECT $1, $2, $8, $4, $5, $9, $11, $12, $13",
            if_unchanged!($engine)
        )
    };
}

/// Adds to the number of live records of databases.
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
    pub(crate) fn statements;

    /// A record with its first version and its cells, and one more live record of the database; no row is returned when the
    /// database was written since $15. The parameters are those of [`Columns::bind`] and $15.
    const INSERT: Dialect = Dialect {
        sqlite: concat!(insert_and_count!(), " RETURNING live"),
        // The lock waits for a concurrent change of the database before its time is compared.
        postgres: concat!(
            "WITH held AS (",
            unchanged_database!(),
            " FOR SHARE), record AS (",
            insert_record!(postgres),
            "), version AS (",
            insert_first_version!(postgres),
            "), cells AS (",
            insert_cells!(postgres, "$14"),
            if_unchanged!(postgres),
            ") ",
            count!(concat!("SELECT $1, $3, 1", if_unchanged!(postgres))),
            " RETURNING live"
        ),
    };

    /// [`INSERT`] and the end of the change in one message. PostgreSQL checks foreign keys at the end of a statement, so it would
    /// lock the referenced rows after the feed head: a deadlock with a transaction that holds them and waits for the head.
    const INSERT_AND_END: SqliteOnly = SqliteOnly(concat!(
        insert_and_count!(),
        "; ",
        end!("$9", "$16", "$17", "$18", "$19", "$11, $12, $13, $20", "$21", "$22"),
        " AND EXISTS (",
        unchanged_database!(),
        ")"
    ));

    const UPDATE: &str = "UPDATE records SET field_values = $3, content_file_id = $4, title = $5, searched = $6, \
         version = $7, updated_at = $8 WHERE workspace_id = $1 AND id = $2";

    /// A record, its new version and its cells in one message, with the parameters of [`Columns::bind`]. Not on PostgreSQL,
    /// where the order of the parts of one statement is undefined: new cells could be inserted before the old ones are deleted.
    const REPLACE: SqliteOnly = SqliteOnly(concat!(
        "UPDATE records SET field_values = $4, content_file_id = $5, title = $6, searched = $7, version = $8, \
         updated_at = $10 WHERE workspace_id = $1 AND id = $2; \
         INSERT INTO record_versions (workspace_id, record_id, version, field_values, content_file_id, created_at, \
         author_kind, author_id, author_name) VALUES ($1, $2, $8, $4, $5, $10, $11, $12, $13); \
         DELETE FROM record_cells WHERE workspace_id = $1 AND record_id = $2; ",
        insert_cells!(sqlite, "$14")
    ));

    const COUNT: &str = count!("VALUES ($1, $2, $3)");

    const INSERT_VERSION: &str = "INSERT INTO record_versions (workspace_id, record_id, version, field_values, content_file_id, \
         created_at, author_kind, author_id, author_name) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
}

/// A record as the statements store it.
struct Columns<'a> {
    database: &'a Database,
    record: &'a Record,
    author: &'a Author,
    values: String,
    title: String,
    searched: String,
    cells: String,
}

impl<'a> Columns<'a> {
    fn of(database: &'a Database, record: &'a Record, author: &'a Author) -> Result<Self, Error> {
        let made = cells(database, &record.values);
        Ok(Self {
            database,
            record,
            author,
            values: values_column(record)?,
            title: database.title_of(&record.values),
            searched: searched(&made),
            cells: crate::store::cells::list(&made),
        })
    }

    /// Binds `$1` to `$14`. A statement may leave some of them out on SQLite only: PostgreSQL has to know the type of each.
    fn bind<'q, DB: sqlx::Database>(
        &'q self,
        query: Query<'q, DB, DB::Arguments>,
    ) -> Query<'q, DB, DB::Arguments>
    where
        String: Encode<'q, DB> + Type<DB>,
        i64: Encode<'q, DB> + Type<DB>,
        Option<Text<FileId>>: Encode<'q, DB>,
    {
        query
            .bind(Text(self.database.workspace_id))
            .bind(Text(self.record.id))
            .bind(Text(self.record.database_id))
            .bind(&self.values)
            .bind(self.record.content_file_id.map(Text))
            .bind(&self.title)
            .bind(&self.searched)
            .bind(to_column(self.record.version))
            .bind(self.record.created_at)
            .bind(self.record.updated_at)
            .bind(&self.author.kind)
            .bind(&self.author.id)
            .bind(&self.author.name)
            .bind(&self.cells)
    }
}

fn values_column(record: &Record) -> Result<String, Error> {
    serde_json::to_string(&record.values)
        .map_err(|_| Error::corrupt("a record's values cannot be written as JSON"))
}

/// The stored size of the values of a record, in bytes.
pub(crate) fn size_of(record: &Record) -> Result<u64, Error> {
    Ok(values_column(record)?.len() as u64)
}

/// Stores a new record with its first version and its cells, and counts it. The row of the database is locked until the
/// transaction ends. Returns `false`, and stores nothing, when the database was written since it was read.
pub(crate) async fn insert(
    tx: &mut Tx,
    database: &Database,
    record: &Record,
    author: &Author,
) -> Result<bool, Error> {
    let columns = Columns::of(database, record, author)?;
    let sql = INSERT.of(tx.engine());
    on_db!(tx, |c| {
        let row = columns.bind(sqlx::query(sql)).bind(database.updated_at).fetch_optional(c).await;
        row.map(|row| row.is_some())
    })
}

/// Stores a new record as [`insert`] does and ends its change at the time of the record, on SQLite in one message. Returns `None`
/// when the database was written since it was read: the caller has to roll back.
pub(crate) async fn insert_and_end(
    tx: &mut Tx,
    database: &Database,
    record: &Record,
    end: &ChangeEnd<'_>,
) -> Result<Option<ChangeEndResult>, Error> {
    let author = &end.actor.author;
    let Engine::Sqlite(connection) = tx.engine() else {
        if !insert(tx, database, record, author).await? {
            return Ok(None);
        }
        return change_end::write(tx, database.workspace_id, end).await.map(Some);
    };
    let columns = Columns::of(database, record, author)?;
    let row = columns
        .bind(sqlx::query(INSERT_AND_END.0))
        .bind(database.updated_at)
        .bind(end.entries.count)
        .bind(&end.entries.list)
        .bind(end.growth.files)
        .bind(end.growth.bytes)
        .bind(end.actor.channel)
        .bind(activity::rows(end.done)?)
        .bind(activity::undone(end.actor))
        .fetch_optional(connection)
        .await?;
    let Some(row) = row else { return Ok(None) };
    let row = change_end::Row::from_row(&row)?;
    Ok(Some(ChangeEndResult::read(row)))
}

/// Updates the mutable columns of a record.
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

/// Stores a changed record with its new version and its cells.
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
        crate::store::cells::delete_of_record(tx, workspace, record.id).await?;
        return crate::store::cells::insert(tx, database, record).await;
    };
    let columns = Columns::of(database, record, author)?;
    columns.bind(sqlx::query(REPLACE.0)).execute(connection).await?;
    Ok(())
}

/// Adds to the number of live records of a database. Call it late in a transaction: its row stays locked until the end.
pub(crate) async fn count(
    tx: &mut Tx,
    workspace: WorkspaceId,
    database: DatabaseId,
    difference: i64,
) -> Result<(), Error> {
    execute!(tx, COUNT, Text(workspace), Text(database), difference).map(drop)
}

/// Stores the current state of a record as a version.
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
