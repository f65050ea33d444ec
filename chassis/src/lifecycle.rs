//! Deleted workspaces: svc-auth notifies every service, and each service rejects their identities and purges their data.
//!
//! A service stores the states in a table of its own, so that they survive a restart, and caches them in memory, so that a
//! request costs no query. States carry a revision: a stale or repeated notification changes nothing.

mod rows;
mod rpc;

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use cairn_proto::ids::WorkspaceId;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

pub use self::rows::Rows;
pub use self::rpc::{Purge, Rpc};
use crate::clock::{Clock, Timestamp};
use crate::sql::{self, Db, Migration, Text};
use crate::status::Problem;
use crate::{execute, fetch, statements};

/// The full name of the gRPC service.
pub const SERVICE_NAME: &str = cairn_proto::lifecycle::v1::lifecycle_service_server::SERVICE_NAME;

/// The table, for a service's list of migrations.
pub const MIGRATION: Migration = Migration {
    name: "0001_workspace_states",
    sqlite: include_str!("lifecycle/migrations/sqlite/0001_workspace_states.sql"),
    postgres: include_str!("lifecycle/migrations/postgres/0001_workspace_states.sql"),
};

/// How often the table is polled for states that other processes have stored.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// How often expired states are deleted.
const EXPIRE_INTERVAL: Duration = Duration::from_secs(60 * 60);
/// How long a purged or restored workspace is remembered: longer than any identity or message from before can live.
const RETENTION: Duration = Duration::from_secs(24 * 60 * 60);

statements! {
    /// All statements, for [`sql::prepare_all`].
    pub fn statements;

    const SET: &str = "INSERT INTO workspace_states (workspace_id, revision, suspended, purged, changed_at) \
         VALUES ($1, $2, $3, FALSE, $4) ON CONFLICT (workspace_id) DO UPDATE SET revision = excluded.revision, \
         suspended = excluded.suspended, purged = FALSE, changed_at = excluded.changed_at \
         WHERE workspace_states.revision < excluded.revision";

    const MARK_PURGED: &str =
        "UPDATE workspace_states SET purged = TRUE, changed_at = $2 WHERE workspace_id = $1 AND suspended";

    const LIST: &str = "SELECT workspace_id, revision FROM workspace_states WHERE suspended";

    const IS_SUSPENDED: &str = "SELECT COUNT(*) FROM workspace_states WHERE workspace_id = $1 AND suspended";

    const DELETE_EXPIRED: &str = "DELETE FROM workspace_states WHERE changed_at < $1 AND (purged OR NOT suspended)";
}

/// The SQL condition that a workspace, given as a column (`"source_runs.workspace_id"`), is not suspended. It is for queries
/// that claim work of all workspaces: if suspended ones were filtered out afterwards, they could fill whole pages.
#[macro_export]
macro_rules! not_suspended {
    ($workspace:literal) => {
        concat!(
            "NOT EXISTS (SELECT 1 FROM workspace_states w WHERE w.workspace_id = ",
            $workspace,
            " AND w.suspended)"
        )
    };
}

/// The suspended workspaces that this service knows of; cheap to clone.
#[derive(Debug, Clone)]
pub struct Suspensions(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// Absent for a service that stores nothing. Its states are lost at a restart, which is harmless: it has no data of the
    /// workspace to return.
    db: Option<Db>,
    clock: Arc<dyn Clock>,
    /// A fast hash is safe here: the keys are ids of our own.
    states: RwLock<foldhash::HashMap<WorkspaceId, State>>,
    /// Held from the read of the table until the cache is updated: a slower reader must not restore stale states.
    refreshing: tokio::sync::Mutex<()>,
}

#[derive(Debug, Clone, Copy)]
struct State {
    revision: u64,
    is_suspended: bool,
}

impl Suspensions {
    /// The suspensions of that storage, whose migrations include [`MIGRATION`].
    ///
    /// # Errors
    /// When the database fails.
    pub async fn open(db: Db, clock: Arc<dyn Clock>) -> Result<Self, sql::Error> {
        let suspensions = Self::of(Some(db), clock);
        suspensions.refresh().await?;
        Ok(suspensions)
    }

    /// For a service without a storage.
    pub fn in_memory(clock: Arc<dyn Clock>) -> Self {
        Self::of(None, clock)
    }

    fn of(db: Option<Db>, clock: Arc<dyn Clock>) -> Self {
        let (states, refreshing) = (RwLock::default(), tokio::sync::Mutex::default());
        Self(Arc::new(Inner { db, clock, states, refreshing }))
    }

    /// Whether the workspace is suspended, from the cache: a state that another process stored takes half a second to arrive.
    pub fn is_suspended(&self, workspace: WorkspaceId) -> bool {
        let states = self.0.states.read().unwrap_or_else(PoisonError::into_inner);
        states.get(&workspace).is_some_and(|state| state.is_suspended)
    }

    /// The same, read from the database: for rare operations that must not use a stale state.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn is_suspended_now(&self, workspace: WorkspaceId) -> Result<bool, sql::Error> {
        let Some(db) = &self.0.db else { return Ok(self.is_suspended(workspace)) };
        let count: i64 = fetch!(scalar, db, IS_SUSPENDED, Text(workspace))?;
        Ok(count > 0)
    }

    /// Checks that the workspace of an identity is not suspended.
    ///
    /// # Errors
    /// UNAUTHORIZED, as svc-auth responds to a request for a new identity of that workspace.
    pub(crate) fn check(&self, workspace: WorkspaceId) -> Result<(), Problem> {
        if !self.is_suspended(workspace) {
            return Ok(());
        }
        Err(Problem::unauthorized(
            "the workspace of this identity was deleted: its owner can restore it, or use another workspace's token",
        ))
    }

    /// Stores the state of a workspace as of that revision, unless a newer one is stored.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn set(
        &self,
        workspace: WorkspaceId,
        is_suspended: bool,
        revision: u64,
    ) -> Result<(), sql::Error> {
        let Some(db) = &self.0.db else {
            self.set_in_memory(workspace, State { revision, is_suspended });
            return Ok(());
        };
        let now = self.0.clock.now();
        execute!(
            db.writer(),
            SET,
            Text(workspace),
            i64::try_from(revision).unwrap_or(i64::MAX),
            is_suspended,
            now
        )?;
        self.refresh().await
    }

    fn set_in_memory(&self, workspace: WorkspaceId, state: State) {
        let mut states = self.0.states.write().unwrap_or_else(PoisonError::into_inner);
        let newest = states.entry(workspace).or_insert(state);
        if newest.revision < state.revision {
            *newest = state;
        }
    }

    /// Records that a workspace is completely purged here. Its identities are rejected until none of them can be valid.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn mark_purged(&self, workspace: WorkspaceId) -> Result<(), sql::Error> {
        let Some(db) = &self.0.db else { return Ok(()) };
        let now = self.0.clock.now();
        execute!(db.writer(), MARK_PURGED, Text(workspace), now).map(drop)
    }

    /// Refreshes the cache from states that other processes store, and deletes expired states, until shutdown.
    pub async fn run(&self, shutdown: CancellationToken) {
        let Some(db) = &self.0.db else { return };
        let (mut poll, mut expire) = (interval(POLL_INTERVAL), interval(EXPIRE_INTERVAL));
        poll.set_missed_tick_behavior(MissedTickBehavior::Delay);
        expire.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let result = tokio::select! {
                () = shutdown.cancelled() => return,
                _ = poll.tick(), if db.is_shared() => self.refresh().await,
                _ = expire.tick() => self.delete_expired(db).await,
            };
            if let Err(error) = result {
                tracing::warn!(%error, "the states of workspaces cannot be read now; trying again");
            }
        }
    }

    async fn delete_expired(&self, db: &Db) -> Result<(), sql::Error> {
        let retention = i64::try_from(RETENTION.as_micros()).unwrap_or(i64::MAX);
        let before = Timestamp::from_micros(self.0.clock.now().as_micros().saturating_sub(retention));
        execute!(db.writer(), DELETE_EXPIRED, before)?;
        self.refresh().await
    }

    async fn refresh(&self) -> Result<(), sql::Error> {
        let Some(db) = &self.0.db else { return Ok(()) };
        let _refreshing = self.0.refreshing.lock().await;
        let rows: Vec<(Text<WorkspaceId>, i64)> = fetch!(all, db, LIST)?;
        let read = |(workspace, revision): (Text<WorkspaceId>, i64)| {
            (workspace.0, State { revision: u64::try_from(revision).unwrap_or_default(), is_suspended: true })
        };
        *self.0.states.write().unwrap_or_else(PoisonError::into_inner) = rows.into_iter().map(read).collect();
        Ok(())
    }
}

#[cfg(test)]
mod tests;
