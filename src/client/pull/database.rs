//! A database as CSV, for people and spreadsheets, and as JSON, which is lossless.

use std::collections::HashMap;
use std::io::Write;

use serde_json::{Value, json};

use super::remote::{Database, Property};

/// Writes the CSV of a database: a column for each property, a row for each record.
pub(super) struct Table<W: Write> {
    writer: csv::Writer<W>,
    properties: Vec<String>,
}

impl<W: Write> Table<W> {
    pub(super) fn begin(out: W, properties: &[Property]) -> anyhow::Result<Self> {
        let mut writer = csv::Writer::from_writer(out);
        writer.write_record(properties.iter().map(|property| property.name.as_str()))?;
        Ok(Self { writer, properties: properties.iter().map(|property| property.id.clone()).collect() })
    }

    pub(super) fn row(&mut self, record: &Value) -> anyhow::Result<()> {
        let values = record.get("values");
        let cell = |id: &String| text(values.and_then(|values| values.get(id)).unwrap_or(&Value::Null));
        Ok(self.writer.write_record(self.properties.iter().map(cell))?)
    }

    pub(super) fn end(mut self) -> anyhow::Result<()> {
        Ok(self.writer.flush()?)
    }
}

/// The value as a cell; lists are joined with commas.
fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(text).collect::<Vec<_>>().join(", "),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => value.to_string(),
    }
}

/// Writes the JSON of a database: its description and all its records.
pub(super) struct Document<W: Write> {
    out: W,
    has_records: bool,
}

impl<W: Write> Document<W> {
    pub(super) fn begin(mut out: W, database: &Database) -> anyhow::Result<Self> {
        let mut described = database.rest.clone();
        // It repeats `properties` and parts of the records.
        described.remove("fields");
        described.remove("recordCount");
        described.insert("id".to_owned(), json!(database.id));
        described.insert("name".to_owned(), json!(database.name));
        described.insert("folderId".to_owned(), json!(database.folder_id));
        let properties = database.properties.iter().map(|property| {
            let mut described = property.rest.clone();
            described.insert("id".to_owned(), json!(property.id));
            described.insert("name".to_owned(), json!(property.name));
            Value::Object(described)
        });
        described.insert("properties".to_owned(), properties.collect());
        write!(out, "{{\"database\": {},\n\"records\": [", Value::Object(described))?;
        Ok(Self { out, has_records: false })
    }

    /// Adds a record; `paths` maps the ids of files to their paths, for the record's body.
    pub(super) fn record(
        &mut self,
        mut record: Value,
        paths: &HashMap<String, String>,
    ) -> anyhow::Result<()> {
        let body = record.get("contentFileId").and_then(Value::as_str).and_then(|id| paths.get(id)).cloned();
        if let (Some(body), Some(fields)) = (body, record.as_object_mut()) {
            fields.insert("contentPath".to_owned(), Value::from(body));
        }
        let between = if self.has_records { ",\n" } else { "\n" };
        self.has_records = true;
        Ok(write!(self.out, "{between}{record}")?)
    }

    pub(super) fn end(mut self) -> anyhow::Result<()> {
        writeln!(self.out, "\n]}}")?;
        Ok(self.out.flush()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn database() -> Database {
        serde_json::from_value(json!({
            "id": "d", "name": "Tasks", "folderId": null, "icon": "x", "recordCount": 2, "fields": [],
            "properties": [{"id": "p1", "name": "Name", "type": "text"}, {"id": "p2", "name": "Tags", "type": "multi_select"}],
        }))
        .unwrap()
    }

    fn records() -> [Value; 2] {
        [
            json!({"id": "r1", "values": {"p1": "a, \"b\"", "p2": ["x", "y"]}, "contentFileId": "f"}),
            json!({"id": "r2", "values": {"p1": 2.5}}),
        ]
    }

    #[test]
    fn a_table_has_a_row_for_each_record() {
        let mut out = Vec::new();
        let mut table = Table::begin(&mut out, &database().properties).unwrap();
        for record in records() {
            table.row(&record).unwrap();
        }
        table.end().unwrap();
        let expected = "Name,Tags\n\"a, \"\"b\"\"\",\"x, y\"\n2.5,\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn a_document_holds_everything() {
        let mut out = Vec::new();
        let mut document = Document::begin(&mut out, &database()).unwrap();
        let paths = HashMap::from([("f".to_owned(), "files/body.md".to_owned())]);
        for record in records() {
            document.record(record, &paths).unwrap();
        }
        document.end().unwrap();
        let read: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(read["database"]["properties"][1]["type"], "multi_select");
        assert_eq!(read["database"].get("fields"), None);
        assert_eq!(read["records"][0]["contentPath"], "files/body.md");
        assert_eq!(read["records"][1]["values"]["p1"], 2.5);
        let mut empty = Vec::new();
        Document::begin(&mut empty, &database()).unwrap().end().unwrap();
        assert_eq!(serde_json::from_slice::<Value>(&empty).unwrap()["records"], json!([]));
    }
}
