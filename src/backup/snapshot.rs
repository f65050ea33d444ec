//! A SQLite database as it was at one moment, read from its files while others write to it.
//!
//! In WAL mode what is committed goes to the end of the log, and moves into the file only as far as the oldest reader has
//! seen. So while a transaction reads, the file and the part of the log that it saw are together what it sees: a page that
//! moves into the file meanwhile is in that part of the log too, and SQLite brings it over when it opens the copy. The
//! pages stay where they are in the file, so that the next backup finds those that did not change (docs/adr/0086).

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
/// How often a moment is looked for at which nobody commits. It takes about a millisecond.
const ATTEMPTS: usize = 1_000;

/// A database, held at one moment until it is [released](Self::release).
pub(super) struct Snapshot {
    service: &'static str,
    reading: SqliteConnection,
    /// Kept open as long as the connection: to close a file takes all locks from it that this process has.
    parts: Vec<Arc<Part>>,
    /// The index of the log, on which the locks of readers are.
    index: File,
}

/// One of its files.
pub(super) struct Part {
    name: String,
    file: File,
    /// What of it belongs to the moment.
    length: u64,
    /// Of a log: what it began with when the moment was held.
    head: Option<log::Head>,
}

impl Snapshot {
    /// Holds the database of a service in that folder at this moment.
    pub(super) async fn pin(folder: &Path, service: &'static str) -> anyhow::Result<Self> {
        let path = folder.join(format!("{service}.db"));
        let options =
            SqliteConnectOptions::new().filename(&path).busy_timeout(BUSY_TIMEOUT).pragma("query_only", "ON");
        let opened = || async {
            let connection = SqliteConnection::connect_with(&options).await;
            connection.with_context(|| format!("{} cannot be read", path.display()))
        };
        let (mut watching, mut reading) = (opened().await?, opened().await?);
        let mode: String = sqlx::query_scalar("PRAGMA journal_mode").fetch_one(&mut reading).await?;
        if mode != "wal" {
            bail!("{} is in the mode {mode}, and Cairn keeps it in wal", path.display());
        }
        // With a connection that has read, all files are there to stay. They are opened once, not for each attempt.
        changes(&mut watching).await?;
        let file = fs::File::open(&path)?.into_parts().0;
        let log = Log::open(&folder.join(log_of(service)), &folder.join(format!("{service}.db-shm")))?;
        for _ in 0..ATTEMPTS {
            let before = changes(&mut watching).await?;
            sqlx::query("BEGIN").execute(&mut reading).await?;
            // Only a statement that reads holds the moment.
            let _: i64 =
                sqlx::query_scalar("SELECT count(*) FROM sqlite_schema").fetch_one(&mut reading).await?;
            let seen = log.look()?;
            let length = file.metadata()?.len();
            if let Some(seen) = seen
                && changes(&mut watching).await? == before
            {
                watching.close().await?;
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

    /// Rows as they were at that moment.
    pub(super) async fn rows<Row>(&mut self, sql: &'static str) -> anyhow::Result<Vec<Row>>
    where
        Row: for<'r> FromRow<'r, SqliteRow> + Send + Unpin,
    {
        Ok(sqlx::query_as(sql).fetch_all(&mut self.reading).await?)
    }

    /// Its files: the database, then what of the log belongs to it.
    pub(super) fn parts(&self) -> Vec<Arc<Part>> {
        self.parts.clone()
    }

    /// Lets others go on with the log.
    pub(super) async fn release(self) {
        let Self { service: _, reading, parts, index } = self;
        // It only read: nothing is lost when the connection does not close well.
        let _ = reading.close().await;
        drop((parts, index));
    }
}

/// A number that is another one after anybody else has committed.
async fn changes(watching: &mut SqliteConnection) -> anyhow::Result<i64> {
    Ok(sqlx::query_scalar("PRAGMA data_version").fetch_one(watching).await?)
}

fn log_of(service: &str) -> String {
    format!("{service}.db-wal")
}

impl Part {
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// How many bytes of it belong to the moment.
    pub(super) const fn length(&self) -> u64 {
        self.length
    }

    /// Its bytes up to where it ended at that moment.
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

    /// Whether what was read belongs to the moment. A log that was begun anew does not: that happens only once all of it
    /// was in the file, which then is the moment without it.
    pub(super) fn is_as_it_was(&self) -> anyhow::Result<bool> {
        match self.head {
            Some(head) => Ok(log::head_of(&self.file)? == Some(head)),
            None => Ok(true),
        }
    }
}

#[cfg(test)]
mod tests;
