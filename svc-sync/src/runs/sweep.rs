//! Removes runs past their retention.

use std::time::Duration;

use cairn_chassis::clock::Timestamp;
use uuid::Uuid;

use crate::context::Context;
use crate::{Error, store, syncs};

/// Retention of previews that were never started, and of the texts or archive of a run that ended early.
const PREVIEW_RETENTION: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// An upload that began earlier than this was interrupted.
const UPLOAD_TIMEOUT: Duration = Duration::from_secs(60 * 60);
const RUN_RETENTION: Duration = Duration::from_secs(30 * 24 * 60 * 60);
const BATCH_SIZE: i64 = 100;

/// Removes what has expired; after an error, the next sweep continues.
pub(super) async fn sweep(context: &Context) {
    if let Err(error) = try_sweep(context).await {
        tracing::warn!(%error, "old sync runs cannot be removed now; trying again");
    }
}

async fn try_sweep(context: &Context) -> Result<(), Error> {
    let now = context.clock.now();
    let before = |kept: Duration| {
        let micros = i64::try_from(kept.as_micros()).unwrap_or(i64::MAX);
        Timestamp::from_micros(now.as_micros().saturating_sub(micros))
    };
    let cut = before(UPLOAD_TIMEOUT).as_micros() / 1_000;
    // Ids begin with the milliseconds of their creation (UUIDv7).
    let cut = Uuid::from_u128(u128::from(u64::try_from(cut).unwrap_or(0)) << 80);
    store::details::sweep_pieces(&context.db, cut.into(), before(PREVIEW_RETENTION)).await?;
    loop {
        let (previewed, over) = (before(PREVIEW_RETENTION), before(RUN_RETENTION));
        let stale = store::runs::stale(&context.db, previewed, over, BATCH_SIZE).await?;
        for found in &stale {
            let mut tx = context.db.begin_write().await?;
            // It may have been started meanwhile.
            let locked = store::runs::get_for_update(&mut tx, found.workspace, found.id).await?;
            if let Some(run) = locked.filter(|run| !run.state.is_busy() && run.state == found.state) {
                syncs::remove(&mut tx, &run).await?;
                tx.commit().await?;
            }
        }
        if stale.len() < usize::try_from(BATCH_SIZE).unwrap_or(usize::MAX) {
            return Ok(());
        }
    }
}
