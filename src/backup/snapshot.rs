//! A consistent snapshot of a SQLite database, read from its files while others write to it.
//!
//! In WAL mode commits are appended to the log, and a checkpoint copies them into the database file only up to the
//! oldest reader. So while a read transaction is open, the file and the part of the log that the transaction sees are
//! together its snapshot: a page that is checkpointed meanwhile is also in that part of the log, from which SQLite
//! recovers it when it opens the copy. Pages keep their offsets in the file, so the next backup deduplicates the
//! unchanged ones (docs/adr/0086).

mod log;

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use bytes::Bytes;
use fs_err as fs;
use futures::stream::{self, BoxStream, StreamExt as _};
use sqlx::sqlite::{SqliteConnectOptions, SqliteRow};
use sqlx::{Connection as _, FromRow, SqliteConnection};

use self::log::Log;
use super::repository::PIECE_BYTES;

const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// How often to retry until no commit interferes. One attempt takes about a millisecond.
const ATTEMPTS: usize = 1_000;

/// A database with an open read transaction, until it is [released](Self::release).
pub(super) struct Snapshot {
    service: &'static str,
    reading: SqliteConnection,
    /// Stay open as long as the connection: closing a file releases all POSIX locks of this process on it.
    parts: Vec<Arc<Part>>,
    /// The WAL index, which holds the readers' locks.
    index: File,
}

/// One of its files.
pub(super) struct Part {
    name: String,
    file: File,
    /// The length that belongs to the snapshot.
    length: u64,
    /// For the log: its header when the snapshot was pinned.
    head: Option<log::Head>,
}

impl Snapshot {
    /// Pins a snapshot of the database of a service in that folder.
    pub(super) async fn pin(folder: &Path, service: &'static str) -> anyhow::Result<Self> {
        let path = folder.join(format!("{service}.db"));
        let options =
            SqliteConnectOptions::new().filename(&path).busy_timeout(BUSY_TIMEOUT).pragma("query_only", "ON");
        let opened = || async {
            let connection = SqliteConnection::connect_with(&options).await;
            connection.with_context(|| format!("{} cannot be read", path.display()))
        };
        let (mut watcher, mut reading) = (opened().await?, opened().await?);
        let mode: String = sqlx::query_scalar("PRAGMA journal_mode").fetch_one(&mut reading).await?;
        if mode != "wal" {
            bail!("{} is in the mode {mode}, and Cairn keeps it in wal", path.display());
        }
        // Once a connection has read, all files exist. They are opened once, not for each attempt.
        changes(&mut watcher).await?;
        let file = fs::File::open(&path)?.into_parts().0;
        let log = Log::open(&folder.join(log_of(service)), &folder.join(format!("{service}.db-shm")))?;
        for _ in 0..ATTEMPTS {
            let before = changes(&mut watcher).await?;
            sqlx::query("BEGIN").execute(&mut reading).await?;
            // Only a statement that reads starts the snapshot.
            let _: i64 =
                sqlx::query_scalar("SELECT count(*) FROM sqlite_schema").fetch_one(&mut reading).await?;
            let seen = log.look()?;
            let length = file.metadata()?.len();
            if let Some(seen) = seen
                && changes(&mut watcher).await? == before
            {
                watcher.close().await?;
                let whole = Part { name: format!("{service}.db"), file, length, head: None };
                let (log, index) = log.into_part(log_of(service), seen);
                let parts = [whole].into_iter().chain(log).map(Arc::new).collect();
                return Ok(Self { service, reading, parts, index });
            }
            sqlx::query("ROLLBACK").execute(&mut reading).await?;
        }
        bail!("{} is written to without a pause; try again", path.display())
    }

    pub(super) const fn service(&self) -> &'static str {
        self.service
    }

    /// Rows as of the snapshot.
    pub(super) async fn rows<Row>(&mut self, sql: &'static str) -> anyhow::Result<Vec<Row>>
    where
        Row: for<'r> FromRow<'r, SqliteRow> + Send + Unpin,
    {
        Ok(sqlx::query_as(sql).fetch_all(&mut self.reading).await?)
    }

    /// Its files: the database, then the visible part of the log.
    pub(super) fn parts(&self) -> Vec<Arc<Part>> {
        self.parts.clone()
    }

    /// Ends the read transaction, so that checkpoints can proceed.
    pub(super) async fn release(self) {
        let Self { service: _, reading, parts, index } = self;
        // The transaction only read: an error on closing loses nothing.
        let _ = reading.close().await;
        drop((parts, index));
    }
}

/// A counter that changes when another connection commits.
async fn changes(watcher: &mut SqliteConnection) -> anyhow::Result<i64> {
    Ok(sqlx::query_scalar("PRAGMA data_version").fetch_one(watcher).await?)
}

fn log_of(service: &str) -> String {
    format!("{service}.db-wal")
}

impl Part {
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The length that belongs to the snapshot, in bytes.
    pub(super) const fn length(&self) -> u64 {
        self.length
    }

    /// The bytes of the file up to its length in the snapshot.
    pub(super) fn pieces(part: &Arc<Self>) -> BoxStream<'static, anyhow::Result<Bytes>> {
        let part = Arc::clone(part);
        let step = PIECE_BYTES as u64;
        let starts = (0..part.length).step_by(PIECE_BYTES);
        let read = move |start: u64| {
            let part = Arc::clone(&part);
            async move {
                let wanted = usize::try_from(step.min(part.length - start))?;
                let read = tokio::task::spawn_blocking(move || {
                    let mut bytes = vec![0; wanted];
                    part.file.read_exact_at(&mut bytes, start).map(|()| bytes)
                });
                Ok(Bytes::from(read.await??))
            }
        };
        stream::iter(starts).then(read).boxed()
    }

    /// Whether the bytes that were read belong to the snapshot. Those of a log that was reset do not: it is reset only
    /// once it is completely checkpointed, so the database file alone is the snapshot.
    pub(super) fn is_as_it_was(&self) -> anyhow::Result<bool> {
        match self.head {
            Some(head) => Ok(log::head_of(&self.file)? == Some(head)),
            None => Ok(true),
        }
    }
}

#[cfg(test)]
mod tests;
