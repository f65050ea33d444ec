//! The baselines of the syncs and imports of a workspace, by origin and name.

use cairn_chassis::sql::{Db, Dialect, Error, Text, Tx};
use cairn_chassis::{execute, fetch, statements};
use cairn_proto::ids::SyncRunId;
use serde_json::json;
use uuid::Uuid;

use super::numbers::{to_column, to_count};
use crate::model::{Entry, Kind, Sync};

/// Rows of one statement.
const AT_ONCE: usize = 1_000;

statements! {
    pub(super) fn statements;

    const LIST: &str = "SELECT kind, path, item_id, version, content_hash, run_id FROM sync_entries \
         WHERE workspace_id = $1 AND origin = $2 AND name = $3";

    /// $4 is a JSON array of `[kind, path, item, version, hash, run]`.
    const PUT: Dialect = Dialect {
        sqlite: "INSERT INTO sync_entries (workspace_id, origin, name, kind, path, item_id, version, content_hash, run_id) \
             SELECT $1, $2, $3, value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5 \
             FROM json_each($4) WHERE TRUE ON CONFLICT (workspace_id, origin, name, kind, path) DO UPDATE SET \
             item_id = excluded.item_id, version = excluded.version, content_hash = excluded.content_hash, \
             run_id = excluded.run_id",
        postgres: "INSERT INTO sync_entries (workspace_id, origin, name, kind, path, item_id, version, content_hash, run_id) \
             SELECT $1, $2, $3, CAST(value ->> 0 AS BIGINT), value ->> 1, value ->> 2, CAST(value ->> 3 AS BIGINT), \
             value ->> 4, value ->> 5 FROM jsonb_array_elements(CAST(CAST($4 AS TEXT) AS JSONB)) AS given (value) \
             ON CONFLICT (workspace_id, origin, name, kind, path) DO UPDATE SET \
             item_id = excluded.item_id, version = excluded.version, content_hash = excluded.content_hash, \
             run_id = excluded.run_id",
    };

    /// $4 is a JSON array of `[kind, path]`.
    const REMOVE: Dialect = Dialect {
        sqlite: "DELETE FROM sync_entries WHERE workspace_id = $1 AND origin = $2 AND name = $3 AND (kind, path) IN \
             (SELECT value ->> 0, value ->> 1 FROM json_each($4))",
        postgres: "DELETE FROM sync_entries WHERE workspace_id = $1 AND origin = $2 AND name = $3 AND (kind, path) IN \
             (SELECT CAST(value ->> 0 AS BIGINT), value ->> 1 \
             FROM jsonb_array_elements(CAST(CAST($4 AS TEXT) AS JSONB)) AS given (value))",
    };
}

#[derive(Debug, sqlx::FromRow)]
struct Row {
    kind: i64,
    path: String,
    item_id: Text<Uuid>,
    version: i64,
    content_hash: String,
    run_id: Text<SyncRunId>,
}

/// The baseline of a sync, in no particular order.
pub(crate) async fn list(db: &Db, sync: Sync<'_>) -> Result<Vec<Entry>, Error> {
    let rows: Vec<Row> = fetch!(all, db, LIST, Text(sync.workspace), sync.origin.number(), sync.name)?;
    let read = |row: Row| {
        let unknown = || Error::corrupt("an entry of a sync of an unknown kind");
        let kind = Kind::from_number(row.kind).ok_or_else(unknown)?;
        Ok(Entry {
            kind,
            path: row.path,
            id: row.item_id.0,
            version: to_count(row.version),
            hash: row.content_hash,
            run: row.run_id.0,
        })
    };
    rows.into_iter().map(read).collect()
}

/// Inserts or replaces entries; no path may occur twice.
pub(crate) async fn put(tx: &mut Tx, sync: Sync<'_>, entries: &[Entry]) -> Result<(), Error> {
    for some in entries.chunks(AT_ONCE) {
        let row = |entry: &Entry| {
            let version = to_column(entry.version);
            json!([entry.kind.number(), entry.path, entry.id, version, entry.hash, entry.run.to_string()])
        };
        let rows = serde_json::Value::from(some.iter().map(row).collect::<Vec<_>>()).to_string();
        execute!(tx, PUT, Text(sync.workspace), sync.origin.number(), sync.name, rows.as_str())?;
    }
    Ok(())
}

/// Removes entries.
pub(crate) async fn remove(tx: &mut Tx, sync: Sync<'_>, paths: &[(Kind, String)]) -> Result<(), Error> {
    for some in paths.chunks(AT_ONCE) {
        let rows: Vec<_> = some.iter().map(|(kind, path)| json!([kind.number(), path])).collect();
        let rows = serde_json::Value::from(rows).to_string();
        execute!(tx, REMOVE, Text(sync.workspace), sync.origin.number(), sync.name, rows.as_str())?;
    }
    Ok(())
}
