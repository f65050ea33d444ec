//! The account of a connection's requests, for all processes together.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cairn_chassis::clock::{Clock, Timestamp};
use cairn_chassis::sql::{self, Db};
use cairn_proto::ids::{SourceId, SourceRunId, WorkspaceId};
use cairn_providers::Fault;

use super::next;
use super::till::{Till, unavailable};
use crate::model::Spending;
use crate::store;

/// A connection keeps still for so long at most.
const MOST_REST: Duration = Duration::from_secs(60 * 60);

/// For whom requests are made.
#[derive(Debug, Clone)]
pub(crate) enum Purse {
    /// A question, out of the day's budget of the source.
    Question { budget: u32, till: Till },
    /// A run, for as long as its worker holds it.
    Run { id: SourceRunId, holder: String },
}

/// The account of one connection in the storage.
pub(crate) struct Account {
    pub(crate) db: Db,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) workspace: WorkspaceId,
    pub(crate) source: SourceId,
    pub(crate) provider: &'static str,
    pub(crate) purse: Purse,
}

impl fmt::Debug for Account {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Account").field("source", &self.source).finish_non_exhaustive()
    }
}

impl Account {
    async fn take(&self) -> Result<(), Fault> {
        match &self.purse {
            Purse::Question { budget, till } => till.take(self.workspace, self.source, *budget).await?,
            Purse::Run { id, holder } => {
                self.take_for_run(*id, holder).await.unwrap_or_else(|error| Err(unavailable(&error)))?;
            }
        }
        let purse = if matches!(self.purse, Purse::Run { .. }) { "runs" } else { "live" };
        metrics::counter!("cairn_source_operations_total", "provider" => self.provider, "ledger" => purse)
            .increment(1);
        Ok(())
    }

    async fn take_for_run(&self, run: SourceRunId, holder: &str) -> Result<Result<(), Fault>, sql::Error> {
        let (workspace, source, now) = (self.workspace, self.source, self.clock.now());
        let mut tx = self.db.begin_write().await?;
        // The source first, as everywhere: locks are taken in one order.
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
        let until = until.min(self.clock.now().plus(MOST_REST));
        let held = store::sources::hold_until(&self.db, self.workspace, self.source, until).await;
        held.map_err(|error| unavailable(&error))
    }
}

/// An account that is kept by nobody, for a check: it is of no source yet, and has an end.
#[derive(Debug)]
pub(crate) struct Check {
    left: std::sync::atomic::AtomicU32,
}

impl Check {
    /// Requests that a check may make, redirects included.
    const MOST: u32 = 12;

    pub(crate) fn new() -> Self {
        Self { left: std::sync::atomic::AtomicU32::new(Self::MOST) }
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
