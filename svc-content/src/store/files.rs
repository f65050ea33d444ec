//! Files and their location. Paths are computed by reads, so moving a folder updates one row.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::sql::{Db, Dialect, Error, PostgresOnly, Text, Tx, json_list, json_row, json_rows};
use cairn_chassis::{execute, fetch, list_statement, on_db, row_as_json, rows_as_json, statements};
use cairn_proto::ids::{FileId, FolderId, WorkspaceId};

use super::page::{
    ByScope, ListScope, below, below_folders, by_scope, count_of, folders_of, page_of, parts_of_way, tagged,
    to_column, to_count, up, way,
};
use crate::model::{Author, Body, Cursor, File, FileType};

/// The columns of a file, from a table or from a subquery with the same column names.
macro_rules! file_columns {
    ($table:literal) => {
        $crate::store::files::file_columns!(
            $table: "id" "folder_id" "name" "file_type" "tags" "size_bytes" "content_hash" "version" "created_at"
                "updated_at" "description"
        )
    };
    ($table:literal : $first:literal $($column:literal)+) => {
        concat!($table, ".", $first $(, ", ", $table, ".", $column)+)
    };
}
pub(super) use file_columns;

macro_rules! columns {
    () => {
        concat!(file_columns!("page"), ", up.ids AS folder_ids, up.path AS folder_path")
    };
}

/// Each file of `page` with the folders above it.
macro_rules! located {
    ($extra:literal, $join:literal) => {
        concat!(
            up!("SELECT folder_id FROM page"),
            " SELECT ",
            columns!(),
            $extra,
            " FROM page LEFT JOIN up ON up.start_id = page.folder_id AND up.parent_id IS NULL ",
            $join
        )
    };
}

/// A file with its body. The columns are one JSON text ([`ListedRow`]): the driver copies every value and looks
/// columns up by name.
macro_rules! get_with_body {
    ($engine:ident) => {
        concat!(
            "SELECT ",
            row_as_json!($engine, concat!(file_columns!("f"), ", ", way!("f"))),
            ", b.encoding, b.data FROM files f JOIN bodies b ON b.workspace_id = $1 AND b.hash = f.content_hash \
             WHERE f.workspace_id = $1 AND f.id = $2 AND f.deleted_at IS NULL"
        )
    };
}

/// Many files as one JSON text of [`ListedRow`]s.
macro_rules! get_many {
    ($engine:ident) => {
        list_statement!(
            concat!(
                "SELECT ",
                rows_as_json!($engine, concat!(file_columns!("f"), ", ", way!("f"))),
                " FROM files f WHERE f.workspace_id = $1 AND f.deleted_at IS NULL AND f.id IN "
            ),
            "$2",
            ""
        )
    };
}

/// A page of files as one JSON text. Files of a page share few folders, so a recursive query once for all of them is
/// cheaper than one for each file.
macro_rules! located_as_json {
    ($engine:ident) => {
        concat!(
            up!("SELECT folder_id FROM page"),
            " SELECT ",
            rows_as_json!($engine, concat!(file_columns!("page"), ", up.ids || '//' || up.path")),
            " FROM page LEFT JOIN up ON up.start_id = page.folder_id AND up.parent_id IS NULL"
        )
    };
}

macro_rules! list {
    ($engine:ident, $filter:expr) => {
        page_of!("files", $filter, concat!(", ", located_as_json!($engine)))
    };
}

macro_rules! count {
    ($engine:ident, $filter:expr) => {
        count_of!("files", $filter)
    };
}

/// `$2` is the folded text, `$3` and `$4` are the LIKE patterns of a prefix and of a substring.
macro_rules! search_page {
    ($filter:expr) => {
        concat!(
            "page AS (SELECT files.*, COUNT(*) OVER () AS total, CASE WHEN folded_name = $2 THEN 0 \
             WHEN folded_name LIKE $3 ESCAPE '\\' THEN 1 ELSE 2 END AS place \
             FROM files WHERE workspace_id = $1 AND deleted_at IS NULL AND folded_name LIKE $4 ESCAPE '\\' ",
            $filter,
            " ORDER BY place, name, id LIMIT $5), ",
            located!(", page.total", "ORDER BY page.place, page.name, page.id")
        )
    };
}

macro_rules! insert_file {
    () => {
        "INSERT INTO files (workspace_id, id, folder_id, name, folded_name, file_type, tags, size_bytes, content_hash, version, \
         created_at, updated_at, description) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)"
    };
}

macro_rules! insert_first_version {
    () => {
        "INSERT INTO file_versions (workspace_id, file_id, version, content_hash, size_bytes, created_at, author_kind, \
         author_id, author_name) VALUES ($1, $2, $10, $9, $8, $12, $14, $15, $16)"
    };
}

statements! {
    pub(super) fn statements;

    const GET: &str = concat!(
        "SELECT ",
        file_columns!("f"),
        ", ",
        way!("f"),
        " AS way FROM files f WHERE f.workspace_id = $1 AND f.id = $2 AND f.deleted_at IS NULL"
    );

    const GET_WITH_BODY: Dialect =
        Dialect { sqlite: get_with_body!(sqlite), postgres: get_with_body!(postgres) };

    const GET_MANY: Dialect = Dialect { sqlite: get_many!(sqlite).sqlite, postgres: get_many!(postgres).postgres };

    const LOCK: PostgresOnly =
        PostgresOnly("SELECT 1 FROM files WHERE workspace_id = $1 AND id = $2 FOR UPDATE");

    const LIST: ByScope = by_scope!(list, "WITH RECURSIVE ", ", ", "folder_id", "folder_id", "$5");

    const COUNT: ByScope = by_scope!(count, "", "", "folder_id", "folder_id", "$2");

    /// All files of a workspace less those in trash: counting the live ones would scan them all.
    const COUNT_ALL: &str = "SELECT COALESCE((SELECT files FROM workspace_usage WHERE workspace_id = $1), 0) \
         - (SELECT COUNT(*) FROM files WHERE workspace_id = $1 AND deletion_id > '')";

    /// Separate statements, because tags are read from the rows of the files, where the others use a covering index.
    const LIST_TAGGED: ByScope =
        by_scope!(list, "WITH RECURSIVE ", ", ", "folder_id", "folder_id", "$5", tags: "$5", "$6");

    const COUNT_TAGGED: ByScope = by_scope!(count, "", "", "folder_id", "folder_id", "$2", tags: "$2", "$3");

    const SEARCH_ALL: &str = concat!("WITH RECURSIVE ", search_page!(""));

    const SEARCH_BELOW: Dialect =
        below_folders!("$6", concat!(", ", search_page!("AND folder_id IN (SELECT id FROM below)")));

    const SEARCH_TAGGED: Dialect = Dialect {
        sqlite: concat!("WITH RECURSIVE ", search_page!(tagged!(sqlite, "files", "$6"))),
        postgres: concat!("WITH RECURSIVE ", search_page!(tagged!(postgres, "files", "$6"))),
    };

    const SEARCH_BELOW_TAGGED: Dialect = Dialect {
        sqlite: below_folders!(
            "$6",
            concat!(", ", search_page!(concat!("AND folder_id IN (SELECT id FROM below)", tagged!(sqlite, "files", "$7"))))
        )
        .sqlite,
        postgres: below_folders!(
            "$6",
            concat!(", ", search_page!(concat!("AND folder_id IN (SELECT id FROM below)", tagged!(postgres, "files", "$7"))))
        )
        .postgres,
    };

    /// A file and its first version; one message on SQLite.
    const INSERT: Dialect = Dialect {
        sqlite: concat!(insert_file!(), "; ", insert_first_version!()),
        postgres: concat!("WITH file AS (", insert_file!(), ") ", insert_first_version!()),
    };

    const UPDATE: &str = "UPDATE files SET folder_id = $3, name = $4, folded_name = $5, tags = $6, size_bytes = $7, \
         content_hash = $8, version = $9, updated_at = $10, description = $11 WHERE workspace_id = $1 AND id = $2";
}

/// The columns of a file.
#[derive(Debug, sqlx::FromRow)]
pub(super) struct Columns {
    id: Text<FileId>,
    folder_id: Option<Text<FolderId>>,
    name: String,
    file_type: i64,
    tags: String,
    size_bytes: i64,
    content_hash: String,
    version: i64,
    created_at: Timestamp,
    updated_at: Timestamp,
    description: Option<String>,
}

/// A file with the folders above it.
#[derive(Debug, sqlx::FromRow)]
pub(super) struct Row {
    #[sqlx(flatten)]
    columns: Columns,
    folder_ids: Option<String>,
    folder_path: Option<String>,
}

/// A file with the folders above it in a single column.
#[derive(Debug, sqlx::FromRow)]
struct OneRow {
    #[sqlx(flatten)]
    columns: Columns,
    way: Option<String>,
}

/// [`OneRow`] as an element of a JSON array.
#[derive(serde::Deserialize)]
struct ListedRow(
    FileId,
    Option<FolderId>,
    String,
    i64,
    String,
    i64,
    String,
    i64,
    Timestamp,
    Timestamp,
    Option<String>,
    Option<String>,
);

impl From<ListedRow> for OneRow {
    fn from(row: ListedRow) -> Self {
        let ListedRow(
            id,
            folder_id,
            name,
            file_type,
            tags,
            size_bytes,
            content_hash,
            version,
            created_at,
            updated_at,
            description,
            way,
        ) = row;
        let columns = Columns {
            id: Text(id),
            folder_id: folder_id.map(Text),
            name,
            file_type,
            tags,
            size_bytes,
            content_hash,
            version,
            created_at,
            updated_at,
            description,
        };
        Self { columns, way }
    }
}

impl OneRow {
    fn into_file(self, workspace: WorkspaceId) -> Result<File, Error> {
        let Self { columns, way } = self;
        columns.into_file(workspace, parts_of_way(way.as_deref()))
    }
}

#[derive(Debug, sqlx::FromRow)]
struct FoundRow {
    #[sqlx(flatten)]
    file: Row,
    total: i64,
}

impl Row {
    pub(super) fn into_file(self, workspace: WorkspaceId) -> Result<File, Error> {
        let Self { columns, folder_ids, folder_path } = self;
        columns.into_file(workspace, folder_ids.as_deref().zip(folder_path.as_deref()))
    }
}

impl Columns {
    /// `way` has the ids and the names of the folders above the file, from the root; `None` in the root.
    fn into_file(self, workspace_id: WorkspaceId, way: Option<(&str, &str)>) -> Result<File, Error> {
        let (folders, path) = match (self.folder_id, way) {
            (None, _) => (Vec::new(), format!("/{}", self.name)),
            (Some(_), Some((ids, path))) => (folders_of(ids)?, format!("/{path}/{}", self.name)),
            (Some(_), None) => return Err(Error::corrupt("a live file in a folder that is not live")),
        };
        let tags = read_tags(&self.tags)?;
        Ok(File {
            id: self.id.0,
            workspace_id,
            folders,
            name: self.name,
            path,
            file_type: type_of(self.file_type)?,
            tags,
            size_bytes: to_count(self.size_bytes),
            content_hash: self.content_hash,
            version: to_count(self.version),
            created_at: self.created_at,
            updated_at: self.updated_at,
            description: self.description,
        })
    }
}

fn into_files(rows: Vec<Row>, workspace: WorkspaceId) -> Result<Vec<File>, Error> {
    rows.into_iter().map(|row| row.into_file(workspace)).collect()
}

/// Decodes a JSON text of rows, in no particular order.
fn read_files(rows: &str, workspace: WorkspaceId) -> Result<Vec<File>, Error> {
    json_rows::<ListedRow>(rows)?.into_iter().map(|row| OneRow::from(row).into_file(workspace)).collect()
}

pub(super) fn type_of(column: i64) -> Result<FileType, Error> {
    FileType::from_number(column).ok_or_else(|| Error::corrupt("a file of an unknown type"))
}

const fn column_of(file_type: FileType) -> i64 {
    file_type.number() as i64
}

/// Parses the column of tags.
pub(super) fn read_tags(column: &str) -> Result<Vec<String>, Error> {
    serde_json::from_str(column).map_err(|_| Error::corrupt("a file's tags are not JSON"))
}

fn tags_column(file: &File) -> String {
    serde_json::json!(file.tags).to_string()
}

/// A live file with its body and its location.
pub(crate) async fn get_with_body(
    db: &Db,
    workspace: WorkspaceId,
    id: FileId,
) -> Result<Option<(File, Body)>, Error> {
    let row: Option<(String, i64, Vec<u8>)> = fetch!(optional, db, GET_WITH_BODY, Text(workspace), Text(id))?;
    let Some((columns, encoding, data)) = row else { return Ok(None) };
    let file = OneRow::from(json_row::<ListedRow>(&columns)?).into_file(workspace)?;
    let (hash, size_bytes) = (file.content_hash.clone(), to_column(file.size_bytes));
    let body = super::bodies::Row { hash, encoding, size_bytes, data }.into_body()?;
    Ok(Some((file, body)))
}

/// Locks a live file until the transaction ends, and reads it.
pub(crate) async fn lock(tx: &mut Tx, workspace: WorkspaceId, id: FileId) -> Result<Option<File>, Error> {
    super::page::lock(tx, LOCK, workspace, id).await?;
    let row: Option<OneRow> = fetch!(optional, tx, GET, Text(workspace), Text(id))?;
    row.map(|row| row.into_file(workspace)).transpose()
}

/// Those of these files that are live, in no particular order.
pub(crate) async fn get_many(db: &Db, workspace: WorkspaceId, ids: &[FileId]) -> Result<Vec<File>, Error> {
    let rows: String = fetch!(scalar, db, GET_MANY, Text(workspace), json_list(ids))?;
    read_files(&rows, workspace)
}

/// [`get_many()`] within a transaction.
pub(crate) async fn get_many_in(
    tx: &mut Tx,
    workspace: WorkspaceId,
    ids: &[FileId],
) -> Result<Vec<File>, Error> {
    let rows: String = fetch!(scalar, tx, GET_MANY, Text(workspace), json_list(ids))?;
    read_files(&rows, workspace)
}

/// Live files that have all of these tags, in the order of name, then id, after the cursor.
pub(crate) async fn list(
    db: &Db,
    workspace: WorkspaceId,
    scope: &ListScope,
    tags: &[String],
    after: Option<&Cursor>,
    limit: i64,
) -> Result<Vec<File>, Error> {
    let statements = if tags.is_empty() { LIST } else { LIST_TAGGED };
    let rows = statements.page_as_json(db, workspace, scope, tags_argument(tags), (after, limit)).await?;
    let mut files = read_files(&rows, workspace)?;
    files.sort_by(|one, other| (&one.name, one.id).cmp(&(&other.name, other.id)));
    Ok(files)
}

/// The last parameter of statements that filter by tags.
fn tags_argument(tags: &[String]) -> Option<String> {
    (!tags.is_empty()).then(|| json_list(tags))
}

/// The number of live files that have all of these tags.
pub(crate) async fn count(
    db: &Db,
    workspace: WorkspaceId,
    scope: &ListScope,
    tags: &[String],
) -> Result<u64, Error> {
    if tags.is_empty() && matches!(scope, ListScope::All) {
        let count: i64 = fetch!(scalar, db, COUNT_ALL, Text(workspace))?;
        return Ok(to_count(count));
    }
    let statements = if tags.is_empty() { COUNT } else { COUNT_TAGGED };
    statements.count(db, workspace, scope, tags_argument(tags)).await
}

/// Live files whose folded name contains a folded text and that have all of these tags, with the total number of
/// matches; below some folders or everywhere.
pub(crate) async fn search(
    db: &Db,
    workspace: WorkspaceId,
    folded: &str,
    below: Option<&[FolderId]>,
    tags: &[String],
    limit: i64,
) -> Result<(Vec<File>, u64), Error> {
    let escaped = folded.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
    let (begins, holds) = (format!("{escaped}%"), format!("%{escaped}%"));
    let (sql, list) = match (below, tags) {
        (None, []) => (SEARCH_ALL, None),
        (None, _) => (SEARCH_TAGGED.of(db.engine()), None),
        (Some(folders), []) => (SEARCH_BELOW.of(db.engine()), Some(json_list(folders))),
        (Some(folders), _) => (SEARCH_BELOW_TAGGED.of(db.engine()), Some(json_list(folders))),
    };
    let last = [list, tags_argument(tags)];
    let rows: Vec<FoundRow> = on_db!(db, |c| {
        let mut query =
            sqlx::query_as(sql).bind(Text(workspace)).bind(folded).bind(&begins).bind(&holds).bind(limit);
        for argument in last.iter().flatten() {
            query = query.bind(argument);
        }
        query.fetch_all(c).await
    })?;
    let total = rows.first().map_or(0, |row| to_count(row.total));
    Ok((into_files(rows.into_iter().map(|row| row.file).collect(), workspace)?, total))
}

/// Inserts a new file with its first version; its body must exist.
pub(crate) async fn insert(
    tx: &mut Tx,
    file: &File,
    folded_name: &str,
    author: &Author,
) -> Result<(), Error> {
    execute!(
        tx,
        INSERT,
        Text(file.workspace_id),
        Text(file.id),
        file.folder_id().map(Text),
        &file.name,
        folded_name,
        column_of(file.file_type),
        tags_column(file),
        to_column(file.size_bytes),
        &file.content_hash,
        to_column(file.version),
        file.created_at,
        file.updated_at,
        &file.description,
        &author.kind,
        &author.id,
        &author.name
    )
    .map(drop)
}

/// Updates the mutable columns of a file.
pub(crate) async fn update(tx: &mut Tx, file: &File, folded_name: &str) -> Result<(), Error> {
    execute!(
        tx,
        UPDATE,
        Text(file.workspace_id),
        Text(file.id),
        file.folder_id().map(Text),
        &file.name,
        folded_name,
        tags_column(file),
        to_column(file.size_bytes),
        &file.content_hash,
        to_column(file.version),
        file.updated_at,
        &file.description
    )
    .map(drop)
}
