//! A SQLite database as it was at one moment, read from its files while others write to it.
//!
//! In WAL mode what is committed goes to the end of the log, and moves into the file only as far as the oldest reader has
//! seen. So while a transaction reads, the file and the part of the log that it saw are together what it sees: a page that
//! moves into the file meanwhile is in that part of the log too, and SQLite brings it over when it opens the copy. The
//! pages stay where they are in the file, so that the next backup finds those that did not change (docs/adr/0086).

use std::fs::File;
use std::io::ErrorKind;
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

use super::repository::PIECE_BYTES;

const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// How often a moment is looked for at which nobody commits. It takes about a millisecond.
const ATTEMPTS: usize = 1_000;
/// The head of a log; whoever begins the log anew writes another one first.
const HEAD_BYTES: usize = 32;

/// A database, held at one moment until it is [released](Self::release).
pub(super) struct Snapshot {
    service: &'static str,
    reading: SqliteConnection,
    /// Kept open as long as the connection: to close a file takes all locks from it that this process has.
    parts: Vec<Arc<Part>>,
}

/// One of its files.
pub(super) struct Part {
    name: String,
    file: File,
    length: u64,
    /// Of a log: its head when the moment was held.
    head: Option<[u8; HEAD_BYTES]>,
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
        for _ in 0..ATTEMPTS {
            let before = changes(&mut watching).await?;
            sqlx::query("BEGIN").execute(&mut reading).await?;
            // Only a statement that reads holds the moment.
            let _: i64 =
                sqlx::query_scalar("SELECT count(*) FROM sqlite_schema").fetch_one(&mut reading).await?;
            let parts = Part::of(folder, service)?;
            if changes(&mut watching).await? == before {
                watching.close().await?;
                return Ok(Self { service, reading, parts });
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
        // It only read: nothing is lost when the connection does not close well.
        let _ = self.reading.close().await;
        drop(self.parts);
    }
}

/// A number that is another one after anybody else has committed.
async fn changes(watching: &mut SqliteConnection) -> anyhow::Result<i64> {
    Ok(sqlx::query_scalar("PRAGMA data_version").fetch_one(watching).await?)
}

impl Part {
    fn of(folder: &Path, service: &str) -> anyhow::Result<Vec<Arc<Self>>> {
        let mut parts = Vec::new();
        for name in [format!("{service}.db"), format!("{service}.db-wal")] {
            let file = match fs::File::open(folder.join(&name)) {
                Ok(file) => file.into_parts().0,
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(error.into()),
            };
            let length = file.metadata()?.len();
            let is_log = !parts.is_empty();
            if is_log && length < HEAD_BYTES as u64 {
                continue;
            }
            let head = if is_log { Some(head_of(&file)?) } else { None };
            parts.push(Arc::new(Self { name, file, length, head }));
        }
        Ok(parts)
    }

    pub(super) fn name(&self) -> &str {
        &self.name
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
            Some(head) => Ok(head_of(&self.file)? == head),
            None => Ok(true),
        }
    }
}

fn head_of(file: &File) -> anyhow::Result<[u8; HEAD_BYTES]> {
    let mut head = [0; HEAD_BYTES];
    file.read_exact_at(&mut head, 0)?;
    Ok(head)
}
