//! The pool of children that read documents.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use cairn_child::Program;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;

use crate::child::{CHILD_COMMAND, gave_up};
use crate::model::{Failure, FailureKind, MAX_FILE_BYTES, Raw, Text};
use crate::process::{Answer, Lost, Reader};
use crate::read;

/// Below this size, decoding a text inline is cheaper than a blocking task.
const INLINE_BYTES: usize = 64 * 1024;

/// The settings of the pool.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The program of the children.
    pub program: PathBuf,
    /// The arguments with which it runs [`crate::child_main`].
    pub arguments: Vec<OsString>,
    /// Concurrent children, each with one document.
    pub children: usize,
    /// The timeout of one document, after its wait for a child.
    pub wall: Duration,
    /// Documents after which a child is replaced, to bound leaks of parsers.
    pub documents: u32,
    /// Bytes after which a child is replaced, to release the memory of large files.
    pub bytes: usize,
    /// How long an idle child is kept.
    pub idle: Duration,
}

impl Settings {
    /// Children of this binary, started with these arguments.
    pub fn of_this_binary(arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        let Program { path: program, arguments } = Program::of_this_binary(arguments);
        Self {
            program,
            arguments,
            children: 2,
            wall: Duration::from_secs(30),
            documents: 100,
            bytes: 64 * 1024 * 1024,
            idle: Duration::from_secs(60),
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self::of_this_binary([CHILD_COMMAND])
    }
}

/// Extracts text in child processes. Clones share the pool; children are started on demand.
#[derive(Debug, Clone)]
pub struct Extractor {
    inside: Inside,
}

#[derive(Debug, Clone)]
enum Inside {
    Children(Arc<Pool>),
    #[cfg(feature = "testing")]
    ThisProcess,
}

#[derive(Debug)]
struct Pool {
    program: Program,
    settings: Settings,
    permits: Semaphore,
    idle: Mutex<Vec<Idle>>,
}

#[derive(Debug)]
struct Idle {
    reader: Reader,
    since: Instant,
}

impl Extractor {
    /// An extractor with these settings; starts no child yet.
    pub fn start(settings: Settings) -> Self {
        let program = Program { path: settings.program.clone(), arguments: settings.arguments.clone() };
        let permits = Semaphore::new(settings.children.max(1));
        let pool = Pool { program, settings, permits, idle: Mutex::default() };
        Self { inside: Inside::Children(Arc::new(pool)) }
    }

    /// An extractor without children, and so without isolation.
    #[cfg(feature = "testing")]
    pub fn in_this_process() -> Self {
        Self { inside: Inside::ThisProcess }
    }

    /// Extracts the text of a document. Plain text is decoded in this process; anything else waits for a child. Dropping the future kills
    /// the child.
    ///
    /// # Errors
    /// [`Failure`], with a message for people, when the file is invalid, has no text, or exceeds the limits. Only
    /// [`FailureKind::Unavailable`] is about this machine and not about the document.
    pub async fn extract(&self, raw: Raw) -> Result<Text, Failure> {
        if raw.bytes.len() > MAX_FILE_BYTES {
            return Err(Failure::new(
                FailureKind::TooLarge,
                "The file is over 100 MB, which is more than is read.",
            ));
        }
        if read::is_plain(&raw) {
            return read_here(raw).await;
        }
        match &self.inside {
            Inside::Children(pool) => pool.extract(&raw).await,
            #[cfg(feature = "testing")]
            Inside::ThisProcess => read_here(raw).await,
        }
    }
}

/// Reads a document in this process, a long one in a blocking task.
async fn read_here(raw: Raw) -> Result<Text, Failure> {
    if raw.bytes.len() <= INLINE_BYTES {
        return read::read(&raw);
    }
    tokio::task::spawn_blocking(move || read::read(&raw)).await.unwrap_or_else(|_| Err(gave_up()))
}

impl Pool {
    async fn extract(self: &Arc<Self>, raw: &Raw) -> Result<Text, Failure> {
        let permit = self.permits.acquire().await.map_err(|_| unavailable())?;
        let mut reader = self.reader()?;
        // Cancellation: dropping the reader kills the child.
        let answer = match tokio::time::timeout(self.settings.wall, reader.read(raw)).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(Lost)) => {
                let out_of_time = reader.end().await;
                return Err(if out_of_time { too_slow() } else { gave_up() });
            }
            Err(_) => return Err(too_slow()),
        };
        let Answer { outcome, worn } = answer;
        if !worn {
            self.recycle(reader, permit);
        }
        outcome
    }

    /// An idle child, or a new one.
    fn reader(&self) -> Result<Reader, Failure> {
        while let Some(Idle { mut reader, .. }) = self.idle().pop() {
            if reader.is_alive() {
                return Ok(reader);
            }
        }
        Reader::start(&self.program).map_err(|error| {
            tracing::error!(%error, "no child process that reads documents can be started");
            unavailable()
        })
    }

    /// Returns a child to the pool, unless it has to be replaced. The permit is released last, so that the next waiter finds the child.
    fn recycle(self: &Arc<Self>, reader: Reader, permit: SemaphorePermit<'_>) {
        if reader.documents >= self.settings.documents || reader.bytes >= self.settings.bytes {
            return;
        }
        self.idle().push(Idle { reader, since: Instant::now() });
        drop(permit);
        tokio::spawn(end_idle(Arc::downgrade(self), self.settings.idle));
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits for the idle timeout, and then kills the children that exceed it.
async fn end_idle(pool: Weak<Pool>, idle: Duration) {
    tokio::time::sleep(idle).await;
    if let Some(pool) = pool.upgrade() {
        pool.idle().retain(|waiting| waiting.since.elapsed() < idle);
    }
}

fn too_slow() -> Failure {
    Failure::new(
        FailureKind::Exhausted,
        "The file could not be read within the time that one document may take.",
    )
}

fn unavailable() -> Failure {
    Failure::new(FailureKind::Unavailable, "The file could not be read just now. Try again later.")
}
