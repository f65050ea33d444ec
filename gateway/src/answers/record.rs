//! A record, its versions, and backlinks of a file.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::OnceLock;

use cairn_chassis::status::Problem;
use cairn_proto::content::v1 as proto;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::time;

/// A row of a database.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Record {
    #[schema(format = "uuid")]
    pub(crate) id: String,
    #[schema(format = "uuid")]
    database_id: String,
    /// By property id; options stand by their names.
    #[schema(value_type = Object)]
    pub(crate) values: Values,
    /// To tools: the names of the properties that the values are of, by their ids.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = Object, required = false)]
    pub(crate) property_names: BTreeMap<String, String>,
    /// The file that is its body.
    #[schema(required = true)]
    pub(crate) content_file_id: Option<String>,
    /// The value of the primary property.
    pub(crate) title: String,
    /// Rises by one with each change.
    pub(crate) version: u64,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(format = DateTime)]
    pub(crate) updated_at: String,
}

/// The values of a record. Most responses pass them through as raw JSON; they are parsed on first access.
#[derive(Debug)]
pub(crate) struct Values {
    text: Box<RawValue>,
    read: OnceLock<Map<String, Value>>,
}

impl Values {
    fn new(text: String, of: impl Display) -> Result<Self, Problem> {
        let unreadable =
            |what: &dyn Display| Problem::internal(format!("the values of {of} cannot be read: {what}"));
        let text = RawValue::from_string(text).map_err(|error| unreadable(&error))?;
        if !text.get().starts_with('{') {
            return Err(unreadable(&"they are no object"));
        }
        Ok(Self { text, read: OnceLock::new() })
    }

    /// The value of a property, by id.
    pub(crate) fn get(&self, id: &str) -> Option<&Value> {
        // The text was validated when it arrived.
        self.read.get_or_init(|| serde_json::from_str(self.text.get()).unwrap_or_default()).get(id)
    }
}

impl Serialize for Values {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.text.serialize(serializer)
    }
}

/// Validates a service's values. Invalid ones are an error and not an empty record; the log tells which record it
/// is.
fn values(text: &str, of: impl Display) -> Result<Map<String, Value>, Problem> {
    serde_json::from_str(text)
        .map_err(|error| Problem::internal(format!("the values of {of} cannot be read: {error}")))
}

impl TryFrom<proto::Record> for Record {
    type Error = Problem;

    fn try_from(record: proto::Record) -> Result<Self, Problem> {
        Ok(Self {
            values: Values::new(record.values_json, format_args!("record {}", record.id))?,
            property_names: BTreeMap::new(),
            id: record.id,
            database_id: record.database_id,
            content_file_id: record.content_file_id,
            title: record.title,
            version: record.version,
            created_at: time(record.created_at.as_ref()),
            updated_at: time(record.updated_at.as_ref()),
        })
    }
}

/// A page of records.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RecordPage {
    pub(crate) records: Vec<Record>,
    /// How many there are in all.
    pub(crate) total: u64,
    pub(crate) limit: u32,
    pub(crate) offset: u64,
    /// To tools: the names of the database's properties by their ids.
    #[serde(skip)]
    #[schema(ignore)]
    pub(crate) property_names: BTreeMap<String, String>,
}

impl TryFrom<proto::ListRecordsResponse> for RecordPage {
    type Error = Problem;

    fn try_from(listed: proto::ListRecordsResponse) -> Result<Self, Problem> {
        Ok(Self {
            records: listed.records.into_iter().map(Record::try_from).collect::<Result<_, _>>()?,
            total: listed.total,
            limit: listed.limit,
            offset: listed.offset,
            property_names: listed.property_names.into_iter().collect(),
        })
    }
}

/// What a record was at one time.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RecordVersion {
    pub(crate) version: u64,
    /// By property id; of properties that are no more, by the names that these had.
    #[schema(value_type = Object)]
    pub(crate) values: Map<String, Value>,
    #[schema(required = true)]
    pub(crate) content_file_id: Option<String>,
    #[schema(format = DateTime)]
    pub(crate) created_at: String,
    pub(crate) created_by: proto::Author,
}

impl TryFrom<proto::RecordVersion> for RecordVersion {
    type Error = Problem;

    fn try_from(version: proto::RecordVersion) -> Result<Self, Problem> {
        Ok(Self {
            version: version.version,
            values: values(&version.values_json, format_args!("version {}", version.version))?,
            content_file_id: version.content_file_id,
            created_at: time(version.created_at.as_ref()),
            created_by: version.created_by.unwrap_or_default(),
        })
    }
}

/// A record that names a file.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Backlink {
    pub(crate) database_id: String,
    pub(crate) database_name: String,
    pub(crate) record_id: String,
    pub(crate) record_title: String,
    /// Null when the file is the record's body.
    #[schema(required = true)]
    property_id: Option<String>,
    #[schema(required = true)]
    pub(crate) property_name: Option<String>,
    /// `property` or `body`.
    via: &'static str,
}

impl From<proto::Backlink> for Backlink {
    fn from(backlink: proto::Backlink) -> Self {
        Self {
            via: if backlink.property_id.is_some() { "property" } else { "body" },
            database_id: backlink.database_id,
            database_name: backlink.database_name,
            record_id: backlink.record_id,
            record_title: backlink.record_title,
            property_id: backlink.property_id,
            property_name: backlink.property_name,
        }
    }
}

#[cfg(test)]
mod tests {
    use cairn_chassis::status::Reason;

    use super::*;

    #[test]
    fn values_that_cannot_be_read_are_no_empty_record() {
        let whole = proto::Record { values_json: "{\"a\":1}".into(), ..proto::Record::default() };
        let read = Record::try_from(whole.clone()).unwrap();
        assert_eq!((read.values.get("a"), read.values.get("b")), (Some(&Value::from(1)), None));
        assert_eq!(serde_json::to_string(&read.values).unwrap(), "{\"a\":1}");
        let broken = proto::Record { values_json: "{\"a\":".into(), ..whole };
        assert_eq!(Record::try_from(broken.clone()).unwrap_err().reason, Reason::Internal);
        let page = proto::ListRecordsResponse { records: vec![broken], ..Default::default() };
        assert_eq!(RecordPage::try_from(page).unwrap_err().reason, Reason::Internal);
        let version = proto::RecordVersion { values_json: "[]".into(), ..Default::default() };
        assert_eq!(RecordVersion::try_from(version).unwrap_err().reason, Reason::Internal);
    }
}

/// What became of a table, or what would.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ImportedTable {
    /// The columns, and the property that each goes to.
    pub(crate) columns: Vec<proto::TableColumn>,
    /// Below the head.
    pub(crate) rows: u64,
    /// The first of them, as they were read.
    pub(crate) first_rows: Vec<proto::TableRow>,
    /// Of a dry run: the first of what is wrong with rows.
    pub(crate) problems: Vec<proto::RowProblem>,
    /// Rows that cannot be taken.
    pub(crate) wrong_rows: u64,
    /// Records that were made.
    pub(crate) created: u64,
}

impl From<proto::ImportRecordsResponse> for ImportedTable {
    fn from(imported: proto::ImportRecordsResponse) -> Self {
        Self {
            columns: imported.columns,
            rows: imported.rows,
            first_rows: imported.first_rows,
            problems: imported.problems,
            wrong_rows: imported.wrong_rows,
            created: imported.created,
        }
    }
}
