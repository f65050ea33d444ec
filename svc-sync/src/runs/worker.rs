//! Carries out one run, or its rollback.

use super::held::{Halt, Held};
use super::{import, sync};
use crate::model::{Origin, Phase};

/// Does what is left of a run.
pub(super) async fn work(held: &mut Held<'_>) -> Result<(), Halt> {
    let opened = held.open().await?;
    held.take_up(&opened).await?;
    match (held.run.phase, held.run.origin) {
        (Phase::Sync, Origin::Directory) => sync::sync(held, &opened).await,
        (Phase::Rollback, Origin::Directory) => held.roll_back(&opened).await,
        (Phase::Sync, Origin::Archive(provider)) => import::import(held, &opened, provider).await,
        (Phase::Rollback, Origin::Archive(_)) => import::roll_back(held, &opened).await,
    }
}
