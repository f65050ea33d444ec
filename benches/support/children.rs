//! CPU time and memory of a server's child processes, which read archives.

use std::fs;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use cairn_sync::IMPORT_COMMAND;
use tokio::task::JoinHandle;

use super::server::{self, Server, mebibytes};

/// The index of the CPU time of exited children in `/proc/…/stat` (`cutime` and `cstime`): fields 16 and 17.
const ENDED_CHILDREN: usize = 13;
const PAUSE: Duration = Duration::from_millis(20);
/// A child exits shortly after it has sent its result.
const EXIT_TIMEOUT: Duration = Duration::from_secs(10);

/// User and system time of the server and its children. The kernel adds that of a child (`cutime` and `cstime`) when the server
/// has reaped it, so this first waits until no child is running.
pub(crate) async fn cpu_time(server: &Server) -> anyhow::Result<Duration> {
    fs::metadata(format!("/proc/{0}/task/{0}/children", server.id()))
        .context("the kernel does not tell the children of the server (CONFIG_PROC_CHILDREN)")?;
    let asked = Instant::now();
    while children(server.id()).into_iter().any(|child| reads(child) != Some(false)) {
        ensure!(asked.elapsed() < EXIT_TIMEOUT, "a child of the server has not ended after {EXIT_TIMEOUT:?}");
        tokio::time::sleep(PAUSE).await;
    }
    Ok(server.cpu_time()? + server::cpu_time(server.id(), ENDED_CHILDREN)?)
}

/// Peak resident memory, in MiB.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Peaks {
    /// Sampled every 20 ms.
    pub(crate) server: f64,
    /// The server plus the anonymous memory (`RssAnon`) of its children, which share the server's executable, in one sample.
    pub(crate) together: f64,
    /// The high-water mark (`VmHWM`) of one child in its last sample.
    pub(crate) child: f64,
}

/// Samples a server until it is dropped.
#[derive(Debug)]
pub(crate) struct Sampler {
    peaks: Arc<Mutex<Peaks>>,
    task: JoinHandle<()>,
}

impl Sampler {
    pub(crate) fn start(server: &Server) -> Self {
        let peaks = Arc::<Mutex<Peaks>>::default();
        let task = tokio::spawn(sample(server.id(), Arc::clone(&peaks)));
        Self { peaks, task }
    }

    /// The peaks so far.
    pub(crate) fn peaks(&self) -> Peaks {
        *self.peaks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn sample(server: u32, peaks: Arc<Mutex<Peaks>>) {
    loop {
        let held = resident(server, "VmRSS");
        // Between fork and exec, a child shares the memory of its parent.
        let readers: Vec<u32> =
            children(server).into_iter().filter(|child| reads(*child) == Some(true)).collect();
        let child = readers.iter().map(|child| resident(*child, "VmHWM")).fold(0.0, f64::max);
        let beside: f64 = readers.iter().map(|child| resident(*child, "RssAnon")).sum();
        {
            let mut most = peaks.lock().unwrap_or_else(PoisonError::into_inner);
            most.server = most.server.max(held);
            most.together = most.together.max(held + beside);
            most.child = most.child.max(child);
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// That line of a process's status, in MiB; 0 when the process has exited.
fn resident(process: u32, line: &str) -> f64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    mebibytes(&status, line).unwrap_or_default()
}

/// The child processes, which are listed by the thread that started them (proc(5), `children`).
fn children(server: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{server}/task")).into_iter().flatten().flatten();
    let below = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    below
        .flat_map(|ids| ids.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<u32>>())
        .collect()
}

/// Whether it is an archive reader; `None` when it has exited and the server has not reaped it.
fn reads(child: u32) -> Option<bool> {
    let command = fs::read(format!("/proc/{child}/cmdline")).ok().filter(|command| !command.is_empty())?;
    Some(command.split(|byte| *byte == 0).any(|word| word == IMPORT_COMMAND.as_bytes()))
}
