//! Runs. A running one has a lease: its holder, until a time. Only the holder may write its progress.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::identity::PrincipalKind;
use cairn_chassis::sql::Engine;
use cairn_chassis::sql::{Db, Error, PostgresOnly, Text, Tx};
use cairn_chassis::{execute, fetch, not_suspended, statements};
use cairn_proto::ids::{FolderId, SyncRunId, WorkspaceId};

use super::batches;
use super::numbers::{to_column, to_count, to_small};
use crate::model::{ConflictPolicy, Counters, Origin, Phase, Requester, Run, RunStatus, Sync};

macro_rules! select {
    ($($rest:expr),+) => {
        concat!(
            "SELECT workspace_id, id, origin, name, file_name, archive_bytes, object_bytes, folder_id, policy, prune, state, \
             phase, asker_kind, asker_id, asker_name, created, updated, skipped, conflicts, pruned, processed, total, would_create, would_update, would_skip, would_conflict, \
             documents, bytes, error, tries, not_before, cancel_asked, created_at, started_at, finished_at, \
             rollback_until FROM sync_runs ",
            $($rest),+
        )
    };
}

statements! {
    pub(super) fn statements;

    const GET: &str = select!("WHERE workspace_id = $1 AND id = $2");

    const LOCK: PostgresOnly =
        PostgresOnly("SELECT 1 FROM sync_runs WHERE workspace_id = $1 AND id = $2 FOR UPDATE");

    /// Ids sort by time. $2: whether of imports; $3: of one name, or of all when it is empty.
    const PAGE: &str = select!(
        "WHERE workspace_id = $1 AND (origin <> 0) = $2 AND ($3 = '' OR name = $3) AND id < $4 ORDER BY id DESC LIMIT $5"
    );

    const COUNT: &str = "SELECT COUNT(*) FROM sync_runs \
         WHERE workspace_id = $1 AND (origin <> 0) = $2 AND ($3 = '' OR name = $3)";

    const BUSY: &str = "SELECT COUNT(*) FROM sync_runs WHERE workspace_id = $1 AND origin = $2 AND name = $3 \
         AND state IN (2, 3)";

    /// Queued runs of a workspace, up to the one with that time and id.
    const PLACE: &str = "SELECT COUNT(*) FROM sync_runs WHERE workspace_id = $1 AND state IN (2, 3) AND state = 2 \
         AND (created_at < $2 OR (created_at = $2 AND id <= $3))";

    const INSERT: &str = "INSERT INTO sync_runs (workspace_id, id, name, folder_id, policy, prune, state, phase, asker_kind, \
         asker_id, created, updated, skipped, conflicts, pruned, processed, total, would_create, would_update, would_skip, \
         would_conflict, documents, bytes, tries, cancel_asked, created_at, origin, file_name, archive_bytes, object_bytes, \
         asker_name) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, \
         $10, 0, 0, 0, 0, 0, 0, $11, $12, $13, $14, $15, $16, $17, 0, FALSE, $18, $19, $20, $21, $22, $23)";

    const QUEUE: &str = "UPDATE sync_runs SET state = 2, phase = $3, asker_kind = $4, asker_id = $5, asker_name = $6, error = NULL, \
         tries = 0, not_before = NULL, cancel_asked = FALSE, holder = NULL, finished_at = NULL \
         WHERE workspace_id = $1 AND id = $2";

    /// Of all workspaces that are not suspended: runs that can be claimed at $1, the oldest first.
    const CLAIMABLE: &str = select!(
        "WHERE state IN (2, 3) AND (state = 2 OR lease_until <= $1) AND COALESCE(not_before, 0) <= $1 AND ",
        not_suspended!("sync_runs.workspace_id"),
        " ORDER BY created_at LIMIT $2"
    );

    const CLAIM: &str = "UPDATE sync_runs SET tries = tries + CASE WHEN state = 3 THEN 1 ELSE 0 END, state = 3, holder = $3, \
         lease_until = $4, not_before = NULL, started_at = COALESCE(started_at, $5) \
         WHERE workspace_id = $1 AND id = $2 AND (state = 2 OR (state = 3 AND lease_until <= $5)) \
         AND COALESCE(not_before, 0) <= $5";

    const RENEW: &str = "UPDATE sync_runs SET lease_until = $4 \
         WHERE workspace_id = $1 AND id = $2 AND state = 3 AND holder = $3";

    const IS_CANCEL_REQUESTED: &str = "SELECT cancel_asked FROM sync_runs \
         WHERE workspace_id = $1 AND id = $2 AND state = 3 AND holder = $3";

    /// Fenced by the lease.
    const SAVE: &str = "UPDATE sync_runs SET state = $4, phase = $5, created = $6, updated = $7, skipped = $8, \
         conflicts = $9, pruned = $10, processed = $11, total = $12, error = $13, tries = $14, not_before = $15, \
         finished_at = $16, rollback_until = $17, lease_until = $18, bytes = $19 \
         WHERE workspace_id = $1 AND id = $2 AND state = 3 AND holder = $3 RETURNING cancel_asked";

    /// A run without a worker ends at once.
    const CANCEL_IDLE: &str = "UPDATE sync_runs SET state = 7, finished_at = $3, rollback_until = CASE \
         WHEN origin <> 0 AND started_at IS NOT NULL THEN CAST($4 AS BIGINT) ELSE rollback_until END \
         WHERE workspace_id = $1 AND id = $2 AND state IN (1, 2)";

    const REQUEST_CANCEL: &str = "UPDATE sync_runs SET cancel_asked = TRUE \
         WHERE workspace_id = $1 AND id = $2 AND state = 3";

    /// After a restart of the storage's only process, no lease has a holder.
    const EXPIRE_ALL_LEASES: &str = "UPDATE sync_runs SET lease_until = $1 WHERE state = 3";

    const REMOVE: &str = "DELETE FROM sync_runs WHERE workspace_id = $1 AND id = $2";

    /// Of all workspaces: previews from before $1 that were never started, and ended runs from before $2.
    const STALE: &str = select!(
        "WHERE (state = 1 AND created_at < $1) OR (state NOT IN (2, 3) AND created_at < $2) \
         ORDER BY created_at LIMIT $3"
    );
}

#[derive(Debug, sqlx::FromRow)]
struct Row {
    workspace_id: Text<WorkspaceId>,
    id: Text<SyncRunId>,
    origin: i64,
    name: String,
    file_name: Option<String>,
    archive_bytes: i64,
    object_bytes: i64,
    folder_id: Option<Text<FolderId>>,
    policy: i64,
    prune: bool,
    state: i64,
    phase: i64,
    asker_kind: String,
    asker_id: String,
    asker_name: String,
    created: i64,
    updated: i64,
    skipped: i64,
    conflicts: i64,
    pruned: i64,
    processed: i64,
    total: i64,
    would_create: i64,
    would_update: i64,
    would_skip: i64,
    would_conflict: i64,
    documents: i64,
    bytes: i64,
    error: Option<String>,
    tries: i64,
    not_before: Option<Timestamp>,
    cancel_asked: bool,
    created_at: Timestamp,
    started_at: Option<Timestamp>,
    finished_at: Option<Timestamp>,
    rollback_until: Option<Timestamp>,
}

const KINDS: [PrincipalKind; 4] =
    [PrincipalKind::Token, PrincipalKind::Grant, PrincipalKind::User, PrincipalKind::Service];

impl TryFrom<Row> for Run {
    type Error = Error;

    fn try_from(row: Row) -> Result<Self, Error> {
        let unknown = || Error::corrupt("a sync run with a number or a word that stands for nothing");
        let kind = KINDS.into_iter().find(|kind| kind.as_str() == row.asker_kind).ok_or_else(unknown)?;
        let phases = [Phase::Sync, Phase::Rollback];
        let phase = phases.into_iter().find(|phase| batches::number(*phase) == row.phase);
        Ok(Self {
            workspace: row.workspace_id.0,
            id: row.id.0,
            origin: Origin::from_number(row.origin).ok_or_else(unknown)?,
            name: row.name,
            file_name: row.file_name,
            archive_bytes: to_count(row.archive_bytes),
            object_bytes: to_count(row.object_bytes),
            folder: row.folder_id.map(|id| id.0),
            policy: ConflictPolicy::from_number(row.policy).ok_or_else(unknown)?,
            prune: row.prune,
            state: RunStatus::from_number(row.state).ok_or_else(unknown)?,
            phase: phase.ok_or_else(unknown)?,
            requester: Requester { kind, id: row.asker_id, name: row.asker_name },
            counters: Counters {
                created: to_count(row.created),
                updated: to_count(row.updated),
                skipped: to_count(row.skipped),
                conflicts: to_count(row.conflicts),
                pruned: to_count(row.pruned),
                processed: to_count(row.processed),
            },
            total: to_count(row.total),
            would: Counters {
                created: to_count(row.would_create),
                updated: to_count(row.would_update),
                skipped: to_count(row.would_skip),
                conflicts: to_count(row.would_conflict),
                ..Counters::default()
            },
            documents: to_count(row.documents),
            bytes: to_count(row.bytes),
            error: row.error,
            tries: to_small(row.tries),
            not_before: row.not_before,
            cancel_asked: row.cancel_asked,
            created_at: row.created_at,
            started_at: row.started_at,
            finished_at: row.finished_at,
            rollback_until: row.rollback_until,
        })
    }
}

fn read(rows: Vec<Row>) -> Result<Vec<Run>, Error> {
    rows.into_iter().map(Run::try_from).collect()
}

/// A run.
pub(crate) async fn get(db: &Db, workspace: WorkspaceId, id: SyncRunId) -> Result<Option<Run>, Error> {
    let row: Option<Row> = fetch!(optional, db, GET, Text(workspace), Text(id))?;
    row.map(Run::try_from).transpose()
}

/// A run, locked until the transaction ends.
pub(crate) async fn get_for_update(
    tx: &mut Tx,
    workspace: WorkspaceId,
    id: SyncRunId,
) -> Result<Option<Run>, Error> {
    if let Engine::Postgres(connection) = tx.engine() {
        sqlx::query(LOCK.0).bind(Text(workspace)).bind(Text(id)).execute(connection).await?;
    }
    let row: Option<Row> = fetch!(optional, tx, GET, Text(workspace), Text(id))?;
    row.map(Run::try_from).transpose()
}

/// Runs of a workspace before that id, newest first, at most `limit`, and how many there are in all; of one name unless it is
/// empty.
pub(crate) async fn page(
    db: &Db,
    workspace: WorkspaceId,
    of_imports: bool,
    name: &str,
    before: &str,
    limit: i64,
) -> Result<(Vec<Run>, u64), Error> {
    let rows = fetch!(all, db, PAGE, Text(workspace), of_imports, name, before, limit)?;
    let count: i64 = fetch!(scalar, db, COUNT, Text(workspace), of_imports, name)?;
    Ok((read(rows)?, to_count(count)))
}

/// The position of a run in the queue of its workspace, from 1.
pub(crate) async fn place(db: &Db, run: &Run) -> Result<u64, Error> {
    let count: i64 = fetch!(scalar, db, PLACE, Text(run.workspace), run.created_at, Text(run.id))?;
    Ok(to_count(count))
}

/// Serializes starts and rollbacks of one sync.
pub(crate) async fn lock_name(tx: &mut Tx, sync: Sync<'_>) -> Result<(), Error> {
    tx.lock_name(&format!("sync-{}-{}-{}", sync.workspace, sync.origin.number(), sync.name)).await
}

/// Whether a run of a sync is queued or running.
pub(crate) async fn is_busy(tx: &mut Tx, sync: Sync<'_>) -> Result<bool, Error> {
    let count: i64 = fetch!(scalar, tx, BUSY, Text(sync.workspace), sync.origin.number(), sync.name)?;
    Ok(count > 0)
}

/// Inserts a previewed run.
pub(crate) async fn insert(tx: &mut Tx, run: &Run) -> Result<(), Error> {
    execute!(
        tx,
        INSERT,
        Text(run.workspace),
        Text(run.id),
        &run.name,
        run.folder.map(Text),
        i64::from(run.policy.number()),
        run.prune,
        i64::from(run.state.number()),
        batches::number(run.phase),
        run.requester.kind.as_str(),
        &run.requester.id,
        to_column(run.total),
        to_column(run.would.created),
        to_column(run.would.updated),
        to_column(run.would.skipped),
        to_column(run.would.conflicts),
        to_column(run.documents),
        to_column(run.bytes),
        run.created_at,
        run.origin.number(),
        run.file_name.as_deref(),
        to_column(run.archive_bytes),
        to_column(run.object_bytes),
        &run.requester.name
    )
    .map(drop)
}

/// Queues a run, or its rollback.
pub(crate) async fn queue(tx: &mut Tx, run: &Run, phase: Phase, requester: &Requester) -> Result<(), Error> {
    let (workspace, id) = (Text(run.workspace), Text(run.id));
    let kind = requester.kind.as_str();
    execute!(tx, QUEUE, workspace, id, batches::number(phase), kind, &requester.id, &requester.name).map(drop)
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
    let (workspace, id) = (Text(run.workspace), Text(run.id));
    Ok(execute!(db.writer(), CLAIM, workspace, id, holder, until, now)? == 1)
}

/// Extends the lease; `false` if it was lost.
pub(crate) async fn renew(db: &Db, run: &Run, holder: &str, until: Timestamp) -> Result<bool, Error> {
    Ok(execute!(db.writer(), RENEW, Text(run.workspace), Text(run.id), holder, until)? == 1)
}

/// Whether a run was cancelled while its holder executes it.
pub(crate) async fn is_cancel_requested(db: &Db, run: &Run, holder: &str) -> Result<bool, Error> {
    let asked: Option<bool> =
        fetch!(optional_scalar, db, IS_CANCEL_REQUESTED, Text(run.workspace), Text(run.id), holder)?;
    Ok(asked == Some(true))
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
        Text(run.id),
        holder,
        i64::from(run.state.number()),
        batches::number(run.phase),
        to_column(counters.created),
        to_column(counters.updated),
        to_column(counters.skipped),
        to_column(counters.conflicts),
        to_column(counters.pruned),
        to_column(counters.processed),
        to_column(run.total),
        run.error.as_deref(),
        i64::from(run.tries),
        run.not_before,
        run.finished_at,
        run.rollback_until,
        lease_until,
        to_column(run.bytes)
    )
}

/// Cancels a run: at once when no worker has it, else its worker is requested to stop. A cancelled import can be rolled back until that
/// time.
pub(crate) async fn cancel(
    tx: &mut Tx,
    run: &Run,
    now: Timestamp,
    rollback_until: Timestamp,
) -> Result<(), Error> {
    let (workspace, id) = (Text(run.workspace), Text(run.id));
    if execute!(tx, CANCEL_IDLE, workspace, id, now, rollback_until)? == 0 {
        execute!(tx, REQUEST_CANCEL, workspace, id)?;
    }
    Ok(())
}

/// Expires the leases of all runs.
pub(crate) async fn expire_all_leases(db: &Db, now: Timestamp) -> Result<(), Error> {
    execute!(db.writer(), EXPIRE_ALL_LEASES, now).map(drop)
}

/// Removes a run after all else that refers to it.
pub(crate) async fn remove(tx: &mut Tx, workspace: WorkspaceId, id: SyncRunId) -> Result<(), Error> {
    execute!(tx, REMOVE, Text(workspace), Text(id)).map(drop)
}

/// Runs of all workspaces past their retention, the oldest first: previews from before the first time, ended ones from before the second.
pub(crate) async fn stale(
    db: &Db,
    previewed: Timestamp,
    over: Timestamp,
    limit: i64,
) -> Result<Vec<Run>, Error> {
    read(fetch!(all, db, STALE, previewed, over, limit)?)
}
