//! Documents of sources, as runs store them.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::sql::{Db, Dialect, Error, Text, Tx, json_list};
use cairn_chassis::{execute, fetch, list_statement, statements};
use cairn_proto::domain::FileType;
use cairn_proto::ids::{DocumentId, SourceId, SourceRunId, WorkspaceId};
use cairn_providers::{ExternalId, Version};

use super::numbers::{to_column, to_count, to_small};
use crate::model::{Fault, Metadata, Missing, RetainedText, Retention, StoredDocument};

macro_rules! columns {
    () => {
        "SELECT id, external_id, title, path, mime_type, url, updated_at, version, format, size_bytes, content_hash, state, \
         error, tries, next_try, seen_listing, missing_since, misses, hidden_at FROM source_documents "
    };
}

/// Documents of the source $2 that the listing $3 lacks, except those with prefixes $4, which the listing did not cover.
macro_rules! absent {
    ($before:expr, $after:expr) => {
        Dialect {
            sqlite: concat!(
                $before,
                "workspace_id = $1 AND source_id = $2 AND (seen_listing IS NULL OR seen_listing <> $3) AND NOT EXISTS \
                 (SELECT 1 FROM json_each($4) WHERE SUBSTR(external_id, 1, LENGTH(value)) = value)",
                $after
            ),
            postgres: concat!(
                $before,
                "workspace_id = $1 AND source_id = $2 AND (seen_listing IS NULL OR seen_listing <> $3) AND NOT EXISTS \
                 (SELECT 1 FROM jsonb_array_elements_text(CAST(CAST($4 AS TEXT) AS JSONB)) AS spared (value) \
                 WHERE SUBSTR(external_id, 1, LENGTH(value)) = value)",
                $after
            ),
        }
    };
}

statements! {
    pub(super) fn statements;

    const KNOWN: Dialect = list_statement!(
        concat!(columns!(), "WHERE workspace_id = $1 AND source_id = $3 AND external_id IN "),
        "$2",
        ""
    );

    const DUE: &str = concat!(
        columns!(),
        "WHERE workspace_id = $1 AND source_id = $2 AND next_try <= $3 ORDER BY next_try, id LIMIT $4"
    );

    /// $23: whether the document has to be indexed again.
    const PUT: &str = "INSERT INTO source_documents (workspace_id, id, source_id, external_id, title, path, mime_type, url, \
         updated_at, version, format, size_bytes, content_hash, state, index_state, error, tries, next_try, seen_listing, \
         missing_since, misses, hidden_at, created_at, changed_at, synced_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, 0, $15, $16, $17, $18, $19, $20, $21, $22, \
         $22, $22) ON CONFLICT (workspace_id, id) DO UPDATE SET title = excluded.title, path = excluded.path, \
         mime_type = excluded.mime_type, url = excluded.url, updated_at = excluded.updated_at, version = excluded.version, \
         format = excluded.format, size_bytes = excluded.size_bytes, content_hash = excluded.content_hash, \
         state = excluded.state, error = excluded.error, tries = excluded.tries, next_try = excluded.next_try, \
         seen_listing = excluded.seen_listing, missing_since = excluded.missing_since, misses = excluded.misses, \
         hidden_at = excluded.hidden_at, synced_at = excluded.synced_at, \
         changed_at = CASE WHEN $23 THEN excluded.changed_at ELSE source_documents.changed_at END, \
         index_state = CASE WHEN $23 THEN 0 ELSE source_documents.index_state END, \
         index_error = CASE WHEN $23 THEN NULL ELSE source_documents.index_error END, \
         chunk_count = CASE WHEN $23 THEN NULL ELSE source_documents.chunk_count END, \
         indexed_at = CASE WHEN $23 THEN NULL ELSE source_documents.indexed_at END";

    /// Due before all others.
    const TRY_FIRST: &str = "UPDATE source_documents SET next_try = 0 \
         WHERE workspace_id = $1 AND id = $2 AND source_id = $3 AND (error IS NOT NULL OR state >= 2)";

    const INDEX_AGAIN: &str = "UPDATE source_documents SET index_state = 0, index_error = NULL, chunk_count = NULL, \
         indexed_at = NULL WHERE workspace_id = $1 AND id = $2 AND index_error IS NOT NULL AND state IN (0, 1)";

    const SEE: Dialect = list_statement!(
        "UPDATE source_documents SET seen_listing = $3, missing_since = NULL, misses = 0, synced_at = $4 \
         WHERE workspace_id = $1 AND id IN ",
        "$2",
        ""
    );

    const REMOVE: Dialect =
        list_statement!("DELETE FROM source_documents WHERE workspace_id = $1 AND id IN ", "$2", "");

    /// $5 is now. Idempotent for each listing.
    const MISS: Dialect = absent!(
        "UPDATE source_documents SET misses = misses + 1, missing_since = COALESCE(missing_since, $5) WHERE ",
        ""
    );

    /// $5 is the number of misses that count; documents that have been missing since before $6 are no longer held back.
    const COUNT_ABSENT: Dialect = absent!(
        "SELECT COUNT(*), COUNT(CASE WHEN missing_since <= $6 THEN 1 END) FROM source_documents WHERE ",
        " AND misses >= $5"
    );

    const COUNT: &str = "SELECT COUNT(*) FROM source_documents WHERE workspace_id = $1 AND source_id = $2";

    /// At most $7 of those that have been missing for $5 listings, and since before $6.
    const ABSENT: Dialect = absent!(
        concat!(columns!(), "WHERE "),
        " AND misses >= $5 AND missing_since <= $6 ORDER BY id LIMIT $7"
    );

    /// At most $5 of them, however long they have been missing, the least recently seen or probed first: a run probes only some of them.
    const UNSEEN: Dialect = absent!(concat!(columns!(), "WHERE "), " ORDER BY synced_at, id LIMIT $5");

    const SOME: &str = concat!(columns!(), "WHERE workspace_id = $1 AND source_id = $2 LIMIT $3");

    /// From texts to metadata alone. $3 is now.
    const FORGET_TEXTS: &str = "UPDATE source_documents SET state = 1, content_hash = NULL, size_bytes = 0, index_state = 0, \
         index_error = NULL, chunk_count = NULL, indexed_at = NULL, error = NULL, next_try = NULL, tries = 0, \
         changed_at = $3 WHERE workspace_id = $1 AND source_id = $2 AND state = 0";

    /// Unreadable or hidden documents: the next listing stores their metadata, as their version is unknown.
    const FORGET_UNREAD: &str = "UPDATE source_documents SET content_hash = NULL, size_bytes = 0, version = NULL, \
         hidden_at = NULL, changed_at = $3 WHERE workspace_id = $1 AND source_id = $2 AND state IN (2, 3)";

    const HIDDEN_TEXTS: &str = "SELECT workspace_id, id, content_hash FROM source_documents \
         WHERE hidden_at <= $1 AND content_hash IS NOT NULL LIMIT $2";

    const FORGET_TEXT: &str = "UPDATE source_documents SET content_hash = NULL, size_bytes = 0 \
         WHERE workspace_id = $1 AND id = $2 AND state = 3";

    const HASHES: &str = "SELECT DISTINCT content_hash FROM source_documents \
         WHERE workspace_id = $1 AND source_id = $2 AND content_hash IS NOT NULL";
}

const KEPT: [Retention; 4] = [Retention::Text, Retention::Metadata, Retention::Nothing, Retention::Hidden];

#[derive(Debug, sqlx::FromRow)]
struct Row {
    id: Text<DocumentId>,
    external_id: String,
    title: String,
    path: String,
    mime_type: String,
    url: Option<String>,
    updated_at: Option<Timestamp>,
    version: Option<String>,
    format: i64,
    size_bytes: i64,
    content_hash: Option<String>,
    state: i64,
    error: Option<String>,
    tries: i64,
    next_try: Option<Timestamp>,
    seen_listing: Option<Text<SourceRunId>>,
    missing_since: Option<Timestamp>,
    misses: i64,
    hidden_at: Option<Timestamp>,
}

impl TryFrom<Row> for StoredDocument {
    type Error = Error;

    fn try_from(row: Row) -> Result<Self, Error> {
        let kept = usize::try_from(row.state).ok().and_then(|state| KEPT.get(state).copied());
        let kept = kept.ok_or_else(|| Error::corrupt("a document of a source in an unknown state"))?;
        let external_id = ExternalId::new(row.external_id)
            .map_err(|_| Error::corrupt("a document of a source whose id is none"))?;
        let (size_bytes, number) = (to_count(row.size_bytes), row.format);
        let format = FileType::from_number(number).unwrap_or_default();
        let fault =
            row.error.map(|message| Fault { message, tries: to_small(row.tries), next_try: row.next_try });
        Ok(Self {
            id: row.id.0,
            external_id,
            version: row.version.map(Version::new),
            metadata: Metadata {
                title: row.title,
                path: row.path,
                mime_type: row.mime_type,
                url: row.url,
                updated_at: row.updated_at,
            },
            kept,
            retained: row.content_hash.map(|content_hash| RetainedText { content_hash, format, size_bytes }),
            fault,
            seen: row.seen_listing.map(|listing| listing.0),
            missing_since: row.missing_since,
            misses: to_small(row.misses),
            hidden_at: row.hidden_at,
        })
    }
}

fn read(rows: Vec<Row>) -> Result<Vec<StoredDocument>, Error> {
    rows.into_iter().map(StoredDocument::try_from).collect()
}

/// The number of a retention in the database.
pub(super) fn number_of(kept: Retention) -> i64 {
    let place = KEPT.iter().position(|other| *other == kept);
    place.and_then(|place| i64::try_from(place).ok()).unwrap_or_default()
}

/// The stored documents of a source with these external ids, in no particular order.
pub(crate) async fn known(
    db: &Db,
    workspace: WorkspaceId,
    source: SourceId,
    ids: impl IntoIterator<Item = &ExternalId>,
) -> Result<Vec<StoredDocument>, Error> {
    read(fetch!(all, db, KNOWN, Text(workspace), json_list(ids), Text(source))?)
}

/// Documents whose retry is due, the longest due first.
pub(crate) async fn due(
    db: &Db,
    workspace: WorkspaceId,
    source: SourceId,
    now: Timestamp,
    limit: i64,
) -> Result<Vec<StoredDocument>, Error> {
    read(fetch!(all, db, DUE, Text(workspace), Text(source), now, limit)?)
}

/// Inserts or replaces a document; `reindex` resets its indexing state.
pub(crate) async fn put(
    tx: &mut Tx,
    workspace: WorkspaceId,
    source: SourceId,
    document: &StoredDocument,
    reindex: bool,
    now: Timestamp,
) -> Result<(), Error> {
    let Metadata { title, path, mime_type, url, updated_at } = &document.metadata;
    let retained = document.retained.as_ref();
    let fault = document.fault.as_ref();
    execute!(
        tx,
        PUT,
        Text(workspace),
        Text(document.id),
        Text(source),
        document.external_id.as_str(),
        title,
        path,
        mime_type,
        url.as_deref(),
        *updated_at,
        document.version.as_ref().map(Version::as_str),
        i64::from(retained.map(|retained| retained.format).unwrap_or_default().number()),
        to_column(retained.map_or(0, |retained| retained.size_bytes)),
        retained.map(|retained| retained.content_hash.as_str()),
        number_of(document.kept),
        fault.map(|fault| fault.message.as_str()),
        i64::from(fault.map_or(0, |fault| fault.tries)),
        fault.and_then(|fault| fault.next_try),
        document.seen.map(Text),
        document.missing_since,
        i64::from(document.misses),
        document.hidden_at,
        now,
        reindex
    )
    .map(drop)
}

/// Makes an unread document due for a retry before all others; `false` if it was read.
pub(crate) async fn try_first(
    tx: &mut Tx,
    workspace: WorkspaceId,
    source: SourceId,
    id: DocumentId,
) -> Result<bool, Error> {
    Ok(execute!(tx, TRY_FIRST, Text(workspace), Text(id), Text(source))? == 1)
}

/// Clears the indexing error of a document; `false` if it had none.
pub(crate) async fn index_again(tx: &mut Tx, workspace: WorkspaceId, id: DocumentId) -> Result<bool, Error> {
    Ok(execute!(tx, INDEX_AGAIN, Text(workspace), Text(id))? == 1)
}

/// Marks documents as seen by a listing.
pub(crate) async fn see(
    tx: &mut Tx,
    workspace: WorkspaceId,
    ids: &[DocumentId],
    listing: SourceRunId,
    now: Timestamp,
) -> Result<(), Error> {
    execute!(tx, SEE, Text(workspace), json_list(ids), Text(listing), now).map(drop)
}

/// Removes documents.
pub(crate) async fn remove(tx: &mut Tx, workspace: WorkspaceId, ids: &[DocumentId]) -> Result<(), Error> {
    execute!(tx, REMOVE, Text(workspace), json_list(ids)).map(drop)
}

/// A finished listing, with which stored documents are compared.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ended<'a> {
    pub(crate) workspace: WorkspaceId,
    pub(crate) source: SourceId,
    pub(crate) listing: SourceRunId,
    /// Prefixes of external ids that it did not cover.
    pub(crate) spared: &'a [String],
}

/// Counts a miss for every document that the listing lacks. Idempotent for each listing.
pub(crate) async fn miss(tx: &mut Tx, ended: Ended<'_>, now: Timestamp) -> Result<(), Error> {
    let (workspace, source, listing) = (Text(ended.workspace), Text(ended.source), Text(ended.listing));
    execute!(tx, MISS, workspace, source, listing, json_list(ended.spared), now).map(drop)
}

/// Counts the documents that have been missing for that many listings, and those of them that have been since before a time.
pub(crate) async fn count_absent(
    tx: &mut Tx,
    ended: Ended<'_>,
    misses: u32,
    before: Timestamp,
) -> Result<Missing, Error> {
    let (workspace, source, listing) = (Text(ended.workspace), Text(ended.source), Text(ended.listing));
    let spared = json_list(ended.spared);
    let (absent, held_back): (i64, i64) =
        fetch!(one, tx, COUNT_ABSENT, workspace, source, listing, spared, i64::from(misses), before)?;
    let documents: i64 = fetch!(scalar, tx, COUNT, Text(ended.workspace), Text(ended.source))?;
    let (absent, held_back) = (to_count(absent), to_count(held_back));
    Ok(Missing { documents: to_count(documents), absent, held_back })
}

/// At most `limit` of the documents that [`count_absent`] counts.
pub(crate) async fn absent(
    db: &Db,
    ended: Ended<'_>,
    misses: u32,
    before: Timestamp,
    limit: i64,
) -> Result<Vec<StoredDocument>, Error> {
    let (workspace, source, listing) = (Text(ended.workspace), Text(ended.source), Text(ended.listing));
    let spared = json_list(ended.spared);
    read(fetch!(all, db, ABSENT, workspace, source, listing, spared, i64::from(misses), before, limit)?)
}

/// Documents that the listing lacks, regardless of their misses; at most `limit`.
pub(crate) async fn unseen(db: &Db, ended: Ended<'_>, limit: i64) -> Result<Vec<StoredDocument>, Error> {
    let (workspace, source, listing) = (Text(ended.workspace), Text(ended.source), Text(ended.listing));
    read(fetch!(all, db, UNSEEN, workspace, source, listing, json_list(ended.spared), limit)?)
}

/// Documents of a source, at most `limit`, in no particular order.
pub(crate) async fn some(
    tx: &mut Tx,
    workspace: WorkspaceId,
    source: SourceId,
    limit: i64,
) -> Result<Vec<StoredDocument>, Error> {
    read(fetch!(all, tx, SOME, Text(workspace), Text(source), limit)?)
}

/// Removes the texts of a source's documents; returns their hashes.
pub(crate) async fn remove_texts(
    tx: &mut Tx,
    workspace: WorkspaceId,
    source: SourceId,
    now: Timestamp,
) -> Result<Vec<String>, Error> {
    let hashes = fetch!(scalars, tx, HASHES, Text(workspace), Text(source))?;
    execute!(tx, FORGET_TEXTS, Text(workspace), Text(source), now)?;
    execute!(tx, FORGET_UNREAD, Text(workspace), Text(source), now)?;
    Ok(hashes)
}

/// Documents of all workspaces that were hidden before a time and still have a text, with its hash.
pub(crate) async fn hidden_texts(
    db: &Db,
    before: Timestamp,
    limit: i64,
) -> Result<Vec<(WorkspaceId, DocumentId, String)>, Error> {
    let rows: Vec<(Text<WorkspaceId>, Text<DocumentId>, String)> =
        fetch!(all, db, HIDDEN_TEXTS, before, limit)?;
    Ok(rows.into_iter().map(|(workspace, id, hash)| (workspace.0, id.0, hash)).collect())
}

/// Removes the text of a hidden document.
pub(crate) async fn remove_text(tx: &mut Tx, workspace: WorkspaceId, id: DocumentId) -> Result<(), Error> {
    execute!(tx, FORGET_TEXT, Text(workspace), Text(id)).map(drop)
}
