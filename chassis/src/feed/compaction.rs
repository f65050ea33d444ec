//! Forgetting what a feed told long ago and has told again since.
//!
//! Who follows a feed fetches each item as it is now, so of two entries for one item the earlier says nothing that the later does
//! not. Entries of the last half year all stay; before that, one for each item does, its last, deletions included. So a
//! consumer at any position, also one that begins anew, comes to the same state as ever. How far a feed may have
//! gaps stands in its head's row, written together with the removal: behind that there is none (ADR 3).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use cairn_proto::ids::WorkspaceId;
use tokio_util::sync::CancellationToken;

use super::{Feed, Kind, MAX_READ, TIME_OF, to_column};
use crate::clock::Timestamp;
use crate::ids::IdSource;
use crate::jobs::{Lease, Rounds};
use crate::sql::{Dialect, Error, Migration, Text};
use crate::{execute, fetch, statements};

/// How far a feed has been compacted; behind [`MIGRATION`](super::MIGRATION) in a service's list.
pub const MIGRATION: Migration = Migration {
    name: "0002_feed_forgotten",
    sqlite: include_str!("migrations/sqlite/0002_feed_forgotten.sql"),
    postgres: include_str!("migrations/postgres/0002_feed_forgotten.sql"),
};

/// Every entry stays for so long: as long as the list of activity, which says who wrote.
pub const KEPT: Duration = Duration::from_secs(180 * 24 * 60 * 60);

const LEASE: &str = "feed-compaction";
/// Longer than the feed of one workspace takes.
const TERM: Duration = Duration::from_secs(10 * 60);
const PERIOD: Duration = Duration::from_secs(60 * 60);
const WORKSPACES_AT_ONCE: i64 = 100;
/// Fewer old entries than these are not worth reading the rest of the feed.
const WORTH: u64 = 1_000;
/// Old entries that one sweep takes on in each workspace: they are what it holds in memory.
const OLD_AT_ONCE: usize = 20_000;
const REMOVED_AT_ONCE: usize = 500;

statements! {
    pub(super) fn statements;

    /// Feeds with $2 entries or more that no sweep has looked at, from one workspace to the next.
    const UNTOUCHED: &str = "SELECT workspace_id, forgotten FROM feed_heads \
         WHERE workspace_id > $1 AND position - forgotten >= $2 ORDER BY workspace_id LIMIT $3";

    /// $2 is a JSON array of positions.
    const FORGET: Dialect = Dialect {
        sqlite: "DELETE FROM feed_changes WHERE workspace_id = $1 AND position IN (SELECT value FROM json_each($2))",
        postgres: "DELETE FROM feed_changes WHERE workspace_id = $1 AND position IN \
             (SELECT CAST(unnest(ARRAY(SELECT jsonb_array_elements_text(CAST(CAST($2 AS TEXT) AS JSONB)))) AS BIGINT))",
    };

    const MARK: &str = "UPDATE feed_heads SET forgotten = $2 WHERE workspace_id = $1 AND forgotten < $2";
}

/// Compacts the feeds of one storage: of the processes on it, the one that holds the lease.
#[derive(Debug)]
pub struct Compaction {
    feed: Feed,
    lease: Lease,
}

impl Compaction {
    /// For the feeds of a service whose migrations have [`MIGRATION`] and [`jobs::MIGRATION`](crate::jobs::MIGRATION).
    pub fn new(feed: Feed, ids: &IdSource) -> Self {
        let lease = Lease::new(feed.db.clone(), Arc::clone(&feed.clock), ids, LEASE, TERM);
        Self { feed, lease }
    }

    /// Sweeps at the start and every hour, until the shutdown.
    pub async fn run(&self, shutdown: &CancellationToken) {
        let mut rounds = Rounds::every(PERIOD);
        while rounds.next(shutdown).await {
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

    /// One sweep, as long as the lease can be had; answers how many entries were forgotten.
    ///
    /// # Errors
    /// When the database fails. What was forgotten until then is consistent.
    pub async fn sweep(&self) -> Result<u64, Error> {
        let (mut forgotten, mut after) = (0, String::new());
        let before = self.oldest_kept();
        loop {
            let feeds: Vec<(Text<WorkspaceId>, i64)> =
                fetch!(all, self.feed.db, UNTOUCHED, &after, to_column(WORTH), WORKSPACES_AT_ONCE)?;
            let Some((last, _)) = feeds.last() else { break };
            after = last.0.to_string();
            for (workspace, from) in feeds {
                let from = super::from_column(from);
                if !self.is_worth_it(workspace.0, from, before).await? {
                    continue;
                }
                if !self.lease.claim().await? {
                    return Ok(forgotten);
                }
                forgotten += self.compact(workspace.0, from, before).await?;
            }
        }
        self.lease.release().await?;
        Ok(forgotten)
    }

    fn oldest_kept(&self) -> Timestamp {
        let kept = i64::try_from(KEPT.as_micros()).unwrap_or(i64::MAX);
        Timestamp::from_micros(self.feed.clock.now().as_micros().saturating_sub(kept))
    }

    /// Whether there are so many old entries behind a position, where no gap is.
    async fn is_worth_it(&self, workspace: WorkspaceId, from: u64, before: Timestamp) -> Result<bool, Error> {
        let at: Option<Timestamp> =
            fetch!(optional_scalar, self.feed.db, TIME_OF, Text(workspace), to_column(from + WORTH))?;
        Ok(at.is_some_and(|at| at < before))
    }

    /// Forgets what can be of the old entries behind a position; how many.
    async fn compact(&self, workspace: WorkspaceId, from: u64, before: Timestamp) -> Result<u64, Error> {
        let mut old = self.read_old(workspace, from, before).await?;
        self.read_on(workspace, &mut old).await?;
        let Old { mut repeated, end, .. } = old;
        repeated.sort_unstable();
        let mut left = repeated.as_slice();
        loop {
            let (some, rest) = left.split_at(left.len().min(REMOVED_AT_ONCE));
            let reached = if rest.is_empty() { end } else { some.last().copied().unwrap_or(end) };
            let mut tx = self.feed.db.begin_write().await?;
            if !some.is_empty() {
                let list = serde_json::Value::from(some).to_string();
                execute!(tx, FORGET, Text(workspace), &list)?;
            }
            // Last, since writers of the workspace wait from then on.
            execute!(tx, MARK, Text(workspace), to_column(reached))?;
            tx.commit().await?;
            if rest.is_empty() {
                return Ok(repeated.len() as u64);
            }
            left = rest;
        }
    }

    async fn read_old(&self, workspace: WorkspaceId, from: u64, before: Timestamp) -> Result<Old, Error> {
        let mut old = Old { last: HashMap::new(), repeated: Vec::new(), end: from };
        let mut seen = 0;
        while seen < OLD_AT_ONCE {
            let page = self.feed.read_dated(workspace, old.end, MAX_READ).await?;
            let count = page.len();
            let too_young = page.iter().position(|dated| dated.at >= before);
            for dated in page.into_iter().take(too_young.unwrap_or(count)) {
                let (position, entry) = (dated.change.position, dated.change.entry);
                old.end = position;
                old.repeated.extend(old.last.insert((entry.kind, entry.item_id), position));
            }
            if too_young.is_some() || count < MAX_READ as usize {
                break;
            }
            seen += count;
        }
        Ok(old)
    }

    /// Looks which of the old entries are told again later.
    async fn read_on(&self, workspace: WorkspaceId, old: &mut Old) -> Result<(), Error> {
        let mut after = old.end;
        while !old.last.is_empty() {
            let page = self.feed.read_dated(workspace, after, MAX_READ).await?;
            let Some(newest) = page.last() else { break };
            after = newest.change.position;
            for dated in page {
                let entry = dated.change.entry;
                old.repeated.extend(old.last.remove(&(entry.kind, entry.item_id)));
            }
        }
        Ok(())
    }
}

/// Old entries of one workspace.
struct Old {
    /// Of each item the position of the last, as long as none that is later is known.
    last: HashMap<(Kind, String), u64>,
    /// Positions of those that are told again later.
    repeated: Vec<u64>,
    /// The position of the newest.
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
            bench.clock.advance(KEPT + Duration::from_secs(1));
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
                bench.clock.advance(KEPT + Duration::from_secs(1));
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
            bench.clock.advance(KEPT + Duration::from_secs(1));
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
            bench.clock.advance(KEPT + Duration::from_secs(1));
            bench.write(vec![Entry::upsert(Kind::File, "0")]).await;
            bench.compaction.sweep().await.unwrap();
            let old = bench.feed.time_of(WORKSPACE, 7).await.unwrap();
            assert!(old.is_some_and(|at| at < bench.compaction.oldest_kept()), "{}: {old:?}", test.engine);
            assert_eq!(bench.feed.time_of(WORKSPACE, 1_202).await.unwrap(), Some(bench.clock.now()));
            for never in [0, 1_203] {
                assert_eq!(bench.feed.time_of(WORKSPACE, never).await.unwrap(), None, "{}", test.engine);
            }
        }
    }
}
