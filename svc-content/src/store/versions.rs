//! The versions of files.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::sql::{Db, Dialect, Error, Text, Tx, json_list, json_rows};
use cairn_chassis::{execute, fetch, list_statement, rows_as_json, statements};
use cairn_proto::ids::{FileId, WorkspaceId};
use serde_json::json;

use super::page::{to_column, to_count};
use crate::model::{Author, Body, FileVersion};

macro_rules! columns {
    () => {
        "v.file_id, v.version, v.content_hash, v.size_bytes, v.created_at, v.author_kind, v.author_id, v.author_name"
    };
}

macro_rules! current {
    ($engine:ident) => {
        list_statement!(
            concat!(
                "SELECT ",
                rows_as_json!($engine, columns!()),
                " FROM files f JOIN file_versions v ON v.workspace_id = $1 AND v.file_id = f.id AND v.version = \
                 (SELECT MAX(n.version) FROM file_versions n WHERE n.workspace_id = $1 AND n.file_id = f.id) \
                 WHERE f.workspace_id = $1 AND f.deleted_at IS NULL AND f.id IN "
            ),
            "$2",
            ""
        )
    };
}

statements! {
    pub(super) fn statements;

    const INSERT: &str = "INSERT INTO file_versions (workspace_id, file_id, version, content_hash, size_bytes, created_at, \
         author_kind, author_id, author_name) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";

    const LIST: &str = concat!(
        "SELECT ",
        columns!(),
        " FROM file_versions v WHERE v.workspace_id = $1 AND v.file_id = $2 AND v.version < $3 \
         ORDER BY v.version DESC LIMIT $4"
    );

    const CURRENT: Dialect = Dialect { sqlite: current!(sqlite).sqlite, postgres: current!(postgres).postgres };

    const COUNT: &str = "SELECT COUNT(*) FROM file_versions WHERE workspace_id = $1 AND file_id = $2";

    const OF_CONTENT: &str = concat!(
        "SELECT ",
        columns!(),
        " FROM file_versions v WHERE v.workspace_id = $1 AND v.file_id = $2 AND v.content_hash = $3 \
         ORDER BY v.version DESC LIMIT 1"
    );

    /// `$2` is a JSON array of `[file, version]`: the newest content of each file below that version. CROSS JOIN
    /// fixes the join order on SQLite, which would otherwise scan the list for each version of the workspace.
    const BEFORE: Dialect = Dialect {
        sqlite: concat!(
            "SELECT ",
            columns!(),
            " FROM json_each($2) AS asked CROSS JOIN file_versions v WHERE v.workspace_id = $1 \
             AND v.file_id = asked.value ->> 0 AND v.version = (SELECT MAX(n.version) FROM file_versions n \
             WHERE n.workspace_id = $1 AND n.file_id = asked.value ->> 0 AND n.version < asked.value ->> 1)"
        ),
        postgres: concat!(
            "SELECT ",
            columns!(),
            " FROM jsonb_array_elements(CAST(CAST($2 AS TEXT) AS JSONB)) AS asked (entry) CROSS JOIN LATERAL \
             (SELECT n.* FROM file_versions n WHERE n.workspace_id = $1 AND n.file_id = asked.entry ->> 0 \
             AND n.version < CAST(asked.entry ->> 1 AS BIGINT) ORDER BY n.version DESC LIMIT 1) v"
        ),
    };

    const GET: &str = concat!(
        "SELECT ",
        columns!(),
        ", b.hash, b.encoding, b.data FROM file_versions v \
         JOIN bodies b ON b.workspace_id = $1 AND b.hash = v.content_hash \
         WHERE v.workspace_id = $1 AND v.file_id = $2 AND v.version = $3"
    );
}

#[derive(Debug, sqlx::FromRow)]
struct Row {
    file_id: Text<FileId>,
    version: i64,
    content_hash: String,
    size_bytes: i64,
    created_at: Timestamp,
    author_kind: String,
    author_id: String,
    author_name: String,
}

/// [`Row`] as an element of a JSON array.
#[derive(serde::Deserialize)]
struct ListedRow(FileId, i64, String, i64, Timestamp, String, String, String);

impl From<ListedRow> for Row {
    fn from(row: ListedRow) -> Self {
        let ListedRow(
            file_id,
            version,
            content_hash,
            size_bytes,
            created_at,
            author_kind,
            author_id,
            author_name,
        ) = row;
        let file_id = Text(file_id);
        Self { file_id, version, content_hash, size_bytes, created_at, author_kind, author_id, author_name }
    }
}

#[derive(Debug, sqlx::FromRow)]
struct RowWithBody {
    #[sqlx(flatten)]
    version: Row,
    #[sqlx(flatten)]
    body: super::bodies::Row,
}

impl Row {
    fn into_version(self) -> FileVersion {
        let author = Author { kind: self.author_kind, id: self.author_id, name: self.author_name };
        FileVersion {
            file_id: self.file_id.0,
            version: to_count(self.version),
            content_hash: self.content_hash,
            size_bytes: to_count(self.size_bytes),
            created_at: self.created_at,
            author: Some(author).filter(|author| !author.kind.is_empty()),
        }
    }
}

/// Inserts a version of a file; its body must exist.
pub(crate) async fn insert(tx: &mut Tx, workspace: WorkspaceId, version: &FileVersion) -> Result<(), Error> {
    let author = version.author.clone().unwrap_or_default();
    execute!(
        tx,
        INSERT,
        Text(workspace),
        Text(version.file_id),
        to_column(version.version),
        &version.content_hash,
        to_column(version.size_bytes),
        version.created_at,
        &author.kind,
        &author.id,
        &author.name
    )
    .map(drop)
}

/// Versions of a file below a number, the newest first.
pub(crate) async fn list(
    db: &Db,
    workspace: WorkspaceId,
    file: FileId,
    before: u64,
    limit: i64,
) -> Result<Vec<FileVersion>, Error> {
    let rows: Vec<Row> = fetch!(all, db, LIST, Text(workspace), Text(file), to_column(before), limit)?;
    Ok(rows.into_iter().map(Row::into_version).collect())
}

/// The newest version below a number of each of these files, in no particular order.
pub(crate) async fn before(
    tx: &mut Tx,
    workspace: WorkspaceId,
    asked: &[(FileId, u64)],
) -> Result<Vec<FileVersion>, Error> {
    if asked.is_empty() {
        return Ok(Vec::new());
    }
    let pair = |(file, before): &(FileId, u64)| json!([file, to_column(*before)]);
    let list = serde_json::Value::from(asked.iter().map(pair).collect::<Vec<_>>()).to_string();
    let rows: Vec<Row> = fetch!(all, tx, BEFORE, Text(workspace), &list)?;
    Ok(rows.into_iter().map(Row::into_version).collect())
}

/// The newest version of a file with that content.
pub(crate) async fn of_content(
    db: &Db,
    workspace: WorkspaceId,
    file: FileId,
    hash: &str,
) -> Result<Option<FileVersion>, Error> {
    let row: Option<Row> = fetch!(optional, db, OF_CONTENT, Text(workspace), Text(file), hash)?;
    Ok(row.map(Row::into_version))
}

/// The current versions of those of these files that are live, in no particular order.
pub(crate) async fn current(
    db: &Db,
    workspace: WorkspaceId,
    files: &[FileId],
) -> Result<Vec<FileVersion>, Error> {
    let rows: String = fetch!(scalar, db, CURRENT, Text(workspace), json_list(files))?;
    Ok(json_rows::<ListedRow>(&rows)?.into_iter().map(|row| Row::from(row).into_version()).collect())
}

/// The number of versions of a file.
pub(crate) async fn count(db: &Db, workspace: WorkspaceId, file: FileId) -> Result<u64, Error> {
    let count: i64 = fetch!(scalar, db, COUNT, Text(workspace), Text(file))?;
    Ok(to_count(count))
}

/// A version with its body.
pub(crate) async fn get(
    db: &Db,
    workspace: WorkspaceId,
    file: FileId,
    version: u64,
) -> Result<Option<(FileVersion, Body)>, Error> {
    let row: Option<RowWithBody> =
        fetch!(optional, db, GET, Text(workspace), Text(file), to_column(version))?;
    row.map(|row| Ok((row.version.into_version(), row.body.into_body()?))).transpose()
}
