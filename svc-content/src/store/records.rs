//! Records of databases: reads of single records, row locks, and the records whose body is a file.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::sql::{Dialect, Engine, Error, PostgresOnly, Text, Tx, json_list};
use cairn_chassis::{fetch, list_statement, statements};
use cairn_proto::ids::{DatabaseId, DeletionId, FileId, RecordId, WorkspaceId};
use sqlx::{Executor, Postgres, Sqlite};

use super::page::to_count;
use crate::model::{Record, Values};

pub(super) mod many;
pub(super) mod versions;
pub(super) mod write;

pub(crate) use self::many::{StoredPage, get_in_order, get_many, page};
pub(crate) use self::versions::{version, versions};
pub(crate) use self::write::{count, insert, insert_and_end, replace, size_of};

macro_rules! columns {
    () => {
        "SELECT id, database_id, field_values, content_file_id, version, created_at, updated_at FROM records "
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

    const LOCK: PostgresOnly =
        PostgresOnly("SELECT 1 FROM records WHERE workspace_id = $1 AND id = $2 FOR UPDATE");

    const WITH_BODY_IN: Dialect = list_statement!(
        "SELECT id FROM records WHERE workspace_id = $1 AND deleted_at IS NULL AND content_file_id IS NOT NULL \
         AND content_file_id IN ",
        "$2",
        " ORDER BY id"
    );

    /// A file that went to trash with a folder is in a folder of the same deletion.
    const WITH_BODY_IN_DELETION: &str = "SELECT r.id FROM files f \
         JOIN records r ON r.workspace_id = $1 AND r.content_file_id = f.id AND r.deleted_at IS NULL \
         WHERE f.workspace_id = $1 AND f.deletion_id = $2 \
         AND f.folder_id IN (SELECT id FROM folders WHERE workspace_id = $1 AND deletion_id = $2) ORDER BY r.id";
}

/// The columns of a record.
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

/// Parses the values of a record as they are stored.
pub(super) fn values_of(column: &str) -> Result<Values, Error> {
    serde_json::from_str(column).map_err(|_| Error::corrupt("a record's values are not a JSON object"))
}

/// A live record, read inside a transaction or outside.
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

/// A record in trash.
pub(crate) async fn get_trashed(
    tx: &mut Tx,
    workspace: WorkspaceId,
    database: DatabaseId,
    id: RecordId,
) -> Result<Option<Record>, Error> {
    let row: Option<Row> = fetch!(optional, tx, GET_TRASHED, Text(workspace), Text(database), Text(id))?;
    row.map(Row::into_record).transpose()
}

/// Locks the row of the record until the transaction ends. A no-op on SQLite, which has a single writer.
pub(crate) async fn lock(tx: &mut Tx, workspace: WorkspaceId, id: RecordId) -> Result<(), Error> {
    super::page::lock(tx, LOCK, workspace, id).await
}

/// The live records whose body is one of these files.
pub(crate) async fn with_body_in(
    tx: &mut Tx,
    workspace: WorkspaceId,
    files: &[String],
) -> Result<Vec<RecordId>, Error> {
    let rows: Vec<Text<RecordId>> = fetch!(scalars, tx, WITH_BODY_IN, Text(workspace), json_list(files))?;
    Ok(rows.into_iter().map(|row| row.0).collect())
}

/// The live records whose body went to trash with a folder.
pub(crate) async fn with_body_in_deletion(
    tx: &mut Tx,
    workspace: WorkspaceId,
    deletion: DeletionId,
) -> Result<Vec<RecordId>, Error> {
    let rows: Vec<Text<RecordId>> =
        fetch!(scalars, tx, WITH_BODY_IN_DELETION, Text(workspace), Text(deletion))?;
    Ok(rows.into_iter().map(|row| row.0).collect())
}
