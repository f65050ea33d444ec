//! Forgets questions that are too old or too many: of the processes on one storage, the one that holds the lease.

use std::sync::Arc;
use std::time::Duration;

use cairn_chassis::ambient::Ambient;
use cairn_chassis::clock::{Clock, Timestamp};
use cairn_chassis::jobs::{Lease, Schedule};
use cairn_chassis::sql::{Db, Error};
use cairn_proto::ids::WorkspaceId;
use tokio_util::sync::CancellationToken;

use super::{DELETED_AT_ONCE, MAX_KEPT, before};
use crate::store;

const LEASE: &str = "questions-sweep";
/// Longer than a sweep takes.
const TERM: Duration = Duration::from_secs(10 * 60);
const PERIOD: Duration = Duration::from_secs(60 * 60);
/// Workspaces that one look takes on.
const LOGS_AT_ONCE: i64 = 100;

/// The lease of one process.
pub(super) fn lease(db: &Db, ambient: &Ambient) -> Lease {
    Lease::new(db.clone(), Arc::clone(&ambient.clock), &ambient.ids, LEASE, TERM)
}

/// Sweeps at the start and every hour, until the shutdown.
pub(super) async fn run(db: &Db, lease: &Lease, clock: &Arc<dyn Clock>, shutdown: &CancellationToken) {
    let mut schedule = Schedule::every(PERIOD);
    while schedule.next(shutdown).await {
        match sweep(db, lease, clock.now()).await {
            Ok(0) => {}
            Ok(rows) => tracing::info!(rows, "forgot questions that are no longer kept"),
            Err(error) => {
                tracing::warn!(%error, "old questions are still there; the next try is in an hour")
            }
        }
    }
}

/// One sweep, if the lease can be had; answers how many questions were forgotten.
pub(super) async fn sweep(db: &Db, lease: &Lease, now: Timestamp) -> Result<u64, Error> {
    if !lease.claim().await? {
        return Ok(0);
    }
    let (mut forgotten, mut after) = (0, None);
    loop {
        let logs = store::questions::list_logs(db, after, LOGS_AT_ONCE).await?;
        for (workspace, days) in &logs {
            forgotten += delete_old(db, *workspace, before(now, *days)).await?;
            forgotten += delete_beyond(db, *workspace).await?;
        }
        match logs.last() {
            Some((last, _)) => after = Some(*last),
            None => break,
        }
    }
    lease.release().await?;
    Ok(forgotten)
}

/// Deletes the questions that were asked before then, some at a time; how many.
pub(super) async fn delete_old(db: &Db, workspace: WorkspaceId, before: Timestamp) -> Result<u64, Error> {
    let mut deleted = 0;
    loop {
        let mut tx = db.begin_write().await?;
        let some = store::questions::delete_old(&mut tx, workspace, before, DELETED_AT_ONCE).await?;
        tx.commit().await?;
        deleted += some;
        if some < DELETED_AT_ONCE.unsigned_abs() {
            return Ok(deleted);
        }
    }
}

async fn delete_beyond(db: &Db, workspace: WorkspaceId) -> Result<u64, Error> {
    let mut deleted = 0;
    loop {
        let mut tx = db.begin_write().await?;
        let some = store::questions::delete_beyond(&mut tx, workspace, MAX_KEPT, DELETED_AT_ONCE).await?;
        tx.commit().await?;
        deleted += some;
        if some < DELETED_AT_ONCE.unsigned_abs() {
            return Ok(deleted);
        }
    }
}
