//! One running `cairn`: started, listened to, and gone when the test is, however that ends.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, LazyLock, Mutex};
use std::thread::JoinHandle;

use super::wait::eventually;

/// Kills its process when it reads the end of its input instead of a line: the test process holds the other end, and
/// that closes even when the test process is killed.
const WATCHDOG: &str = "read -r line || kill -9 \"$0\"";
/// Environment that would change what a test sees; every test starts from none of it.
const OWN_ENVIRONMENT: &str = "CAIRN_";
/// What every process is told, unless a test says otherwise: callers stand for addresses of their own (see
/// [`super::http::Http`]), one plan each has windows and storage that a test can fill, and no process has too much to do,
/// however slow it is beside the others.
const ENVIRONMENT: [(&str, &str); 4] = [
    ("CAIRN_TRUSTED_PROXIES", "127.0.0.1"),
    ("CAIRN_PLANS", r#"{"studio": {"minute": null, "hour": null, "day": 20}}"#),
    ("CAIRN_ASSET_LIMITS", "starter=25:1:4"),
    ("CAIRN_CAPACITY", "100000"),
];
/// How much of a log a failed test shows.
const SHOWN_LINES: usize = 200;

/// Names another binary than the one of this build, such as one that was built without some of its features.
const OTHER_BINARY: &str = "CAIRN_TEST_BINARY";

/// The binary that tests start.
static BINARY: LazyLock<String> =
    LazyLock::new(|| std::env::var(OTHER_BINARY).unwrap_or_else(|_| env!("CARGO_BIN_EXE_cairn").to_owned()));

/// A `cairn` process with what it said.
#[derive(Debug)]
pub(crate) struct Process {
    name: String,
    child: Child,
    watchdog: Child,
    /// Of a process that somebody types to.
    input: Option<ChildStdin>,
    stdout: Output,
    stderr: Output,
}

/// The output so far, and the thread that reads it.
#[derive(Debug)]
struct Output {
    text: Arc<Mutex<String>>,
    reader: Option<JoinHandle<()>>,
}

impl Process {
    /// Starts `cairn` with these arguments and environment variables.
    pub(crate) fn start(name: &str, arguments: &[String], environment: &[(&str, &str)]) -> Self {
        Self::run(name, Command::new(BINARY.as_str()), arguments, environment, Stdio::null())
    }

    /// As [`Self::start`], with somebody who may type to it.
    pub(crate) fn start_with_input(name: &str, arguments: &[String], environment: &[(&str, &str)]) -> Self {
        Self::run(name, Command::new(BINARY.as_str()), arguments, environment, Stdio::piped())
    }

    /// Types a line to it.
    pub(crate) fn enter(&mut self, line: &str) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    /// As [`Self::start`], where no file may grow beyond that many blocks: what a full disk does to a write.
    pub(crate) fn start_on_full_disk(name: &str, arguments: &[String], blocks: u32) -> Self {
        let mut shell = Command::new("sh");
        // The signal would end the process before it sees the error that a full disk gives.
        shell.args(["-c", &format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\""), BINARY.as_str()]);
        Self::run(name, shell, arguments, &[], Stdio::null())
    }

    /// As [`Self::start`], as if at a terminal, which util-linux's `script` makes; `None` without it.
    pub(crate) fn start_on_terminal(name: &str, arguments: &[String]) -> Option<Self> {
        Command::new("script").arg("--version").output().ok()?;
        let mut terminal = Command::new("script");
        let command = std::iter::once(BINARY.as_str()).chain(arguments.iter().map(String::as_str));
        let quoted: Vec<String> = command.map(|word| format!("'{word}'")).collect();
        let command = format!("exec {}", quoted.join(" "));
        terminal.args(["--quiet", "--flush", "--return", "--command", &command, "/dev/null"]);
        Some(Self::run(name, terminal, &[], &[], Stdio::null()))
    }

    /// As [`Self::start`], with that many open files to begin with.
    pub(crate) fn start_on_few_files(
        name: &str,
        arguments: &[String],
        environment: &[(&str, &str)],
        files: u32,
    ) -> Self {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("ulimit -S -n {files}; exec \"$0\" \"$@\""), BINARY.as_str()]);
        Self::run(name, shell, arguments, environment, Stdio::null())
    }

    fn run(
        name: &str,
        mut command: Command,
        arguments: &[String],
        environment: &[(&str, &str)],
        stdin: Stdio,
    ) -> Self {
        for (variable, _) in std::env::vars() {
            if variable.starts_with(OWN_ENVIRONMENT) {
                command.env_remove(variable);
            }
        }
        let mut child = command
            .args(arguments)
            .envs(ENVIRONMENT)
            .envs(environment.iter().copied())
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let watchdog = Command::new("sh")
            .args(["-c", WATCHDOG, &child.id().to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let input = child.stdin.take();
        let stdout = Output::follow(child.stdout.take().unwrap());
        let stderr = Output::follow(child.stderr.take().unwrap());
        Self { name: name.to_owned(), child, watchdog, input, stdout, stderr }
    }

    /// Its id in the system.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The most memory that it ever had at once, in bytes; `None` where no `/proc` tells.
    pub(crate) fn peak_memory(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id())).ok()?;
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        let kibibytes: u64 = peak.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(kibibytes * 1024)
    }

    /// Asks it to stop, as an orchestrator does, and does not wait.
    pub(crate) fn ask_to_stop(&self) {
        self.signal("TERM");
    }

    /// Sends it a signal by its name.
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.id().to_string();
        let status = Command::new("kill").args([&format!("-{name}"), &pid]).status().unwrap();
        assert!(status.success(), "kill -{name} {pid} failed");
    }

    /// Stops it with no chance to tidy up: `kill -9`.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits until it has ended.
    pub(crate) async fn exit(&mut self) -> ExitStatus {
        let what = format!("{} ends", self.name);
        eventually(&what, async || self.child.try_wait().unwrap()).await
    }

    /// How it ended, if it has.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    /// What it printed so far; all of it once it has ended.
    pub(crate) fn stdout(&mut self) -> String {
        let ended = self.ended().is_some();
        self.stdout.read(ended)
    }

    /// What it logged so far; all of it once it has ended.
    pub(crate) fn stderr(&mut self) -> String {
        let ended = self.ended().is_some();
        self.stderr.read(ended)
    }

    /// An address that it printed after this word: `gRPC at ADDRESS`, `(admin ADDRESS)`.
    pub(crate) fn printed_address(&mut self, word: &str) -> Option<String> {
        let stdout = self.stdout();
        let (_, rest) = stdout.split_once(word)?;
        let line = rest.lines().next()?;
        let address = line
            .split([' ', '(', ')', '/'])
            .find(|part| part.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok()))?;
        Some(format!("http://{address}"))
    }

    /// Everything it said so far.
    pub(crate) fn said(&self) -> String {
        format!("{}{}", self.stdout.text.lock().unwrap(), self.stderr.text.lock().unwrap())
    }

    /// Shows the end of what it said.
    pub(crate) fn show_log(&self) {
        let said = self.said();
        let lines: Vec<&str> = said.lines().collect();
        let shown = &lines[lines.len().saturating_sub(SHOWN_LINES)..];
        eprintln!(
            "--- {} said (last {} of {} lines)\n{}",
            self.name,
            shown.len(),
            lines.len(),
            shown.join("\n")
        );
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Errors are of no use here: the process may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(mut input) = self.watchdog.stdin.take() {
            let _ = input.write_all(b"done\n");
        }
        let _ = self.watchdog.wait();
        if std::thread::panicking() {
            self.show_log();
        }
    }
}

impl Output {
    fn follow(pipe: impl Read + Send + 'static) -> Self {
        let text = Arc::new(Mutex::new(String::new()));
        let target = Arc::clone(&text);
        let reader = std::thread::spawn(move || {
            let mut lines = BufReader::new(pipe);
            let mut line = Vec::new();
            while lines.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
                target.lock().unwrap().push_str(&String::from_utf8_lossy(&line));
                line.clear();
            }
        });
        Self { text, reader: Some(reader) }
    }

    fn read(&mut self, ended: bool) -> String {
        if ended && let Some(reader) = self.reader.take() {
            reader.join().unwrap();
        }
        self.text.lock().unwrap().clone()
    }
}
