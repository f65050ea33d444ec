//! The lifecycle of deleted workspaces: suspended everywhere, restorable by their owner, purged after a grace period.
//!
//! A decision is committed together with a notice for each service (an outbox), so that it is delivered even if this
//! process dies. A notice is delivered immediately and then retried until the service has acknowledged it. A service
//! may receive it twice or late: it carries the revision of the workspace's state.

mod finish;
mod notify;

use std::sync::Arc;
use std::time::Duration;

use cairn_chassis::ambient::Ambient;
use cairn_chassis::channel::ServiceChannel;
use cairn_chassis::clock::Timestamp;
use cairn_chassis::sql::{Db, Tx};
use cairn_proto::ids::WorkspaceId;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

pub(crate) use self::notify::Services;
use crate::error::Error;
use crate::keys::Keys;
use crate::model::lifecycle::{Action, Notice};
use crate::store;

/// How long an owner may restore a workspace by default.
pub const DEFAULT_GRACE: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// How often due work is polled.
const INTERVAL: Duration = Duration::from_secs(1);
/// Workspaces that one poll handles.
const BATCH_SIZE: i64 = 100;
/// Concurrent purges: more would only compete for the disk.
const CONCURRENT_PURGES: i64 = 2;

/// The services that store data of workspaces, in the order in which they are purged: retrieval would index content
/// again that still exists.
pub(crate) const SERVICES: [&str; 4] = ["content", "ingest", "sync", "retrieval"];

/// The rules of deletion.
#[derive(Debug)]
pub(crate) struct Lifecycle {
    db: Db,
    ambient: Ambient,
    keys: Arc<Keys>,
    services: Services,
    grace: Duration,
    changed: Notify,
}

impl Lifecycle {
    pub(crate) fn new(db: Db, ambient: Ambient, keys: Arc<Keys>, grace: Duration) -> Self {
        Self { db, ambient, keys, services: Services::default(), grace, changed: Notify::new() }
    }

    /// Connects the services, by name; only the first call counts.
    pub(crate) fn connect(&self, services: Vec<(&'static str, ServiceChannel)>) {
        self.services.connect(services);
    }

    /// Suspends a workspace within the transaction and schedules its purge. The caller delivers the notices after the
    /// commit.
    pub(crate) async fn suspend(&self, tx: &mut Tx, workspace: WorkspaceId) -> Result<(), Error> {
        let now = self.ambient.clock.now();
        let purge_at = now.plus(self.grace);
        if let Some(revision) = store::lifecycle::mark_deleted(tx, workspace, now, purge_at).await? {
            self.note(tx, workspace, Action::Suspend, revision).await?;
        }
        Ok(())
    }

    /// Restores a workspace within the transaction; returns whether it was deleted and still restorable.
    pub(crate) async fn restore(&self, tx: &mut Tx, workspace: WorkspaceId) -> Result<bool, Error> {
        let Some(revision) = store::lifecycle::mark_restored(tx, workspace).await? else {
            return Ok(false);
        };
        self.note(tx, workspace, Action::Restore, revision).await?;
        Ok(true)
    }

    async fn note(
        &self,
        tx: &mut Tx,
        workspace: WorkspaceId,
        action: Action,
        revision: u64,
    ) -> Result<(), Error> {
        let now = self.ambient.clock.now();
        for (place, service) in (0..).zip(SERVICES) {
            let notice = Notice { workspace, service: service.to_owned(), action, revision, attempts: 0 };
            store::lifecycle::note(tx, &notice, place, now).await?;
        }
        Ok(())
    }

    /// Delivers the committed notices of the workspace. Those that fail are retried by [`Self::run`].
    pub(crate) async fn notify_now(&self, workspace: WorkspaceId) {
        let told = match store::lifecycle::states_of(&self.db, workspace).await {
            Ok(notices) => self.notify_all(notices).await,
            Err(error) => Err(error.into()),
        };
        if let Err(error) = told {
            tracing::warn!(%error, %workspace, "the services do not know of a workspace's new state yet");
        }
        self.changed.notify_one();
    }

    /// Delivers notices, with retries, and purges what is due, until shutdown. Replicas may do this concurrently: every
    /// step is idempotent.
    pub(crate) async fn run(&self, shutdown: CancellationToken) {
        let mut ticks = tokio::time::interval(INTERVAL);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                _ = ticks.tick() => {}
                () = self.changed.notified() => {}
            }
            let looked = tokio::select! {
                () = shutdown.cancelled() => return,
                looked = self.poll() => looked,
            };
            if let Err(error) = looked {
                tracing::warn!(%error, "deleted workspaces cannot be looked after now; trying again");
            }
        }
    }

    /// Handles what is due.
    pub(crate) async fn poll(&self) -> Result<(), Error> {
        self.adopt().await?;
        self.begin_purges().await?;
        let now = self.ambient.clock.now();
        self.notify_all(store::lifecycle::states_due(&self.db, now, BATCH_SIZE).await?).await?;
        self.notify_all(store::lifecycle::purges_due(&self.db, now, CONCURRENT_PURGES).await?).await?;
        self.finish_purges().await
    }

    /// Workspaces that an earlier version deleted have no notices: their grace period begins now.
    async fn adopt(&self) -> Result<(), Error> {
        for workspace in store::lifecycle::deleted_without_end(&self.db, BATCH_SIZE).await? {
            let mut tx = self.db.begin_write().await?;
            let purge_at = self.ambient.clock.now().plus(self.grace);
            if let Some(revision) = store::lifecycle::set_end(&mut tx, workspace, purge_at).await? {
                self.note(&mut tx, workspace, Action::Suspend, revision).await?;
            }
            tx.commit().await?;
        }
        Ok(())
    }

    async fn begin_purges(&self) -> Result<(), Error> {
        let now: Timestamp = self.ambient.clock.now();
        for workspace in store::lifecycle::ended(&self.db, now, BATCH_SIZE).await? {
            let mut tx = self.db.begin_write().await?;
            // From here on it cannot be restored.
            if let Some(revision) = store::lifecycle::begin_purge(&mut tx, workspace, now).await? {
                self.note(&mut tx, workspace, Action::Purge, revision).await?;
                tracing::info!(%workspace, "a deleted workspace is removed for good");
            }
            tx.commit().await?;
        }
        Ok(())
    }
}
