//! Deletes old days: one process at a time, under a lease.

use std::sync::Arc;
use std::time::Duration;

use cairn_chassis::ambient::Ambient;
use cairn_chassis::clock::Clock;
use cairn_chassis::jobs::{Lease, Schedule};
use cairn_chassis::sql::{Db, Error};
use tokio_util::sync::CancellationToken;

use super::day::Day;
use super::report::MAX_DAYS;
use crate::store;

const LEASE: &str = "analytics-sweep";
/// Longer than a sweep takes.
const TERM: Duration = Duration::from_secs(10 * 60);
const PERIOD: Duration = Duration::from_secs(60 * 60);
/// Days of retention: as many as can be queried, and two for clock skew.
const KEPT_DAYS: u32 = MAX_DAYS + 2;
/// Documents of a workspace that are retained of a past day.
const KEPT_DOCUMENTS: i64 = 200;
/// Documents of a workspace that are retained of the current day: one that is found seldom now may be found often later.
const KEPT_DOCUMENTS_TODAY: i64 = 5_000;
/// Past days that are trimmed again, because of late writes.
const LATE_DAYS: u32 = 3;

/// The lease of one process.
pub(super) fn lease(db: &Db, ambient: &Ambient) -> Lease {
    Lease::new(db.clone(), Arc::clone(&ambient.clock), &ambient.ids, LEASE, TERM)
}

/// Sweeps at the start and every hour, until the shutdown.
pub(super) async fn run(db: &Db, lease: &Lease, clock: &Arc<dyn Clock>, shutdown: &CancellationToken) {
    let mut schedule = Schedule::every(PERIOD);
    while schedule.next(shutdown).await {
        match sweep(db, lease, Day::of(clock.now())).await {
            Ok(0) => {}
            Ok(rows) => tracing::info!(rows, "forgot analytics of retrieval that are too old"),
            Err(error) => {
                tracing::warn!(%error, "old analytics of retrieval are kept for now; the next try is in an hour")
            }
        }
    }
}

/// One sweep, if the lease is available; returns the number of deleted rows.
pub(super) async fn sweep(db: &Db, lease: &Lease, today: Day) -> Result<u64, Error> {
    if !lease.claim().await? {
        return Ok(0);
    }
    let mut forgotten = forget(db, today.minus(KEPT_DAYS)).await?;
    for day in today.minus(LATE_DAYS).to(today) {
        let keep = if day == today { KEPT_DOCUMENTS_TODAY } else { KEPT_DOCUMENTS };
        let mut tx = db.begin_write().await?;
        forgotten += store::documents::trim(&mut tx, day, keep).await?;
        tx.commit().await?;
    }
    lease.release().await?;
    Ok(forgotten)
}

async fn forget(db: &Db, before: Day) -> Result<u64, Error> {
    let mut tx = db.begin_write().await?;
    let mut forgotten = store::counts::delete_before(&mut tx, before).await?;
    forgotten += store::latencies::delete_before(&mut tx, before).await?;
    forgotten += store::documents::delete_before(&mut tx, before).await?;
    tx.commit().await?;
    Ok(forgotten)
}
