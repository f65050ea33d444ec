//! Workspaces that were deleted: svc-auth tells every service, and each service refuses and forgets them by itself.
//!
//! A service keeps the states that it was told of in a table of its own, so that a restart forgets none, and in memory,
//! so that a request costs no query. A state has a revision: what comes late or twice changes nothing.

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

/// The table, to stand among a service's migrations.
pub const MIGRATION: Migration = Migration {
    name: "0001_workspace_states",
    sqlite: include_str!("lifecycle/migrations/sqlite/0001_workspace_states.sql"),
    postgres: include_str!("lifecycle/migrations/postgres/0001_workspace_states.sql"),
};

/// How often a process looks for what another one was told.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// How often what is over is forgotten.
const FORGET_INTERVAL: Duration = Duration::from_secs(60 * 60);
/// What is over is remembered for this long, which is longer than any identity or message of its time can live.
const MEMORY: Duration = Duration::from_secs(24 * 60 * 60);

statements! {
    /// Every statement, for [`sql::prepare_all`].
    pub fn statements;

    const SET: &str = "INSERT INTO workspace_states (workspace_id, revision, suspended, purged, changed_at) \
         VALUES ($1, $2, $3, FALSE, $4) ON CONFLICT (workspace_id) DO UPDATE SET revision = excluded.revision, \
         suspended = excluded.suspended, purged = FALSE, changed_at = excluded.changed_at \
         WHERE workspace_states.revision < excluded.revision";

    const MARK_PURGED: &str =
        "UPDATE workspace_states SET purged = TRUE, changed_at = $2 WHERE workspace_id = $1 AND suspended";

    const LIST: &str = "SELECT workspace_id, revision FROM workspace_states WHERE suspended";

    const IS_SUSPENDED: &str = "SELECT COUNT(*) FROM workspace_states WHERE workspace_id = $1 AND suspended";

    const FORGET: &str = "DELETE FROM workspace_states WHERE changed_at < $1 AND (purged OR NOT suspended)";
}

/// The SQL condition that a workspace, named by a column (`"source_runs.workspace_id"`), is not suspended. What is claimed
/// for every workspace at once asks this of the storage: rows that were read and then refused would fill the window.
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

/// The workspaces that are suspended, as far as this service was told; cheap to clone.
#[derive(Debug, Clone)]
pub struct Suspensions(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// Absent for a service that keeps nothing: what it was told is forgotten at a restart, when all that it could be
    /// asked for is an answer that holds nothing.
    db: Option<Db>,
    clock: Arc<dyn Clock>,
    /// By our own ids.
    known: RwLock<foldhash::HashMap<WorkspaceId, Known>>,
    /// Held from a read of the table until memory has it: a slower reader must not put older things back.
    refreshing: tokio::sync::Mutex<()>,
}

#[derive(Debug, Clone, Copy)]
struct Known {
    revision: u64,
    is_suspended: bool,
}

impl Suspensions {
    /// Those in that storage, whose migrations hold [`MIGRATION`].
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
        let (known, refreshing) = (RwLock::default(), tokio::sync::Mutex::default());
        Self(Arc::new(Inner { db, clock, known, refreshing }))
    }

    /// Whether the workspace is suspended, as this process knows: another process's word takes half a second.
    pub fn is_suspended(&self, workspace: WorkspaceId) -> bool {
        let known = self.0.known.read().unwrap_or_else(PoisonError::into_inner);
        known.get(&workspace).is_some_and(|known| known.is_suspended)
    }

    /// The same, asked of the storage: for what is rare and must not be late.
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
    /// UNAUTHORIZED, as svc-auth answers whoever comes for a new identity of it.
    pub(crate) fn check(&self, workspace: WorkspaceId) -> Result<(), Problem> {
        if !self.is_suspended(workspace) {
            return Ok(());
        }
        Err(Problem::unauthorized(
            "the workspace of this identity was deleted: its owner can restore it, or use another workspace's token",
        ))
    }

    /// Takes in what a workspace is as of that revision; what is known to be newer stays.
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
            self.set_in_memory(workspace, Known { revision, is_suspended });
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

    fn set_in_memory(&self, workspace: WorkspaceId, told: Known) {
        let mut known = self.0.known.write().unwrap_or_else(PoisonError::into_inner);
        let newest = known.entry(workspace).or_insert(told);
        if newest.revision < told.revision {
            *newest = told;
        }
    }

    /// Notes that nothing of a workspace is left here. It goes on being refused while an identity of it could live.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn mark_purged(&self, workspace: WorkspaceId) -> Result<(), sql::Error> {
        let Some(db) = &self.0.db else { return Ok(()) };
        let now = self.0.clock.now();
        execute!(db.writer(), MARK_PURGED, Text(workspace), now).map(drop)
    }

    /// Follows what other processes on the storage are told, and forgets what is over, until the shutdown.
    pub async fn run(&self, shutdown: CancellationToken) {
        let Some(db) = &self.0.db else { return };
        let (mut poll, mut forget) = (interval(POLL_INTERVAL), interval(FORGET_INTERVAL));
        poll.set_missed_tick_behavior(MissedTickBehavior::Delay);
        forget.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let done = tokio::select! {
                () = shutdown.cancelled() => return,
                _ = poll.tick(), if db.is_shared() => self.refresh().await,
                _ = forget.tick() => self.forget(db).await,
            };
            if let Err(error) = done {
                tracing::warn!(%error, "the states of workspaces cannot be read now; trying again");
            }
        }
    }

    async fn forget(&self, db: &Db) -> Result<(), sql::Error> {
        let memory = i64::try_from(MEMORY.as_micros()).unwrap_or(i64::MAX);
        let before = Timestamp::from_micros(self.0.clock.now().as_micros().saturating_sub(memory));
        execute!(db.writer(), FORGET, before)?;
        self.refresh().await
    }

    async fn refresh(&self) -> Result<(), sql::Error> {
        let Some(db) = &self.0.db else { return Ok(()) };
        let _one_at_a_time = self.0.refreshing.lock().await;
        let rows: Vec<(Text<WorkspaceId>, i64)> = fetch!(all, db, LIST)?;
        let read = |(workspace, revision): (Text<WorkspaceId>, i64)| {
            (workspace.0, Known { revision: u64::try_from(revision).unwrap_or_default(), is_suspended: true })
        };
        *self.0.known.write().unwrap_or_else(PoisonError::into_inner) = rows.into_iter().map(read).collect();
        Ok(())
    }
}

#[cfg(test)]
mod tests;
