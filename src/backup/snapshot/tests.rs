use futures::stream::TryStreamExt as _;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode};

use super::*;

async fn database(folder: &Path) -> SqliteConnection {
    let path = folder.join("auth.db");
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal);
    let mut connection = SqliteConnection::connect_with(&options).await.unwrap();
    run(&mut connection, "CREATE TABLE IF NOT EXISTS notes (id INTEGER PRIMARY KEY, text TEXT)").await;
    connection
}

async fn run(connection: &mut SqliteConnection, sql: &'static str) {
    sqlx::query(sql).execute(connection).await.unwrap();
}

/// Inserts `count` rows, each of a few pages.
async fn write(connection: &mut SqliteConnection, count: i64) {
    let sql = "INSERT INTO notes (text) WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $1) \
               SELECT hex(randomblob(6000)) FROM n";
    sqlx::query(sql).bind(count).execute(connection).await.unwrap();
}

/// The number of rows in a copy of the snapshot, after an integrity check.
async fn copied(snapshot: &Snapshot) -> i64 {
    let folder = tempfile::tempdir().unwrap();
    for part in snapshot.parts() {
        let bytes: Vec<Bytes> = Part::pieces(&part).try_collect().await.unwrap();
        if part.is_as_it_was().unwrap() {
            fs::write(folder.path().join(part.name()), bytes.concat()).unwrap();
        }
    }
    let options = SqliteConnectOptions::new().filename(folder.path().join("auth.db"));
    let mut copy = SqliteConnection::connect_with(&options).await.unwrap();
    let sound: String = sqlx::query_scalar("PRAGMA integrity_check").fetch_one(&mut copy).await.unwrap();
    assert_eq!(sound, "ok");
    sqlx::query_scalar("SELECT count(*) FROM notes").fetch_one(&mut copy).await.unwrap()
}

#[tokio::test]
async fn what_is_committed_later_is_not_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut writing = database(folder.path()).await;
    write(&mut writing, 20).await;
    let snapshot = Snapshot::pin(folder.path(), "auth").await.unwrap();
    write(&mut writing, 30).await;
    run(&mut writing, "PRAGMA wal_checkpoint(PASSIVE)").await;
    assert_eq!(copied(&snapshot).await, 20);
    snapshot.release().await;
    let later = Snapshot::pin(folder.path(), "auth").await.unwrap();
    assert_eq!(copied(&later).await, 50);
}

#[tokio::test]
async fn a_transaction_that_is_under_way_is_not_in_it_even_when_another_one_takes_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let mut writing = database(folder.path()).await;
    write(&mut writing, 20).await;
    // A small page cache forces the transaction to spill into the log before it commits.
    run(&mut writing, "PRAGMA cache_size = 10").await;
    run(&mut writing, "BEGIN IMMEDIATE").await;
    write(&mut writing, 200).await;
    let length = std::fs::metadata(folder.path().join("auth.db-wal")).unwrap().len();
    let snapshot = Snapshot::pin(folder.path(), "auth").await.unwrap();
    assert!(snapshot.parts()[1].length() < length, "it was in the log");
    run(&mut writing, "ROLLBACK").await;
    write(&mut writing, 3).await;
    assert_eq!(copied(&snapshot).await, 20);
}

#[tokio::test]
async fn a_commit_that_readers_do_not_see_yet_is_not_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut writing = database(folder.path()).await;
    write(&mut writing, 20).await;
    // A writer appends to the log, syncs it, and then updates the index: this is the state in between.
    let index = folder.path().join("auth.db-shm");
    let head = std::fs::read(&index).unwrap()[..96].to_vec();
    write(&mut writing, 3).await;
    let file = std::fs::OpenOptions::new().write(true).open(&index).unwrap();
    file.write_all_at(&head, 0).unwrap();
    let snapshot = Snapshot::pin(folder.path(), "auth").await.unwrap();
    assert_eq!(copied(&snapshot).await, 20);
    drop(file);
}

#[tokio::test]
async fn a_log_that_was_begun_anew_meanwhile_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let mut writing = database(folder.path()).await;
    write(&mut writing, 20).await;
    run(&mut writing, "PRAGMA wal_checkpoint(TRUNCATE)").await;
    write(&mut writing, 20).await;
    run(&mut writing, "PRAGMA wal_checkpoint(PASSIVE)").await;
    // The log is completely checkpointed: this reader does not pin it.
    let snapshot = Snapshot::pin(folder.path(), "auth").await.unwrap();
    write(&mut writing, 5).await;
    run(&mut writing, "PRAGMA wal_checkpoint(PASSIVE)").await;
    assert!(!snapshot.parts()[1].is_as_it_was().unwrap());
    assert_eq!(copied(&snapshot).await, 40);
}

#[tokio::test]
async fn many_writers_leave_a_moment_to_hold() {
    let folder = tempfile::tempdir().unwrap();
    let mut writing = database(folder.path()).await;
    let path = folder.path().to_owned();
    let writer = tokio::spawn(async move {
        for _ in 0..300 {
            write(&mut writing, 1).await;
        }
        writing
    });
    let mut last = 0;
    while !writer.is_finished() {
        let snapshot = Snapshot::pin(&path, "auth").await.unwrap();
        let now = copied(&snapshot).await;
        assert!(now >= last, "{now} after {last}");
        last = now;
        snapshot.release().await;
    }
    drop(writer.await.unwrap());
}
