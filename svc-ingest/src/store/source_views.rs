//! Documents of sources, as lists, searches and scripts see them.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::sql::{Db, Dialect, Error, Text, Tx, json_list};
use cairn_chassis::{execute, fetch, list_statement, statements};
use cairn_proto::domain::FileType;
use cairn_proto::ids::{DocumentId, SourceId, WorkspaceId};

use super::numbers::to_count;
use crate::model::{DocumentStatus, ListedDocument, SourceView};

/// The status of a document as a number: its index in [`DocumentStatus::ALL`].
macro_rules! status {
    () => {
        "CASE WHEN error IS NOT NULL OR state >= 2 OR index_error IS NOT NULL THEN 4 \
         WHEN state = 1 AND EXISTS (SELECT 1 FROM sources r WHERE r.workspace_id = $1 AND r.id = source_documents.source_id \
         AND r.mode = 1) THEN 0 WHEN state = 1 THEN 3 WHEN index_state = 1 THEN 2 ELSE 1 END"
    };
}

/// Of connected sources that store documents.
macro_rules! of_connected {
    () => {
        " AND EXISTS (SELECT 1 FROM sources s WHERE s.workspace_id = $1 AND s.id = source_documents.source_id \
         AND s.disconnected_at IS NULL AND s.mode < 3)"
    };
}

macro_rules! listed {
    () => {
        concat!(
            "SELECT id, source_id, external_id, title, mime_type, url, synced_at, ",
            status!(),
            " AS status, COALESCE(error, index_error) AS error FROM source_documents WHERE workspace_id = $1"
        )
    };
}

/// $6 is a pattern of titles, or empty.
macro_rules! page {
    ($like:literal, $filter:literal) => {
        concat!(
            listed!(),
            " AND (title, id) > ($2, $3) AND ($4 < 0 OR $4 = ",
            status!(),
            ") AND ($6 = '' OR title ",
            $like,
            " $6 ESCAPE '\\')",
            $filter,
            of_connected!(),
            " ORDER BY title, id LIMIT $5"
        )
    };
}

/// $3 is a pattern of titles, or empty.
macro_rules! count {
    ($like:literal, $filter:literal) => {
        concat!(
            "SELECT COUNT(*) FROM source_documents WHERE workspace_id = $1 AND ($2 < 0 OR $2 = ",
            status!(),
            ") AND ($3 = '' OR title ",
            $like,
            " $3 ESCAPE '\\')",
            $filter,
            of_connected!()
        )
    };
}

macro_rules! views {
    () => {
        "SELECT d.id, d.source_id, s.name AS source_name, s.folder, s.provider, d.external_id, d.title, d.path, d.mime_type, \
         d.url, d.format, d.size_bytes, d.content_hash, COALESCE(d.updated_at, d.changed_at) AS updated_at \
         FROM source_documents d JOIN sources s ON s.workspace_id = $1 AND s.id = d.source_id \
         AND s.disconnected_at IS NULL AND s.mode < 3 WHERE d.workspace_id = $1 AND d.state IN (0, 1)"
    };
}

statements! {
    pub(super) fn statements;

    // LIKE ignores case on SQLite, and does not on PostgreSQL.
    const PAGE: Dialect = Dialect { sqlite: page!("LIKE", ""), postgres: page!("ILIKE", "") };
    const PAGE_OF: Dialect = Dialect {
        sqlite: page!("LIKE", " AND source_id = $7"),
        postgres: page!("ILIKE", " AND source_id = $7"),
    };
    const COUNT: Dialect = Dialect { sqlite: count!("LIKE", ""), postgres: count!("ILIKE", "") };
    const COUNT_OF: Dialect = Dialect {
        sqlite: count!("LIKE", " AND source_id = $4"),
        postgres: count!("ILIKE", " AND source_id = $4"),
    };

    const COUNT_BY_STATUS: &str = concat!(
        "SELECT status, COUNT(*) FROM (SELECT ",
        status!(),
        " AS status FROM source_documents WHERE workspace_id = $1",
        of_connected!(),
        ") AS standing GROUP BY status"
    );

    const ONE: &str = concat!(listed!(), " AND id = $2", of_connected!());

    const GET_MANY: Dialect = list_statement!(concat!(views!(), " AND d.id IN "), "$2", "");

    const FIND: &str = concat!(views!(), " AND d.source_id = $2 AND d.external_id = $3");

    /// After the id $2.
    const TREE: &str = concat!(views!(), " AND d.id > $2 ORDER BY d.id LIMIT $3");

    /// Written last between $2 and $3.
    const SELECT: &str = "SELECT d.id FROM source_documents d JOIN sources s ON s.workspace_id = $1 AND s.id = d.source_id \
         AND s.disconnected_at IS NULL AND s.mode < 3 WHERE d.workspace_id = $1 AND d.state IN (0, 1) \
         AND COALESCE(d.updated_at, d.changed_at) > $2 AND COALESCE(d.updated_at, d.changed_at) < $3";

    const SELECT_OF: Dialect = list_statement!(
        "SELECT d.id FROM source_documents d JOIN sources s ON s.workspace_id = $1 AND s.id = d.source_id \
         AND s.disconnected_at IS NULL AND s.mode < 3 WHERE d.workspace_id = $1 AND d.state IN (0, 1) \
         AND COALESCE(d.updated_at, d.changed_at) > $2 AND COALESCE(d.updated_at, d.changed_at) < $3 AND d.source_id IN ",
        "$4",
        ""
    );

    /// Applies only to the text $3, or to metadata when that is empty.
    const ACKNOWLEDGE: &str = "UPDATE source_documents SET index_state = $4, chunk_count = $5, indexed_at = $6, \
         index_error = $7 WHERE workspace_id = $1 AND id = $2 AND COALESCE(content_hash, '') = $3 AND state IN (0, 1)";
}

#[derive(Debug, sqlx::FromRow)]
struct Listed {
    id: Text<DocumentId>,
    source_id: Text<SourceId>,
    external_id: String,
    title: String,
    mime_type: String,
    url: Option<String>,
    synced_at: Timestamp,
    // SQLite makes an integer of it, PostgreSQL a smaller one than a column's.
    status: i32,
    error: Option<String>,
}

impl TryFrom<Listed> for ListedDocument {
    type Error = Error;

    fn try_from(row: Listed) -> Result<Self, Error> {
        Ok(Self {
            id: row.id.0,
            source: row.source_id.0,
            external_id: row.external_id,
            title: row.title,
            mime_type: row.mime_type,
            url: row.url,
            status: status_of(row.status)?,
            error: row.error,
            synced_at: row.synced_at,
        })
    }
}

fn status_of(number: i32) -> Result<DocumentStatus, Error> {
    let status = usize::try_from(number).ok().and_then(|place| DocumentStatus::ALL.get(place).copied());
    status.ok_or_else(|| Error::corrupt("a document of a source with an unknown status"))
}

/// The filter of a list of documents.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Filter<'a> {
    /// None: of any.
    pub(crate) source: Option<SourceId>,
    pub(crate) status: Option<DocumentStatus>,
    /// As `LIKE` takes it; empty: of any title.
    pub(crate) titles: &'a str,
}

impl Filter<'_> {
    fn status_number(self) -> i32 {
        let place = self.status.and_then(|status| DocumentStatus::ALL.iter().position(|one| *one == status));
        place.and_then(|place| i32::try_from(place).ok()).unwrap_or(-1)
    }
}

/// Documents in the order of their titles, then of their ids, after these.
pub(crate) async fn page(
    db: &Db,
    workspace: WorkspaceId,
    filter: Filter<'_>,
    after: (&str, &str),
    limit: i64,
) -> Result<Vec<ListedDocument>, Error> {
    let (title, id) = after;
    let (status, titles) = (filter.status_number(), filter.titles);
    let rows: Vec<Listed> = match filter.source {
        None => fetch!(all, db, PAGE, Text(workspace), title, id, status, limit, titles)?,
        Some(source) => {
            fetch!(all, db, PAGE_OF, Text(workspace), title, id, status, limit, titles, Text(source))?
        }
    };
    rows.into_iter().map(ListedDocument::try_from).collect()
}

/// A document.
pub(crate) async fn one(
    db: &Db,
    workspace: WorkspaceId,
    id: DocumentId,
) -> Result<Option<ListedDocument>, Error> {
    let row: Option<Listed> = fetch!(optional, db, ONE, Text(workspace), Text(id))?;
    row.map(ListedDocument::try_from).transpose()
}

/// The number of documents.
pub(crate) async fn count(db: &Db, workspace: WorkspaceId, filter: Filter<'_>) -> Result<u64, Error> {
    let (status, titles) = (filter.status_number(), filter.titles);
    let count: i64 = match filter.source {
        None => fetch!(scalar, db, COUNT, Text(workspace), status, titles)?,
        Some(source) => fetch!(scalar, db, COUNT_OF, Text(workspace), status, titles, Text(source))?,
    };
    Ok(to_count(count))
}

/// The number of documents of each status.
pub(crate) async fn count_by_status(
    db: &Db,
    workspace: WorkspaceId,
) -> Result<Vec<(DocumentStatus, u64)>, Error> {
    let rows: Vec<(i32, i64)> = fetch!(all, db, COUNT_BY_STATUS, Text(workspace))?;
    rows.into_iter().map(|(number, count)| Ok((status_of(number)?, to_count(count)))).collect()
}

#[derive(Debug, sqlx::FromRow)]
struct View {
    id: Text<DocumentId>,
    source_id: Text<SourceId>,
    source_name: String,
    folder: String,
    provider: String,
    external_id: String,
    title: String,
    path: String,
    mime_type: String,
    url: Option<String>,
    format: i64,
    size_bytes: i64,
    content_hash: Option<String>,
    updated_at: Timestamp,
}

impl From<View> for SourceView {
    fn from(row: View) -> Self {
        Self {
            id: row.id.0,
            source: row.source_id.0,
            source_name: row.source_name,
            provider: row.provider,
            external_id: row.external_id,
            title: row.title,
            path: format!("/sources/{}/{}", row.folder, row.path),
            mime_type: row.mime_type,
            url: row.url,
            format: FileType::from_number(row.format).unwrap_or_default(),
            size_bytes: to_count(row.size_bytes),
            content_hash: row.content_hash,
            updated_at: row.updated_at,
        }
    }
}

fn read(rows: Vec<View>) -> Vec<SourceView> {
    rows.into_iter().map(Into::into).collect()
}

/// The visible ones of these documents, in no particular order.
pub(crate) async fn get_many(
    db: &Db,
    workspace: WorkspaceId,
    ids: &[DocumentId],
) -> Result<Vec<SourceView>, Error> {
    Ok(read(fetch!(all, db, GET_MANY, Text(workspace), json_list(ids))?))
}

/// The document of a source with that external id.
pub(crate) async fn find(
    db: &Db,
    workspace: WorkspaceId,
    source: SourceId,
    external_id: &str,
) -> Result<Option<SourceView>, Error> {
    let row: Option<View> = fetch!(optional, db, FIND, Text(workspace), Text(source), external_id)?;
    Ok(row.map(Into::into))
}

/// Visible documents by id, in a transaction.
pub(crate) async fn some(
    tx: &mut Tx,
    workspace: WorkspaceId,
    ids: &[DocumentId],
) -> Result<Vec<SourceView>, Error> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    Ok(read(fetch!(all, tx, GET_MANY, Text(workspace), json_list(ids))?))
}

/// Documents in the order of their ids, after this one.
pub(crate) async fn after(
    tx: &mut Tx,
    workspace: WorkspaceId,
    after: DocumentId,
    limit: i64,
) -> Result<Vec<SourceView>, Error> {
    Ok(read(fetch!(all, tx, TREE, Text(workspace), Text(after), limit)?))
}

/// Documents of some sources, or of all when none is named, that were written between these times.
pub(crate) async fn select(
    db: &Db,
    workspace: WorkspaceId,
    sources: &[SourceId],
    after: Timestamp,
    before: Timestamp,
) -> Result<Vec<DocumentId>, Error> {
    let rows: Vec<Text<DocumentId>> = if sources.is_empty() {
        fetch!(scalars, db, SELECT, Text(workspace), after, before)?
    } else {
        fetch!(scalars, db, SELECT_OF, Text(workspace), after, before, json_list(sources))?
    };
    Ok(rows.into_iter().map(|row| row.0).collect())
}

/// Stores the indexing result of a text; ignored if the document has another text by now.
pub(crate) async fn acknowledge(
    tx: &mut Tx,
    workspace: WorkspaceId,
    id: DocumentId,
    content_hash: &str,
    chunks: u32,
    failure: Option<&str>,
    now: Timestamp,
) -> Result<(), Error> {
    let state = if failure.is_some() { 2_i64 } else { 1 };
    let (id, chunks) = (Text(id), i64::from(chunks));
    execute!(tx, ACKNOWLEDGE, Text(workspace), id, content_hash, state, chunks, now, failure).map(drop)
}
