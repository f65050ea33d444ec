//! The parent's side of one child process.

use std::io;

use cairn_child::{Process, Program, head_length};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{ChildStdin, ChildStdout};

use crate::frame::{Reply, Request};
use crate::model::{Failure, MAX_TEXT_BYTES, Raw, Text};

/// A child that reads documents. Dropping it kills it and its descendants.
#[derive(Debug)]
pub(crate) struct Reader {
    process: Process,
    input: ChildStdin,
    output: ChildStdout,
    /// Documents that it has read.
    pub(crate) documents: u32,
    /// Bytes that it has read.
    pub(crate) bytes: usize,
}

/// A child crashed or broke the protocol.
#[derive(Debug)]
pub(crate) struct Lost;

impl From<io::Error> for Lost {
    fn from(_: io::Error) -> Self {
        Self
    }
}

/// A child's answer about a document.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) outcome: Result<Text, Failure>,
    /// Whether the child must be replaced.
    pub(crate) worn: bool,
}

impl Reader {
    /// Starts a child.
    pub(crate) fn start(program: &Program) -> io::Result<Self> {
        let (process, input, output) = Process::start(program, std::process::Stdio::piped())?;
        let input = input.ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Self { process, input, output, documents: 0, bytes: 0 })
    }

    /// Whether it is still running.
    pub(crate) fn is_alive(&mut self) -> bool {
        self.process.is_alive()
    }

    /// Sends it one document and waits for the answer.
    pub(crate) async fn read(&mut self, raw: &Raw) -> Result<Answer, Lost> {
        self.documents += 1;
        self.bytes += raw.bytes.len();
        let head = cairn_child::encode(&Request::of(raw)).map_err(|_| Lost)?;
        self.input.write_all(&head).await?;
        self.input.write_all(&raw.bytes).await?;
        self.input.flush().await?;

        let mut length = [0; 4];
        self.output.read_exact(&mut length).await?;
        let mut head = vec![0; head_length(length).ok_or(Lost)?];
        self.output.read_exact(&mut head).await?;
        let reply: Reply = serde_json::from_slice(&head).map_err(|_| Lost)?;
        if reply.length > MAX_TEXT_BYTES {
            return Err(Lost);
        }
        let mut body = vec![0; reply.length];
        self.output.read_exact(&mut body).await?;
        let worn = reply.worn;
        let outcome = reply.with(body).ok_or(Lost)?;
        Ok(Answer { outcome, worn })
    }

    /// Kills it; returns whether it had exceeded its CPU time.
    pub(crate) async fn end(self) -> bool {
        self.process.end().await
    }
}
