//! Deleted properties and options, and the records that lose their values with them.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::sql::{Db, Dialect, Error, Text, Tx, json_list};
use cairn_chassis::{execute, fetch, list_statement, statements};
use cairn_proto::ids::{PropertyId, RecordId, WorkspaceId};
use serde_json::json;

use super::page::to_count;
use super::records::values_of;
use crate::model::{
    Author, Database, Growth, Property, PropertyOption, PropertySettings, PropertyType, Values,
};

statements! {
    pub(super) fn statements;

    const INSERT_PROPERTY: &str = "INSERT INTO former_properties (workspace_id, database_id, id, name, kind, deleted_at) \
         VALUES ($1, $2, $3, $4, $5, $6)";

    /// `$4` is a JSON array of `[id, name]`, `$5` the time.
    const INSERT_OPTIONS: Dialect = Dialect {
        sqlite: "INSERT INTO former_options (workspace_id, database_id, property_id, id, name, deleted_at) \
             SELECT $1, $2, $3, value ->> 0, value ->> 1, $5 FROM json_each($4)",
        postgres: "INSERT INTO former_options (workspace_id, database_id, property_id, id, name, deleted_at) \
             SELECT $1, $2, $3, entry ->> 0, entry ->> 1, $5 \
             FROM jsonb_array_elements(CAST(CAST($4 AS TEXT) AS JSONB)) AS list (entry)",
    };

    const PROPERTIES: Dialect = list_statement!(
        "SELECT id, name, kind FROM former_properties WHERE workspace_id = $1 AND database_id = $2 AND id IN ",
        "$3",
        " ORDER BY deleted_at, id"
    );

    const OPTIONS: Dialect = list_statement!(
        "SELECT property_id, id, name FROM former_options WHERE workspace_id = $1 AND database_id = $2 AND id IN ",
        "$3",
        ""
    );

    /// `$3` is the record to start after, `$4` a LIKE pattern of the key of the property.
    const HOLDERS: &str = "SELECT id, CAST(LENGTH(field_values) AS BIGINT) FROM records \
         WHERE workspace_id = $1 AND database_id = $2 AND id > $3 AND field_values LIKE $4 ORDER BY id LIMIT $5";

    const VALUES: Dialect =
        list_statement!("SELECT id, field_values FROM records WHERE workspace_id = $1 AND id IN ", "$2", "");

    /// `$2` is a JSON array of `[record, values]` with the values of the next version. CROSS JOIN fixes the join
    /// order on SQLite, which would otherwise scan the list for each record of the workspace.
    const KEEP: Dialect = Dialect {
        sqlite: "INSERT INTO record_versions (workspace_id, record_id, version, field_values, content_file_id, created_at, \
             author_kind, author_id, author_name) \
             SELECT $1, r.id, r.version + 1, list.value ->> 1, r.content_file_id, $3, $4, $5, $6 FROM json_each($2) AS list \
             CROSS JOIN records r WHERE r.workspace_id = $1 AND r.id = list.value ->> 0",
        postgres: "INSERT INTO record_versions (workspace_id, record_id, version, field_values, content_file_id, created_at, \
             author_kind, author_id, author_name) \
             SELECT $1, r.id, r.version + 1, list.entry ->> 1, r.content_file_id, $3, $4, $5, $6 \
             FROM jsonb_array_elements(CAST(CAST($2 AS TEXT) AS JSONB)) AS list (entry) \
             JOIN records r ON r.workspace_id = $1 AND r.id = list.entry ->> 0",
    };

    const SIZE: Dialect = list_statement!(
        "SELECT CAST(COALESCE(SUM(OCTET_LENGTH(field_values)), 0) AS BIGINT) FROM records \
         WHERE workspace_id = $1 AND id IN ",
        "$2",
        ""
    );

    /// Sets the records of the list `$2` to the values of their next versions.
    const REWRITE: Dialect = list_statement!(
        "UPDATE records SET field_values = (SELECT v.field_values FROM record_versions v WHERE v.workspace_id = $1 \
         AND v.record_id = records.id AND v.version = records.version + 1), version = version + 1, updated_at = $3 \
         WHERE workspace_id = $1 AND id IN ",
        "$2",
        ""
    );
}

/// The limits of a batch in memory: the records, and the characters of their values.
const MAX_BATCH: i64 = 500;
const MAX_BATCH_CHARS: u64 = 4 * 1024 * 1024;

/// Stores the names of a property and of its options before they are deleted.
pub(crate) async fn insert_property(
    tx: &mut Tx,
    database: &Database,
    property: &Property,
    at: Timestamp,
) -> Result<(), Error> {
    execute!(
        tx,
        INSERT_PROPERTY,
        Text(database.workspace_id),
        Text(database.id),
        Text(property.id),
        &property.name,
        property.kind.as_str(),
        at
    )?;
    insert_options(tx, database, property.id, &property.config.options, at).await
}

/// Stores the names of options before they are deleted.
pub(crate) async fn insert_options(
    tx: &mut Tx,
    database: &Database,
    property: PropertyId,
    options: &[PropertyOption],
    at: Timestamp,
) -> Result<(), Error> {
    if options.is_empty() {
        return Ok(());
    }
    let list = json!(options.iter().map(|option| [&option.id, &option.name]).collect::<Vec<_>>()).to_string();
    execute!(tx, INSERT_OPTIONS, Text(database.workspace_id), Text(database.id), Text(property), &list, at)
        .map(drop)
}

/// Those of these properties that were deleted, with the type of their values and without options, in the order of
/// deletion.
pub(crate) async fn properties(
    db: &Db,
    database: &Database,
    ids: &[PropertyId],
) -> Result<Vec<Property>, Error> {
    let read = |(id, name, kind): (Text<PropertyId>, String, String)| {
        let kind: PropertyType = serde_json::from_value(kind.into())
            .map_err(|_| Error::corrupt("a former property is of an unknown type"))?;
        Ok(Property { id: id.0, name, kind, is_primary: false, config: PropertySettings::default() })
    };
    former(db, PROPERTIES, database, json_list(ids)).await?.into_iter().map(read).collect()
}

/// Those of these options that were deleted, each with its property.
pub(crate) async fn options(
    db: &Db,
    database: &Database,
    ids: &[String],
) -> Result<Vec<(PropertyId, PropertyOption)>, Error> {
    let read = |(property, id, name): (Text<PropertyId>, String, String)| {
        (property.0, PropertyOption { id, name, color: String::new() })
    };
    Ok(former(db, OPTIONS, database, json_list(ids)).await?.into_iter().map(read).collect())
}

async fn former(
    db: &Db,
    statement: Dialect,
    database: &Database,
    ids: String,
) -> Result<Vec<(Text<PropertyId>, String, String)>, Error> {
    fetch!(all, db, statement, Text(database.workspace_id), Text(database.id), &ids)
}

/// The next batch of records of a database, live or in trash, whose values may contain a property, in the order of
/// their ids; empty at the end.
pub(crate) async fn holders(
    tx: &mut Tx,
    database: &Database,
    property: PropertyId,
    after: Option<RecordId>,
) -> Result<Vec<(RecordId, Values)>, Error> {
    let (after, pattern) = (after.map(|id| id.to_string()).unwrap_or_default(), format!("%\"{property}\"%"));
    let rows: Vec<(Text<RecordId>, i64)> = fetch!(
        all,
        tx,
        HOLDERS,
        Text(database.workspace_id),
        Text(database.id),
        &after,
        &pattern,
        MAX_BATCH
    )?;
    let mut chars = 0_u64;
    // Always at least one record, so that the scan advances.
    let fitting = rows.iter().take_while(|(_, length)| {
        let fits = chars < MAX_BATCH_CHARS;
        chars = chars.saturating_add(to_count(*length));
        fits
    });
    let rows: Vec<(Text<RecordId>, String)> =
        fetch!(all, tx, VALUES, Text(database.workspace_id), json_list(fitting.map(|(id, _)| id.0)))?;
    let mut held: Vec<(RecordId, Values)> =
        rows.into_iter().map(|(id, values)| Ok((id.0, values_of(&values)?))).collect::<Result<_, Error>>()?;
    held.sort_by_key(|(id, _)| *id);
    Ok(held)
}

/// Sets new values for records, as a new version of each; returns by how many bytes the usage grows.
pub(crate) async fn rewrite(
    tx: &mut Tx,
    workspace: WorkspaceId,
    records: &[(RecordId, Values)],
    author: &Author,
    at: Timestamp,
) -> Result<Growth, Error> {
    if records.is_empty() {
        return Ok(Growth::default());
    }
    let ids = json_list(records.iter().map(|(id, _)| id));
    let before: i64 = fetch!(scalar, tx, SIZE, Text(workspace), &ids)?;
    let pair = |(id, values): &(RecordId, Values)| {
        let text = serde_json::to_string(values)
            .map_err(|_| Error::corrupt("a record's values cannot be written as JSON"))?;
        Ok([id.to_string(), text])
    };
    let pairs = records.iter().map(pair).collect::<Result<Vec<_>, Error>>()?;
    let after: usize = pairs.iter().map(|[_, text]| text.len()).sum();
    let list = json!(pairs).to_string();
    execute!(tx, KEEP, Text(workspace), &list, at, &author.kind, &author.id, &author.name)?;
    execute!(tx, REWRITE, Text(workspace), &ids, at)?;
    Ok(Growth::of_change(to_count(before), after as u64))
}
