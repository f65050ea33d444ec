//! Batches of steps: logged before they are sent, settled once they are known to be done.

use cairn_chassis::sql::{Db, Error, Text, Tx};
use cairn_chassis::{execute, fetch, statements};
use cairn_proto::ids::{SyncRunId, WorkspaceId};

use crate::model::{Batch, Phase, Step, Sync};
use crate::packed::{pack_json, unpack_json};

statements! {
    pub(super) fn statements;

    const LIST: &str = "SELECT place, settled, steps FROM sync_batches \
         WHERE workspace_id = $1 AND run_id = $2 AND phase = $3 ORDER BY place";

    /// Of all runs of a sync except the run $4.
    const UNSETTLED: &str = "SELECT b.run_id, b.phase, b.place, b.steps FROM sync_runs r \
         JOIN sync_batches b ON b.workspace_id = r.workspace_id AND b.run_id = r.id \
         WHERE r.workspace_id = $1 AND r.origin = $2 AND r.name = $3 AND r.id <> $4 AND NOT b.settled \
         ORDER BY b.run_id, b.phase, b.place";

    const PUT: &str = "INSERT INTO sync_batches (workspace_id, run_id, phase, place, settled, steps) \
         VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (workspace_id, run_id, phase, place) \
         DO UPDATE SET settled = excluded.settled, steps = excluded.steps";

    const REMOVE: &str =
        "DELETE FROM sync_batches WHERE workspace_id = $1 AND run_id = $2 AND phase = $3 AND place = $4";

    const REMOVE_ALL: &str = "DELETE FROM sync_batches WHERE workspace_id = $1 AND run_id = $2";
}

#[derive(Debug, sqlx::FromRow)]
struct Row {
    place: i64,
    settled: bool,
    steps: Vec<u8>,
}

#[derive(Debug, sqlx::FromRow)]
struct UnsettledRow {
    run_id: Text<SyncRunId>,
    phase: i64,
    place: i64,
    steps: Vec<u8>,
}

/// An open batch of an earlier run.
#[derive(Debug)]
pub(crate) struct Unsettled {
    pub(crate) run: SyncRunId,
    pub(crate) phase: Phase,
    pub(crate) batch: Batch,
}

pub(super) const fn number(phase: Phase) -> i64 {
    match phase {
        Phase::Sync => 1,
        Phase::Rollback => 2,
    }
}

/// The batches of a phase of a run, in their order.
pub(crate) async fn list(
    db: &Db,
    workspace: WorkspaceId,
    run: SyncRunId,
    phase: Phase,
) -> Result<Vec<Batch>, Error> {
    let rows: Vec<Row> = fetch!(all, db, LIST, Text(workspace), Text(run), number(phase))?;
    let read = |row: Row| {
        let steps: Vec<Step> = unpack_json(&row.steps)?;
        Ok(Batch { place: row.place, is_settled: row.settled, steps })
    };
    rows.into_iter().map(read).collect()
}

/// The batches that other runs of a sync left open when they ended early.
pub(crate) async fn unsettled(db: &Db, sync: Sync<'_>, but: SyncRunId) -> Result<Vec<Unsettled>, Error> {
    let workspace = Text(sync.workspace);
    let rows: Vec<UnsettledRow> =
        fetch!(all, db, UNSETTLED, workspace, sync.origin.number(), sync.name, Text(but))?;
    let read = |row: UnsettledRow| {
        let steps: Vec<Step> = unpack_json(&row.steps)?;
        let phase = if row.phase == number(Phase::Rollback) { Phase::Rollback } else { Phase::Sync };
        let batch = Batch { place: row.place, is_settled: false, steps };
        Ok(Unsettled { run: row.run_id.0, phase, batch })
    };
    rows.into_iter().map(read).collect()
}

/// Stores a batch; removes it when it has no steps.
pub(crate) async fn put(
    tx: &mut Tx,
    workspace: WorkspaceId,
    run: SyncRunId,
    phase: Phase,
    batch: &Batch,
) -> Result<(), Error> {
    let phase = number(phase);
    if batch.steps.is_empty() {
        return execute!(tx, REMOVE, Text(workspace), Text(run), phase, batch.place).map(drop);
    }
    let steps = pack_json(&batch.steps)?;
    execute!(tx, PUT, Text(workspace), Text(run), phase, batch.place, batch.is_settled, steps.as_slice())
        .map(drop)
}

/// Removes all batches of a run.
pub(crate) async fn remove(tx: &mut Tx, workspace: WorkspaceId, run: SyncRunId) -> Result<(), Error> {
    execute!(tx, REMOVE_ALL, Text(workspace), Text(run)).map(drop)
}
