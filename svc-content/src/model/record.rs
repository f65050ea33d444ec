//! Records and their versions.

use cairn_chassis::clock::Timestamp;
use cairn_proto::ids::{DatabaseId, FileId, RecordId};
use serde_json::{Map, Value};

use super::Author;

/// Values as they are kept: by property id, options by their ids, nothing for what has no value.
pub(crate) type Values = Map<String, Value>;

/// A record as it is kept.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Record {
    pub(crate) id: RecordId,
    pub(crate) database_id: DatabaseId,
    pub(crate) values: Values,
    pub(crate) content_file_id: Option<FileId>,
    pub(crate) version: u64,
    pub(crate) created_at: Timestamp,
    pub(crate) updated_at: Timestamp,
}

/// What a record was at one time.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RecordVersion {
    pub(crate) version: u64,
    pub(crate) values: Values,
    pub(crate) content_file_id: Option<FileId>,
    pub(crate) created_at: Timestamp,
    pub(crate) author: Author,
}
