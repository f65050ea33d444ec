//! Deletes what interrupted uploads and deletions left behind. Runs in the process that holds the lease.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use cairn_chassis::clock::Timestamp;
use cairn_chassis::jobs::Lease;
use cairn_chassis::sql::Db;
use cairn_proto::ids::{ObjectId, WorkspaceId};
use futures::stream::{StreamExt as _, TryStreamExt as _};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::Assets;
use super::objects::ListedObject;
use crate::{Error, store};

/// A younger object may belong to an upload in progress: no upload takes that long.
pub(super) const GRACE: Duration = Duration::from_secs(24 * 60 * 60);
const LEASE: &str = "asset-sweep";
/// Longer than one step of a sweep takes.
const TERM: Duration = Duration::from_secs(5 * 60);
const PERIOD: Duration = Duration::from_secs(12 * 60 * 60);
const OBJECT_BATCH: usize = 500;

/// Sweeps at the start and twice a day, until the shutdown.
pub(crate) async fn run(assets: &Assets, shutdown: &CancellationToken) {
    let context = &assets.context;
    let lease = Lease::new(context.db.clone(), Arc::clone(&context.clock), &context.ids, LEASE, TERM);
    let mut ticks = interval(PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while !shutdown.is_cancelled() {
        ticks.tick().await;
        match assets.sweep(&lease).await {
            Ok(0) => {}
            Ok(objects) => tracing::info!(objects, "removed what cut uploads of assets left behind"),
            Err(error) => {
                tracing::warn!(%error, "cut uploads of assets are not removed yet; the next try is in hours")
            }
        }
    }
}

impl Assets {
    /// One sweep, while the lease is held; returns the number of deleted objects.
    pub(crate) async fn sweep(&self, lease: &Lease) -> Result<usize, Error> {
        if !lease.claim().await? {
            return Ok(0);
        }
        let before = upload_cutoff(self.context.clock.now());
        let mut removed = self.store.remove_interrupted(before).await?;
        let mut chunks = self.store.list().try_chunks(OBJECT_BATCH);
        while let Some(chunk) = chunks.next().await {
            if !lease.claim().await? {
                return Ok(removed);
            }
            let chunk = chunk.map_err(|cut| cut.1)?;
            for lost in without_row(&self.context.db, chunk, before).await? {
                self.store.delete(lost.workspace, lost.object).await?;
                removed += 1;
            }
        }
        lease.release().await?;
        Ok(removed)
    }
}

/// Whatever was written before this time belongs to no upload in progress.
pub(super) fn upload_cutoff(now: Timestamp) -> Timestamp {
    let grace = i64::try_from(GRACE.as_micros()).unwrap_or(i64::MAX);
    Timestamp::from_micros(now.as_micros().saturating_sub(grace))
}

/// Those of the objects written before `before` that have no row.
pub(super) async fn without_row(
    db: &Db,
    objects: Vec<ListedObject>,
    before: Timestamp,
) -> Result<Vec<ListedObject>, Error> {
    let mut old: HashMap<WorkspaceId, Vec<ListedObject>> = HashMap::new();
    for object in objects.into_iter().filter(|object| object.written_at < before) {
        old.entry(object.workspace).or_default().push(object);
    }
    let mut lost = Vec::new();
    for (workspace, objects) in old {
        let ids: Vec<ObjectId> = objects.iter().map(|object| object.object).collect();
        let known = store::assets::existing_objects(db, workspace, &ids).await?;
        lost.extend(objects.into_iter().filter(|object| !known.contains(&object.object)));
    }
    Ok(lost)
}
