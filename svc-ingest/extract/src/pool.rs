//! The children that read documents, and who may use them.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use cairn_child::Program;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;

use crate::child::{CHILD_COMMAND, gave_up};
use crate::model::{Failure, FailureKind, MOST_FILE_BYTES, Raw, Text};
use crate::process::{Answer, Lost, Reader};
use crate::read;

/// A text up to this is decoded in less time than a thread is woken and asked.
const AT_ONCE_BYTES: usize = 64 * 1024;

/// How documents are read.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The program whose children read.
    pub program: PathBuf,
    /// The arguments that make it [`crate::child_main`].
    pub arguments: Vec<OsString>,
    /// Documents that are read at once, each by a child of its own.
    pub children: usize,
    /// How long one document may take, from when a child gets it.
    pub wall: Duration,
    /// Documents after which a child is replaced: what leaks in a parser goes with it.
    pub documents: u32,
    /// Bytes after which a child is replaced: the memory that a large file took goes with it.
    pub bytes: usize,
    /// How long a child without work is kept.
    pub idle: Duration,
}

impl Settings {
    /// Children of this binary, which reads documents when it is started with these arguments.
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

/// Reads documents in child processes. Clones share the children; they are started when they are first needed.
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
    /// An extractor with those settings; it starts no child yet.
    pub fn start(settings: Settings) -> Self {
        let program = Program { path: settings.program.clone(), arguments: settings.arguments.clone() };
        let permits = Semaphore::new(settings.children.max(1));
        let pool = Pool { program, settings, permits, idle: Mutex::default() };
        Self { inside: Inside::Children(Arc::new(pool)) }
    }

    /// An extractor without children: what a file does to its reader, it does to the test.
    #[cfg(feature = "testing")]
    pub fn in_this_process() -> Self {
        Self { inside: Inside::ThisProcess }
    }

    /// The text of a document. What is text already is decoded here and now; for the rest it waits until a child is free.
    /// Giving up waiting (dropping the future) frees the child.
    ///
    /// # Errors
    /// [`Failure`] with a sentence for a person: for what is no document, holds no text, or cannot be read within the
    /// limits. Only [`FailureKind::Unavailable`] is about this machine and not about the document.
    pub async fn extract(&self, raw: Raw) -> Result<Text, Failure> {
        if raw.bytes.len() > MOST_FILE_BYTES {
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

/// Reads a document in this process, a long one on a thread that may be busy for a while.
async fn read_here(raw: Raw) -> Result<Text, Failure> {
    if raw.bytes.len() <= AT_ONCE_BYTES {
        return read::read(&raw);
    }
    tokio::task::spawn_blocking(move || read::read(&raw)).await.unwrap_or_else(|_| Err(gave_up()))
}

impl Pool {
    async fn extract(self: &Arc<Self>, raw: &Raw) -> Result<Text, Failure> {
        let permit = self.permits.acquire().await.map_err(|_| unavailable())?;
        let mut reader = self.reader()?;
        // Dropping the reader kills the child: that is what happens when this future is dropped.
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
            self.keep(reader, permit);
        }
        outcome
    }

    /// A child that waits for work, or a new one.
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

    /// Keeps a child for the next document, unless it has read its share. The permit goes last, so that whoever waits for
    /// it finds the child.
    fn keep(self: &Arc<Self>, reader: Reader, permit: SemaphorePermit<'_>) {
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

/// Ends children that have been without work for that long, once.
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
