//! The details of a run: its manifest or report, what it left unwritten, and the texts that it may have to write.

use std::collections::BTreeSet;

use cairn_chassis::clock::Timestamp;
use cairn_chassis::sql::{Db, Dialect, Error, Text, Tx, json_list};
use cairn_chassis::{execute, fetch, list_statement, statements};
use cairn_proto::ids::{SyncRunId, WorkspaceId};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::numbers::to_small;
use crate::model::{Kept, Report, Unwritten};
use crate::packed::{pack_json, unpack_json};

statements! {
    pub(super) fn statements;

    const INSERT: &str =
        "INSERT INTO sync_details (workspace_id, run_id, manifest, stills, kept) VALUES ($1, $2, $3, $4, $5)";

    const MANIFEST: &str = "SELECT manifest FROM sync_details WHERE workspace_id = $1 AND run_id = $2";

    const UNWRITTEN: &str = "SELECT stills, kept FROM sync_details WHERE workspace_id = $1 AND run_id = $2";

    const SET_UNWRITTEN: &str = "UPDATE sync_details SET stills = $3 WHERE workspace_id = $1 AND run_id = $2";

    const SET_KEPT: &str = "UPDATE sync_details SET kept = $3 WHERE workspace_id = $1 AND run_id = $2";

    const SET_REPORT: &str = "UPDATE sync_details SET manifest = $3 WHERE workspace_id = $1 AND run_id = $2";

    const REMOVE: &str = "DELETE FROM sync_details WHERE workspace_id = $1 AND run_id = $2";

    const INSERT_PIECE: &str =
        "INSERT INTO sync_pieces (workspace_id, run_id, place, data) VALUES ($1, $2, $3, $4)";

    const PIECES: Dialect = list_statement!(
        "SELECT place, data FROM sync_pieces WHERE workspace_id = $1 AND run_id = $2 AND CAST(place AS TEXT) IN ",
        "$3",
        ""
    );

    const HAS_PIECES: &str =
        "SELECT COUNT(*) FROM (SELECT 1 FROM sync_pieces WHERE workspace_id = $1 AND run_id = $2 LIMIT 1) AS kept";

    /// Of all workspaces: pieces of uploads whose run, with an id from before $1, was never created; and those of runs that ended before
    /// $2 and could be started again.
    const SWEEP_PIECES: &str = "DELETE FROM sync_pieces WHERE (run_id < $1 AND NOT EXISTS (SELECT 1 FROM sync_runs r \
         WHERE r.workspace_id = sync_pieces.workspace_id AND r.id = sync_pieces.run_id)) \
         OR EXISTS (SELECT 1 FROM sync_runs r WHERE r.workspace_id = sync_pieces.workspace_id \
         AND r.id = sync_pieces.run_id AND r.state IN (6, 7) AND r.finished_at < $2)";

    const REMOVE_PIECES: &str = "DELETE FROM sync_pieces WHERE workspace_id = $1 AND run_id = $2";
}

/// Inserts the result of a preview.
pub(crate) async fn insert(
    tx: &mut Tx,
    workspace: WorkspaceId,
    run: SyncRunId,
    details: &impl Serialize,
    unwritten: &[Unwritten],
) -> Result<(), Error> {
    let kept: &[Kept] = &[];
    let (details, unwritten, kept) = (pack_json(details)?, pack_json(unwritten)?, pack_json(kept)?);
    let (workspace, run) = (Text(workspace), Text(run));
    execute!(tx, INSERT, workspace, run, details.as_slice(), unwritten.as_slice(), kept.as_slice()).map(drop)
}

/// The manifest of a sync, or the report of an import; `None` when the run no longer exists.
pub(crate) async fn get<T: DeserializeOwned>(
    db: &Db,
    workspace: WorkspaceId,
    run: SyncRunId,
) -> Result<Option<T>, Error> {
    let packed: Option<Vec<u8>> = fetch!(optional_scalar, db, MANIFEST, Text(workspace), Text(run))?;
    packed.map(|packed| unpack_json(&packed)).transpose()
}

/// What the run left unwritten, and what its rollback kept.
pub(crate) async fn left_alone(
    db: &Db,
    workspace: WorkspaceId,
    run: SyncRunId,
) -> Result<(Vec<Unwritten>, Vec<Kept>), Error> {
    let row: Option<(Vec<u8>, Vec<u8>)> = fetch!(optional, db, UNWRITTEN, Text(workspace), Text(run))?;
    match row {
        None => Ok((Vec::new(), Vec::new())),
        Some((unwritten, kept)) => Ok((unpack_json(&unwritten)?, unpack_json(&kept)?)),
    }
}

pub(crate) async fn set_unwritten(
    tx: &mut Tx,
    workspace: WorkspaceId,
    run: SyncRunId,
    unwritten: &[Unwritten],
) -> Result<(), Error> {
    let unwritten = pack_json(unwritten)?;
    execute!(tx, SET_UNWRITTEN, Text(workspace), Text(run), unwritten.as_slice()).map(drop)
}

/// Replaces the report of an import.
pub(crate) async fn set_report(
    tx: &mut Tx,
    workspace: WorkspaceId,
    run: SyncRunId,
    report: &Report,
) -> Result<(), Error> {
    let report = pack_json(report)?;
    execute!(tx, SET_REPORT, Text(workspace), Text(run), report.as_slice()).map(drop)
}

pub(crate) async fn set_kept(
    tx: &mut Tx,
    workspace: WorkspaceId,
    run: SyncRunId,
    kept: &[Kept],
) -> Result<(), Error> {
    let kept = pack_json(kept)?;
    execute!(tx, SET_KEPT, Text(workspace), Text(run), kept.as_slice()).map(drop)
}

/// Removes the details of a run, with its texts.
pub(crate) async fn remove(tx: &mut Tx, workspace: WorkspaceId, run: SyncRunId) -> Result<(), Error> {
    remove_pieces(tx, workspace, run).await?;
    execute!(tx, REMOVE, Text(workspace), Text(run)).map(drop)
}

/// Inserts a compressed piece.
pub(crate) async fn insert_piece(
    tx: &mut Tx,
    workspace: WorkspaceId,
    run: SyncRunId,
    place: usize,
    packed: &[u8],
) -> Result<(), Error> {
    let place = i64::try_from(place).unwrap_or(i64::MAX);
    execute!(tx, INSERT_PIECE, Text(workspace), Text(run), place, packed).map(drop)
}

/// These pieces, compressed, in no particular order.
pub(crate) async fn pieces(
    db: &Db,
    workspace: WorkspaceId,
    run: SyncRunId,
    places: &BTreeSet<u32>,
) -> Result<Vec<(u32, Vec<u8>)>, Error> {
    if places.is_empty() {
        return Ok(Vec::new());
    }
    let rows: Vec<(i64, Vec<u8>)> = fetch!(all, db, PIECES, Text(workspace), Text(run), json_list(places))?;
    Ok(rows.into_iter().map(|(place, data)| (to_small(place), data)).collect())
}

/// Whether the texts or the archive of a run are still stored.
pub(crate) async fn has_pieces(db: &Db, workspace: WorkspaceId, run: SyncRunId) -> Result<bool, Error> {
    let count: i64 = fetch!(scalar, db, HAS_PIECES, Text(workspace), Text(run))?;
    Ok(count > 0)
}

/// Removes pieces of interrupted uploads from before an id, and those of runs that ended before a time.
pub(crate) async fn sweep_pieces(db: &Db, before: SyncRunId, ended: Timestamp) -> Result<(), Error> {
    execute!(db.writer(), SWEEP_PIECES, Text(before), ended).map(drop)
}

/// Removes the texts of a run.
pub(crate) async fn remove_pieces(tx: &mut Tx, workspace: WorkspaceId, run: SyncRunId) -> Result<(), Error> {
    execute!(tx, REMOVE_PIECES, Text(workspace), Text(run)).map(drop)
}
