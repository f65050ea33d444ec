//! The record of a database, its versions, and who names a file.

use cairn_proto::content::v1 as proto;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::time;

/// A row of a database.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Record {
    #[schema(format = "uuid")]
    id: String,
    #[schema(format = "uuid")]
    database_id: String,
    /// By property id; options stand by their names.
    #[schema(value_type = Object)]
    values: Map<String, Value>,
    /// The file that is its body.
    #[schema(required = true)]
    content_file_id: Option<String>,
    /// The value of the primary property.
    title: String,
    /// Rises by one with each change.
    pub(crate) version: u64,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(format = DateTime)]
    updated_at: String,
}

impl From<proto::Record> for Record {
    fn from(record: proto::Record) -> Self {
        Self {
            id: record.id,
            database_id: record.database_id,
            values: serde_json::from_str(&record.values_json).unwrap_or_default(),
            content_file_id: record.content_file_id,
            title: record.title,
            version: record.version,
            created_at: time(record.created_at.as_ref()),
            updated_at: time(record.updated_at.as_ref()),
        }
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
}

impl From<proto::ListRecordsResponse> for RecordPage {
    fn from(listed: proto::ListRecordsResponse) -> Self {
        Self {
            records: listed.records.into_iter().map(Record::from).collect(),
            total: listed.total,
            limit: listed.limit,
            offset: listed.offset,
        }
    }
}

/// Who made a version.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Author {
    /// `token`, `user` or `sync`.
    kind: String,
    id: String,
    name: String,
}

/// What a record was at one time.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RecordVersion {
    version: u64,
    #[schema(value_type = Object)]
    values: Map<String, Value>,
    #[schema(required = true)]
    content_file_id: Option<String>,
    #[schema(format = DateTime)]
    created_at: String,
    created_by: Author,
}

impl From<proto::RecordVersion> for RecordVersion {
    fn from(version: proto::RecordVersion) -> Self {
        let author = version.created_by.unwrap_or_default();
        Self {
            version: version.version,
            values: serde_json::from_str(&version.values_json).unwrap_or_default(),
            content_file_id: version.content_file_id,
            created_at: time(version.created_at.as_ref()),
            created_by: Author { kind: author.kind, id: author.id, name: author.name },
        }
    }
}

/// A record that names a file.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Backlink {
    database_id: String,
    database_name: String,
    record_id: String,
    record_title: String,
    /// Null when the file is the record's body.
    #[schema(required = true)]
    property_id: Option<String>,
    #[schema(required = true)]
    property_name: Option<String>,
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
