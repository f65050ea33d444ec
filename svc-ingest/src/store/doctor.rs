//! What the doctor reads and writes when it mends texts. It alone reads whole tables.

use cairn_chassis::bodies::Body;
use cairn_chassis::sql::{Error, Text, Tx};
use cairn_chassis::{execute, fetch, statements};
use cairn_proto::ids::WorkspaceId;

statements! {
    /// For [`cairn_chassis::sql::prepare_all`].
    pub(crate) fn mends;

    const MISSING_BODIES: &str = "SELECT DISTINCT r.workspace_id, r.content_hash FROM (\
         SELECT workspace_id, content_hash FROM ingested_documents UNION ALL \
         SELECT workspace_id, content_hash FROM source_documents) AS r \
         LEFT JOIN bodies b ON b.workspace_id = r.workspace_id AND b.hash = r.content_hash \
         WHERE r.content_hash IS NOT NULL AND b.hash IS NULL";

    const DOCUMENTS_OF_BODY: &str =
        "SELECT id FROM ingested_documents WHERE workspace_id = $1 AND content_hash = $2 \
         UNION SELECT id FROM source_documents WHERE workspace_id = $1 AND content_hash = $2";

    const REFER_INSTEAD: [&str; 2] = [
        "UPDATE ingested_documents SET content_hash = $3, size_bytes = $4 WHERE workspace_id = $1 AND content_hash = $2",
        "UPDATE source_documents SET content_hash = $3, size_bytes = $4 WHERE workspace_id = $1 AND content_hash = $2",
    ];

    const TELL: [&str; 3] = [
        "INSERT INTO feed_changes (workspace_id, position, kind, item_id, op, at) \
         SELECT d.workspace_id, h.position + ROW_NUMBER() OVER (ORDER BY d.id), d.kind, d.id, 1, h.updated_at FROM (\
         SELECT workspace_id, id, 7 AS kind FROM ingested_documents WHERE workspace_id = $1 AND content_hash = $2 UNION ALL \
         SELECT workspace_id, id, 6 FROM source_documents WHERE workspace_id = $1 AND content_hash = $2 \
         AND state IN (0, 1)) AS d JOIN feed_heads h ON h.workspace_id = d.workspace_id",
        "UPDATE feed_heads SET position = (SELECT MAX(c.position) FROM feed_changes c \
         WHERE c.workspace_id = feed_heads.workspace_id) \
         WHERE workspace_id = $1 AND EXISTS (SELECT 1 FROM feed_changes c WHERE c.workspace_id = feed_heads.workspace_id)",
        // The version is that of the text that is lost.
        "UPDATE source_documents SET version = NULL WHERE workspace_id = $1 AND content_hash = $2",
    ];

    const GIVE_UP_TEXT: [&str; 2] = [
        "UPDATE ingested_documents SET status = 4, content_hash = NULL, format = NULL, name = NULL, size_bytes = 0, \
         chunk_count = NULL, indexed_at = NULL, error = 'Its text is lost: send it again.' \
         WHERE workspace_id = $1 AND content_hash = $2",
        "UPDATE source_documents SET state = CASE WHEN state = 0 THEN 2 ELSE state END, content_hash = NULL, size_bytes = 0, \
         version = NULL, chunk_count = NULL, indexed_at = NULL, tries = 0, next_try = 0, \
         error = COALESCE(error, 'Its text is lost; it is read again.') WHERE workspace_id = $1 AND content_hash = $2",
    ];
}

/// Bodies that documents refer to and that are not there: the workspace of each, and the hash.
pub(crate) async fn missing_bodies(tx: &mut Tx) -> Result<Vec<(String, String)>, Error> {
    fetch!(all, tx, MISSING_BODIES)
}

/// The ids of the documents that have a body.
pub(crate) async fn documents_of_body(
    tx: &mut Tx,
    workspace: WorkspaceId,
    hash: &str,
) -> Result<Vec<String>, Error> {
    fetch!(scalars, tx, DOCUMENTS_OF_BODY, Text(workspace), hash)
}

/// Lets whatever has one body have another one, which is there, and tells the feed. Sources are read again.
pub(crate) async fn refer_instead(
    tx: &mut Tx,
    workspace: WorkspaceId,
    hash: &str,
    fresh: &Body,
) -> Result<(), Error> {
    let size = i64::try_from(fresh.size_bytes).unwrap_or(i64::MAX);
    for sql in REFER_INSTEAD {
        execute!(tx, sql, Text(workspace), hash, &fresh.hash, size)?;
    }
    let [tell, move_head, forget_version] = TELL;
    execute!(tx, tell, Text(workspace), &fresh.hash)?;
    execute!(tx, move_head, Text(workspace))?;
    execute!(tx, forget_version, Text(workspace), &fresh.hash).map(drop)
}

/// Leaves documents without the text that is lost.
pub(crate) async fn give_up_text(tx: &mut Tx, workspace: WorkspaceId, hash: &str) -> Result<(), Error> {
    for sql in GIVE_UP_TEXT {
        execute!(tx, sql, Text(workspace), hash)?;
    }
    Ok(())
}
