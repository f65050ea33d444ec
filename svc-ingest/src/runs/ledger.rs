//! Counts the requests of a connection, across all processes.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cairn_chassis::clock::{Clock, Timestamp};
use cairn_chassis::sql::{self, Db};
use cairn_proto::ids::{SourceId, SourceRunId, WorkspaceId};
use cairn_providers::Fault;

use super::budget_queue::{BudgetQueue, unavailable};
use super::next;
use crate::model::Spending;
use crate::store;

/// The longest pause that a provider can impose on a connection.
const MAX_REST: Duration = Duration::from_secs(60 * 60);

/// What a request is charged to.
#[derive(Debug, Clone)]
pub(crate) enum Charge {
    /// A live question: the daily budget of the source.
    Question { budget: u32, budget_queue: BudgetQueue },
    /// A run, while its worker has the lease.
    Run { id: SourceRunId, holder: String },
}

/// The ledger of one connection, in the database.
pub(crate) struct Account {
    pub(crate) db: Db,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) workspace: WorkspaceId,
    pub(crate) source: SourceId,
    pub(crate) provider: &'static str,
    pub(crate) charge: Charge,
}

impl fmt::Debug for Account {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Account").field("source", &self.source).finish_non_exhaustive()
    }
}

impl Account {
    async fn take(&self) -> Result<(), Fault> {
        match &self.charge {
            Charge::Question { budget, budget_queue } => {
                budget_queue.take(self.workspace, self.source, *budget).await?
            }
            Charge::Run { id, holder } => {
                self.take_for_run(*id, holder).await.unwrap_or_else(|error| Err(unavailable(&error)))?;
            }
        }
        let charge = if matches!(self.charge, Charge::Run { .. }) { "runs" } else { "live" };
        metrics::counter!("cairn_source_operations_total", "provider" => self.provider, "ledger" => charge)
            .increment(1);
        Ok(())
    }

    async fn take_for_run(&self, run: SourceRunId, holder: &str) -> Result<Result<(), Fault>, sql::Error> {
        let (workspace, source, now) = (self.workspace, self.source, self.clock.now());
        let mut tx = self.db.begin_write().await?;
        // Lock order: the source first.
        match store::sources::rest(&mut tx, workspace, source).await? {
            None => return Ok(Err(Fault::Refused)),
            Some(Some(until)) if until > now => return Ok(Err(Fault::Waiting { until })),
            Some(_) => {}
        }
        if !store::source_runs::count_operation(&mut tx, workspace, source, run, holder).await? {
            return Ok(Err(Fault::Unavailable));
        }
        let day = next::day(now);
        store::provider_operations::take(&mut tx, workspace, source, day, Spending::Runs, None).await?;
        tx.commit().await?;
        Ok(Ok(()))
    }
}

#[async_trait]
impl cairn_providers::Ledger for Account {
    async fn reserve(&self) -> Result<(), Fault> {
        self.take().await
    }

    async fn hold(&self, until: Timestamp) -> Result<(), Fault> {
        let until = until.min(self.clock.now().plus(MAX_REST));
        let held = store::sources::set_rest_until(&self.db, self.workspace, self.source, until).await;
        held.map_err(|error| unavailable(&error))
    }
}

/// An in-memory ledger with a fixed number of requests, for checking settings before a source exists.
#[derive(Debug)]
pub(crate) struct Check {
    left: std::sync::atomic::AtomicU32,
}

impl Check {
    /// Requests that a check may make, redirects included.
    const MAX_REQUESTS: u32 = 12;

    pub(crate) fn new() -> Self {
        Self { left: std::sync::atomic::AtomicU32::new(Self::MAX_REQUESTS) }
    }
}

#[async_trait]
impl cairn_providers::Ledger for Check {
    async fn reserve(&self) -> Result<(), Fault> {
        use std::sync::atomic::Ordering::Relaxed;
        let taken = self.left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1));
        taken.map(drop).map_err(|_| Fault::Budget)
    }

    async fn hold(&self, _until: Timestamp) -> Result<(), Fault> {
        Ok(())
    }
}
