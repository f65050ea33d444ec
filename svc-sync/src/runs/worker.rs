//! Executes one run, or its rollback.

use super::active::{ActiveRun, Halt};
use super::{import, sync};
use crate::model::{Origin, Phase};

/// Does the remaining work of a run.
pub(super) async fn work(active: &mut ActiveRun<'_>) -> Result<(), Halt> {
    let session = active.open().await?;
    active.resume(&session).await?;
    match (active.run.phase, active.run.origin) {
        (Phase::Sync, Origin::Directory) => sync::sync(active, &session).await,
        (Phase::Rollback, Origin::Directory) => active.roll_back(&session).await,
        (Phase::Sync, Origin::Archive(provider)) => import::import(active, &session, provider).await,
        (Phase::Rollback, Origin::Archive(_)) => import::roll_back(active, &session).await,
    }
}
