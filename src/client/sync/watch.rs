//! Syncing again whenever a file changes.

use std::time::Duration;

use super::{Ended, Sync};

/// Between two looks at the directory: a look at 5 000 files takes some milliseconds, and works on every file system.
const LOOK: Duration = Duration::from_secs(1);

/// Syncs until somebody ends it. The first sync asks; those that follow were asked for by `--watch`.
pub(super) async fn run(sync: &Sync) -> anyhow::Result<()> {
    let mut synced = sync.directory.stamps()?;
    tolerant(sync.once(false).await)?;
    loop {
        let seen = sync.directory.stamps()?;
        if seen == synced {
            tokio::select! {
                () = tokio::time::sleep(LOOK) => continue,
                _ = tokio::signal::ctrl_c() => return Ok(()),
            }
        }
        // Whoever saves several files has time to.
        tokio::time::sleep(LOOK).await;
        if sync.directory.stamps()? != seen {
            continue;
        }
        synced = seen;
        tolerant(sync.once(true).await)?;
    }
}

/// What a sync left alone has been told, and ends no watch.
fn tolerant(ended: anyhow::Result<()>) -> anyhow::Result<()> {
    match ended {
        Err(error) if error.downcast_ref::<Ended>().is_some_and(Ended::is_left_alone) => Ok(()),
        other => other,
    }
}
