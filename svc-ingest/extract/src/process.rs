//! One child process, as its parent sees it.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::frame::{self, Reply, Request};
use crate::model::{Failure, MOST_TEXT_BYTES, Raw, Text};

/// What is started for a child.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    pub(crate) arguments: Vec<OsString>,
}

/// A child that reads documents. Dropping it kills it and all that it may have started.
#[derive(Debug)]
pub(crate) struct Reader {
    child: Child,
    input: ChildStdin,
    output: ChildStdout,
    /// Documents that it has read.
    pub(crate) documents: u32,
    /// Bytes that it has read.
    pub(crate) bytes: usize,
}

/// A child answered nothing that can be understood, or has ended.
#[derive(Debug)]
pub(crate) struct Lost;

impl From<io::Error> for Lost {
    fn from(_: io::Error) -> Self {
        Self
    }
}

/// What a child says of a document.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) outcome: Result<Text, Failure>,
    /// Whether it should read no further document.
    pub(crate) worn: bool,
}

impl Reader {
    /// Starts a child in a process group of its own, with nothing of this process's environment.
    pub(crate) fn start(program: &Program) -> io::Result<Self> {
        let mut child = Command::new(&program.path)
            .args(&program.arguments)
            .env_clear()
            // A thread and an arena of the allocator for each core would fill the address space of a large machine.
            .env("RAYON_NUM_THREADS", "1")
            .env("MALLOC_ARENA_MAX", "1")
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        Ok(Self { child, input, output, documents: 0, bytes: 0 })
    }

    /// Whether it can still be asked.
    pub(crate) fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Has it read one document.
    pub(crate) async fn read(&mut self, raw: &Raw) -> Result<Answer, Lost> {
        self.documents += 1;
        self.bytes += raw.bytes.len();
        let head = frame::encode(&Request::of(raw)).map_err(|_| Lost)?;
        self.input.write_all(&head).await?;
        self.input.write_all(&raw.bytes).await?;
        self.input.flush().await?;

        let mut length = [0; 4];
        self.output.read_exact(&mut length).await?;
        let mut head = vec![0; frame::head_length(length).ok_or(Lost)?];
        self.output.read_exact(&mut head).await?;
        let reply: Reply = serde_json::from_slice(&head).map_err(|_| Lost)?;
        if reply.length > MOST_TEXT_BYTES {
            return Err(Lost);
        }
        let mut body = vec![0; reply.length];
        self.output.read_exact(&mut body).await?;
        let worn = reply.worn;
        let outcome = reply.with(body).ok_or(Lost)?;
        Ok(Answer { outcome, worn })
    }

    /// Ends it; answers whether it had used up its CPU time.
    pub(crate) async fn end(mut self) -> bool {
        // A child that closed its output ends by itself, and how it ended tells why. One that lives is killed.
        let ended = tokio::time::timeout(std::time::Duration::from_millis(500), self.child.wait()).await;
        matches!(ended, Ok(Ok(status)) if out_of_time(status))
    }
}

fn out_of_time(status: ExitStatus) -> bool {
    status.signal() == Some(Signal::XCPU.as_raw())
}

impl Drop for Reader {
    fn drop(&mut self) {
        let group = self.child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(group) = group
            && let Err(error) = kill_process_group(group, Signal::KILL)
        {
            tracing::debug!(%error, "a child that reads documents had ended already");
        }
    }
}
