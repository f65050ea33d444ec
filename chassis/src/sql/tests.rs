use std::task::Poll;

use cairn_proto::ids::{FileId, WorkspaceId};
use tokio::task::JoinSet;

use super::*;
use crate::clock::Timestamp;
use crate::testing::engines;
use crate::{execute, fetch, list_statement, on_db, rows_as_json};

mod migrations;

const COUNTERS: Migration = Migration {
    name: "0001_counters",
    sqlite: "CREATE TABLE counters (id TEXT NOT NULL PRIMARY KEY, n BIGINT NOT NULL, at BIGINT NOT NULL)",
    postgres: "CREATE TABLE counters (id TEXT COLLATE \"C\" NOT NULL PRIMARY KEY, n BIGINT NOT NULL, at BIGINT NOT NULL)",
};
const INSERT: &str = "INSERT INTO counters (id, n, at) VALUES ($1, $2, $3)";
const READ: &str = "SELECT n FROM counters WHERE id = $1";
const WRITE: &str = "UPDATE counters SET n = $2 WHERE id = $1";
const AMONG: Dialect =
    list_statement!("SELECT id FROM counters WHERE n >= $1 AND id IN ", "$2", " ORDER BY id");

async fn insert(db: &Db, id: &str, n: i64) -> Result<(), Error> {
    let at = Timestamp::from_seconds(1);
    on_db!(db.writer(), |c| sqlx::query(INSERT).bind(id).bind(n).bind(at).execute(c).await.map(|_| ()))
}

#[tokio::test]
async fn a_statement_is_written_once_and_runs_on_every_engine() {
    for test in engines().await {
        let db = test.open("counting", &[COUNTERS]).await.unwrap();
        let id: FileId = "0199c0de-0000-7000-8000-000000000001".parse().unwrap();
        insert(&db, &id.to_string(), 7).await.unwrap();
        let row: (Text<FileId>, i64, Timestamp) =
            on_db!(db, |c| sqlx::query_as("SELECT id, n, at FROM counters WHERE id = $1")
                .bind(Text(id))
                .fetch_one(c)
                .await)
            .unwrap();
        assert_eq!(row, (Text(id), 7, Timestamp::from_seconds(1)), "{}", test.engine);
        assert!(insert(&db, &id.to_string(), 7).await.unwrap_err().is_unique_violation(), "{}", test.engine);
    }
}

const ALL: Dialect = Dialect {
    sqlite: concat!("SELECT ", rows_as_json!(sqlite, "id, n, at, NULL"), " FROM counters WHERE n > $1"),
    postgres: concat!("SELECT ", rows_as_json!(postgres, "id, n, at, NULL"), " FROM counters WHERE n > $1"),
};

#[tokio::test]
async fn many_rows_are_one_text_on_every_engine() {
    type Row = (String, i64, Timestamp, Option<String>);
    let odd = "a\"quote, \\ \u{1}\t\n\u{2028}é😀";
    for test in engines().await {
        let db = test.open("counting", &[COUNTERS]).await.unwrap();
        for (id, n) in [(odd, i64::MAX), ("b", 1)] {
            insert(&db, id, n).await.unwrap();
        }
        let text: String = fetch!(scalar, db, ALL, 0_i64).unwrap();
        let mut rows: Vec<Row> = json_rows(&text).unwrap();
        rows.sort();
        let at = Timestamp::from_seconds(1);
        let expected = [(odd.to_owned(), i64::MAX, at, None), ("b".to_owned(), 1, at, None)];
        assert_eq!(rows, expected, "{}", test.engine);
        let none: String = fetch!(scalar, db, ALL, i64::MAX).unwrap();
        assert_eq!(json_rows::<Row>(&none).unwrap(), [], "{}", test.engine);
        assert!(json_rows::<Row>("[[1]]").is_err());
    }
}

#[tokio::test]
async fn lists_and_order_are_the_same_on_every_engine() {
    for test in engines().await {
        let db = test.open("counting", &[COUNTERS]).await.unwrap();
        for id in ["b", "B", "a\"quote", "é", "Z", "a"] {
            insert(&db, id, 1).await.unwrap();
        }
        let wanted = json_list(["é", "Z", "b", "a\"quote", "missing"]);
        let found: Vec<String> = on_db!(db, |c| sqlx::query_scalar(AMONG.of(db.engine()))
            .bind(1_i64)
            .bind(&wanted)
            .fetch_all(c)
            .await)
        .unwrap();
        assert_eq!(found, ["Z", "a\"quote", "b", "é"], "{}", test.engine);
        prepare_all(&db, &[INSERT.into(), READ.into(), AMONG.into()]).await.unwrap();
        assert!(prepare_all(&db, &["SELECT nothing FROM counters".into()]).await.is_err());
    }
}

#[tokio::test]
async fn a_named_lock_serialises_read_then_write() {
    for test in engines().await {
        let db = test.open("counting", &[COUNTERS]).await.unwrap();
        insert(&db, "n", 0).await.unwrap();
        let mut tasks = JoinSet::new();
        for _ in 0..8 {
            let db = db.clone();
            tasks.spawn(async move {
                for _ in 0..5 {
                    let mut tx = db.begin_write().await.unwrap();
                    tx.lock_name("n").await.unwrap();
                    let n: i64 =
                        on_db!(tx, |c| sqlx::query_scalar(READ).bind("n").fetch_one(c).await).unwrap();
                    on_db!(tx, |c| sqlx::query(WRITE).bind("n").bind(n + 1).execute(c).await.map(|_| ()))
                        .unwrap();
                    tx.commit().await.unwrap();
                }
            });
        }
        while let Some(ended) = tasks.join_next().await {
            ended.unwrap();
        }
        let n: i64 = on_db!(db, |c| sqlx::query_scalar(READ).bind("n").fetch_one(c).await).unwrap();
        assert_eq!(n, 40, "{}", test.engine);
    }
}

/// Writers that come together, of which some go away, some are refused and some take back what they wrote: each is kept or
/// not by itself, and nobody ever sees half of one.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn each_of_many_writers_is_kept_or_not_by_itself() {
    const PARTS: i64 = 2;
    const HALVES: &str =
        "SELECT COUNT(*) FROM (SELECT n FROM counters GROUP BY n HAVING COUNT(*) <> 2) AS halves";
    for test in engines().await {
        let db = test.open("counting", &[COUNTERS]).await.unwrap();
        insert(&db, "taken", -1).await.unwrap();
        insert(&db, "taken too", -1).await.unwrap();
        let mut writers = JoinSet::new();
        for writer in 0..8_i64 {
            let db = db.clone();
            writers.spawn(async move {
                let mut kept = Vec::new();
                for turn in 0..20 {
                    let write = writer * 100 + turn;
                    let mut tx = db.begin_write().await.unwrap();
                    for part in 0..PARTS {
                        let id = format!("{write}-{part}");
                        execute!(tx, INSERT, &id, write, Timestamp::from_seconds(1)).unwrap();
                    }
                    match turn % 4 {
                        0 => drop(tx),
                        1 => tx.rollback().await.unwrap(),
                        2 if writer % 2 == 0 => {
                            let refused = execute!(tx, INSERT, "taken", write, Timestamp::from_seconds(1));
                            assert!(refused.unwrap_err().is_unique_violation());
                        }
                        _ => {
                            tx.commit().await.unwrap();
                            kept.push(write);
                        }
                    }
                    let halves: i64 = fetch!(scalar, db, HALVES).unwrap();
                    assert_eq!(halves, 0);
                }
                kept
            });
        }
        let mut kept = writers.join_all().await.concat();
        kept.sort_unstable();
        let found: Vec<i64> =
            fetch!(scalars, db, "SELECT DISTINCT n FROM counters WHERE n >= 0 ORDER BY n").unwrap();
        assert_eq!(found, kept, "{}", test.engine);
    }
}

#[tokio::test]
async fn what_is_not_committed_never_was() {
    for test in engines().await {
        let db = test.open("counting", &[COUNTERS]).await.unwrap();
        let mut tx = db.begin_write().await.unwrap();
        on_db!(tx, |c| sqlx::query(INSERT).bind("x").bind(1_i64).bind(1_i64).execute(c).await.map(|_| ()))
            .unwrap();
        drop(tx);
        let mut tx = db.begin_read().await.unwrap();
        let n: Option<i64> =
            on_db!(tx, |c| sqlx::query_scalar(READ).bind("x").fetch_optional(c).await).unwrap();
        assert_eq!(n, None, "{}", test.engine);
    }
}

/// Polls a future so often and then drops it, as a caller does that goes away. Whether it ended before that.
async fn is_done_within<F: Future>(polls: usize, future: F) -> bool {
    let mut future = Box::pin(future);
    let mut left = polls;
    std::future::poll_fn(move |context| {
        let Some(fewer) = left.checked_sub(1) else { return Poll::Ready(false) };
        left = fewer;
        future.as_mut().poll(context).map(|_| true)
    })
    .await
}

/// The connection of a caller that goes away while its transaction begins serves the next one, whose write stays.
#[tokio::test]
async fn a_caller_that_goes_away_leaves_no_transaction_open() {
    for test in engines().await {
        let config = Config { connections: 1, ..test.config.clone() };
        let db = Db::open(&config, "counting", &[COUNTERS]).await.unwrap();
        let elsewhere = test.open("counting", &[COUNTERS]).await.unwrap();
        let mut is_done = false;
        for polls in 1.. {
            let id = format!("after {polls}");
            is_done |= is_done_within(polls, db.begin_write()).await;
            insert(&db, &id, 1).await.unwrap();
            let read = on_db!(elsewhere, |c| sqlx::query_scalar(READ).bind(&id).fetch_optional(c).await);
            let n: Option<i64> = read.unwrap();
            assert_eq!(n, Some(1), "{}: dropped at poll {polls}", test.engine);
            // Once more than it takes, which differs from run to run.
            if is_done && polls >= 8 {
                break;
            }
        }
    }
}

/// What takes minutes, unless it is ended.
const ENDLESS: Dialect = Dialect {
    sqlite: "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n WHERE i < 0",
    postgres: "SELECT COUNT(*) FROM generate_series(1, 1000000000000) WHERE generate_series < 0",
};

#[tokio::test]
async fn a_transaction_ends_with_its_call() {
    for test in engines().await {
        let db = test.open("counting", &[COUNTERS]).await.unwrap();
        let deadline = std::time::Instant::now() + std::time::Duration::from_millis(50);
        let ended = crate::deadline::within(deadline, async {
            let mut tx = db.begin_read().await.unwrap();
            let text = ENDLESS.of(tx.engine());
            on_db!(tx, |c| sqlx::query(text).execute(c).await.map(|_| ()))
        });
        assert_eq!(ended.await.unwrap_err().kind(), Kind::TimedOut, "{}", test.engine);
        insert(&db, "after", 1).await.unwrap();
        let mut tx = db.begin_read().await.unwrap();
        let n: i64 = on_db!(tx, |c| sqlx::query_scalar(READ).bind("after").fetch_one(c).await).unwrap();
        assert_eq!(n, 1, "{}", test.engine);
    }
}

/// However much some workspaces read at length, there is a permit for another one, or else a connection for what is brief.
#[tokio::test]
async fn what_is_read_at_length_leaves_connections_to_others() {
    use futures::FutureExt as _;
    for test in engines().await {
        let db = test.open("counting", &[COUNTERS]).await.unwrap();
        insert(&db, "n", 1).await.unwrap();
        let workspaces: [WorkspaceId; 3] = [1, 2, 3].map(|n| WorkspaceId(uuid::Uuid::from_u128(n)));
        let mut held = Vec::new();
        for (place, workspace) in workspaces.into_iter().enumerate() {
            let mut own = 0;
            while let Some(permit) = db.read_permit(workspace).now_or_never() {
                let mut tx = db.begin_read().await.unwrap();
                on_db!(tx, |c| sqlx::query(READ).bind("n").fetch_one(c).await.map(|_| ())).unwrap();
                held.push((permit.unwrap(), tx));
                own += 1;
            }
            assert!(place == 2 || own > 0, "{}", test.engine);
        }
        let n: i64 = on_db!(db, |c| sqlx::query_scalar(READ).bind("n").fetch_one(c).await).unwrap();
        assert_eq!(n, 1, "{}", test.engine);
        drop(held);
        for workspace in workspaces {
            drop(db.read_permit(workspace).await.unwrap());
        }
    }
}

#[tokio::test]
async fn a_read_only_file_is_full_not_internal() {
    let folder = tempfile::tempdir().unwrap();
    let config = Config::sqlite(folder.path().join("missing/folder.db"));
    let error = Db::open(&config, "counting", &[COUNTERS]).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Unavailable);

    let refused = Config::postgres("postgres://nobody@127.0.0.1:1/none");
    let error = Db::open(&refused, "counting", &[COUNTERS]).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Unavailable, "{error}");
}

#[test]
fn a_url_names_the_engine_and_is_not_shown() {
    assert_eq!(Config::from_url("sqlite:///data/content.db").unwrap(), Config::sqlite("/data/content.db"));
    let secret = Config::from_url("postgres://u:secret@h/d").unwrap();
    assert!(!format!("{secret:?}").contains("secret"));
    let odd = Config::from_url("mysql://u:secret@h/d").unwrap_err();
    assert!(!odd.to_string().contains("secret"));
}
