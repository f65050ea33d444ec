//! The one task of a process that writes questions.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use cairn_chassis::lifecycle::Suspensions;
use cairn_chassis::sql::{self, Db};
use cairn_proto::ids::{UserId, WorkspaceId};
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::{DELETED_AT_ONCE, MAX_KEPT, Question};
use crate::store;

/// The flush interval: a crash loses at most this much.
const PERIOD: Duration = Duration::from_secs(2);
const ENTRIES_AT_ONCE: usize = 256;
/// Entries that are buffered while the database fails; further ones are dropped.
const MAX_WAITING: usize = 2_000;
/// How many questions of a workspace are written before the oldest beyond the limit go.
const TRIMMED_EVERY: i64 = 200;
/// Workspaces whose questions are counted for that.
const MAX_COUNTED: usize = 10_000;

/// Says that questions are not kept.
pub(super) fn count_dropped(entries: usize) {
    metrics::counter!("cairn_retrieval_questions_dropped_total")
        .increment(u64::try_from(entries).unwrap_or(u64::MAX));
}

/// A question to be written.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) workspace: WorkspaceId,
    /// For how long the workspace keeps it.
    pub(super) days: u32,
    pub(super) person: Option<UserId>,
    pub(super) question: Question,
    /// An encoded `QuestionDetails`.
    pub(super) details: Vec<u8>,
}

/// Writes questions in the order in which they were answered.
#[derive(Debug)]
pub(super) struct Writer {
    db: Db,
    entries: mpsc::Receiver<Entry>,
    waiting: Vec<Entry>,
    /// Questions that were written since the workspace was last trimmed.
    since_trimmed: HashMap<WorkspaceId, i64>,
    suspensions: Suspensions,
}

impl Writer {
    pub(super) fn new(db: Db, entries: mpsc::Receiver<Entry>, suspensions: Suspensions) -> Self {
        Self { db, entries, waiting: Vec::new(), since_trimmed: HashMap::new(), suspensions }
    }

    /// Writes every two seconds until the shutdown; what is left then is written by [`Self::finish`].
    pub(super) async fn run(&mut self, shutdown: &CancellationToken) {
        let mut ticks = interval(PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut some = Vec::with_capacity(ENTRIES_AT_ONCE);
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                taken = self.entries.recv_many(&mut some, ENTRIES_AT_ONCE) => {
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
        while let Ok(entry) = self.entries.try_recv() {
            self.take(std::iter::once(entry));
        }
        self.flush().await;
    }

    fn take(&mut self, entries: impl Iterator<Item = Entry>) {
        for entry in entries {
            if self.waiting.len() < MAX_WAITING {
                self.waiting.push(entry);
            } else {
                count_dropped(1);
            }
        }
    }

    /// Writes what waits in one transaction; when that fails it stays and is written with the next.
    async fn flush(&mut self) {
        // Questions from just before a workspace was deleted must not recreate its rows.
        self.waiting.retain(|entry| !self.suspensions.is_suspended(entry.workspace));
        if self.waiting.is_empty() {
            return;
        }
        if let Err(error) = self.write().await {
            tracing::warn!(%error, "questions are not kept yet; trying again");
            return;
        }
        for entry in self.waiting.drain(..) {
            *self.since_trimmed.entry(entry.workspace).or_default() += 1;
        }
        if let Err(error) = self.trim().await {
            tracing::warn!(%error, "questions beyond those that are kept are not deleted yet; trying again");
        }
    }

    async fn write(&self) -> Result<(), sql::Error> {
        // Sorted: one lock order for all processes, so that they cannot deadlock.
        let days: BTreeMap<WorkspaceId, u32> =
            self.waiting.iter().map(|entry| (entry.workspace, entry.days)).collect();
        let mut tx = self.db.begin_write().await?;
        for (workspace, days) in days {
            store::questions::set_days(&mut tx, workspace, days).await?;
        }
        for Entry { workspace, person, question, details, .. } in &self.waiting {
            store::questions::insert(&mut tx, *workspace, question, *person, details).await?;
        }
        tx.commit().await
    }

    /// Deletes the oldest questions of workspaces that got many.
    async fn trim(&mut self) -> Result<(), sql::Error> {
        let due: Vec<WorkspaceId> = self
            .since_trimmed
            .iter()
            .filter(|(_, written)| **written >= TRIMMED_EVERY)
            .map(|(workspace, _)| *workspace)
            .collect();
        for workspace in due {
            let mut tx = self.db.begin_write().await?;
            store::questions::delete_beyond(&mut tx, workspace, MAX_KEPT, DELETED_AT_ONCE).await?;
            tx.commit().await?;
            self.since_trimmed.remove(&workspace);
        }
        if self.since_trimmed.len() > MAX_COUNTED {
            // The sweep trims those that are forgotten here.
            self.since_trimmed.clear();
        }
        Ok(())
    }
}
