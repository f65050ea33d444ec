//! Forgets runs that nobody will ask for.

use std::time::Duration;

use cairn_chassis::clock::Timestamp;

use crate::context::Context;
use crate::{Error, store, syncs};

/// A preview that nobody started holds its texts for so long.
const PREVIEWS_KEPT: Duration = Duration::from_secs(7 * 24 * 60 * 60);
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
