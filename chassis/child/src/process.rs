//! A child process, from the parent's side.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// How long a child may take to exit after it has closed its output.
const END: Duration = Duration::from_millis(500);

/// The command line of a child.
#[derive(Debug, Clone)]
pub struct Program {
    /// The path of the executable.
    pub path: PathBuf,
    /// The arguments that make it a child.
    pub arguments: Vec<OsString>,
}

impl Program {
    /// This executable with these arguments.
    pub fn of_this_binary(arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        // This link refers to the running executable even after the file was replaced.
        let running = PathBuf::from("/proc/self/exe");
        let path = if running.exists() { running } else { std::env::current_exe().unwrap_or_default() };
        Self { path, arguments: arguments.into_iter().map(Into::into).collect() }
    }
}

/// A child process. Dropping it kills its process group.
#[derive(Debug)]
pub struct Process {
    child: Child,
}

impl Process {
    /// Starts a child in its own process group and with an empty environment. Returns it with its input, if `input` is a pipe,
    /// and its output.
    ///
    /// # Errors
    /// When the program cannot be started.
    pub fn start(
        program: &Program,
        input: impl Into<Stdio>,
    ) -> io::Result<(Self, Option<ChildStdin>, ChildStdout)> {
        let mut child = Command::new(&program.path)
            .args(&program.arguments)
            .env_clear()
            // With a thread and an allocator arena per core, a large machine would exceed the address space limit.
            .env("RAYON_NUM_THREADS", "1")
            .env("MALLOC_ARENA_MAX", "1")
            .current_dir("/")
            .stdin(input)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let output = output.ok_or(io::ErrorKind::BrokenPipe)?;
        Ok((Self { child }, input, output))
    }

    /// Whether it runs.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Ends it; returns whether it had used up its CPU time.
    pub async fn end(mut self) -> bool {
        // A child that has closed its output exits by itself, and its exit status is the reason. Otherwise it is killed.
        let ended = tokio::time::timeout(END, self.child.wait()).await;
        matches!(ended, Ok(Ok(status)) if out_of_time(status))
    }
}

fn out_of_time(status: ExitStatus) -> bool {
    status.signal() == Some(Signal::XCPU.as_raw())
}

impl Drop for Process {
    fn drop(&mut self) {
        let group = self.child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(group) = group
            && let Err(error) = kill_process_group(group, Signal::KILL)
        {
            tracing::debug!(%error, "a child process had ended already");
        }
    }
}
