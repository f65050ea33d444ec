//! Databases, records and cells of every workspace, as they are stored, for the doctor.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::sql::{Dialect, Error, Text, Tx, json_list};
use cairn_chassis::{fetch, list_statement, statements};
use cairn_proto::ids::{DatabaseId, PropertyId, RecordId, WorkspaceId};

use crate::model::{Cell, Database, Record};

statements! {
    pub(super) fn statements;

    /// From after $1 and $2 on.
    const DATABASES: &str = "SELECT workspace_id, id, properties, views FROM databases \
         WHERE (workspace_id, id) > ($1, $2) ORDER BY workspace_id, id LIMIT $3";

    /// Live ones, from after $3 on.
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

/// A database as it is stored.
#[derive(Debug)]
pub(crate) struct Schema {
    pub(crate) workspace: WorkspaceId,
    pub(crate) id: String,
    properties: String,
    views: String,
}

impl Schema {
    /// Its schema; `None` when that is not what was written.
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
pub(crate) struct Examined {
    pub(crate) id: String,
    database_id: Text<DatabaseId>,
    field_values: String,
    pub(crate) title: String,
    pub(crate) searched: String,
}

impl Examined {
    /// Its values; `None` when these are not what was written.
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

/// Databases of every workspace, in trash too, from after that one on.
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

/// Live records of a database in the order of their ids, from after that one on.
pub(crate) async fn records(
    tx: &mut Tx,
    workspace: WorkspaceId,
    database: DatabaseId,
    after: &str,
    limit: i64,
) -> Result<Vec<Examined>, Error> {
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
            // What is no place is that of no cell.
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

/// The queries of members, each with what it is of.
pub(crate) async fn queries(tx: &mut Tx) -> Result<Vec<(String, String)>, Error> {
    fetch!(all, tx, QUERIES)
}
