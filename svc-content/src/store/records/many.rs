//! Many records at once, returned by the engine as one JSON array in one row: the driver copies every value of every row
//! and wakes the reader for each row, which costs more than the reads themselves.

use std::collections::HashMap;
use std::str::FromStr;

use cairn_chassis::clock::Timestamp;
use cairn_chassis::sql::{Db, Dialect, Engine, Error, Text, json_list, json_rows};
use cairn_chassis::{fetch, statements};
use cairn_proto::ids::{DatabaseId, RecordId, WorkspaceId};
use sqlx::{Executor, Postgres, Sqlite};

use crate::model::{Fields, PageRecord, Record, Values};
use crate::store::page::to_count;

/// The feed position and the time of the last write of the database, selected in the same snapshot as what follows.
macro_rules! select_snapshot {
    () => {
        "SELECT COALESCE((SELECT position FROM feed_heads WHERE workspace_id = $1), 0), \
         (SELECT updated_at FROM databases WHERE workspace_id = $1 AND id = $2 AND deleted_at IS NULL), "
    };
}

/// A record as a JSON array. The stored values are concatenated as they are: letting the engine parse them costs more than the
/// rest of the page.
macro_rules! record_as_json {
    () => {
        "'[\"' || r.id || '\",' || r.field_values || COALESCE(',\"' || r.content_file_id || '\",', ',null,') \
         || r.version || ',' || r.created_at || ',' || r.updated_at || ']'"
    };
}

/// A pair of the id of the database and the record.
macro_rules! record_of_database_as_json {
    () => {
        concat!("'[\"' || r.database_id || '\",' || ", record_as_json!(), " || ']'")
    };
}

statements! {
    pub(crate) fn statements;

    const GET_MANY: Dialect = Dialect {
        sqlite: concat!(
            "SELECT '[' || COALESCE(group_concat(",
            record_of_database_as_json!(),
            ", ','), '') || ']' FROM records r WHERE r.workspace_id = $1 AND r.deleted_at IS NULL \
             AND r.id IN (SELECT value FROM json_each($2))"
        ),
        postgres: concat!(
            "SELECT '[' || COALESCE(string_agg(",
            record_of_database_as_json!(),
            ", ','), '') || ']' FROM records r WHERE r.workspace_id = $1 AND r.deleted_at IS NULL \
             AND r.id IN (SELECT unnest(ARRAY(SELECT jsonb_array_elements_text(CAST(CAST($2 AS TEXT) AS JSONB)))))"
        ),
    };

    const PAGE: Dialect = Dialect {
        sqlite: concat!(
            select_snapshot!(),
            "(SELECT '[' || COALESCE(group_concat(",
            record_as_json!(),
            ", ','), '') || ']' FROM records r WHERE r.workspace_id = $1 AND r.deleted_at IS NULL \
             AND r.id IN (SELECT value FROM json_each($3)))"
        ),
        postgres: concat!(
            select_snapshot!(),
            "(SELECT '[' || COALESCE(string_agg(",
            record_as_json!(),
            ", ','), '') || ']' FROM records r WHERE r.workspace_id = $1 AND r.deleted_at IS NULL \
             AND r.id IN (SELECT unnest(ARRAY(SELECT jsonb_array_elements_text(CAST(CAST($3 AS TEXT) AS JSONB))))))"
        ),
    };
}

/// An element of [`PAGE`]: id, values, file of the body, version, creation and update time.
#[derive(serde::Deserialize)]
struct PageRow<'a, V>(&'a str, V, Option<&'a str>, i64, i64, i64);

/// An element of [`GET_MANY`]: the id of the database and the record.
#[derive(serde::Deserialize)]
struct ManyRow<'a>(&'a str, #[serde(borrow)] PageRow<'a, Values>);

impl ManyRow<'_> {
    fn into_record(self) -> Result<Record, Error> {
        let Self(database, PageRow(id, values, body, version, created_at, updated_at)) = self;
        Ok(Record {
            id: parse_id(id)?,
            database_id: parse_id(database)?,
            values,
            content_file_id: body.map(parse_id).transpose()?,
            version: to_count(version),
            created_at: Timestamp::from_micros(created_at),
            updated_at: Timestamp::from_micros(updated_at),
        })
    }
}

impl<'a> PageRow<'a, Fields<'a>> {
    fn into_record(self) -> Result<PageRecord<'a>, Error> {
        let Self(id, values, body, version, created_at, updated_at) = self;
        Ok(PageRecord {
            id: parse_id(id)?,
            values,
            content_file_id: body.map(parse_id).transpose()?,
            version: to_count(version),
            created_at: Timestamp::from_micros(created_at),
            updated_at: Timestamp::from_micros(updated_at),
        })
    }
}

fn parse_id<T: FromStr>(text: &str) -> Result<T, Error> {
    text.parse().map_err(|_| Error::corrupt("an id of a record cannot be read"))
}

/// Those of these records that are live, in no particular order.
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
    json_rows::<ManyRow<'_>>(&rows)?.into_iter().map(ManyRow::into_record).collect()
}

/// Those of these records that are live, in the order of `ids`, read inside a transaction or outside.
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

/// A page of records of a database, with the state that it was read in.
#[derive(Debug, Clone)]
pub(crate) struct StoredPage {
    /// The feed position of the workspace.
    pub(crate) position: u64,
    /// The last write of the database; `None` when it was not live.
    pub(crate) written_at: Option<Timestamp>,
    /// In the order of the page.
    ids: Vec<RecordId>,
    /// A JSON array of [`PageRow`], in no particular order.
    rows: String,
}

impl StoredPage {
    /// The live records, in the order of the page.
    pub(crate) fn records(&self) -> Result<Vec<PageRecord<'_>>, Error> {
        let rows: Vec<PageRow<'_, Fields<'_>>> = json_rows(&self.rows)?;
        let found = rows.into_iter().map(|row| row.into_record().map(|record| (record.id, record)));
        let mut by_id: HashMap<RecordId, PageRecord<'_>> = found.collect::<Result<_, _>>()?;
        Ok(self.ids.iter().filter_map(|id| by_id.remove(id)).collect())
    }
}

/// Those of these records that are live, in the order of `ids`.
pub(crate) async fn page<'e, S, P>(
    on: Engine<S, P>,
    (workspace, database): (WorkspaceId, DatabaseId),
    ids: &[RecordId],
) -> Result<StoredPage, Error>
where
    S: Executor<'e, Database = Sqlite>,
    P: Executor<'e, Database = Postgres>,
{
    let (position, written_at, rows): (i64, Option<Timestamp>, String) =
        fetch!(one, on, PAGE, Text(workspace), Text(database), json_list(ids))?;
    Ok(StoredPage { position: to_count(position), written_at, ids: ids.to_vec(), rows })
}
