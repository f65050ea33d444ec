//! Forgets runs that nobody will ask for.

use std::time::Duration;

use cairn_chassis::clock::Timestamp;
use uuid::Uuid;

use crate::context::Context;
use crate::{Error, store, syncs};

/// A preview that nobody started holds its texts or its archive for so long, and so does a run that ended early.
const PREVIEWS_KEPT: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// An upload that began longer ago was cut.
const UPLOADS_TAKE: Duration = Duration::from_secs(60 * 60);
const RUNS_KEPT: Duration = Duration::from_secs(30 * 24 * 60 * 60);
const AT_ONCE: i64 = 100;

/// Removes what is old; the next time goes on where this one stopped.
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
    let cut = before(UPLOADS_TAKE).as_micros() / 1_000;
    // Ids begin with the milliseconds of their making.
    let cut = Uuid::from_u128(u128::from(u64::try_from(cut).unwrap_or(0)) << 80);
    store::details::sweep_pieces(&context.db, cut.into(), before(PREVIEWS_KEPT)).await?;
    loop {
        let (previewed, over) = (before(PREVIEWS_KEPT), before(RUNS_KEPT));
        let stale = store::runs::stale(&context.db, previewed, over, AT_ONCE).await?;
        for found in &stale {
            let mut tx = context.db.begin_write().await?;
            // Somebody may have started it meanwhile.
            let held = store::runs::hold(&mut tx, found.workspace, found.id).await?;
            if let Some(run) = held.filter(|run| !run.state.is_busy() && run.state == found.state) {
                syncs::remove(&mut tx, &run).await?;
                tx.commit().await?;
            }
        }
        if stale.len() < usize::try_from(AT_ONCE).unwrap_or(usize::MAX) {
            return Ok(());
        }
    }
}
