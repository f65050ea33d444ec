//! Rendering the records of a page from stored JSON to response JSON without parsing most values: a page has many records, and
//! a round trip through parsed values costs more than finding them.

use std::borrow::Cow;
use std::collections::HashMap;

use cairn_chassis::sql;

use super::VisibleRecord;
use crate::Error;
use crate::model::{Database, Listed, PageRecord, Property, Record, Values};

impl From<VisibleRecord> for Listed {
    fn from(shown: VisibleRecord) -> Self {
        let record = shown.record;
        Self {
            id: record.id,
            database_id: record.database_id,
            values: serde_json::Value::Object(record.values).to_string(),
            content_file_id: record.content_file_id,
            title: shown.title,
            version: record.version,
            created_at: record.created_at,
            updated_at: record.updated_at,
        }
    }
}

/// A record with its values parsed.
pub(super) fn read(database: &Database, record: &PageRecord<'_>) -> Result<Record, Error> {
    let read = record.values.iter().map(|(id, text)| {
        let value = serde_json::from_str::<serde_json::Value>(text);
        value.map(|value| (id.to_owned(), value))
    });
    let values: Values = read.collect::<Result<_, _>>().map_err(unreadable)?;
    Ok(Record {
        id: record.id,
        database_id: database.id,
        values,
        content_file_id: record.content_file_id,
        version: record.version,
        created_at: record.created_at,
        updated_at: record.updated_at,
    })
}

/// The text value of a property; empty if there is none.
pub(super) fn text_of(property: &Property, record: &PageRecord<'_>) -> Result<String, Error> {
    let wanted = property.id.to_string();
    let value = record.values.iter().find(|(id, _)| *id == wanted).map(|(_, value)| value);
    Ok(value.map(serde_json::from_str).transpose().map_err(unreadable)?.unwrap_or_default())
}

/// Renders records for a caller who may see every reference.
pub(super) fn whole(database: &Database, records: &[PageRecord<'_>]) -> Result<Vec<Listed>, Error> {
    let ids: Vec<String> = database.properties.iter().map(|property| property.id.to_string()).collect();
    let properties = ids.iter().map(String::as_str).zip(&database.properties).collect();
    let primary = database.primary().map(|property| property.id.to_string()).unwrap_or_default();
    records.iter().map(|record| show(database, &properties, &primary, record)).collect()
}

fn show(
    database: &Database,
    properties: &HashMap<&str, &Property>,
    primary: &str,
    record: &PageRecord<'_>,
) -> Result<Listed, Error> {
    // The punctuation of a field: quotes, a colon, a comma.
    const PUNCTUATION: usize = 4;
    let len: usize = record.values.iter().map(|(id, value)| id.len() + value.len() + PUNCTUATION).sum();
    let (mut shown, mut title) = (String::with_capacity(len), String::new());
    for (id, value) in record.values.iter() {
        let Some(property) = properties.get(id) else { continue };
        if id == primary {
            title = serde_json::from_str(value).unwrap_or_default();
        }
        let Some(text) = with_option_names(property, value)? else { continue };
        shown.push_str(if shown.is_empty() { "{\"" } else { ",\"" });
        // Ids are UUIDs, which need no escaping.
        shown.push_str(id);
        shown.push_str("\":");
        shown.push_str(&text);
    }
    shown.push_str(if shown.is_empty() { "{}" } else { "}" });
    Ok(Listed {
        id: record.id,
        database_id: database.id,
        values: shown,
        content_file_id: record.content_file_id,
        title,
        version: record.version,
        created_at: record.created_at,
        updated_at: record.updated_at,
    })
}

/// A value with option ids replaced by names; `None` for a deleted option.
fn with_option_names<'a>(property: &Property, text: &'a str) -> Result<Option<Cow<'a, str>>, Error> {
    if !property.kind.has_options() {
        return Ok(Some(Cow::Borrowed(text)));
    }
    let name = |id: &str| property.option(id).map(|option| option.name.as_str());
    let written = if text.starts_with('[') {
        let ids: Vec<Cow<'_, str>> = serde_json::from_str(text).map_err(unreadable)?;
        let names: Vec<&str> = ids.iter().filter_map(|id| name(id)).collect();
        Some(serde_json::to_string(&names))
    } else {
        let id: Cow<'_, str> = serde_json::from_str(text).map_err(unreadable)?;
        name(&id).map(serde_json::to_string)
    };
    Ok(written.transpose().map_err(unreadable)?.map(Cow::Owned))
}

fn unreadable(error: serde_json::Error) -> Error {
    sql::Error::corrupt(format!("a record's values cannot be read: {error}")).into()
}
