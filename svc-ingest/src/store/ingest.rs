//! Ingested documents.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::sql::{Db, Dialect, Error, Text, Tx, json_list};
use cairn_chassis::{execute, fetch, list_statement, statements};
use cairn_proto::ids::{DocumentId, WorkspaceId};
use uuid::Uuid;

use super::numbers::{to_column, to_count};
use crate::model::{
    Cursor, FileType, Indexed, IngestStatus, Ingested, Outcome, PageRequest, Place, Retained,
};

macro_rules! columns {
    () => {
        "id, idempotency_key, sent_hash, title, name, url, external_id, metadata, occurred_at, status, format, \
         content_hash, size_bytes, chunk_count, indexed_at, error, created_at, updated_at"
    };
}

/// Rows with a text, as retrieval sees documents.
macro_rules! with_text {
    ($then:literal) => {
        concat!(
            "SELECT ",
            columns!(),
            " FROM ingested_documents WHERE workspace_id = $1 AND content_hash IS NOT NULL",
            $then
        )
    };
}

/// Newest first, from before $2 on; $4 is a pattern of titles, or empty.
macro_rules! list {
    ($like:literal, $filter:literal) => {
        concat!(
            "SELECT ",
            columns!(),
            " FROM ingested_documents WHERE workspace_id = $1 AND id < $2 AND ($4 = '' OR title ",
            $like,
            " $4 ESCAPE '\\')",
            $filter,
            " ORDER BY id DESC LIMIT $3"
        )
    };
}

/// $2 is a pattern of titles, or empty.
macro_rules! count {
    ($like:literal, $filter:literal) => {
        concat!(
            "SELECT COUNT(*) FROM ingested_documents WHERE workspace_id = $1 AND ($2 = '' OR title ",
            $like,
            " $2 ESCAPE '\\')",
            $filter
        )
    };
}

statements! {
    pub(super) fn statements;

    const COUNT_BY_STATUS: &str =
        "SELECT status, COUNT(*) FROM ingested_documents WHERE workspace_id = $1 GROUP BY status";

    /// Neither when the key nor when the name is taken.
    const INSERT: &str = concat!(
        "INSERT INTO ingested_documents (workspace_id, ", columns!(), ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, \
         $11, $12, $13, $14, $15, $16, $17, $18, $19) ON CONFLICT DO NOTHING"
    );

    const BY_KEY: &str = concat!(
        "SELECT ", columns!(), " FROM ingested_documents WHERE workspace_id = $1 AND idempotency_key = $2"
    );

    const HAS_KEY: &str =
        "SELECT COUNT(*) FROM ingested_documents WHERE workspace_id = $1 AND idempotency_key = $2";

    const GET: &str =
        concat!("SELECT ", columns!(), " FROM ingested_documents WHERE workspace_id = $1 AND id = $2");

    const GET_MANY: Dialect = list_statement!(with_text!(" AND id IN "), "$2", "");

    // LIKE ignores case on SQLite, and does not on PostgreSQL.
    const LIST: Dialect = Dialect { sqlite: list!("LIKE", ""), postgres: list!("ILIKE", "") };

    const LIST_OF_STATUS: Dialect =
        Dialect { sqlite: list!("LIKE", " AND status = $5"), postgres: list!("ILIKE", " AND status = $5") };

    const COUNT: Dialect = Dialect { sqlite: count!("LIKE", ""), postgres: count!("ILIKE", "") };

    const COUNT_OF_STATUS: Dialect =
        Dialect { sqlite: count!("LIKE", " AND status = $3"), postgres: count!("ILIKE", " AND status = $3") };

    const HAS_NAME: &str = "SELECT COUNT(*) FROM ingested_documents WHERE workspace_id = $1 AND name = $2";

    /// From $3 to $4, at $5.
    const BEGIN: &str = "UPDATE ingested_documents SET status = $4, updated_at = $5 \
         WHERE workspace_id = $1 AND id = $2 AND status = $3";

    const KEEP_TEXT: &str = "UPDATE ingested_documents SET name = $3, format = $4, content_hash = $5, size_bytes = $6, \
         updated_at = $7 WHERE workspace_id = $1 AND id = $2 AND content_hash IS NULL";

    const FAIL: &str = "UPDATE ingested_documents SET status = $3, error = $4, updated_at = $5 \
         WHERE workspace_id = $1 AND id = $2 AND content_hash IS NULL";

    const REMOVE: &str =
        "DELETE FROM ingested_documents WHERE workspace_id = $1 AND id = $2 RETURNING content_hash";

    /// In the order of ids, from after $2 on.
    const AFTER: &str = with_text!(" AND id > $2 ORDER BY id LIMIT $3");

    const SELECT: &str = "SELECT id FROM ingested_documents WHERE workspace_id = $1 AND content_hash IS NOT NULL \
         AND COALESCE(occurred_at, created_at) > $2 AND COALESCE(occurred_at, created_at) < $3";

    /// $2 is a JSON array of `[id, hash, chunks, failure]`, $3 the time, $4 the status of what is indexed and $5 of what is
    /// not. What says the same again changes nothing. SQLite would read the whole list anew for each document of the
    /// workspace, were it not materialized.
    const ACKNOWLEDGE: Dialect = Dialect {
        sqlite: "WITH told AS MATERIALIZED (SELECT value ->> 0 AS id, value ->> 1 AS hash, \
             CASE WHEN value ->> 3 IS NULL THEN value ->> 2 END AS chunks, value ->> 3 AS failure, \
             CASE WHEN value ->> 3 IS NULL THEN $3 END AS at, CASE WHEN value ->> 3 IS NULL THEN $4 ELSE $5 END AS status \
             FROM json_each($2)) \
             UPDATE ingested_documents SET status = told.status, chunk_count = told.chunks, indexed_at = told.at, \
             error = told.failure, updated_at = $3 FROM told \
             WHERE ingested_documents.workspace_id = $1 AND ingested_documents.id = told.id \
             AND ingested_documents.content_hash = told.hash AND (ingested_documents.status <> told.status \
             OR ingested_documents.chunk_count IS NOT told.chunks OR ingested_documents.error IS NOT told.failure)",
        postgres: "UPDATE ingested_documents SET status = told.status, chunk_count = told.chunks, indexed_at = told.at, \
             error = told.failure, updated_at = $3 FROM (SELECT entry ->> 0 AS id, entry ->> 1 AS hash, \
             CASE WHEN entry ->> 3 IS NULL THEN CAST(entry ->> 2 AS BIGINT) END AS chunks, entry ->> 3 AS failure, \
             CASE WHEN entry ->> 3 IS NULL THEN CAST($3 AS BIGINT) END AS at, \
             CASE WHEN entry ->> 3 IS NULL THEN CAST($4 AS BIGINT) ELSE CAST($5 AS BIGINT) END AS status \
             FROM jsonb_array_elements(CAST(CAST($2 AS TEXT) AS JSONB)) AS list (entry)) AS told \
             WHERE ingested_documents.workspace_id = $1 AND ingested_documents.id = told.id \
             AND ingested_documents.content_hash = told.hash AND (ingested_documents.status <> told.status \
             OR ingested_documents.chunk_count IS DISTINCT FROM told.chunks \
             OR ingested_documents.error IS DISTINCT FROM told.failure)",
    };
}

#[derive(Debug, sqlx::FromRow)]
struct Row {
    id: Text<DocumentId>,
    idempotency_key: String,
    sent_hash: String,
    title: String,
    name: Option<String>,
    url: Option<String>,
    external_id: Option<String>,
    metadata: Option<String>,
    occurred_at: Option<Timestamp>,
    status: i64,
    format: Option<i64>,
    content_hash: Option<String>,
    size_bytes: i64,
    chunk_count: Option<i64>,
    indexed_at: Option<Timestamp>,
    error: Option<String>,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl Row {
    fn into_ingested(self) -> Result<Ingested, Error> {
        let status = IngestStatus::from_number(self.status);
        let indexed = self.chunk_count.zip(self.indexed_at);
        let text = match (self.name, self.format, self.content_hash) {
            (Some(name), Some(format), Some(hash)) => Some(Retained {
                name,
                format: FileType::from_number(format)
                    .ok_or_else(|| Error::corrupt("an ingested document of an unknown format"))?,
                hash,
                size_bytes: to_count(self.size_bytes),
            }),
            _ => None,
        };
        Ok(Ingested {
            id: self.id.0,
            idempotency_key: self.idempotency_key,
            sent_hash: self.sent_hash,
            title: self.title,
            url: self.url,
            external_id: self.external_id,
            metadata: self.metadata,
            occurred_at: self.occurred_at,
            status: status.ok_or_else(|| Error::corrupt("an ingested document of an unknown status"))?,
            text,
            indexed: indexed.map(|(chunks, at)| Indexed { chunks: u32::try_from(chunks).unwrap_or(0), at }),
            error: self.error,
            created_at: self.created_at,
            updated_at: self.updated_at,
        })
    }
}

fn all(rows: Vec<Row>) -> Result<Vec<Ingested>, Error> {
    rows.into_iter().map(Row::into_ingested).collect()
}

/// Inserts a document; `false` if its key or its name is taken.
pub(crate) async fn insert(tx: &mut Tx, workspace: WorkspaceId, document: &Ingested) -> Result<bool, Error> {
    let text = document.text.as_ref();
    let inserted = execute!(
        tx,
        INSERT,
        Text(workspace),
        Text(document.id),
        &document.idempotency_key,
        &document.sent_hash,
        &document.title,
        text.map(|text| &text.name),
        &document.url,
        &document.external_id,
        &document.metadata,
        document.occurred_at,
        i64::from(document.status.number()),
        text.map(|text| i64::from(text.format.number())),
        text.map(|text| &text.hash),
        text.map_or(0, |text| to_column(text.size_bytes)),
        document.indexed.map(|indexed| i64::from(indexed.chunks)),
        document.indexed.map(|indexed| indexed.at),
        &document.error,
        document.created_at,
        document.updated_at
    )?;
    Ok(inserted == 1)
}

/// The document that has a key.
pub(crate) async fn by_key(db: &Db, workspace: WorkspaceId, key: &str) -> Result<Option<Ingested>, Error> {
    let row: Option<Row> = fetch!(optional, db, BY_KEY, Text(workspace), key)?;
    row.map(Row::into_ingested).transpose()
}

/// Whether a document has that key.
pub(crate) async fn has_key(tx: &mut Tx, workspace: WorkspaceId, key: &str) -> Result<bool, Error> {
    let count: i64 = fetch!(scalar, tx, HAS_KEY, Text(workspace), key)?;
    Ok(count > 0)
}

/// Whether a document has that name.
pub(crate) async fn has_name(tx: &mut Tx, workspace: WorkspaceId, name: &str) -> Result<bool, Error> {
    let count: i64 = fetch!(scalar, tx, HAS_NAME, Text(workspace), name)?;
    Ok(count > 0)
}

/// Marks a document as being extracted.
pub(crate) async fn begin(db: &Db, place: Place, now: Timestamp) -> Result<(), Error> {
    let (from, to) = (IngestStatus::Pending.number(), IngestStatus::Indexing.number());
    let (workspace, id) = (Text(place.workspace), Text(place.document));
    let writer = db.writer();
    execute!(writer, BEGIN, workspace, id, i64::from(from), i64::from(to), now).map(drop)
}

/// Sets the text of a document; `false` if it does not exist or has one.
pub(crate) async fn keep_text(
    tx: &mut Tx,
    place: Place,
    text: &Retained,
    now: Timestamp,
) -> Result<bool, Error> {
    let kept = execute!(
        tx,
        KEEP_TEXT,
        Text(place.workspace),
        Text(place.document),
        &text.name,
        i64::from(text.format.number()),
        &text.hash,
        to_column(text.size_bytes),
        now
    )?;
    Ok(kept == 1)
}

/// Stores why a document has no text.
pub(crate) async fn fail(tx: &mut Tx, place: Place, error: &str, now: Timestamp) -> Result<(), Error> {
    let failed = i64::from(IngestStatus::Failed.number());
    execute!(tx, FAIL, Text(place.workspace), Text(place.document), failed, error, now).map(drop)
}

/// One document.
pub(crate) async fn get(db: &Db, workspace: WorkspaceId, id: DocumentId) -> Result<Option<Ingested>, Error> {
    let row: Option<Row> = fetch!(optional, db, GET, Text(workspace), Text(id))?;
    row.map(Row::into_ingested).transpose()
}

/// Those of these documents that have a text, in no particular order.
pub(crate) async fn get_many(
    db: &Db,
    workspace: WorkspaceId,
    ids: &[DocumentId],
) -> Result<Vec<Ingested>, Error> {
    all(fetch!(all, db, GET_MANY, Text(workspace), json_list(ids))?)
}

/// Those of these documents that have a text, in a transaction.
pub(crate) async fn some(
    tx: &mut Tx,
    workspace: WorkspaceId,
    ids: &[DocumentId],
) -> Result<Vec<Ingested>, Error> {
    all(fetch!(all, tx, GET_MANY, Text(workspace), json_list(ids))?)
}

/// Documents with a text in the order of their ids, from after that one on.
pub(crate) async fn after(
    tx: &mut Tx,
    workspace: WorkspaceId,
    after: DocumentId,
    limit: i64,
) -> Result<Vec<Ingested>, Error> {
    all(fetch!(all, tx, AFTER, Text(workspace), Text(after), limit)?)
}

/// The filter of a list.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Filter<'a> {
    /// None: of any.
    pub(crate) status: Option<IngestStatus>,
    /// As `LIKE` takes it; empty: of any title.
    pub(crate) titles: &'a str,
}

/// One more document than the page holds, newest first.
pub(crate) async fn list(
    db: &Db,
    workspace: WorkspaceId,
    filter: Filter<'_>,
    page: &PageRequest,
) -> Result<Vec<Ingested>, Error> {
    let newest = Uuid::max().to_string();
    let before = page.after.as_ref().map_or(&newest, |Cursor { id, .. }| id);
    let rows: Vec<Row> = match filter.status {
        None => fetch!(all, db, LIST, Text(workspace), before, page.fetch(), filter.titles)?,
        Some(status) => {
            let status = i64::from(status.number());
            fetch!(all, db, LIST_OF_STATUS, Text(workspace), before, page.fetch(), filter.titles, status)?
        }
    };
    all(rows)
}

/// How many documents there are.
pub(crate) async fn count(db: &Db, workspace: WorkspaceId, filter: Filter<'_>) -> Result<u64, Error> {
    let count: i64 = match filter.status {
        None => fetch!(scalar, db, COUNT, Text(workspace), filter.titles)?,
        Some(status) => {
            let status = i64::from(status.number());
            fetch!(scalar, db, COUNT_OF_STATUS, Text(workspace), filter.titles, status)?
        }
    };
    Ok(to_count(count))
}

/// Removes a document; returns the hash of its text, `None` when there was no such document.
pub(crate) async fn remove(
    tx: &mut Tx,
    workspace: WorkspaceId,
    id: DocumentId,
) -> Result<Option<Option<String>>, Error> {
    fetch!(optional_scalar, tx, REMOVE, Text(workspace), Text(id))
}

/// The documents with a text whose time is between these.
pub(crate) async fn select(
    db: &Db,
    workspace: WorkspaceId,
    after: Timestamp,
    before: Timestamp,
) -> Result<Vec<DocumentId>, Error> {
    let rows: Vec<Text<DocumentId>> = fetch!(scalars, db, SELECT, Text(workspace), after, before)?;
    Ok(rows.into_iter().map(|row| row.0).collect())
}

/// Stores the indexing results of documents that still have the indexed text.
pub(crate) async fn acknowledge(
    tx: &mut Tx,
    workspace: WorkspaceId,
    outcomes: &[Outcome],
    now: Timestamp,
) -> Result<u64, Error> {
    let told: Vec<_> = outcomes
        .iter()
        .map(|told| (told.id.to_string(), &told.content_hash, told.chunks, told.failure.as_deref()))
        .collect();
    let (indexed, failed) = (IngestStatus::Indexed.number(), IngestStatus::Failed.number());
    execute!(
        tx,
        ACKNOWLEDGE,
        Text(workspace),
        serde_json::json!(told).to_string(),
        now,
        i64::from(indexed),
        i64::from(failed)
    )
}

/// The number of documents of each status.
pub(crate) async fn count_by_status(
    db: &Db,
    workspace: WorkspaceId,
) -> Result<Vec<(IngestStatus, u64)>, Error> {
    let rows: Vec<(i64, i64)> = fetch!(all, db, COUNT_BY_STATUS, Text(workspace))?;
    let read = |(number, count): (i64, i64)| {
        let status = IngestStatus::from_number(number);
        Ok((
            status.ok_or_else(|| Error::corrupt("an ingested document of an unknown status"))?,
            to_count(count),
        ))
    };
    rows.into_iter().map(read).collect()
}
