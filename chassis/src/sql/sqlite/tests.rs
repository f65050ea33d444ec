use futures::future::join_all;
use tempfile::TempDir;

use super::*;

fn pool(folder: &TempDir, max: u32, idle_policy: IdlePolicy) -> Pool {
    let options = SqliteConnectOptions::new().filename(folder.path().join("t.db")).create_if_missing(true);
    Pool::new(options, "test", max, idle_policy)
}

async fn one(pool: &Pool) -> i64 {
    sqlx::query_scalar("SELECT 1").fetch_one(pool).await.unwrap()
}

async fn count(pool: &Pool) -> i64 {
    sqlx::query_scalar("SELECT count(*) FROM t").fetch_one(pool).await.unwrap()
}

#[tokio::test]
async fn a_statement_with_a_bound_limit_is_planned_once_and_connections_share_no_lock() {
    let folder = TempDir::new().unwrap();
    let pool = pool(&folder, 1, IdlePolicy::CloseAfterTimeout);
    let options = [("ENABLE_QPSG", true), ("DEFAULT_MEMSTATUS=0", true), ("ENABLE_MEMORY_MANAGEMENT", false)];
    for (option, wanted) in options {
        let asked = sqlx::query_scalar("SELECT sqlite_compileoption_used($1)").bind(option);
        let is_used: bool = asked.fetch_one(&pool).await.unwrap();
        assert_eq!(is_used, wanted, "{option}: SQLite was built without the flags of .cargo/config.toml");
    }
}

#[tokio::test]
async fn connections_are_made_when_they_are_wanted_and_used_again() {
    let folder = TempDir::new().unwrap();
    let pool = pool(&folder, 3, IdlePolicy::CloseAfterTimeout);
    for _ in 0..5 {
        sqlx::query("SELECT 1").execute(&pool).await.unwrap();
    }
    assert_eq!(pool.0.idle().len(), 1);
    let connections = join_all((0..3).map(|_| pool.acquire())).await;
    assert!(pool.acquire().now_or_never().is_none(), "all are lent");
    connections.into_iter().for_each(|pooled| pooled.unwrap().done());
    assert_eq!(pool.0.idle().len(), 3);

    let later = Instant::now();
    pool.acquire().await.unwrap().done();
    assert_eq!(pool.0.take_idle(later).len(), 2, "the one on top was used since");
    assert_eq!(one(&pool).await, 1);
}

#[tokio::test]
async fn a_statement_that_fails_keeps_its_connection() {
    let folder = TempDir::new().unwrap();
    let pool = pool(&folder, 1, IdlePolicy::KeepOpen);
    assert!(sqlx::query("SELECT nothing FROM nowhere").execute(&pool).await.is_err());
    assert_eq!(pool.0.idle().len(), 1);
    assert_eq!(one(&pool).await, 1);
}

#[tokio::test]
async fn a_transaction_that_is_dropped_is_rolled_back_before_the_next() {
    let folder = TempDir::new().unwrap();
    let pool = pool(&folder, 1, IdlePolicy::KeepOpen);
    sqlx::query("CREATE TABLE t (n INTEGER)").execute(&pool).await.unwrap();
    for committed in 0..20 {
        let mut dropped = pool.begin("BEGIN IMMEDIATE").await.unwrap();
        sqlx::query("INSERT INTO t VALUES (0)").execute(dropped.connection()).await.unwrap();
        drop(dropped);
        let mut kept = pool.begin("BEGIN IMMEDIATE").await.unwrap();
        sqlx::query("INSERT INTO t VALUES (1)").execute(kept.connection()).await.unwrap();
        kept.commit(Box::new(|| {})).await.unwrap();
        assert_eq!(count(&pool).await, committed + 1);
    }
    assert_eq!(pool.0.idle().len(), 1, "it is still the same connection");
}

/// Wherever a caller goes away, in a queue, in the middle of a statement or of a commit.
#[tokio::test(flavor = "multi_thread")]
async fn callers_that_go_away_leave_every_connection_usable() {
    let folder = TempDir::new().unwrap();
    let pool = pool(&folder, 2, IdlePolicy::KeepOpen);
    sqlx::query("PRAGMA journal_mode = WAL").execute(&pool).await.unwrap();
    sqlx::query("CREATE TABLE t (n INTEGER)").execute(&pool).await.unwrap();
    let mut acknowledged = 0;
    for round in 0..200_u32 {
        let writing = async {
            let mut transaction = pool.begin("BEGIN IMMEDIATE").await?;
            for n in 0..3 {
                sqlx::query("INSERT INTO t VALUES ($1)").bind(n).execute(transaction.connection()).await?;
            }
            transaction.commit(Box::new(|| {})).await
        };
        let patience = Duration::from_micros(u64::from(round) * 5);
        match tokio::time::timeout(patience, writing).await {
            Ok(written) => acknowledged += written.map(|()| 1).unwrap(),
            Err(_gone) => {}
        }
        let rows = count(&pool).await;
        assert!(rows % 3 == 0 && rows >= acknowledged * 3, "{rows} rows of {acknowledged} writes");
    }
    for pooled in join_all((0..2).map(|_| pool.acquire())).await {
        let mut pooled = pooled.unwrap();
        sqlx::query("BEGIN IMMEDIATE").execute(&mut pooled).await.unwrap();
        sqlx::query("ROLLBACK").execute(&mut pooled).await.unwrap();
        pooled.done();
    }
}

/// It counts for longer than anybody waits.
const ENDLESS: &str =
    "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n WHERE i < 0";

#[tokio::test]
async fn a_statement_ends_when_its_caller_leaves() {
    let folder = TempDir::new().unwrap();
    let pool = pool(&folder, 1, IdlePolicy::KeepOpen);
    for _ in 0..3 {
        let mut endless = Box::pin(sqlx::query(ENDLESS).execute(&pool));
        assert!(tokio::time::timeout(Duration::from_millis(20), &mut endless).await.is_err());
        drop(endless);
        assert_eq!(one(&pool).await, 1, "the only connection is free again");
        let mut transaction = pool.begin("BEGIN").await.unwrap();
        let endless = sqlx::query(ENDLESS).execute(transaction.connection());
        assert!(tokio::time::timeout(Duration::from_millis(20), endless).await.is_err());
        drop(transaction);
    }
    assert_eq!(one(&pool).await, 1);
    assert_eq!(pool.0.idle().len(), 1, "it is still the same connection");
}

#[tokio::test]
async fn a_statement_ends_with_its_call() {
    let folder = TempDir::new().unwrap();
    let pool = pool(&folder, 1, IdlePolicy::KeepOpen);
    let deadline = std::time::Instant::now() + Duration::from_millis(20);
    let ended = deadline::within(deadline, sqlx::query(ENDLESS).execute(&pool)).await;
    let error = crate::sql::Error::from(ended.unwrap_err());
    assert_eq!(error.kind(), crate::sql::Kind::TimedOut, "{error}");
    assert_eq!(one(&pool).await, 1, "the next one has all the time it wants");
    assert_eq!(pool.0.idle().len(), 1);
}

#[tokio::test]
async fn closing_waits_for_what_is_lent() {
    let folder = TempDir::new().unwrap();
    let pool = pool(&folder, 2, IdlePolicy::CloseAfterTimeout);
    let lent = pool.acquire().await.unwrap();
    let mut closing = Box::pin(pool.close());
    assert!((&mut closing).now_or_never().is_none());
    drop(lent);
    closing.await;
    assert!(pool.0.idle().is_empty());
    assert!(matches!(pool.acquire().await, Err(Error::PoolClosed)));
}
