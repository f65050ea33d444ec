//! Backlinks: the records that refer to a file.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::sql::{Db, Dialect, Error, Text, json_list};
use cairn_chassis::{fetch, statements};
use cairn_proto::ids::{DatabaseId, FileId, FolderId, PropertyId, RecordId, WorkspaceId};

use super::page::{below, below_folders, to_count};

/// The references to the file `$4` from live records, each once, in databases of the folders in the list `$2` and
/// below them; `$3` is 1 for a caller of the whole workspace. A body counts as the property 'z', which sorts after
/// the properties of its record.
macro_rules! found {
    ($then:literal) => {
        below_folders!(
            "$2",
            concat!(
                ", named (database_id, id, title, property_id, created_at) AS (\
                 SELECT r.database_id, r.id, r.title, c.property_id, r.created_at FROM record_cells c \
                 JOIN records r ON r.workspace_id = $1 AND r.id = c.record_id AND r.deleted_at IS NULL \
                 WHERE c.workspace_id = $1 AND c.target_id = $4 UNION \
                 SELECT r.database_id, r.id, r.title, 'z', r.created_at FROM records r \
                 WHERE r.workspace_id = $1 AND r.content_file_id = $4 AND r.deleted_at IS NULL), \
                 found AS (SELECT named.* FROM named JOIN databases d ON d.workspace_id = $1 AND d.id = named.database_id \
                 AND d.deleted_at IS NULL \
                 WHERE CAST($3 AS BIGINT) = 1 OR d.folder_id IN (SELECT id FROM below)) ",
                $then
            )
        )
    };
}

statements! {
    pub(super) fn statements;

    /// In the order of creation, after the record `$6` of the time `$5` and its property `$7`.
    const LIST: Dialect = found!(
        "SELECT database_id, id, title, property_id, created_at FROM found WHERE (created_at, id, property_id) > ($5, $6, $7) \
         ORDER BY created_at, id, property_id LIMIT $8"
    );

    const COUNT: Dialect = found!("SELECT COUNT(*) FROM found");
}

/// The sort key of a body among the properties of a record, whose ids are hexadecimal.
pub(crate) const BODY: &str = "z";

#[derive(Debug, sqlx::FromRow)]
struct Row {
    database_id: Text<DatabaseId>,
    id: Text<RecordId>,
    title: String,
    property_id: String,
    created_at: Timestamp,
}

/// A record that refers to a file, by a property or as its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BacklinkRow {
    pub(crate) database_id: DatabaseId,
    pub(crate) record_id: RecordId,
    pub(crate) title: String,
    /// Absent for its body.
    pub(crate) property_id: Option<PropertyId>,
    pub(crate) created_at: Timestamp,
}

impl Row {
    fn into_backlink(self) -> Result<BacklinkRow, Error> {
        let property = Some(self.property_id).filter(|id| id != BODY);
        let property = property.map(|id| id.parse()).transpose();
        Ok(BacklinkRow {
            database_id: self.database_id.0,
            record_id: self.id.0,
            title: self.title,
            property_id: property.map_err(|_| Error::corrupt("a cell of no property"))?,
            created_at: self.created_at,
        })
    }
}

/// The file, and the scope of the caller.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Of<'a> {
    pub(crate) workspace: WorkspaceId,
    pub(crate) file: FileId,
    /// Absent: the whole workspace.
    pub(crate) scope: Option<&'a [FolderId]>,
}

/// The references to a file from records, after a cursor of time, record and property.
pub(crate) async fn list(
    db: &Db,
    of: Of<'_>,
    after: (Timestamp, &str, &str),
    limit: i64,
) -> Result<Vec<BacklinkRow>, Error> {
    let (folders, whole) = (json_list(of.scope.unwrap_or_default()), i64::from(of.scope.is_none()));
    let rows: Vec<Row> = fetch!(
        all,
        db,
        LIST,
        Text(of.workspace),
        &folders,
        whole,
        Text(of.file),
        after.0,
        after.1,
        after.2,
        limit
    )?;
    rows.into_iter().map(Row::into_backlink).collect()
}

/// The number of references to a file from records.
pub(crate) async fn count(db: &Db, of: Of<'_>) -> Result<u64, Error> {
    let (folders, whole) = (json_list(of.scope.unwrap_or_default()), i64::from(of.scope.is_none()));
    let count: i64 = fetch!(scalar, db, COUNT, Text(of.workspace), &folders, whole, Text(of.file))?;
    Ok(to_count(count))
}
