//! Syncs again whenever a file changes.

use std::time::Duration;

use super::{Ended, Sync};

/// The polling interval: scanning 5 000 files takes some milliseconds, and works on every file system.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Syncs until interrupted. Only the first sync asks for confirmation; `--watch` implies it for the others.
pub(super) async fn run(sync: &Sync) -> anyhow::Result<()> {
    let mut synced = sync.directory.stamps()?;
    tolerant(sync.once(false).await)?;
    loop {
        let seen = sync.directory.stamps()?;
        if seen == synced {
            tokio::select! {
                () = tokio::time::sleep(POLL_INTERVAL) => continue,
                _ = tokio::signal::ctrl_c() => return Ok(()),
            }
        }
        // Debounce: several files may be saved at once.
        tokio::time::sleep(POLL_INTERVAL).await;
        if sync.directory.stamps()? != seen {
            continue;
        }
        synced = seen;
        tolerant(sync.once(true).await)?;
    }
}

/// Conflicts have been reported and do not end the watch.
fn tolerant(ended: anyhow::Result<()>) -> anyhow::Result<()> {
    match ended {
        Err(error) if error.downcast_ref::<Ended>().is_some_and(Ended::is_left_alone) => Ok(()),
        other => other,
    }
}
