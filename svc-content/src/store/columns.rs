//! Reads for the in-memory columns: their initial contents, and the changes to apply to them.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::feed::Kind;
use cairn_chassis::sql::{Db, Engine, Error, Text, Tx};
use cairn_chassis::{fetch, statements};
use cairn_proto::ids::{DatabaseId, RecordId, WorkspaceId};
use sqlx::{Executor, Postgres, Sqlite};

use super::page::{to_column, to_count};
use super::records::values_of;
use crate::model::Values;

statements! {
    pub(super) fn statements;

    const POSITION_AND_VERSION: &str = "SELECT \
         COALESCE((SELECT position FROM feed_heads WHERE workspace_id = $1), 0), updated_at \
         FROM databases WHERE workspace_id = $1 AND id = $2 AND deleted_at IS NULL";

    const BATCH: &str = "SELECT id, created_at, field_values FROM records \
         WHERE workspace_id = $1 AND database_id = $2 AND deleted_at IS NULL AND (created_at, id) > ($3, $4) \
         ORDER BY created_at, id LIMIT $5";

    /// `$3` is the position to start after, `$4` the last one, `$5` the kind of records.
    const CHANGED: &str = "SELECT told.item_id, r.created_at, r.field_values FROM (\
         SELECT DISTINCT item_id FROM feed_changes \
         WHERE workspace_id = $1 AND position > $3 AND position <= $4 AND kind = $5) AS told \
         LEFT JOIN records r ON r.workspace_id = $1 AND r.id = told.item_id AND r.database_id = $2 \
         AND r.deleted_at IS NULL";
}

/// A live record as it is stored.
#[derive(Debug, Clone)]
pub(crate) struct StoredRecord {
    pub(crate) id: RecordId,
    pub(crate) created_at: Timestamp,
    values: String,
}

impl StoredRecord {
    /// Parses its values. The caller does so off the async threads when there are many records.
    pub(crate) fn values(&self) -> Result<Values, Error> {
        values_of(&self.values)
    }
}

/// The feed position of the workspace, and the last write of the database; `None` when the database is not live.
pub(crate) async fn position_and_version<'e, S, P>(
    on: Engine<S, P>,
    workspace: WorkspaceId,
    database: DatabaseId,
) -> Result<Option<(u64, Timestamp)>, Error>
where
    S: Executor<'e, Database = Sqlite>,
    P: Executor<'e, Database = Postgres>,
{
    let row: Option<(i64, Timestamp)> =
        fetch!(optional, on, POSITION_AND_VERSION, Text(workspace), Text(database))?;
    Ok(row.map(|(position, written_at)| (to_count(position), written_at)))
}

/// A batch of live records of a database in the order of creation, after a given one.
pub(crate) async fn batch<'e, S, P>(
    on: Engine<S, P>,
    (workspace, database): (WorkspaceId, DatabaseId),
    after: Option<&StoredRecord>,
    limit: u32,
) -> Result<Vec<StoredRecord>, Error>
where
    S: Executor<'e, Database = Sqlite>,
    P: Executor<'e, Database = Postgres>,
{
    let (created_at, id) = match after {
        Some(last) => (last.created_at, last.id.to_string()),
        None => (Timestamp::from_micros(i64::MIN), String::new()),
    };
    let rows: Vec<(Text<RecordId>, Timestamp, String)> =
        fetch!(all, on, BATCH, Text(workspace), Text(database), created_at, &id, i64::from(limit))?;
    Ok(rows
        .into_iter()
        .map(|(id, created_at, values)| StoredRecord { id: id.0, created_at, values })
        .collect())
}

/// The current state of the records that changed in a range of feed positions: the live ones of the database with
/// their values, of all others only the ids.
pub(crate) async fn changed(
    tx: &mut Tx,
    (workspace, database): (WorkspaceId, DatabaseId),
    after: u64,
    until: u64,
) -> Result<Vec<Result<StoredRecord, RecordId>>, Error> {
    let kind = i64::from(i32::from(Kind::Record));
    let rows: Vec<(Text<RecordId>, Option<Timestamp>, Option<String>)> =
        fetch!(all, tx, CHANGED, Text(workspace), Text(database), to_column(after), to_column(until), kind)?;
    let changed = rows.into_iter().map(|(id, created_at, values)| match created_at.zip(values) {
        Some((created_at, values)) => Ok(StoredRecord { id: id.0, created_at, values }),
        None => Err(id.0),
    });
    Ok(changed.collect())
}

/// [`batch`] outside of a transaction.
pub(crate) async fn batch_of(
    db: &Db,
    of: (WorkspaceId, DatabaseId),
    after: Option<&StoredRecord>,
    limit: u32,
) -> Result<Vec<StoredRecord>, Error> {
    batch(db.engine(), of, after, limit).await
}
