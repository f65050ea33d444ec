//! The queue of text extractions, and the uploaded pieces of their documents.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::sql::{Db, Dialect, Error, Text, Tx};
use cairn_chassis::{execute, fetch, statements};
use cairn_proto::ids::{DocumentId, WorkspaceId};

use super::numbers::{to_column, to_count, to_small};
use crate::model::{Extraction, Place, Upload};

macro_rules! claim {
    ($lock:literal) => {
        concat!(
            "UPDATE extractions SET holder = $1, due_at = $2, attempts = attempts + 1 \
             WHERE (workspace_id, document_id) = (SELECT workspace_id, document_id FROM extractions \
             WHERE due_at <= $3 AND workspace_id > $4 ORDER BY workspace_id, due_at LIMIT 1",
            $lock,
            ") RETURNING workspace_id, document_id, file_name, mime_type, is_html, size_bytes, attempts"
        )
    };
}

statements! {
    pub(super) fn statements;

    const INSERT: &str = "INSERT INTO extractions (workspace_id, document_id, file_name, mime_type, is_html, size_bytes, \
         attempts, holder, due_at) VALUES ($1, $2, $3, $4, $5, $6, 0, NULL, $7)";

    const IS_ANY_DUE: &str = "SELECT COUNT(*) FROM (SELECT 1 FROM extractions WHERE due_at <= $1 LIMIT 1) AS due";

    /// $1 is the new holder, $2 the end of the lease, $3 now; of the first workspace after $4 that has work.
    const CLAIM: Dialect = Dialect { sqlite: claim!(""), postgres: claim!(" FOR UPDATE SKIP LOCKED") };

    const COUNT: &str = "SELECT COUNT(*) FROM extractions";

    const RENEW: &str = "UPDATE extractions SET due_at = $4 WHERE workspace_id = $1 AND document_id = $2 AND holder = $3";

    const FINISH: &str = "DELETE FROM extractions WHERE workspace_id = $1 AND document_id = $2 AND holder = $3";

    const REMOVE: &str = "DELETE FROM extractions WHERE workspace_id = $1 AND document_id = $2 RETURNING size_bytes";

    const PUT_PIECE: &str =
        "INSERT INTO upload_pieces (workspace_id, document_id, place, data) VALUES ($1, $2, $3, $4)";

    const READ_PIECES: &str =
        "SELECT data FROM upload_pieces WHERE workspace_id = $1 AND document_id = $2 ORDER BY place";

    const REMOVE_PIECES: &str = "DELETE FROM upload_pieces WHERE workspace_id = $1 AND document_id = $2";

    /// Of incomplete uploads whose ids, which begin with their time, are before $1.
    const SWEEP_PIECES: &str = "DELETE FROM upload_pieces WHERE document_id < $1 AND NOT EXISTS (\
         SELECT 1 FROM extractions e WHERE e.workspace_id = upload_pieces.workspace_id \
         AND e.document_id = upload_pieces.document_id)";
}

#[derive(Debug, sqlx::FromRow)]
struct Row {
    workspace_id: Text<WorkspaceId>,
    document_id: Text<DocumentId>,
    file_name: Option<String>,
    mime_type: Option<String>,
    is_html: bool,
    size_bytes: i64,
    attempts: i64,
}

impl From<Row> for Extraction {
    fn from(row: Row) -> Self {
        Self {
            place: Place { workspace: row.workspace_id.0, document: row.document_id.0 },
            upload: Upload {
                file_name: row.file_name,
                mime_type: row.mime_type,
                is_html: row.is_html,
                size_bytes: to_count(row.size_bytes),
            },
            attempts: u32::try_from(row.attempts).unwrap_or(u32::MAX),
        }
    }
}

/// Queues the extraction of a document, due at that time.
pub(crate) async fn insert(
    tx: &mut Tx,
    place: Place,
    upload: &Upload,
    due_at: Timestamp,
) -> Result<(), Error> {
    execute!(
        tx,
        INSERT,
        Text(place.workspace),
        Text(place.document),
        &upload.file_name,
        &upload.mime_type,
        upload.is_html,
        to_column(upload.size_bytes),
        due_at
    )
    .map(drop)
}

/// Whether any extraction is due.
pub(crate) async fn is_any_due(db: &Db, now: Timestamp) -> Result<bool, Error> {
    let due: i64 = fetch!(scalar, db, IS_ANY_DUE, now)?;
    Ok(due > 0)
}

/// The number of queued extractions of all workspaces.
pub(crate) async fn count(db: &Db) -> Result<u32, Error> {
    let count: i64 = fetch!(scalar, db, COUNT)?;
    Ok(to_small(count))
}

/// Claims the oldest extraction of the next workspace after `last`: round-robin over workspaces by id.
pub(crate) async fn claim(
    db: &Db,
    holder: &str,
    until: Timestamp,
    now: Timestamp,
    last: Option<WorkspaceId>,
) -> Result<Option<Extraction>, Error> {
    let writer = db.writer();
    let mut row: Option<Row> = None;
    if let Some(last) = last {
        row = fetch!(optional, writer, CLAIM, holder, until, now, last.to_string())?;
    }
    if row.is_none() {
        row = fetch!(optional, writer, CLAIM, holder, until, now, "")?;
    }
    Ok(row.map(Extraction::from))
}

/// Extends or ends the lease; `false` if it was lost.
pub(crate) async fn renew(db: &Db, place: Place, holder: &str, until: Timestamp) -> Result<bool, Error> {
    let writer = db.writer();
    let renewed = execute!(writer, RENEW, Text(place.workspace), Text(place.document), holder, until)?;
    Ok(renewed == 1)
}

/// Completes the extraction; `false` if the lease was lost.
pub(crate) async fn finish(tx: &mut Tx, place: Place, holder: &str) -> Result<bool, Error> {
    let finished = execute!(tx, FINISH, Text(place.workspace), Text(place.document), holder)?;
    execute!(tx, REMOVE_PIECES, Text(place.workspace), Text(place.document))?;
    Ok(finished == 1)
}

/// Removes the extraction of a document that is deleted; returns the size of its pieces in bytes.
pub(crate) async fn remove(tx: &mut Tx, place: Place) -> Result<i64, Error> {
    let size: Option<i64> = fetch!(optional_scalar, tx, REMOVE, Text(place.workspace), Text(place.document))?;
    execute!(tx, REMOVE_PIECES, Text(place.workspace), Text(place.document))?;
    Ok(size.unwrap_or(0))
}

/// Inserts a piece, in a transaction.
pub(crate) async fn put_piece(tx: &mut Tx, place: Place, number: u64, data: &[u8]) -> Result<(), Error> {
    execute!(tx, PUT_PIECE, Text(place.workspace), Text(place.document), to_column(number), data).map(drop)
}

/// Inserts a piece, in a transaction of its own.
pub(crate) async fn spool_piece(db: &Db, place: Place, number: u64, data: &[u8]) -> Result<(), Error> {
    let writer = db.writer();
    execute!(writer, PUT_PIECE, Text(place.workspace), Text(place.document), to_column(number), data)
        .map(drop)
}

/// All pieces of a document.
pub(crate) async fn read_pieces(db: &Db, place: Place) -> Result<Vec<Vec<u8>>, Error> {
    fetch!(scalars, db, READ_PIECES, Text(place.workspace), Text(place.document))
}

/// Removes the pieces of an upload.
pub(crate) async fn remove_pieces(db: &Db, place: Place) -> Result<(), Error> {
    let writer = db.writer();
    execute!(writer, REMOVE_PIECES, Text(place.workspace), Text(place.document)).map(drop)
}

/// Removes the pieces of interrupted uploads from before an id.
pub(crate) async fn sweep_pieces(db: &Db, before: DocumentId) -> Result<u64, Error> {
    let writer = db.writer();
    execute!(writer, SWEEP_PIECES, Text(before))
}
