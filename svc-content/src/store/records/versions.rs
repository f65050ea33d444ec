//! Versions of records.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::sql::{Db, Error, Text};
use cairn_chassis::{fetch, statements};
use cairn_proto::ids::{FileId, RecordId, WorkspaceId};

use super::values_of;
use crate::model::{Author, RecordVersion};
use crate::store::page::{to_column, to_count};

macro_rules! version_columns {
    () => {
        "SELECT version, field_values, content_file_id, created_at, author_kind, author_id, author_name \
         FROM record_versions WHERE workspace_id = $1 AND record_id = $2 "
    };
}

statements! {
    pub(crate) fn statements;

    const VERSION: &str = concat!(version_columns!(), "AND version = $3");

    const VERSIONS: &str = concat!(version_columns!(), "AND version < $3 ORDER BY version DESC LIMIT $4");
}

#[derive(Debug, sqlx::FromRow)]
struct VersionRow {
    version: i64,
    field_values: String,
    content_file_id: Option<Text<FileId>>,
    created_at: Timestamp,
    author_kind: String,
    author_id: String,
    author_name: String,
}

impl VersionRow {
    fn into_version(self) -> Result<RecordVersion, Error> {
        Ok(RecordVersion {
            version: to_count(self.version),
            values: values_of(&self.field_values)?,
            content_file_id: self.content_file_id.map(|id| id.0),
            created_at: self.created_at,
            author: Author { kind: self.author_kind, id: self.author_id, name: self.author_name },
        })
    }
}

/// One version of a record.
pub(crate) async fn version(
    db: &Db,
    workspace: WorkspaceId,
    id: RecordId,
    version: u64,
) -> Result<Option<RecordVersion>, Error> {
    let row: Option<VersionRow> =
        fetch!(optional, db, VERSION, Text(workspace), Text(id), to_column(version))?;
    row.map(VersionRow::into_version).transpose()
}

/// At most `limit` versions of a record below `before`, the newest first.
pub(crate) async fn versions(
    db: &Db,
    workspace: WorkspaceId,
    id: RecordId,
    before: i64,
    limit: i64,
) -> Result<Vec<RecordVersion>, Error> {
    let rows: Vec<VersionRow> = fetch!(all, db, VERSIONS, Text(workspace), Text(id), before, limit)?;
    rows.into_iter().map(VersionRow::into_version).collect()
}
