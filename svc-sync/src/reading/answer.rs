//! The parent's side: starts children and reads their answers.

use std::fmt;
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use cairn_child::{Process, Program};
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncReadExt as _, BufReader};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::child::IMPORT_COMMAND;
use super::wire::{Frame, MAX_BODY_BYTES};

/// A child that sends nothing for this long is killed.
const IDLE_TIMEOUT: Duration = Duration::from_secs(120);
/// Concurrent children of this process.
const MAX_CHILDREN: usize = 2;
/// Bytes of one chunk of a body.
const CHUNK_BYTES: usize = 256 * 1024;

/// Why an archive could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The archive is refused: the code and message of a violation.
    Refused(String, String),
    /// The child crashed or timed out. A retry with the same archive would fail the same way.
    Lost,
    /// A temporary failure of this machine.
    Unavailable,
}

impl Failure {
    /// The message for a person.
    pub(crate) fn message(&self) -> &str {
        match self {
            Self::Refused(_, message) => message,
            Self::Lost => {
                "the archive could not be read: it is damaged, or needs more time or memory than an import may have"
            }
            Self::Unavailable => "the archive could not be read just now: try again",
        }
    }
}

impl From<io::Error> for Failure {
    fn from(_: io::Error) -> Self {
        Self::Lost
    }
}

/// A file with a question.
#[derive(Debug)]
pub(super) struct QuestionFile {
    pub(super) file: File,
    /// The offset of the question.
    pub(super) offset: u64,
}

/// Reads archives; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Reader {
    backend: Backend,
    permits: Arc<Semaphore>,
    idle_timeout: Duration,
}

#[derive(Debug, Clone)]
enum Backend {
    Children(Program),
    #[cfg(test)]
    ThisProcess,
}

impl Reader {
    /// Children of this binary.
    pub(crate) fn of_this_binary() -> Self {
        Self::of(Backend::Children(Program::of_this_binary([IMPORT_COMMAND])))
    }

    /// Reads in this process, without isolation.
    #[cfg(test)]
    pub(crate) fn in_this_process() -> Self {
        Self::of(Backend::ThisProcess)
    }

    /// Children of that program, each killed after that idle timeout.
    #[cfg(test)]
    pub(crate) fn of_program(program: Program, idle_timeout: Duration) -> Self {
        Self { idle_timeout, ..Self::of(Backend::Children(program)) }
    }

    fn of(backend: Backend) -> Self {
        Self { backend, permits: Arc::new(Semaphore::new(MAX_CHILDREN)), idle_timeout: IDLE_TIMEOUT }
    }

    /// Starts a child with a question; its answer is read frame by frame.
    pub(super) async fn ask(&self, question: QuestionFile) -> Result<Answers, Failure> {
        let permit = Arc::clone(&self.permits).acquire_owned().await.map_err(|_| Failure::Unavailable)?;
        let (process, output): (Option<Process>, Box<dyn AsyncRead + Send + Sync + Unpin>) = match &self
            .backend
        {
            Backend::Children(program) => {
                let mut program = program.clone();
                program.arguments.push(question.offset.to_string().into());
                let started = Process::start(&program, question.file);
                let (process, _, output) = started.map_err(|error| {
                    tracing::error!(%error, "no child process that reads archives can be started");
                    Failure::Unavailable
                })?;
                (Some(process), Box::new(output))
            }
            #[cfg(test)]
            Backend::ThisProcess => (None, Box::new(super::tests::answering(question.file, question.offset))),
        };
        let output = BufReader::new(output);
        Ok(Answers { output, left: 0, idle_timeout: self.idle_timeout, process, _permit: permit })
    }
}

/// The answer of a child. Dropping it kills the child.
pub(crate) struct Answers {
    output: BufReader<Box<dyn AsyncRead + Send + Sync + Unpin>>,
    /// Unread bytes of the current body.
    left: u64,
    idle_timeout: Duration,
    process: Option<Process>,
    _permit: OwnedSemaphorePermit,
}

impl fmt::Debug for Answers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Answers").field("left", &self.left).field("process", &self.process).finish()
    }
}

impl Answers {
    /// The head of the next frame; `None` after the last. Skips the rest of the current body.
    pub(crate) async fn next(&mut self) -> Result<Option<Frame>, Failure> {
        while self.chunk().await?.is_some() {}
        let frame: Frame = before_timeout(self.idle_timeout, self.head()).await?;
        let (length, is_any) = frame.length();
        if !is_any && length > MAX_BODY_BYTES {
            return Err(Failure::Lost);
        }
        self.left = length;
        if let Frame::Refused { code, message } = frame {
            return Err(code.map_or(Failure::Unavailable, |code| Failure::Refused(code, message)));
        }
        Ok(Some(frame).filter(|frame| !matches!(frame, Frame::End)))
    }

    async fn head(&mut self) -> io::Result<Frame> {
        let mut length = [0; 4];
        self.output.read_exact(&mut length).await?;
        let length = cairn_child::head_length(length).ok_or(io::ErrorKind::InvalidData)?;
        let mut head = vec![0; length];
        self.output.read_exact(&mut head).await?;
        Ok(serde_json::from_slice(&head)?)
    }

    /// The next chunk of the current body; `None` at its end.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, Failure> {
        if self.left == 0 {
            return Ok(None);
        }
        let most = CHUNK_BYTES.min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let mut chunk = BytesMut::zeroed(most);
        let count = before_timeout(self.idle_timeout, self.output.read(&mut chunk)).await?;
        if count == 0 {
            return Err(Failure::Lost);
        }
        chunk.truncate(count);
        self.left = self.left.saturating_sub(count as u64);
        Ok(Some(chunk.freeze()))
    }

    /// The whole current body, deserialized.
    pub(crate) async fn body<T: DeserializeOwned>(&mut self) -> Result<T, Failure> {
        let mut body = Vec::with_capacity(usize::try_from(self.left).unwrap_or(0));
        while let Some(chunk) = self.chunk().await? {
            body.extend_from_slice(&chunk);
        }
        serde_json::from_slice(&body).map_err(|_| Failure::Lost)
    }
}

async fn before_timeout<T>(
    timeout: Duration,
    read: impl Future<Output = io::Result<T>>,
) -> Result<T, Failure> {
    Ok(tokio::time::timeout(timeout, read).await.map_err(|_| Failure::Lost)??)
}
