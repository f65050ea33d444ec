use std::collections::HashMap;
use std::time::Duration;

use futures::StreamExt as _;
use tokio::task::JoinSet;
use uuid::Uuid;

use super::*;
use crate::clock::SystemClock;
use crate::testing::{TestDb, engines};

/// At a position that was reserved.
const INSERT_ONE: &str = "INSERT INTO feed_changes (workspace_id, position, kind, item_id, op, at) \
     VALUES ($1, $2, $3, $4, $5, $6)";

const ITEM_KIND: Kind = Kind::File;

async fn open(test: &TestDb) -> Feed {
    let db = test.open("content", &[MIGRATION, compaction::MIGRATION]).await.unwrap();
    Feed::new(db, Arc::new(SystemClock))
}

fn workspace(number: u128) -> WorkspaceId {
    WorkspaceId(Uuid::from_u128(number))
}

fn now() -> Timestamp {
    SystemClock.now()
}

async fn write(feed: &Feed, workspace: WorkspaceId, entries: &[Entry]) -> u64 {
    let mut work = feed.begin(workspace).await.unwrap();
    for entry in entries {
        work.publish(entry.clone());
    }
    work.commit().await.unwrap().last
}

#[tokio::test]
async fn every_statement_prepares() {
    for test in engines().await {
        let feed = open(&test).await;
        sql::prepare_all(&feed.db, &statements()).await.unwrap();
    }
}

#[tokio::test]
async fn entries_come_back_in_order() {
    for test in engines().await {
        let feed = open(&test).await;
        let entries = [
            Entry::upsert(Kind::Folder, "a"),
            Entry::delete(Kind::File, "b\"c"),
            Entry::upsert(Kind::File, "d"),
        ];
        assert_eq!(write(&feed, workspace(1), &entries[..1]).await, 1);
        assert_eq!(write(&feed, workspace(1), &entries[1..]).await, 3);
        assert_eq!(write(&feed, workspace(1), &[]).await, 3);
        assert_eq!(write(&feed, workspace(2), &entries).await, 3);

        let page = feed.read(workspace(1), 0, 0).await.unwrap();
        assert_eq!(page.head, 3, "{}", test.engine);
        let positions: Vec<_> = page.changes.iter().map(|change| change.position).collect();
        assert_eq!(positions, [1, 2, 3]);
        assert!(page.changes.iter().map(|change| &change.entry).eq(&entries), "{}", test.engine);
        assert_eq!(feed.read(workspace(1), 1, 1).await.unwrap().changes, page.changes[1..2]);
        assert_eq!(feed.read(workspace(3), 0, 0).await.unwrap(), Page { changes: vec![], head: 0 });
    }
}

#[tokio::test]
async fn a_unit_of_work_keeps_the_order_in_which_it_publishes() {
    for test in engines().await {
        let feed = open(&test).await;
        write(&feed, workspace(1), &[Entry::upsert(ITEM_KIND, "before")]).await;
        let untouched = feed.begin(workspace(1)).await.unwrap();
        assert_eq!(untouched.commit().await.unwrap(), Positions { first: 0, last: 1 });

        let mut work = feed.begin(workspace(1)).await.unwrap();
        work.publish(Entry::upsert(ITEM_KIND, "a"));
        let reserved = work.reserve(1).await.unwrap();
        work.publish(Entry::delete(ITEM_KIND, "c"));
        execute!(
            work.tx(),
            INSERT_ONE,
            Text(workspace(1)),
            to_column(reserved.last),
            1_i64,
            "b",
            1_i64,
            now()
        )
        .unwrap();
        assert_eq!(work.commit().await.unwrap(), Positions { first: 2, last: 4 }, "{}", test.engine);
        let page = feed.read(workspace(1), 1, 0).await.unwrap();
        let ids: Vec<_> = page.changes.iter().map(|change| change.entry.item_id.as_str()).collect();
        assert_eq!(ids, ["a", "b", "c"], "{}", test.engine);
    }
}

/// Writers on several workspaces, some rolling back, some slow between append and commit, while a consumer for each
/// workspace follows its feed by position alone: it must meet every committed entry, once, without a gap.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_consumer_misses_nothing_under_concurrent_writers() {
    const WORKSPACES: u128 = 3;
    const WRITERS: u64 = 12;
    const WRITES: u64 = 25;
    for test in engines().await {
        let feed = open(&test).await;
        let mut writers = JoinSet::new();
        for writer in 0..WRITERS {
            let feed = feed.clone();
            writers.spawn(async move {
                let mut committed = Vec::new();
                for turn in 0..WRITES {
                    let place = workspace(u128::from((writer + turn) % 3));
                    let count = 1 + (writer * 7 + turn) % 3;
                    let entries: Vec<_> = (0..count)
                        .map(|n| Entry::upsert(ITEM_KIND, format!("{writer}-{turn}-{n}")))
                        .collect();
                    let mut tx = feed.db.begin_write().await.unwrap();
                    append(&mut tx, place, &entries, now()).await.unwrap();
                    if (writer + turn) % 4 == 0 {
                        tokio::time::sleep(Duration::from_millis(2)).await;
                    }
                    if (writer + turn) % 5 == 0 {
                        drop(tx);
                        continue;
                    }
                    tx.commit().await.unwrap();
                    committed.extend(entries.into_iter().map(|entry| (place, entry.item_id)));
                }
                committed
            });
        }
        let (done, _) = tokio::sync::watch::channel(false);
        let mut consumers = JoinSet::new();
        for number in 0..WORKSPACES {
            let (feed, done) = (feed.clone(), done.subscribe());
            consumers.spawn(async move {
                let mut met = Vec::new();
                let mut after = 0;
                loop {
                    let is_last_round = *done.borrow();
                    let page = feed.read(workspace(number), after, 7).await.unwrap();
                    for change in &page.changes {
                        assert_eq!(change.position, after + 1, "a gap");
                        after = change.position;
                        met.push((workspace(number), change.entry.item_id.clone()));
                    }
                    if page.changes.is_empty() {
                        if is_last_round {
                            assert_eq!(page.head, after);
                            return met;
                        }
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                }
            });
        }
        let mut committed: Vec<_> = writers.join_all().await.into_iter().flatten().collect();
        done.send_replace(true);
        let mut met: Vec<_> = consumers.join_all().await.into_iter().flatten().collect();
        committed.sort();
        met.sort();
        assert_eq!(met, committed, "{}", test.engine);
    }
}

#[tokio::test]
async fn a_watcher_gets_every_head_then_each_move() {
    for test in engines().await {
        let feed = open(&test).await;
        // A process that writes to the same tables and cannot notify this one.
        let other = open(&test).await;
        write(&feed, workspace(1), &[Entry::upsert(ITEM_KIND, "a")]).await;
        write(&other, workspace(2), &[Entry::upsert(ITEM_KIND, "b"), Entry::upsert(ITEM_KIND, "c")]).await;

        let mut watch = Box::pin(feed.watch());
        let mut heads = HashMap::new();
        while let WatchEvent::Head(head) = watch.next().await.unwrap().unwrap() {
            heads.insert(head.workspace, head.position);
        }
        assert_eq!(heads, HashMap::from([(workspace(1), 1), (workspace(2), 2)]), "{}", test.engine);

        let mover = if feed.db.is_shared() { &other } else { &feed };
        write(mover, workspace(3), &[Entry::upsert(ITEM_KIND, "d")]).await;
        write(&feed, workspace(1), &[Entry::upsert(ITEM_KIND, "e")]).await;
        let wanted = [(3, 1), (1, 2)]
            .map(|(number, position)| WatchEvent::Head(Head { workspace: workspace(number), position }));
        let mut seen = Vec::new();
        while !wanted.iter().all(|told| seen.contains(told)) {
            let next = tokio::time::timeout(Duration::from_secs(5), watch.next()).await;
            seen.push(next.expect("a moved head was not told").unwrap().unwrap());
        }

        feed.close();
        let end = tokio::time::timeout(Duration::from_secs(5), watch.collect::<Vec<_>>()).await;
        assert!(end.is_ok(), "the watch did not end");
    }
}

#[tokio::test]
async fn more_heads_than_one_read_tells_are_told_all_the_same() {
    for test in engines().await {
        let (feed, other) = (open(&test).await, open(&test).await);
        // Only there do others move heads.
        if !feed.db.is_shared() {
            continue;
        }
        let mut watch = Box::pin(feed.watch());
        assert_eq!(watch.next().await.unwrap().unwrap(), WatchEvent::EveryHead);
        let mut missing: std::collections::HashSet<_> = (1..=2_500).map(workspace).collect();
        let mut tx = other.db.begin_write().await.unwrap();
        for place in &missing {
            append(&mut tx, *place, &[Entry::upsert(ITEM_KIND, "a")], now()).await.unwrap();
        }
        tx.commit().await.unwrap();
        while !missing.is_empty() {
            let next = tokio::time::timeout(Duration::from_secs(20), watch.next()).await;
            let WatchEvent::Head(head) = next.expect("a head was not told").unwrap().unwrap() else {
                continue;
            };
            assert!(missing.remove(&head.workspace), "{} is told once", head.workspace);
        }
    }
}

#[tokio::test]
async fn a_slow_watcher_is_told_anew() {
    let test = engines().await.remove(0);
    let feed = open(&test).await;
    write(&feed, workspace(5), &[Entry::upsert(ITEM_KIND, "a")]).await;
    let mut watch = Box::pin(feed.watch());
    let first = WatchEvent::Head(Head { workspace: workspace(5), position: 1 });
    assert_eq!(watch.next().await.unwrap().unwrap(), first);
    write(&feed, workspace(6), &[Entry::upsert(ITEM_KIND, "b")]).await;
    // So many notices that the one of workspace 6 is dropped unheard.
    for number in 0..(NOTICE_CAPACITY as u128 + 10) {
        let _ = feed.notices.send(Head { workspace: workspace(1_000 + number), position: 1 });
    }
    let wanted = WatchEvent::Head(Head { workspace: workspace(6), position: 1 });
    let told = watch.filter(|told| std::future::ready(*told.as_ref().unwrap() == wanted));
    let told = tokio::time::timeout(Duration::from_secs(5), Box::pin(told).next()).await;
    assert!(told.is_ok_and(|head| head.is_some()), "the dropped notice was never made up for");
}
