//! Cells: the values of live records in the form in which the engines compare, sort and count them.

use cairn_chassis::sql::{Dialect, Error, Text, Tx, json_list};
use cairn_chassis::{execute, list_statement, statements};
use cairn_proto::ids::{PropertyId, RecordId, WorkspaceId};
use serde_json::json;

use crate::model::{Cell, Database, Property, Record, cells, place_key};

/// Inserts the cells of the record `$2` of the database `$3` from a JSON array of `[property, place, number, text,
/// rest, target]`.
macro_rules! insert_cells {
    (sqlite, $list:literal) => {
        concat!(
            "INSERT INTO record_cells (workspace_id, record_id, database_id, property_id, place, number_key, text_key, \
             rest, target_id) SELECT $1, $2, $3, value ->> 0, value ->> 1, CAST(value ->> 2 AS REAL), value ->> 3, \
             value ->> 4, value ->> 5 FROM json_each(",
            $list,
            ")"
        )
    };
    (postgres, $list:literal) => {
        concat!(
            "INSERT INTO record_cells (workspace_id, record_id, database_id, property_id, place, number_key, text_key, \
             rest, target_id) SELECT $1, $2, $3, cell ->> 0, CAST(cell ->> 1 AS BIGINT), \
             CAST(cell ->> 2 AS DOUBLE PRECISION), cell ->> 3, cell ->> 4, cell ->> 5 \
             FROM jsonb_array_elements(CAST(CAST(",
            $list,
            " AS TEXT) AS JSONB)) AS list (cell)"
        )
    };
}
pub(super) use insert_cells;

statements! {
    pub(super) fn statements;

    const INSERT: Dialect =
        Dialect { sqlite: insert_cells!(sqlite, "$4"), postgres: insert_cells!(postgres, "$4") };

    const DELETE_OF_RECORD: &str = "DELETE FROM record_cells WHERE workspace_id = $1 AND record_id = $2";

    /// One statement per key, so that each uses its partial index: every cell has one of the two keys.
    const DELETE_OF_PROPERTY: [&str; 2] = [
        "DELETE FROM record_cells \
         WHERE workspace_id = $1 AND database_id = $2 AND property_id = $3 AND number_key IS NOT NULL",
        "DELETE FROM record_cells \
         WHERE workspace_id = $1 AND database_id = $2 AND property_id = $3 AND text_key IS NOT NULL",
    ];

    const FOLLOW_OPTION: &str = "UPDATE record_cells SET number_key = $5 \
         WHERE workspace_id = $1 AND database_id = $2 AND property_id = $3 AND text_key = $4";

    /// `$4` is a JSON array of the ids of the existing options.
    const DELETE_OF_OPTIONS: Dialect = list_statement!(
        "DELETE FROM record_cells WHERE workspace_id = $1 AND database_id = $2 AND property_id = $3 \
         AND text_key IS NOT NULL AND text_key NOT IN ",
        "$4",
        ""
    );

    /// Renumbers places: records are sorted by place 0, which must exist after the first of several options was
    /// removed. It goes through negative places, so that two cells never share one.
    const CLOSE_GAPS: [&str; 2] = [
        "UPDATE record_cells SET place = -1 - numbered.fresh FROM (\
         SELECT record_id, place, ROW_NUMBER() OVER (PARTITION BY record_id ORDER BY place) - 1 AS fresh FROM record_cells \
         WHERE workspace_id = $1 AND database_id = $2 AND property_id = $3 AND text_key IS NOT NULL) AS numbered \
         WHERE record_cells.workspace_id = $1 AND record_cells.property_id = $3 \
         AND record_cells.record_id = numbered.record_id AND record_cells.place = numbered.place \
         AND numbered.fresh <> numbered.place",
        "UPDATE record_cells SET place = -1 - place \
         WHERE workspace_id = $1 AND database_id = $2 AND property_id = $3 AND text_key IS NOT NULL AND place < 0",
    ];
}

/// Cells as the JSON list that the statements read.
pub(super) fn list(made: &[Cell]) -> String {
    let rows = made
        .iter()
        .map(|cell| json!([cell.property, cell.place, cell.number, cell.text, cell.rest, cell.target]));
    serde_json::Value::from_iter(rows).to_string()
}

/// Inserts the cells of a record that has none.
pub(crate) async fn insert(tx: &mut Tx, database: &Database, record: &Record) -> Result<(), Error> {
    let made = cells(database, &record.values);
    if made.is_empty() {
        return Ok(());
    }
    let list = list(&made);
    execute!(tx, INSERT, Text(database.workspace_id), Text(record.id), Text(record.database_id), &list)
        .map(drop)
}

/// Deletes the cells of a record.
pub(crate) async fn delete_of_record(
    tx: &mut Tx,
    workspace: WorkspaceId,
    record: RecordId,
) -> Result<(), Error> {
    execute!(tx, DELETE_OF_RECORD, Text(workspace), Text(record)).map(drop)
}

/// Deletes the cells of a property.
pub(crate) async fn delete_of_property(
    tx: &mut Tx,
    database: &Database,
    property: PropertyId,
) -> Result<(), Error> {
    for sql in DELETE_OF_PROPERTY {
        execute!(tx, sql, Text(database.workspace_id), Text(database.id), Text(property))?;
    }
    Ok(())
}

/// Renumbers the cells of a select property to the order of its options, and deletes those of removed options.
pub(crate) async fn follow_options(
    tx: &mut Tx,
    database: &Database,
    property: &Property,
) -> Result<(), Error> {
    let ids = json_list(property.config.options.iter().map(|option| &option.id));
    execute!(tx, DELETE_OF_OPTIONS, Text(database.workspace_id), Text(database.id), Text(property.id), &ids)?;
    for sql in CLOSE_GAPS {
        execute!(tx, sql, Text(database.workspace_id), Text(database.id), Text(property.id))?;
    }
    for (place, option) in property.config.options.iter().enumerate() {
        execute!(
            tx,
            FOLLOW_OPTION,
            Text(database.workspace_id),
            Text(database.id),
            Text(property.id),
            &option.id,
            place_key(place)
        )?;
    }
    Ok(())
}
