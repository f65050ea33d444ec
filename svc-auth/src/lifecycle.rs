//! Workspaces that are deleted: suspended everywhere at once, taken back by their owner, removed for good after a while.
//!
//! What is decided stands in the tables together with a notice for each service, so it is told even if this process ends
//! between the two. A notice is told at once and, until the service has taken it in, again and again. A service may hear
//! it twice or late: it carries the revision of the workspace's state.

mod finish;
mod tell;

use std::sync::Arc;
use std::time::Duration;

use cairn_chassis::ambient::Ambient;
use cairn_chassis::channel::ServiceChannel;
use cairn_chassis::clock::Timestamp;
use cairn_chassis::sql::{Db, Tx};
use cairn_proto::ids::WorkspaceId;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

pub(crate) use self::tell::Services;
use crate::error::Error;
use crate::keys::Keys;
use crate::model::lifecycle::{Action, Notice};
use crate::store;

/// How long an owner may take a workspace back, as long as nothing else is configured.
pub const DEFAULT_GRACE: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// How often it is looked for what is due.
const INTERVAL: Duration = Duration::from_secs(1);
/// Workspaces that one look takes on.
const AT_ONCE: i64 = 100;
/// Removals beside each other: more would only keep the disks from other work.
const REMOVALS_AT_ONCE: i64 = 2;

/// The services that keep something of workspaces, in the order in which they forget it: what retrieval has indexed it
/// would index again while content still has it.
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

    /// Learns where the services are, each by its name; the first time counts.
    pub(crate) fn connect(&self, services: Vec<(&'static str, ServiceChannel)>) {
        self.services.connect(services);
    }

    /// Closes a workspace within the transaction: it is to go when the time is over. Who commits, tells.
    pub(crate) async fn suspend(&self, tx: &mut Tx, workspace: WorkspaceId) -> Result<(), Error> {
        let now = self.ambient.clock.now();
        let purge_at = now.plus(self.grace);
        if let Some(revision) = store::lifecycle::mark_deleted(tx, workspace, now, purge_at).await? {
            self.note(tx, workspace, Action::Suspend, revision).await?;
        }
        Ok(())
    }

    /// Opens a workspace again within the transaction; whether it was deleted and can still be had.
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

    /// Tells every service now what was committed of the workspace. What cannot be told now is told by [`Self::run`].
    pub(crate) async fn tell_now(&self, workspace: WorkspaceId) {
        let told = match store::lifecycle::states_of(&self.db, workspace).await {
            Ok(notices) => self.tell_all(notices).await,
            Err(error) => Err(error.into()),
        };
        if let Err(error) = told {
            tracing::warn!(%error, %workspace, "the services do not know of a workspace's new state yet");
        }
        self.changed.notify_one();
    }

    /// Tells, again where it was in vain, and removes what is due, until the shutdown. Replicas may all do it: every
    /// step may be done twice.
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
                looked = self.look() => looked,
            };
            if let Err(error) = looked {
                tracing::warn!(%error, "deleted workspaces cannot be looked after now; trying again");
            }
        }
    }

    /// One look at what is due.
    pub(crate) async fn look(&self) -> Result<(), Error> {
        self.adopt().await?;
        self.begin_purges().await?;
        let now = self.ambient.clock.now();
        self.tell_all(store::lifecycle::states_due(&self.db, now, AT_ONCE).await?).await?;
        self.tell_all(store::lifecycle::purges_due(&self.db, now, REMOVALS_AT_ONCE).await?).await?;
        self.finish_purges().await
    }

    /// Workspaces that an earlier version deleted were told to nobody: their time begins now.
    async fn adopt(&self) -> Result<(), Error> {
        for workspace in store::lifecycle::deleted_without_end(&self.db, AT_ONCE).await? {
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
        for workspace in store::lifecycle::ended(&self.db, now, AT_ONCE).await? {
            let mut tx = self.db.begin_write().await?;
            // From here on nobody can take it back.
            if let Some(revision) = store::lifecycle::begin_purge(&mut tx, workspace, now).await? {
                self.note(&mut tx, workspace, Action::Purge, revision).await?;
                tracing::info!(%workspace, "a deleted workspace is removed for good");
            }
            tx.commit().await?;
        }
        Ok(())
    }
}
