//! Records and their versions.

use cairn_chassis::clock::Timestamp;
use cairn_proto::ids::{DatabaseId, FileId, RecordId};
use serde_json::{Map, Value};

use super::Author;

/// Values as they are stored: by property id, options by their ids, without an entry for a missing value.
pub(crate) type Values = Map<String, Value>;

/// A record as it is stored.
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

/// A version of a record.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RecordVersion {
    pub(crate) version: u64,
    pub(crate) values: Values,
    pub(crate) content_file_id: Option<FileId>,
    pub(crate) created_at: Timestamp,
    pub(crate) author: Author,
}
