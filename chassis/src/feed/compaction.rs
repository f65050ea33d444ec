//! Log compaction: removes old entries of items that have a later entry.
//!
//! Consumers fetch the current state of each item, so of two entries of one item the earlier one is redundant. All entries
//! of the last half year are retained; of older ones, the last of each item, deletions included. So a consumer at any
//! position, or one that starts over, reaches the same state as without compaction. The row of the head records up to which
//! position the feed may have gaps, in the transaction that removes the entries (ADR 3).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use cairn_proto::ids::WorkspaceId;
use tokio_util::sync::CancellationToken;

use super::{Feed, Kind, MAX_READ, TIME_OF, to_column};
use crate::clock::Timestamp;
use crate::ids::IdSource;
use crate::jobs::{Lease, Schedule};
use crate::sql::{Dialect, Error, Migration, Text};
use crate::{execute, fetch, statements};

/// Adds the compacted position; after [`MIGRATION`](super::MIGRATION) in a service's list.
pub const MIGRATION: Migration = Migration {
    name: "0002_feed_forgotten",
    sqlite: include_str!("migrations/sqlite/0002_feed_forgotten.sql"),
    postgres: include_str!("migrations/postgres/0002_feed_forgotten.sql"),
};

/// The retention period of all entries, the same as of the activity list, which names the authors of changes.
pub const RETENTION: Duration = Duration::from_secs(180 * 24 * 60 * 60);

const LEASE: &str = "feed-compaction";
/// Longer than the compaction of one workspace takes.
const LEASE_TTL: Duration = Duration::from_secs(10 * 60);
const INTERVAL: Duration = Duration::from_secs(60 * 60);
const WORKSPACES_PER_PAGE: i64 = 100;
/// With fewer old entries than this, reading the rest of the feed costs more than it saves.
const MIN_OLD_ENTRIES: u64 = 1_000;
/// The old entries of a workspace that one sweep processes, which bounds its memory.
const MAX_OLD_ENTRIES: usize = 20_000;
const DELETE_BATCH: usize = 500;

statements! {
    pub(super) fn statements;

    /// Feeds with at least $2 entries after their compacted position, by workspace.
    const UNCOMPACTED: &str = "SELECT workspace_id, forgotten FROM feed_heads \
         WHERE workspace_id > $1 AND position - forgotten >= $2 ORDER BY workspace_id LIMIT $3";

    /// $2 is a JSON array of positions.
    const DELETE: Dialect = Dialect {
        sqlite: "DELETE FROM feed_changes WHERE workspace_id = $1 AND position IN (SELECT value FROM json_each($2))",
        postgres: "DELETE FROM feed_changes WHERE workspace_id = $1 AND position IN \
             (SELECT CAST(unnest(ARRAY(SELECT jsonb_array_elements_text(CAST(CAST($2 AS TEXT) AS JSONB)))) AS BIGINT))",
    };

    const MARK: &str = "UPDATE feed_heads SET forgotten = $2 WHERE workspace_id = $1 AND forgotten < $2";
}

/// Compacts the feeds of one storage, in the process that holds the lease.
#[derive(Debug)]
pub struct Compaction {
    feed: Feed,
    lease: Lease,
}

impl Compaction {
    /// For the feeds of a service whose migrations have [`MIGRATION`] and [`jobs::MIGRATION`](crate::jobs::MIGRATION).
    pub fn new(feed: Feed, ids: &IdSource) -> Self {
        let lease = Lease::new(feed.db.clone(), Arc::clone(&feed.clock), ids, LEASE, LEASE_TTL);
        Self { feed, lease }
    }

    /// Sweeps at the start and every hour, until shutdown.
    pub async fn run(&self, shutdown: &CancellationToken) {
        let mut schedule = Schedule::every(INTERVAL);
        while schedule.next(shutdown).await {
            let swept = tokio::select! {
                () = shutdown.cancelled() => return,
                swept = self.sweep() => swept,
            };
            match swept {
                Ok(0) => {}
                Ok(entries) => {
                    tracing::info!(entries, "forgot entries of the feed that were told again since")
                }
                Err(error) => {
                    tracing::warn!(%error, "the feed is not compacted yet; the next try is in an hour");
                }
            }
        }
    }

    /// One sweep over all workspaces, for as long as this process holds the lease; returns how many entries were removed.
    ///
    /// # Errors
    /// When the database fails. The feeds are consistent then, too.
    pub async fn sweep(&self) -> Result<u64, Error> {
        let (mut removed, mut after) = (0, String::new());
        let before = self.retained_since();
        loop {
            let min_entries = to_column(MIN_OLD_ENTRIES);
            let feeds: Vec<(Text<WorkspaceId>, i64)> =
                fetch!(all, self.feed.db, UNCOMPACTED, &after, min_entries, WORKSPACES_PER_PAGE)?;
            let Some((last, _)) = feeds.last() else { break };
            after = last.0.to_string();
            for (workspace, from) in feeds {
                let from = super::from_column(from);
                if !self.has_enough_old_entries(workspace.0, from, before).await? {
                    continue;
                }
                if !self.lease.claim().await? {
                    return Ok(removed);
                }
                removed += self.compact(workspace.0, from, before).await?;
            }
        }
        self.lease.release().await?;
        Ok(removed)
    }

    fn retained_since(&self) -> Timestamp {
        let retention = i64::try_from(RETENTION.as_micros()).unwrap_or(i64::MAX);
        Timestamp::from_micros(self.feed.clock.now().as_micros().saturating_sub(retention))
    }

    /// Whether at least [`MIN_OLD_ENTRIES`] after that position are old. There are no gaps after it, so one look-up is enough.
    async fn has_enough_old_entries(
        &self,
        workspace: WorkspaceId,
        from: u64,
        before: Timestamp,
    ) -> Result<bool, Error> {
        let position = to_column(from + MIN_OLD_ENTRIES);
        let at: Option<Timestamp> =
            fetch!(optional_scalar, self.feed.db, TIME_OF, Text(workspace), position)?;
        Ok(at.is_some_and(|at| at < before))
    }

    /// Removes the redundant ones of the old entries after a position; returns how many.
    async fn compact(&self, workspace: WorkspaceId, from: u64, before: Timestamp) -> Result<u64, Error> {
        let mut old = self.read_old(workspace, from, before).await?;
        self.read_recent(workspace, &mut old).await?;
        let OldEntries { mut redundant, end, .. } = old;
        redundant.sort_unstable();
        let mut remaining = redundant.as_slice();
        loop {
            let (batch, rest) = remaining.split_at(remaining.len().min(DELETE_BATCH));
            let compacted_to = if rest.is_empty() { end } else { batch.last().copied().unwrap_or(end) };
            let mut tx = self.feed.db.begin_write().await?;
            if !batch.is_empty() {
                let list = serde_json::Value::from(batch).to_string();
                execute!(tx, DELETE, Text(workspace), &list)?;
            }
            // Last, since it blocks writers of the workspace.
            execute!(tx, MARK, Text(workspace), to_column(compacted_to))?;
            tx.commit().await?;
            if rest.is_empty() {
                return Ok(redundant.len() as u64);
            }
            remaining = rest;
        }
    }

    async fn read_old(
        &self,
        workspace: WorkspaceId,
        from: u64,
        before: Timestamp,
    ) -> Result<OldEntries, Error> {
        let mut old = OldEntries { last: HashMap::new(), redundant: Vec::new(), end: from };
        let mut count_read = 0;
        while count_read < MAX_OLD_ENTRIES {
            let page = self.feed.read_dated(workspace, old.end, MAX_READ).await?;
            let count = page.len();
            let first_recent = page.iter().position(|dated| dated.at >= before);
            for dated in page.into_iter().take(first_recent.unwrap_or(count)) {
                let (position, entry) = (dated.change.position, dated.change.entry);
                old.end = position;
                old.redundant.extend(old.last.insert((entry.kind, entry.item_id), position));
            }
            if first_recent.is_some() || count < MAX_READ as usize {
                break;
            }
            count_read += count;
        }
        Ok(old)
    }

    /// Reads the rest of the feed, to find old entries of items that have a later one there.
    async fn read_recent(&self, workspace: WorkspaceId, old: &mut OldEntries) -> Result<(), Error> {
        let mut after = old.end;
        while !old.last.is_empty() {
            let page = self.feed.read_dated(workspace, after, MAX_READ).await?;
            let Some(newest) = page.last() else { break };
            after = newest.change.position;
            for dated in page {
                let entry = dated.change.entry;
                old.redundant.extend(old.last.remove(&(entry.kind, entry.item_id)));
            }
        }
        Ok(())
    }
}

/// Old entries of one workspace.
struct OldEntries {
    /// The position of each item's last old entry, until a later entry is found.
    last: HashMap<(Kind, String), u64>,
    /// Positions of entries that have a later one.
    redundant: Vec<u64>,
    /// The position of the newest old entry.
    end: u64,
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::super::{CHECKS, Entry};
    use super::*;
    use crate::clock::{Clock, ManualClock};
    use crate::doctor;
    use crate::entropy::SeededEntropy;
    use crate::jobs;
    use crate::sql;
    use crate::testing::{TestDb, engines};

    const WORKSPACE: WorkspaceId = WorkspaceId(Uuid::from_u128(1));

    struct Bench {
        clock: Arc<ManualClock>,
        feed: Feed,
        compaction: Compaction,
    }

    impl Bench {
        async fn open(test: &TestDb) -> Self {
            let migrations = [super::super::MIGRATION, jobs::MIGRATION, MIGRATION];
            let db = test.open("content", &migrations).await.unwrap();
            let clock = Arc::new(ManualClock::new(Timestamp::from_seconds(1_800_000_000)));
            let shared: Arc<dyn Clock> = Arc::<ManualClock>::clone(&clock);
            let ids = IdSource::new(Arc::clone(&shared), Arc::new(SeededEntropy::new(1)));
            let feed = Feed::new(db, shared);
            let compaction = Compaction::new(feed.clone(), &ids);
            Self { clock, feed, compaction }
        }

        async fn write(&self, entries: Vec<Entry>) {
            let mut work = self.feed.begin(WORKSPACE).await.unwrap();
            for entry in entries {
                work.publish(entry);
            }
            work.commit().await.unwrap();
        }

        /// Three files that are written in turn, then one that is gone for good.
        async fn write_often(&self, times: u64) {
            let turns = (0..times).map(|turn| Entry::upsert(Kind::File, turn % 3));
            self.write(turns.chain([Entry::delete(Kind::File, "gone")]).collect()).await;
        }

        async fn told(&self, after: u64) -> Vec<(u64, String)> {
            let page = self.feed.read(WORKSPACE, after, 0).await.unwrap();
            page.changes.into_iter().map(|change| (change.position, change.entry.item_id)).collect()
        }

        async fn wrong(&self) -> Vec<doctor::Finding> {
            let mut tx = self.feed.db.begin_read().await.unwrap();
            doctor::run(&mut tx, CHECKS, &|_| {}).await.unwrap()
        }
    }

    #[tokio::test]
    async fn of_what_is_old_the_last_word_on_each_item_stays() {
        for test in engines().await {
            let bench = Bench::open(&test).await;
            sql::prepare_all(&bench.feed.db, &statements()).await.unwrap();
            bench.write_often(1_200).await;
            assert_eq!(bench.compaction.sweep().await.unwrap(), 0, "{}: nothing is old", test.engine);
            bench.clock.advance(RETENTION + Duration::from_secs(1));
            bench.write(vec![Entry::upsert(Kind::File, "0"), Entry::upsert(Kind::File, "0")]).await;

            assert_eq!(bench.compaction.sweep().await.unwrap(), 1_198, "{}", test.engine);
            let stays = [(1_199, "1"), (1_200, "2"), (1_201, "gone"), (1_202, "0"), (1_203, "0")];
            let stays = stays.map(|(position, item)| (position, item.to_owned()));
            assert_eq!(bench.told(0).await, stays, "{}: what is young stays as it is", test.engine);
            assert_eq!(bench.told(700).await, stays, "who was in the midst of it misses nothing");
            assert_eq!(bench.told(1_201).await, stays[3..]);
            assert_eq!(bench.feed.head(WORKSPACE).await.unwrap(), 1_203);
            assert_eq!(bench.wrong().await, [], "{}", test.engine);
            assert_eq!(bench.compaction.sweep().await.unwrap(), 0, "{}", test.engine);
        }
    }

    #[tokio::test]
    async fn what_is_missing_elsewhere_is_still_a_gap() {
        for test in engines().await {
            // The first entry behind what was compacted, and the newest of all.
            for missing in [1_202_i64, 1_203] {
                let bench = Bench::open(&test).await;
                bench.write_often(1_200).await;
                bench.clock.advance(RETENTION + Duration::from_secs(1));
                bench.write(vec![Entry::upsert(Kind::File, "0"), Entry::upsert(Kind::File, "0")]).await;
                bench.compaction.sweep().await.unwrap();
                assert_eq!(bench.wrong().await, [], "{}", test.engine);
                let remove = "DELETE FROM feed_changes WHERE workspace_id = $1 AND position = $2";
                let removed = execute!(bench.feed.db.writer(), remove, Text(WORKSPACE), missing);
                assert_eq!(removed.unwrap(), 1, "{}", test.engine);
                assert_eq!(bench.wrong().await.len(), 1, "{}: {missing}", test.engine);
                for empty in ["DELETE FROM feed_changes", "DELETE FROM feed_heads"] {
                    execute!(bench.feed.db.writer(), empty).unwrap();
                }
                bench.feed.db.close().await;
            }
        }
    }

    #[tokio::test]
    async fn a_feed_that_lost_its_end_or_all_of_it_keeps_its_positions() {
        for test in engines().await {
            let bench = Bench::open(&test).await;
            bench.write_often(1_200).await;
            bench.clock.advance(RETENTION + Duration::from_secs(1));
            assert_eq!(bench.compaction.sweep().await.unwrap(), 1_197, "{}", test.engine);
            for lost in ["DELETE FROM feed_changes WHERE position = 1201", "DELETE FROM feed_changes"] {
                execute!(bench.feed.db.writer(), lost).unwrap();
                assert_eq!(bench.wrong().await.len(), 1, "{}: {lost}", test.engine);
                let mut tx = doctor::begin(&bench.feed.db).await.unwrap();
                let mut report = doctor::Report::default();
                doctor::mend(&mut tx, CHECKS, &mut report, &|_| {}).await.unwrap();
                tx.commit().await.unwrap();
                assert_eq!(bench.wrong().await, [], "{}: {lost}", test.engine);
                assert_eq!(bench.feed.head(WORKSPACE).await.unwrap(), 1_201, "{}: {lost}", test.engine);
                assert_eq!(bench.told(1_200).await.len(), 1, "{}: {lost}", test.engine);
            }
        }
    }

    #[tokio::test]
    async fn what_was_forgotten_was_long_ago() {
        for test in engines().await {
            let bench = Bench::open(&test).await;
            bench.write_often(1_200).await;
            bench.clock.advance(RETENTION + Duration::from_secs(1));
            bench.write(vec![Entry::upsert(Kind::File, "0")]).await;
            bench.compaction.sweep().await.unwrap();
            let old = bench.feed.time_of(WORKSPACE, 7).await.unwrap();
            assert!(old.is_some_and(|at| at < bench.compaction.retained_since()), "{}: {old:?}", test.engine);
            assert_eq!(bench.feed.time_of(WORKSPACE, 1_202).await.unwrap(), Some(bench.clock.now()));
            for never in [0, 1_203] {
                assert_eq!(bench.feed.time_of(WORKSPACE, never).await.unwrap(), None, "{}", test.engine);
            }
        }
    }
}
