//! What a child tells, as its parent hears it.

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
use super::wire::{MOST_BODY_BYTES, Told};

/// A child that tells nothing for so long is given up.
const SILENCE: Duration = Duration::from_secs(120);
/// Children of this process that read archives at once.
const AT_ONCE: usize = 2;
/// Of what is passed on at once.
const CHUNK_BYTES: usize = 256 * 1024;

/// Why an archive is not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The archive is refused: with the code of a violation.
    Refused(String, String),
    /// The child ended before it had told all, or took too long: with the archive as it is, it will again.
    Lost,
    /// This machine could not read just now.
    Unavailable,
}

impl Failure {
    /// A sentence for a person.
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

/// A question that stands in a file.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) file: File,
    /// Of the question.
    pub(super) place: u64,
}

/// Who reads archives; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Reader {
    way: Way,
    permits: Arc<Semaphore>,
    silence: Duration,
}

#[derive(Debug, Clone)]
enum Way {
    Children(Program),
    #[cfg(test)]
    ThisProcess,
}

impl Reader {
    /// Children of this binary.
    pub(crate) fn of_this_binary() -> Self {
        Self::of(Way::Children(Program::of_this_binary([IMPORT_COMMAND])))
    }

    /// What an archive does to its reader, it does to the test.
    #[cfg(test)]
    pub(crate) fn in_this_process() -> Self {
        Self::of(Way::ThisProcess)
    }

    /// Children of that program, each given up after that silence.
    #[cfg(test)]
    pub(crate) fn of_program(program: Program, silence: Duration) -> Self {
        Self { silence, ..Self::of(Way::Children(program)) }
    }

    fn of(way: Way) -> Self {
        Self { way, permits: Arc::new(Semaphore::new(AT_ONCE)), silence: SILENCE }
    }

    /// Asks; what is answered is heard one by one.
    pub(super) async fn ask(&self, asked: Asked) -> Result<Answers, Failure> {
        let permit = Arc::clone(&self.permits).acquire_owned().await.map_err(|_| Failure::Unavailable)?;
        let (process, output): (Option<Process>, Box<dyn AsyncRead + Send + Sync + Unpin>) = match &self.way {
            Way::Children(program) => {
                let mut program = program.clone();
                program.arguments.push(asked.place.to_string().into());
                let started = Process::start(&program, asked.file);
                let (process, _, output) = started.map_err(|error| {
                    tracing::error!(%error, "no child process that reads archives can be started");
                    Failure::Unavailable
                })?;
                (Some(process), Box::new(output))
            }
            #[cfg(test)]
            Way::ThisProcess => (None, Box::new(super::tests::answering(asked.file, asked.place))),
        };
        let output = BufReader::new(output);
        Ok(Answers { output, left: 0, silence: self.silence, process, _permit: permit })
    }
}

/// What a child tells. Dropping it ends the child.
pub(crate) struct Answers {
    output: BufReader<Box<dyn AsyncRead + Send + Sync + Unpin>>,
    /// Bytes of the body that was announced last.
    left: u64,
    silence: Duration,
    process: Option<Process>,
    _permit: OwnedSemaphorePermit,
}

impl fmt::Debug for Answers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Answers").field("left", &self.left).field("process", &self.process).finish()
    }
}

impl Answers {
    /// The next head; `None` after the last. What is left of a body is passed over.
    pub(crate) async fn next(&mut self) -> Result<Option<Told>, Failure> {
        while self.chunk().await?.is_some() {}
        let told: Told = heard(self.silence, self.head()).await?;
        let (length, is_any) = told.length();
        if !is_any && length > MOST_BODY_BYTES {
            return Err(Failure::Lost);
        }
        self.left = length;
        if let Told::Refused { code, message } = told {
            return Err(code.map_or(Failure::Unavailable, |code| Failure::Refused(code, message)));
        }
        Ok(Some(told).filter(|told| !matches!(told, Told::End)))
    }

    async fn head(&mut self) -> io::Result<Told> {
        let mut length = [0; 4];
        self.output.read_exact(&mut length).await?;
        let length = cairn_child::head_length(length).ok_or(io::ErrorKind::InvalidData)?;
        let mut head = vec![0; length];
        self.output.read_exact(&mut head).await?;
        Ok(serde_json::from_slice(&head)?)
    }

    /// Some bytes of the body that was announced; `None` behind its last.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, Failure> {
        if self.left == 0 {
            return Ok(None);
        }
        let most = CHUNK_BYTES.min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let mut chunk = BytesMut::zeroed(most);
        let count = heard(self.silence, self.output.read(&mut chunk)).await?;
        if count == 0 {
            return Err(Failure::Lost);
        }
        chunk.truncate(count);
        self.left = self.left.saturating_sub(count as u64);
        Ok(Some(chunk.freeze()))
    }

    /// The body that was announced, whole.
    pub(crate) async fn body<T: DeserializeOwned>(&mut self) -> Result<T, Failure> {
        let mut body = Vec::with_capacity(usize::try_from(self.left).unwrap_or(0));
        while let Some(chunk) = self.chunk().await? {
            body.extend_from_slice(&chunk);
        }
        serde_json::from_slice(&body).map_err(|_| Failure::Lost)
    }
}

async fn heard<T>(silence: Duration, telling: impl Future<Output = io::Result<T>>) -> Result<T, Failure> {
    Ok(tokio::time::timeout(silence, telling).await.map_err(|_| Failure::Lost)??)
}
