//! The writer task of a process: flushes aggregated counts to the tables.

use std::time::Duration;

use cairn_chassis::lifecycle::Suspensions;
use cairn_chassis::sql::{self, Db};
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::rollup::{Event, KnownFirsts, Rollup};
use crate::store;

/// The flush interval: a crash loses at most this much.
const PERIOD: Duration = Duration::from_secs(2);
const EVENTS_AT_ONCE: usize = 256;
/// Rows that are buffered while the database fails; further events are dropped. A row is some 150 bytes.
const MAX_ROWS: usize = 100_000;
/// The size of the cache of written first times. Evicting it costs redundant writes, which are idempotent.
const MAX_KNOWN: usize = 100_000;

/// Counts dropped retrievals.
pub(super) fn count_dropped(events: usize) {
    metrics::counter!("cairn_retrieval_analytics_dropped_total")
        .increment(u64::try_from(events).unwrap_or(u64::MAX));
}

/// Aggregates events and writes the sums.
#[derive(Debug)]
pub(super) struct Writer {
    db: Db,
    events: mpsc::Receiver<Event>,
    rollup: Rollup,
    known: KnownFirsts,
    suspensions: Suspensions,
}

impl Writer {
    pub(super) fn new(db: Db, events: mpsc::Receiver<Event>, suspensions: Suspensions) -> Self {
        Self { db, events, rollup: Rollup::default(), known: KnownFirsts::new(), suspensions }
    }

    /// Writes every two seconds until the shutdown; what is left then is written by [`Self::finish`].
    pub(super) async fn run(&mut self, shutdown: &CancellationToken) {
        let mut ticks = interval(PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut some = Vec::with_capacity(EVENTS_AT_ONCE);
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                taken = self.events.recv_many(&mut some, EVENTS_AT_ONCE) => {
                    if taken == 0 {
                        return;
                    }
                    self.take(some.drain(..));
                }
                _ = ticks.tick() => self.flush().await,
            }
        }
    }

    /// Writes all that is in the queue now.
    pub(super) async fn finish(&mut self) {
        while let Ok(event) = self.events.try_recv() {
            self.take(std::iter::once(event));
        }
        self.flush().await;
    }

    fn take(&mut self, events: impl Iterator<Item = Event>) {
        for event in events {
            if self.rollup.len() < MAX_ROWS {
                self.rollup.add(event, &self.known);
            } else {
                count_dropped(1);
            }
        }
    }

    /// Rows that are not written yet.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.rollup.len()
    }

    /// Writes the sums in one transaction; when that fails they stay and are written with the next.
    async fn flush(&mut self) {
        // Counts from just before a workspace was deleted must not recreate its rows.
        self.rollup.retain(|workspace| !self.suspensions.is_suspended(workspace));
        if self.rollup.len() == 0 {
            return;
        }
        match self.write().await {
            Ok(()) => {
                if self.known.len() > MAX_KNOWN {
                    self.known.clear();
                }
                let written = std::mem::take(&mut self.rollup);
                self.known.extend(written.firsts.into_iter().map(|(key, first)| (key, first.at)));
            }
            Err(error) => tracing::warn!(%error, "retrievals are not counted yet; trying again"),
        }
    }

    async fn write(&self) -> Result<(), sql::Error> {
        let mut tx = self.db.begin_write().await?;
        store::counts::add(&mut tx, &self.rollup.counts).await?;
        store::latencies::add(&mut tx, &self.rollup.latencies).await?;
        store::documents::add(&mut tx, &self.rollup.documents).await?;
        store::firsts::record(&mut tx, &self.rollup.firsts).await?;
        tx.commit().await
    }
}
