//! Runs of sources. A running one has a lease: its holder, until a time. Only the holder may write its progress.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::sql::{Db, Error, Text, Tx};
use cairn_chassis::{execute, fetch, not_suspended, statements};
use cairn_proto::domain::{SourceRunKind, SourceRunStatus};
use cairn_proto::ids::{SourceId, SourceRunId, WorkspaceId};
use cairn_providers::Position;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::numbers::{to_column, to_count, to_small};
use crate::model::{Absent, Counters, Run, Source, Stage};

macro_rules! select {
    ($($rest:expr),+) => {
        concat!(
            "SELECT workspace_id, source_id, id, kind, state, stage, listing, position, absent, spared, complete, listed, \
             fetched, unchanged, created, updated, removed, failed, operations, warnings, error, lost, tries, \
             waiting_until, cancel_asked, created_at, started_at, finished_at FROM source_runs ",
            $($rest),+
        )
    };
}

statements! {
    pub(super) fn statements;

    const GET: &str = select!("WHERE workspace_id = $1 AND source_id = $2 AND id = $3");

    /// Ids sort by time.
    const LAST: &str = select!("WHERE workspace_id = $1 AND source_id = $2 ORDER BY id DESC LIMIT 1");

    const OPEN: &str = select!("WHERE workspace_id = $1 AND source_id = $2 AND state < 4");

    const PAGE: &str = select!("WHERE workspace_id = $1 AND source_id = $2 AND id < $3 ORDER BY id DESC LIMIT $4");

    const COUNT: &str = "SELECT COUNT(*) FROM source_runs WHERE workspace_id = $1 AND source_id = $2";

    /// Of each source of a workspace.
    const LASTS: &str = select!(
        "WHERE workspace_id = $1 AND (source_id, id) IN (SELECT source_id, MAX(id) FROM source_runs \
         WHERE workspace_id = $1 GROUP BY source_id)"
    );

    const INSERT: &str = "INSERT INTO source_runs (workspace_id, source_id, id, kind, state, stage, listing, position, absent, \
         complete, listed, fetched, unchanged, created, updated, removed, failed, operations, warnings, lost, tries, \
         cancel_asked, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, FALSE, 0, 0, 0, 0, 0, 0, 0, 0, '[]', 0, 0, \
         FALSE, $10) ON CONFLICT DO NOTHING";

    /// Of all workspaces that are not suspended: runs that can be claimed at $1, the oldest first.
    const CLAIMABLE: &str = select!(
        "WHERE state < 4 AND (state = 1 OR (state = 2 AND lease_until <= $1) OR (state = 3 AND waiting_until <= $1)) AND ",
        not_suspended!("source_runs.workspace_id"),
        " ORDER BY created_at LIMIT $2"
    );

    const CLAIM: &str = "UPDATE source_runs SET lost = lost + CASE WHEN state = 2 THEN 1 ELSE 0 END, state = 2, holder = $4, \
         lease_until = $5, waiting_until = NULL, started_at = COALESCE(started_at, $6) \
         WHERE workspace_id = $1 AND source_id = $2 AND id = $3 AND state < 4 \
         AND (state = 1 OR (state = 2 AND lease_until <= $6) OR (state = 3 AND waiting_until <= $6))";

    const RENEW: &str = "UPDATE source_runs SET lease_until = $5 \
         WHERE workspace_id = $1 AND source_id = $2 AND id = $3 AND state = 2 AND holder = $4";

    const IS_CANCEL_REQUESTED: &str = "SELECT cancel_asked FROM source_runs \
         WHERE workspace_id = $1 AND source_id = $2 AND id = $3 AND state = 2 AND holder = $4";

    /// Fenced by the lease. Operations are counted where they are reserved.
    const SAVE: &str = "UPDATE source_runs SET kind = $5, state = $6, stage = $7, listing = $8, position = $9, absent = $10, \
         spared = $11, complete = $12, listed = $13, fetched = $14, unchanged = $15, created = $16, updated = $17, \
         removed = $18, failed = $19, warnings = $20, error = $21, lost = $22, tries = $23, waiting_until = $24, \
         finished_at = $25, lease_until = $26 \
         WHERE workspace_id = $1 AND source_id = $2 AND id = $3 AND state = 2 AND holder = $4 RETURNING cancel_asked";

    const COUNT_OPERATION: &str = "UPDATE source_runs SET operations = operations + 1 \
         WHERE workspace_id = $1 AND source_id = $2 AND id = $3 AND state = 2 AND holder = $4";

    /// A run without a worker ends at once.
    const CANCEL_IDLE: &str = "UPDATE source_runs SET state = 7, waiting_until = NULL, finished_at = $4 \
         WHERE workspace_id = $1 AND source_id = $2 AND id = $3 AND state IN (1, 3)";

    const REQUEST_CANCEL: &str = "UPDATE source_runs SET cancel_asked = TRUE \
         WHERE workspace_id = $1 AND source_id = $2 AND id = $3 AND state = 2";

    /// Its worker loses the lease.
    const END_OPEN: &str = "UPDATE source_runs SET state = 7, holder = NULL, waiting_until = NULL, finished_at = $3 \
         WHERE workspace_id = $1 AND source_id = $2 AND state < 4";

    /// After a restart of the storage's only process, no lease has a holder.
    const EXPIRE_ALL_LEASES: &str = "UPDATE source_runs SET lease_until = $1 WHERE state = 2";

    const REMOVE_OF: &str = "DELETE FROM source_runs WHERE workspace_id = $1 AND source_id = $2";

    /// All but the newest $3.
    const PRUNE: &str = "DELETE FROM source_runs WHERE workspace_id = $1 AND source_id = $2 AND state >= 4 AND id < \
         (SELECT MIN(id) FROM (SELECT id FROM source_runs WHERE workspace_id = $1 AND source_id = $2 \
         ORDER BY id DESC LIMIT $3) AS kept)";
}

#[derive(Debug, sqlx::FromRow)]
struct Row {
    workspace_id: Text<WorkspaceId>,
    source_id: Text<SourceId>,
    id: Text<SourceRunId>,
    kind: i64,
    state: i64,
    stage: i64,
    listing: Text<SourceRunId>,
    position: Option<String>,
    absent: i64,
    spared: Option<String>,
    complete: bool,
    listed: i64,
    fetched: i64,
    unchanged: i64,
    created: i64,
    updated: i64,
    removed: i64,
    failed: i64,
    operations: i64,
    warnings: String,
    error: Option<String>,
    lost: i64,
    tries: i64,
    waiting_until: Option<Timestamp>,
    cancel_asked: bool,
    created_at: Timestamp,
    started_at: Option<Timestamp>,
    finished_at: Option<Timestamp>,
}

const STAGES: [Stage; 4] = [Stage::Retries, Stage::Pages, Stage::Probes, Stage::Removal];
const ABSENT: [Absent; 3] = [Absent::Keep, Absent::Mark, Absent::Remove];

fn number_of<T: PartialEq>(all: &[T], one: &T) -> i64 {
    all.iter().position(|other| other == one).and_then(|place| i64::try_from(place).ok()).unwrap_or(0)
}

fn one_of<T: Copy>(all: &[T], number: i64) -> Result<T, Error> {
    let found = usize::try_from(number).ok().and_then(|place| all.get(place).copied());
    found.ok_or_else(|| Error::corrupt("a run of a source with a number that stands for nothing"))
}

fn from_json<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    serde_json::from_str(text).map_err(|_| Error::corrupt("a run of a source with a list that is no JSON"))
}

fn to_json<T: Serialize>(list: &T) -> Result<String, Error> {
    serde_json::to_string(list).map_err(|_| Error::corrupt("a list of a run cannot be written"))
}

impl TryFrom<Row> for Run {
    type Error = Error;

    fn try_from(row: Row) -> Result<Self, Error> {
        let unknown = || Error::corrupt("a run of a source of an unknown kind or state");
        let counters = Counters {
            listed: to_count(row.listed),
            fetched: to_count(row.fetched),
            unchanged: to_count(row.unchanged),
            created: to_count(row.created),
            updated: to_count(row.updated),
            removed: to_count(row.removed),
            failed: to_count(row.failed),
            operations: to_count(row.operations),
        };
        Ok(Self {
            workspace: row.workspace_id.0,
            source: row.source_id.0,
            id: row.id.0,
            kind: SourceRunKind::from_number(row.kind).ok_or_else(unknown)?,
            state: SourceRunStatus::from_number(row.state).ok_or_else(unknown)?,
            stage: one_of(&STAGES, row.stage)?,
            listing: row.listing.0,
            position: row.position.and_then(|text| Position::try_from(text).ok()),
            absent: one_of(&ABSENT, row.absent)?,
            spared: row.spared.as_deref().map(from_json).transpose()?.unwrap_or_default(),
            complete: row.complete,
            counters,
            warnings: from_json(&row.warnings)?,
            error: row.error,
            lost: to_small(row.lost),
            tries: to_small(row.tries),
            waiting_until: row.waiting_until,
            cancel_asked: row.cancel_asked,
            created_at: row.created_at,
            started_at: row.started_at,
            finished_at: row.finished_at,
        })
    }
}

fn read(rows: Vec<Row>) -> Result<Vec<Run>, Error> {
    rows.into_iter().map(Run::try_from).collect()
}

fn read_one(row: Option<Row>) -> Result<Option<Run>, Error> {
    row.map(Run::try_from).transpose()
}

/// A run.
pub(crate) async fn get(
    db: &Db,
    workspace: WorkspaceId,
    source: SourceId,
    id: SourceRunId,
) -> Result<Option<Run>, Error> {
    read_one(fetch!(optional, db, GET, Text(workspace), Text(source), Text(id))?)
}

/// The newest run of a source.
pub(crate) async fn last(db: &Db, workspace: WorkspaceId, source: SourceId) -> Result<Option<Run>, Error> {
    read_one(fetch!(optional, db, LAST, Text(workspace), Text(source))?)
}

/// The newest run of a source, in a transaction.
pub(crate) async fn last_in(tx: &mut Tx, source: &Source) -> Result<Option<Run>, Error> {
    read_one(fetch!(optional, tx, LAST, Text(source.workspace), Text(source.id))?)
}

/// The run of a source that has not ended.
pub(crate) async fn open(
    tx: &mut Tx,
    workspace: WorkspaceId,
    source: SourceId,
) -> Result<Option<Run>, Error> {
    read_one(fetch!(optional, tx, OPEN, Text(workspace), Text(source))?)
}

/// Runs of a source before that id, newest first, at most `limit`, and how many there are in all.
pub(crate) async fn page(
    db: &Db,
    workspace: WorkspaceId,
    source: SourceId,
    before: &str,
    limit: i64,
) -> Result<(Vec<Run>, u64), Error> {
    let rows = fetch!(all, db, PAGE, Text(workspace), Text(source), before, limit)?;
    let count: i64 = fetch!(scalar, db, COUNT, Text(workspace), Text(source))?;
    Ok((read(rows)?, to_count(count)))
}

/// The newest run of each source of a workspace.
pub(crate) async fn lasts(db: &Db, workspace: WorkspaceId) -> Result<Vec<Run>, Error> {
    read(fetch!(all, db, LASTS, Text(workspace))?)
}

/// Inserts a queued run; `false` if the source has another that has not ended.
pub(crate) async fn insert(tx: &mut Tx, run: &Run) -> Result<bool, Error> {
    let inserted = execute!(
        tx,
        INSERT,
        Text(run.workspace),
        Text(run.source),
        Text(run.id),
        i64::from(run.kind.number()),
        i64::from(run.state.number()),
        number_of(&STAGES, &run.stage),
        Text(run.listing),
        run.position.as_ref().map(Position::as_str),
        number_of(&ABSENT, &run.absent),
        run.created_at
    )?;
    Ok(inserted == 1)
}

/// Runs of all workspaces that can be claimed, the oldest first.
pub(crate) async fn claimable(db: &Db, now: Timestamp, limit: i64) -> Result<Vec<Run>, Error> {
    read(fetch!(all, db, CLAIMABLE, now, limit)?)
}

/// Claims a run for a holder until a time; `false` if another process was faster.
pub(crate) async fn claim(
    db: &Db,
    run: &Run,
    holder: &str,
    until: Timestamp,
    now: Timestamp,
) -> Result<bool, Error> {
    let (workspace, source, id) = (Text(run.workspace), Text(run.source), Text(run.id));
    Ok(execute!(db.writer(), CLAIM, workspace, source, id, holder, until, now)? == 1)
}

/// Extends the lease; `false` if it was lost.
pub(crate) async fn renew(db: &Db, run: &Run, holder: &str, until: Timestamp) -> Result<bool, Error> {
    let (workspace, source, id) = (Text(run.workspace), Text(run.source), Text(run.id));
    Ok(execute!(db.writer(), RENEW, workspace, source, id, holder, until)? == 1)
}

/// Whether a run was cancelled; `None` if the lease was lost.
pub(crate) async fn is_cancel_requested(db: &Db, run: &Run, holder: &str) -> Result<Option<bool>, Error> {
    let (workspace, source, id) = (Text(run.workspace), Text(run.source), Text(run.id));
    fetch!(optional_scalar, db, IS_CANCEL_REQUESTED, workspace, source, id, holder)
}

/// Stores the state of a run and returns whether it was cancelled; `None`, and nothing is stored, if the lease was lost.
pub(crate) async fn save(
    tx: &mut Tx,
    run: &Run,
    holder: &str,
    lease_until: Timestamp,
) -> Result<Option<bool>, Error> {
    let counters = &run.counters;
    fetch!(
        optional_scalar,
        tx,
        SAVE,
        Text(run.workspace),
        Text(run.source),
        Text(run.id),
        holder,
        i64::from(run.kind.number()),
        i64::from(run.state.number()),
        number_of(&STAGES, &run.stage),
        Text(run.listing),
        run.position.as_ref().map(Position::as_str),
        number_of(&ABSENT, &run.absent),
        to_json(&run.spared)?,
        run.complete,
        to_column(counters.listed),
        to_column(counters.fetched),
        to_column(counters.unchanged),
        to_column(counters.created),
        to_column(counters.updated),
        to_column(counters.removed),
        to_column(counters.failed),
        to_json(&run.warnings)?,
        run.error.as_deref(),
        i64::from(run.lost),
        i64::from(run.tries),
        run.waiting_until,
        run.finished_at,
        lease_until
    )
}

/// Counts a request of a run; `false` if the lease was lost or the run was cancelled.
pub(crate) async fn count_operation(
    tx: &mut Tx,
    workspace: WorkspaceId,
    source: SourceId,
    id: SourceRunId,
    holder: &str,
) -> Result<bool, Error> {
    Ok(execute!(tx, COUNT_OPERATION, Text(workspace), Text(source), Text(id), holder)? == 1)
}

/// Cancels a run: at once when no worker has it, else its worker is requested to stop.
pub(crate) async fn cancel(tx: &mut Tx, run: &Run, now: Timestamp) -> Result<(), Error> {
    let (workspace, source, id) = (Text(run.workspace), Text(run.source), Text(run.id));
    if execute!(tx, CANCEL_IDLE, workspace, source, id, now)? == 0 {
        execute!(tx, REQUEST_CANCEL, workspace, source, id)?;
    }
    Ok(())
}

/// Ends the open run of a source, without waiting for its worker.
pub(crate) async fn end_open(
    tx: &mut Tx,
    workspace: WorkspaceId,
    source: SourceId,
    now: Timestamp,
) -> Result<(), Error> {
    execute!(tx, END_OPEN, Text(workspace), Text(source), now).map(drop)
}

/// Expires the leases of all runs.
pub(crate) async fn expire_all_leases(db: &Db, now: Timestamp) -> Result<(), Error> {
    execute!(db.writer(), EXPIRE_ALL_LEASES, now).map(drop)
}

/// Removes the runs of a source.
pub(crate) async fn remove_of(tx: &mut Tx, workspace: WorkspaceId, source: SourceId) -> Result<(), Error> {
    execute!(tx, REMOVE_OF, Text(workspace), Text(source)).map(drop)
}

/// Removes all but the newest runs of a source.
pub(crate) async fn prune(
    tx: &mut Tx,
    workspace: WorkspaceId,
    source: SourceId,
    kept: i64,
) -> Result<(), Error> {
    execute!(tx, PRUNE, Text(workspace), Text(source), kept).map(drop)
}
