use futures::future::join_all;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode};
use tempfile::TempDir;

use super::*;
use crate::sql::Kind;
use crate::sql::sqlite::IdlePolicy;
use crate::{deadline, sql};

struct Bench {
    writer: Writer,
    reader: Pool,
    _folder: TempDir,
}

impl Bench {
    async fn open() -> Self {
        let folder = TempDir::new().unwrap();
        let options = SqliteConnectOptions::new()
            .filename(folder.path().join("t.db"))
            .create_if_missing(true)
            .foreign_keys(true)
            .journal_mode(SqliteJournalMode::Wal);
        let writer = Writer::with_max_group_age(
            Pool::new(options.clone(), "test", 1, IdlePolicy::KeepOpen),
            Duration::from_secs(3_600),
        );
        let reader = Pool::new(options, "test", 2, IdlePolicy::KeepOpen);
        for table in [
            "CREATE TABLE t (n INTEGER PRIMARY KEY, of INTEGER)",
            "CREATE TABLE child (n INTEGER REFERENCES t (n) DEFERRABLE INITIALLY DEFERRED)",
        ] {
            sqlx::query(table).execute(&writer).await.unwrap();
        }
        Self { writer, reader, _folder: folder }
    }

    /// What others see.
    async fn rows(&self) -> Vec<i64> {
        sqlx::query_scalar("SELECT n FROM t ORDER BY n").fetch_all(&self.reader).await.unwrap()
    }

    /// A first caller that has written, and a second one whose turn it is in the transaction of the first, which waits
    /// for the commit.
    async fn two(&self) -> (Waiting, Turn) {
        let mut first = self.writer.begin().await.unwrap();
        insert(&mut first, 1).await.unwrap();
        let (first, second) = self.behind(first).await;
        assert_eq!(second.group.members.len(), 1, "it stands in the transaction of the first");
        (first, second)
    }

    /// A caller that waits for the commit, and the one behind it, whose turn it is.
    async fn behind(&self, turn: Turn) -> (Waiting, Turn) {
        let writer = self.writer.clone();
        let next = tokio::spawn(async move { writer.begin().await.unwrap() });
        while self.writer.0.queue().waiters.is_empty() {
            tokio::task::yield_now().await;
        }
        let before = tokio::spawn(commit(turn));
        (before, next.await.unwrap())
    }

    /// A caller that goes away, and the one behind it, whose turn it is.
    async fn behind_gone(&self, turn: Turn) -> Turn {
        let writer = self.writer.clone();
        let next = tokio::spawn(async move { writer.begin().await.unwrap() });
        while self.writer.0.queue().waiters.is_empty() {
            tokio::task::yield_now().await;
        }
        drop(turn);
        next.await.unwrap()
    }
}

/// After which nothing is to be done.
async fn commit(turn: Turn) -> Result<(), Error> {
    turn.commit(Box::new(|| {})).await
}

type Waiting = tokio::task::JoinHandle<Result<(), Error>>;

async fn insert(turn: &mut Turn, n: i64) -> Result<(), Error> {
    sqlx::query("INSERT INTO t (n) VALUES ($1)").bind(n).execute(turn.connection()).await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn those_who_come_together_are_told_after_one_commit() {
    let bench = Bench::open().await;
    let (first, mut second) = bench.two().await;
    insert(&mut second, 2).await.unwrap();
    assert!(!first.is_finished(), "nothing is acknowledged before the commit");
    assert!(bench.rows().await.is_empty(), "and nobody sees it");
    commit(second).await.unwrap();
    first.await.unwrap().unwrap();
    assert_eq!(bench.rows().await, [1, 2]);
    assert_eq!(bench.writer.usage().used, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_takes_back_is_only_its_own() {
    for how in ["rolled back", "dropped", "refused"] {
        let bench = Bench::open().await;
        let (first, mut second) = bench.two().await;
        insert(&mut second, 2).await.unwrap();
        match how {
            "rolled back" => {
                second.rollback().await.unwrap();
                assert_eq!(bench.rows().await, [1], "who has seen the first finds it");
            }
            "dropped" => drop(second),
            _ => {
                assert!(insert(&mut second, 1).await.is_err(), "the key of the first is taken");
                drop(second);
            }
        }
        first.await.unwrap().unwrap();
        assert_eq!(bench.rows().await, [1], "{how}");
        let mut third = bench.writer.begin().await.unwrap();
        insert(&mut third, 2).await.unwrap();
        commit(third).await.unwrap();
        assert_eq!(bench.rows().await, [1, 2], "{how}");
    }
}

/// To hand a statement over to the connection's thread and back is most of what a small one costs.
#[tokio::test(flavor = "multi_thread")]
async fn to_begin_and_to_set_a_savepoint_are_no_messages_of_their_own() {
    let bench = Bench::open().await;
    let sent = || bench.writer.0.pool.sent();
    let before = sent();
    let mut alone = bench.writer.begin().await.unwrap();
    insert(&mut alone, 9).await.unwrap();
    commit(alone).await.unwrap();
    assert_eq!(sent() - before, 2, "its statement, and the commit");

    let before = sent();
    commit(bench.writer.begin().await.unwrap()).await.unwrap();
    bench.writer.begin().await.unwrap().rollback().await.unwrap();
    assert_eq!(sent() - before, 0, "there was nothing to begin");

    let before = sent();
    let (first, mut second) = bench.two().await;
    insert(&mut second, 2).await.unwrap();
    let (second, mut third) = bench.behind(second).await;
    insert(&mut third, 3).await.unwrap();
    commit(third).await.unwrap();
    first.await.unwrap().unwrap();
    second.await.unwrap().unwrap();
    assert_eq!(sent() - before, 4, "a statement of each, and one commit");
    assert_eq!(bench.rows().await, [1, 2, 3, 9]);
}

/// What it would have taken back is what the one before it wrote, behind the savepoint before.
#[tokio::test(flavor = "multi_thread")]
async fn a_caller_without_a_savepoint_takes_back_nothing() {
    for is_begun in [false, true] {
        let bench = Bench::open().await;
        let (first, mut second) = bench.two().await;
        insert(&mut second, 2).await.unwrap();
        let (second, mut third) = bench.behind(second).await;
        if is_begun {
            let _gone = insert(&mut third, 3).now_or_never();
        }
        let mut fourth = bench.behind_gone(third).await;
        insert(&mut fourth, 4).await.unwrap();
        assert!(insert(&mut fourth, 1).await.is_err());
        fourth.rollback().await.unwrap();
        first.await.unwrap().unwrap();
        second.await.unwrap().unwrap();
        assert_eq!(bench.rows().await, [1, 2], "{is_begun}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_statement_that_is_refused_leaves_a_transaction_to_go_on_in() {
    let bench = Bench::open().await;
    sqlx::query("INSERT INTO t (n) VALUES (7)").execute(&bench.writer).await.unwrap();
    let mut alone = bench.writer.begin().await.unwrap();
    assert!(insert(&mut alone, 7).await.is_err());
    insert(&mut alone, 8).await.unwrap();
    assert_eq!(bench.rows().await, [7], "it is not committed yet");
    alone.rollback().await.unwrap();
    assert_eq!(bench.rows().await, [7]);
}

/// As with `execute`, and with what reads more than a row.
#[tokio::test]
async fn a_first_statement_answers_for_itself_alone() {
    let bench = Bench::open().await;
    for n in 1..=3 {
        sqlx::query("INSERT INTO t (n) VALUES ($1)").bind(n).execute(&bench.writer).await.unwrap();
    }
    let mut turn = bench.writer.begin().await.unwrap();
    let none = sqlx::query("UPDATE t SET of = 1 WHERE n = 9").execute(turn.connection()).await.unwrap();
    assert_eq!(none.rows_affected(), 0, "and not of the statement before the transaction");
    turn.rollback().await.unwrap();
    let mut turn = bench.writer.begin().await.unwrap();
    let all: Vec<i64> =
        sqlx::query_scalar("SELECT n FROM t ORDER BY n").fetch_all(turn.connection()).await.unwrap();
    assert_eq!(all, [1, 2, 3]);
    turn.rollback().await.unwrap();
    let mut turn = bench.writer.begin().await.unwrap();
    let insert = "INSERT INTO t (n) VALUES ($1) RETURNING n";
    let made: i64 = sqlx::query_scalar(insert).bind(4_i64).fetch_one(turn.connection()).await.unwrap();
    assert_eq!(made, 4);
    commit(turn).await.unwrap();
    assert_eq!(bench.rows().await, [1, 2, 3, 4]);
}

/// SQLite takes back the whole transaction after some failures, as of a full disk.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_told_of_a_commit_that_was_taken_back() {
    for goes_on in [true, false] {
        let bench = Bench::open().await;
        let (first, mut second) = bench.two().await;
        sqlx::query("ROLLBACK").execute(second.connection()).await.unwrap();
        if goes_on {
            let error = sql::Error::from(commit(second).await.unwrap_err());
            assert_eq!(error.kind(), Kind::Conflict, "{error}");
        } else {
            drop(second);
        }
        let error = sql::Error::from(first.await.unwrap().unwrap_err());
        assert_eq!(error.kind(), Kind::Conflict, "the same again may work: {error}");
        let mut third = bench.writer.begin().await.unwrap();
        insert(&mut third, 3).await.unwrap();
        commit(third).await.unwrap();
        assert_eq!(bench.rows().await, [3]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_fails_is_told_to_all_and_leaves_nothing() {
    let bench = Bench::open().await;
    let (first, mut second) = bench.two().await;
    sqlx::query("INSERT INTO child (n) VALUES (7)").execute(second.connection()).await.unwrap();
    assert!(commit(second).await.is_err(), "there is no 7");
    assert!(first.await.unwrap().is_err());
    assert!(bench.rows().await.is_empty());
    sqlx::query("INSERT INTO t (n) VALUES (7)").execute(&bench.writer).await.unwrap();
    assert_eq!(bench.rows().await, [7]);
}

/// SQLite takes back everything when it ends a statement that writes.
#[tokio::test(flavor = "multi_thread")]
async fn a_statement_that_nobody_waits_for_ends_without_harm_to_others() {
    const LONG: &str = "INSERT INTO t (n) WITH RECURSIVE n (i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n LIMIT 200000) \
                        SELECT i FROM n";
    let bench = Bench::open().await;
    let (first, mut second) = bench.two().await;
    let patience = std::time::Instant::now() + Duration::from_millis(5);
    let ended = deadline::within(patience, async {
        tokio::time::timeout(Duration::from_millis(5), sqlx::query(LONG).execute(second.connection())).await
    });
    assert!(ended.await.is_err(), "it takes longer");
    drop(second);
    first.await.unwrap().unwrap();
    assert_eq!(bench.rows().await, [1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn single_statements_share_a_commit_too() {
    let bench = Bench::open().await;
    let mut first = bench.writer.begin().await.unwrap();
    insert(&mut first, 1).await.unwrap();
    let mut behind = Vec::new();
    for n in [2, 3, 3, 4_i64] {
        let (writer, waiting) = (bench.writer.clone(), bench.writer.0.queue().waiters.len());
        behind.push(tokio::spawn(async move {
            sqlx::query("INSERT INTO t (n) VALUES ($1)").bind(n).execute(&writer).await
        }));
        while bench.writer.0.queue().waiters.len() == waiting {
            tokio::task::yield_now().await;
        }
    }
    commit(first).await.unwrap();
    let done: Vec<bool> = join_all(behind).await.into_iter().map(|done| done.unwrap().is_ok()).collect();
    assert_eq!(done, [true, true, false, true], "the second 3 is refused, and nothing else");
    assert_eq!(bench.rows().await, [1, 2, 3, 4]);
}

/// Wherever callers go away, in the line, in the middle of a statement or of a commit: each write is there whole or not at
/// all, what was acknowledged is there, and the next one gets its turn.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn callers_that_go_away_harm_nobody() {
    const ROWS: i64 = 3;
    let bench = Bench::open().await;
    let mut callers = tokio::task::JoinSet::new();
    for caller in 0..8_i64 {
        let writer = bench.writer.clone();
        callers.spawn(async move {
            let mut acknowledged = Vec::new();
            for round in 0..60_i64 {
                let write = caller * 1_000 + round;
                let writing = async {
                    let mut turn = writer.begin().await?;
                    for n in 0..ROWS {
                        sqlx::query("INSERT INTO t (n, of) VALUES ($1, $2)")
                            .bind(write * ROWS + n)
                            .bind(write)
                            .execute(turn.connection())
                            .await?;
                    }
                    match round % 5 {
                        4 => turn.rollback().await.map(|()| false),
                        _ => commit(turn).await.map(|()| true),
                    }
                };
                let patience = Duration::from_micros(u64::try_from(round * 50 + caller).unwrap());
                if let Ok(ended) = tokio::time::timeout(patience, writing).await
                    && ended.unwrap()
                {
                    acknowledged.push(write);
                }
            }
            acknowledged
        });
    }
    let acknowledged: Vec<i64> = callers.join_all().await.into_iter().flatten().collect();
    let last = bench.writer.begin().await.unwrap();
    commit(last).await.unwrap();
    let kept: Vec<(i64, i64)> =
        sqlx::query_as("SELECT of, COUNT(*) FROM t GROUP BY of").fetch_all(&bench.reader).await.unwrap();
    assert!(kept.iter().all(|(_, rows)| *rows == ROWS), "half a write: {kept:?}");
    assert!(kept.iter().all(|(write, _)| write % 1_000 % 5 != 4), "one that was taken back: {kept:?}");
    for write in acknowledged {
        assert!(kept.iter().any(|(kept, _)| *kept == write), "{write} was acknowledged");
    }
    assert_eq!(bench.writer.usage().used, 0);
}

/// Watchers of a feed are woken so: a caller that goes away has still written.
#[tokio::test(flavor = "multi_thread")]
async fn what_follows_a_commit_is_done_in_order_and_for_callers_that_are_gone() {
    let bench = Bench::open().await;
    let done: Arc<Mutex<Vec<i64>>> = Arc::default();
    let note = |n| {
        let done = Arc::clone(&done);
        Box::new(move || done.lock().unwrap().push(n)) as CommitHook
    };
    let mut first = bench.writer.begin().await.unwrap();
    insert(&mut first, 1).await.unwrap();
    let writer = bench.writer.clone();
    let next = tokio::spawn(async move { writer.begin().await.unwrap() });
    while bench.writer.0.queue().waiters.is_empty() {
        tokio::task::yield_now().await;
    }
    assert!(first.commit(note(1)).now_or_never().is_none(), "it waits, and goes away");
    let mut second = next.await.unwrap();
    insert(&mut second, 2).await.unwrap();
    assert!(done.lock().unwrap().is_empty(), "nothing is committed yet");
    second.commit(note(2)).await.unwrap();
    assert_eq!(*done.lock().unwrap(), [1, 2]);
    assert_eq!(bench.rows().await, [1, 2]);
}

#[tokio::test]
async fn closing_waits_for_the_turn_that_there_is() {
    let bench = Bench::open().await;
    let mut turn = bench.writer.begin().await.unwrap();
    insert(&mut turn, 1).await.unwrap();
    let mut closing = Box::pin(bench.writer.close());
    assert!((&mut closing).now_or_never().is_none());
    commit(turn).await.unwrap();
    closing.await;
    assert!(matches!(bench.writer.begin().await, Err(Error::PoolClosed)));
    assert_eq!(bench.rows().await, [1]);
}
