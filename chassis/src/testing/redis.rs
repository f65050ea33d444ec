//! A temporary Redis per test. It stops when its [`Server`] is dropped, or when the test process ends.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

const SCRIPT: &str = include_str!("redis.sh");
const REQUIRED: &str = "CAIRN_REQUIRE_ENGINES";
const START_LIMIT: Duration = Duration::from_secs(60);
const START_POLL: Duration = Duration::from_millis(10);
/// A port that was free a moment ago may be taken by now.
const PORT_TRIES: u32 = 10;

/// The deployment of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// A single server, on a Unix socket.
    Alone,
    /// A cluster of one node with every slot, on TCP.
    Cluster,
}

/// A running Redis.
#[derive(Debug)]
pub struct Server {
    /// Closing its standard input ends the script, which stops the server.
    script: Child,
    /// The standard output of the script.
    said: BufReader<ChildStdout>,
    folder: String,
    process: String,
    port: u16,
}

impl Server {
    /// The URL of the server.
    pub fn url(&self) -> String {
        match self.port {
            0 => format!("unix://{}/s", self.folder),
            port => format!("redis://127.0.0.1:{port}"),
        }
    }

    /// The process id.
    pub fn process(&self) -> &str {
        &self.process
    }

    /// Kills the server without a shutdown: `kill -9`.
    ///
    /// # Errors
    /// When the signal cannot be sent.
    pub fn kill(&self) -> Result<(), String> {
        self.signal("KILL")
    }

    /// Restarts an empty server at the same address, and waits until it responds; one that still runs is killed.
    ///
    /// # Errors
    /// When it cannot be started, or does not answer.
    pub async fn start_again(&mut self) -> Result<(), String> {
        let input = self.script.stdin.as_mut().ok_or("nobody reads what the script is told")?;
        input.write_all(b"again\n").map_err(|error| error.to_string())?;
        let mut line = String::new();
        self.said.read_line(&mut line).map_err(|error| error.to_string())?;
        if line.is_empty() {
            return Err("the script has ended".to_owned());
        }
        line.trim().clone_into(&mut self.process);
        let mode = if self.port == 0 { Mode::Alone } else { Mode::Cluster };
        wait(self, mode).await
    }

    /// Suspends the process: connections stay open, and commands get no response.
    ///
    /// # Errors
    /// When the signal cannot be sent.
    pub fn hang(&self) -> Result<(), String> {
        self.signal("STOP")
    }

    /// Resumes the process after [`Self::hang`].
    ///
    /// # Errors
    /// When the signal cannot be sent.
    pub fn resume(&self) -> Result<(), String> {
        self.signal("CONT")
    }

    /// Deletes all keys.
    ///
    /// # Errors
    /// When it does not answer, or refuses.
    pub async fn flush(&self) -> Result<(), String> {
        let answer = self.ask("FLUSHALL").await.ok_or("redis does not answer")?;
        if answer.starts_with("+OK") { Ok(()) } else { Err(answer) }
    }

    fn signal(&self, name: &str) -> Result<(), String> {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.process]).status();
        let status = sent.map_err(|error| error.to_string())?;
        if status.success() { Ok(()) } else { Err(format!("kill -{name} {}: {status}", self.process)) }
    }

    /// The response to a command; `None` without one.
    async fn ask(&self, command: &str) -> Option<String> {
        let mut stream = UnixStream::connect(format!("{}/s", self.folder)).await.ok()?;
        stream.write_all(format!("{command}\r\nQUIT\r\n").as_bytes()).await.ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.ok()?;
        Some(answer)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.script.stdin.take());
        // The script removes its files; its exit status does not matter.
        let _status = self.script.wait();
    }
}

/// Whether `CAIRN_REQUIRE_ENGINES` (comma-separated names) requires Redis.
pub fn is_required() -> bool {
    std::env::var(REQUIRED).is_ok_and(|names| names.split(',').any(|name| name.trim() == "redis"))
}

/// A fresh server. Prints a message and returns `None` if this machine cannot run one.
///
/// # Panics
/// When there is none and `CAIRN_REQUIRE_ENGINES` requires it.
#[expect(clippy::panic, clippy::print_stderr, reason = "for tests only")]
pub async fn server(mode: Mode) -> Option<Server> {
    match start(mode).await {
        Ok(server) => Some(server),
        Err(why) if is_required() => panic!("CAIRN_REQUIRE_ENGINES wants redis: {why}"),
        Err(why) => {
            eprintln!("skipped: redis: {why}");
            None
        }
    }
}

/// A fresh server that responds.
///
/// # Errors
/// Why there is none: Redis is not installed, or does not start.
pub async fn start(mode: Mode) -> Result<Server, String> {
    let mut last = String::new();
    for _ in 0..PORT_TRIES {
        let server = run_script(mode)?;
        match wait(&server, mode).await {
            Ok(()) => return Ok(server),
            Err(why) => last = why,
        }
        if mode == Mode::Alone {
            break;
        }
    }
    Err(format!("redis-server does not start: {last}"))
}

async fn wait(server: &Server, mode: Mode) -> Result<(), String> {
    let limit = Instant::now() + START_LIMIT;
    let (command, sign) = match mode {
        Mode::Alone => ("PING", "PONG"),
        // The first round gives the node its slots; it is ready a moment later.
        Mode::Cluster => ("CLUSTER ADDSLOTSRANGE 0 16383\r\nCLUSTER INFO", "cluster_state:ok"),
    };
    loop {
        if server.ask(command).await.is_some_and(|answer| answer.contains(sign)) {
            return Ok(());
        }
        let log = std::fs::read_to_string(format!("{}/redis.log", server.folder)).unwrap_or_default();
        if log.contains("already in use") || Instant::now() > limit {
            return Err(log);
        }
        tokio::time::sleep(START_POLL).await;
    }
}

fn free_port() -> Result<(TcpListener, u16), String> {
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|error| error.to_string())?;
    let port = free.local_addr().map_err(|error| error.to_string())?.port();
    Ok((free, port))
}

fn ports(mode: Mode) -> Result<(u16, u16), String> {
    match mode {
        Mode::Alone => Ok((0, 0)),
        Mode::Cluster => {
            let ((_held, port), (_also_held, bus)) = (free_port()?, free_port()?);
            Ok((port, bus))
        }
    }
}

fn run_script(mode: Mode) -> Result<Server, String> {
    let (port, bus) = ports(mode)?;
    let mut script = Command::new("sh")
        .args(["-c", SCRIPT, "sh", &port.to_string(), &bus.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // Out of reach of a signal to the tests' process group.
        .process_group(0)
        .spawn()
        .map_err(|error| format!("no shell: {error}"))?;
    let mut said = BufReader::new(script.stdout.take().ok_or("the shell says nothing")?);
    let mut line = String::new();
    said.read_line(&mut line).map_err(|error| error.to_string())?;
    let Some((folder, process)) = line.trim().split_once(' ') else {
        let mut complaint = String::new();
        if let Some(mut stderr) = script.stderr.take() {
            stderr.read_to_string(&mut complaint).map_err(|error| error.to_string())?;
        }
        script.wait().map_err(|error| error.to_string())?;
        return Err(complaint.trim().to_owned());
    };
    Ok(Server { folder: folder.to_owned(), process: process.to_owned(), script, said, port })
}
