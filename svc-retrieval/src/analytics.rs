//! How a workspace's knowledge is retrieved: how often, how fast, with what success (spec 4.11).
//!
//! A handler calls [`Analytics::begin`] before a retrieval and [`Measured::end`] after; the cost is a queue entry. One task
//! aggregates the entries in memory and adds the sums to the tables every two seconds, so that a search needs no transaction and
//! any number of processes may add to the same rows. When the queue is full, or the database fails for long, retrievals are dropped
//! from the counts (`cairn_retrieval_analytics_dropped_total`); none ever waits.
//!
//! Queries are never stored here; [`crate::questions`] stores them if an owner enables that.

mod day;
mod latency;
mod measured;
mod report;
mod rollup;
mod sweep;
#[cfg(test)]
mod tests;
mod writer;

use std::sync::Arc;
use std::time::Duration;

use cairn_chassis::ambient::Ambient;
use cairn_chassis::call::{Call, Channel};
use cairn_chassis::clock::{Clock, Timestamp};
use cairn_chassis::identity::Identity;
use cairn_chassis::jobs::Lease;
use cairn_chassis::lifecycle::Suspensions;
use cairn_chassis::sql::{self, Db};
use cairn_proto::ids::WorkspaceId;
use tokio::sync::{Mutex, mpsc};
use tokio_util::sync::CancellationToken;

pub(crate) use self::day::Day;
pub(crate) use self::latency::{Bucket, Latency};
pub use self::measured::{Found, Measured, Operation, Strategy};
pub(crate) use self::report::{Report, Sum, days};
use self::rollup::Event;
pub(crate) use self::rollup::{
    CountKey, Counts, DocumentCounts, DocumentKey, First, FirstKey, LatencyKey, Milestone,
};
use self::writer::Writer;
use crate::store;
use crate::store::documents::Found as CitedDocument;

/// The capacity of the queue: 16 seconds at 500 events a second, in a few megabytes.
const QUEUE: usize = 8_192;
/// Rows of each table that one transaction deletes of a removed workspace.
const REMOVAL_BATCH: i64 = 1_000;
/// The timeout of the last flush at the shutdown.
const CLOSE_LIMIT: Duration = Duration::from_secs(5);

/// Counts retrievals and reports them; cheap to clone.
#[derive(Clone)]
pub struct Analytics {
    db: Db,
    clock: Arc<dyn Clock>,
    queue: mpsc::Sender<Event>,
    writer: Arc<Mutex<Writer>>,
    lease: Lease,
    suspensions: Suspensions,
}

cairn_chassis::debug_fields!(Analytics { db });

impl Analytics {
    /// Opens the tables and brings them up to date.
    ///
    /// # Errors
    /// When the database cannot be reached or written, or was written by a newer version.
    pub async fn open(storage: &sql::Config, ambient: &Ambient) -> Result<Self, sql::Error> {
        let db = Db::open(storage, store::SCHEMA, store::MIGRATIONS).await?;
        let suspensions = Suspensions::open(db.clone(), Arc::clone(&ambient.clock)).await?;
        let (queue, events) = mpsc::channel(QUEUE);
        let writer = Arc::new(Mutex::new(Writer::new(db.clone(), events, suspensions.clone())));
        let lease = sweep::lease(&db, ambient);
        Ok(Self { db, clock: Arc::clone(&ambient.clock), queue, writer, lease, suspensions })
    }

    /// The database of these tables, where the questions and the golden ones stand, too.
    pub(crate) const fn db(&self) -> &Db {
        &self.db
    }

    /// The suspended workspaces: they stand beside these tables.
    pub(crate) fn suspensions(&self) -> &Suspensions {
        &self.suspensions
    }

    /// Removes some of what was counted and kept of a workspace; whether nothing is left.
    pub(crate) async fn forget(&self, workspace: WorkspaceId) -> Result<bool, sql::Error> {
        let mut tx = self.db.begin_write().await?;
        let removed = store::removal::remove_some(&mut tx, workspace, REMOVAL_BATCH).await?;
        tx.commit().await?;
        Ok(removed == 0)
    }

    /// Begins a retrieval of an identity. It counts as failed when what is answered is dropped without [`Measured::end`].
    pub fn begin(
        &self,
        identity: &Identity,
        call: &Call,
        operation: Operation,
        strategy: Strategy,
    ) -> Measured {
        Measured::begin(self.clone(), identity, call.channel(), operation, strategy)
    }

    /// Records a connection to the workspace.
    pub(crate) fn note_connection(&self, workspace: WorkspaceId, channel: Channel) {
        self.tell(Event::Connection { workspace, channel, at: self.clock.now() });
    }

    /// Enqueues an event, if there is room.
    fn tell(&self, event: Event) {
        if self.queue.try_send(event).is_err() {
            writer::count_dropped(1);
        }
    }

    /// The report of the last days, up to now.
    pub(crate) async fn report(&self, workspace: WorkspaceId, days: u32) -> Result<Report, sql::Error> {
        report::read(&self.db, workspace, days, self.clock.now()).await
    }

    /// The most frequently retrieved documents of the days up to and including today, and the time of the query.
    pub(crate) async fn cited(
        &self,
        workspace: WorkspaceId,
        days: u32,
    ) -> Result<(Vec<CitedDocument>, Timestamp), sql::Error> {
        let now = self.clock.now();
        Ok((report::cited(&self.db, workspace, days, now).await?, now))
    }

    /// Writes the sums and deletes old ones, until the shutdown.
    pub async fn run(&self, shutdown: CancellationToken) {
        let writing = async { self.writer.lock().await.run(&shutdown).await };
        let sweeping = sweep::run(&self.db, &self.lease, &self.clock, &shutdown);
        tokio::join!(writing, sweeping, self.suspensions.run(shutdown.clone()));
    }

    /// Drains the queue and closes the storage, when nothing is served any more.
    pub async fn close(&self) {
        let last = async { self.writer.lock().await.finish().await };
        if tokio::time::timeout(CLOSE_LIMIT, last).await.is_err() {
            tracing::warn!("the retrievals of the last seconds are not counted: the database takes too long");
        }
        self.db.close().await;
    }
}
