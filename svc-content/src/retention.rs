//! Deletes expired items from trash. Runs in the process that holds the lease.

use std::sync::Arc;
use std::time::Duration;

use cairn_chassis::jobs::Lease;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::Error;
use crate::context::Context;
use crate::trash::Trash;

const LEASE: &str = "trash-retention";
/// Longer than one step of a sweep takes.
const TERM: Duration = Duration::from_secs(5 * 60);
const PERIOD: Duration = Duration::from_secs(60 * 60);

/// Sweeps at the start and every hour, until the shutdown; returns at once when there is no retention.
pub(crate) async fn run(trash: &Trash, context: &Context, shutdown: &CancellationToken) {
    if !trash.has_retention() {
        return;
    }
    let lease = Lease::new(context.db.clone(), Arc::clone(&context.clock), &context.ids, LEASE, TERM);
    let mut ticks = interval(PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while !shutdown.is_cancelled() {
        ticks.tick().await;
        match sweep(trash, &lease).await {
            Ok(0) => {}
            Ok(deletions) => tracing::info!(deletions, "removed from trash for good what was too old"),
            Err(error) => tracing::warn!(%error, "the trash is not emptied yet; the next try is in an hour"),
        }
    }
}

/// One sweep, if the lease is free; returns the number of expired deletions.
pub(crate) async fn sweep(trash: &Trash, lease: &Lease) -> Result<usize, Error> {
    let mut removed = 0;
    while lease.claim().await? {
        match trash.sweep().await? {
            0 => {
                lease.release().await?;
                break;
            }
            some => removed += some,
        }
    }
    Ok(removed)
}
