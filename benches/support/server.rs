//! Servers under measurement: child processes with their statistics from `/proc`, killed when the bench ends.

use std::ffi::OsStr;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// The kernel counts CPU time in `/proc` in ticks of a hundredth of a second on every platform (proc(5), USER_HZ).
const TICKS_PER_SECOND: f64 = 100.0;
/// The index of user and system time in `/proc/…/stat`, counted after the name: fields 14 and 15.
pub(crate) const OWN_TIME: usize = 11;
/// The environment variable for another binary to measure, such as the release binary with link-time optimization, which takes
/// long to build.
const BINARY: &str = "CAIRN_BENCH_BINARY";
const START_TIMEOUT: Duration = Duration::from_secs(30);
const STOP_TIMEOUT: Duration = Duration::from_secs(10);
const PROBE_INTERVAL: Duration = Duration::from_millis(1);
const ANY_PORT: &str = "127.0.0.1:0";

/// A running server.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
    spawned: Instant,
}

/// Resident memory in MiB.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Memory {
    /// The total (`VmRSS`).
    pub(crate) resident: f64,
    /// Anonymous memory: heap and stacks (`RssAnon`).
    pub(crate) anonymous: f64,
}

impl Server {
    /// `cairn up` of this build on that data folder, or of the binary that [`BINARY`] names.
    pub(crate) fn cairn(data: &Path) -> anyhow::Result<Self> {
        Self::cairn_with(data, &[])
    }

    /// The same with environment variables; inherited ones that begin with `CAIRN_` are removed.
    pub(crate) fn cairn_with(data: &Path, environment: &[(&str, &OsStr)]) -> anyhow::Result<Self> {
        let mut command = command();
        command.envs(environment.iter().copied());
        let address = free_address()?;
        command.arg("up").arg("--data").arg(data).arg("--quiet");
        command.args(["--listen", &address.to_string(), "--admin-listen", ANY_PORT]);
        Self::spawn(command, address)
    }

    /// Starts a command that listens on that address.
    pub(crate) fn spawn(mut command: Command, address: SocketAddr) -> anyhow::Result<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let spawned = Instant::now();
        let child = command.spawn().context("cannot start the server")?;
        Ok(Self { child, address, spawned })
    }

    /// Waits until `GET /readyz` responds with 200; returns the time since the spawn.
    pub(crate) async fn ready(&mut self) -> anyhow::Result<Duration> {
        loop {
            if is_ready(self.address).await {
                return Ok(self.spawned.elapsed());
            }
            if let Some(status) = self.child.try_wait()? {
                bail!("the server ended with {status}");
            }
            if self.spawned.elapsed() > START_TIMEOUT {
                bail!("the server is not ready after {START_TIMEOUT:?}");
            }
            tokio::time::sleep(PROBE_INTERVAL).await;
        }
    }

    /// The process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// User and system time of all its threads so far.
    pub(crate) fn cpu_time(&self) -> anyhow::Result<Duration> {
        cpu_time(self.id(), OWN_TIME)
    }

    /// Its current memory.
    pub(crate) fn memory(&self) -> anyhow::Result<Memory> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.id()))?;
        Ok(Memory { resident: mebibytes(&status, "VmRSS")?, anonymous: mebibytes(&status, "RssAnon")? })
    }

    /// Stops it gracefully, as an orchestrator does, so that the next start needs no recovery.
    pub(crate) async fn stop(mut self) -> anyhow::Result<()> {
        Command::new("kill").args(["-TERM", &self.id().to_string()]).status()?;
        let asked = Instant::now();
        while self.child.try_wait()?.is_none() {
            if asked.elapsed() > STOP_TIMEOUT {
                bail!("the server did not stop within {STOP_TIMEOUT:?}");
            }
            tokio::time::sleep(PROBE_INTERVAL).await;
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have exited already.
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// `cairn` of this build, or the binary that [`BINARY`] names, with no environment that begins with `CAIRN_`.
pub(crate) fn command() -> Command {
    let binary = std::env::var_os(BINARY).unwrap_or_else(|| env!("CARGO_BIN_EXE_cairn").into());
    let mut command = Command::new(binary);
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("CAIRN_")) {
        command.env_remove(name);
    }
    command
}

/// The sum of two fields of `/proc/…/stat`, from that index on, counted after the name.
pub(crate) fn cpu_time(process: u32, first: usize) -> anyhow::Result<Duration> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The second field is the name in parentheses, which may hold spaces.
    let (_, fields) = stat.rsplit_once(')').context("no name in /proc/…/stat")?;
    let ticks: u64 =
        fields.split_whitespace().skip(first).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    Ok(Duration::from_secs_f64(ticks as f64 / TICKS_PER_SECOND))
}

/// The value of a line of `/proc/…/status`, in MiB.
pub(crate) fn mebibytes(status: &str, name: &str) -> anyhow::Result<f64> {
    let line =
        status.lines().find_map(|line| line.strip_prefix(name)).context("no such line in /proc/…/status")?;
    let kibibytes: f64 = line.trim_matches([':', ' ', '\t', 'k', 'B']).parse()?;
    Ok(kibibytes / 1024.0)
}

/// A free address. The server gets a fixed one, so that probing can start with its spawn.
pub(crate) fn free_address() -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?)
}

/// One request on a raw connection, so that the start-up cost of a client library is not measured.
async fn is_ready(address: SocketAddr) -> bool {
    let Ok(mut stream) = TcpStream::connect(address).await else { return false };
    let request = format!("GET /readyz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    if stream.write_all(request.as_bytes()).await.is_err() {
        return false;
    }
    let mut answer = Vec::new();
    let _closed = stream.read_to_end(&mut answer).await;
    answer.starts_with(b"HTTP/1.1 200")
}
