//! One running `cairn`: started, observed, and killed with its test, however the test ends.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, LazyLock, Mutex};
use std::thread::JoinHandle;

use super::wait::eventually;

/// Kills the process when its stdin reaches EOF instead of a line: the test process holds the other end of the pipe,
/// which closes even when the test process is killed.
const WATCHDOG: &str = "read -r line || kill -9 \"$0\"";
/// The prefix of environment variables that would change what a test observes; they are removed from every process.
const OWN_ENVIRONMENT: &str = "CAIRN_";
/// Defaults of every process, unless a test overrides them: callers set their source address (see
/// [`super::http::Http`]), one plan each has rate limits and storage small enough for a test to exhaust, and no process
/// sheds load, however slow the machine is.
const ENVIRONMENT: [(&str, &str); 4] = [
    ("CAIRN_TRUSTED_PROXIES", "127.0.0.1"),
    ("CAIRN_PLANS", r#"{"studio": {"minute": null, "hour": null, "day": 20}}"#),
    ("CAIRN_ASSET_LIMITS", "starter=25:1:4"),
    ("CAIRN_CAPACITY", "100000"),
];
/// The number of log lines that a failed test shows.
const SHOWN_LINES: usize = 200;

/// Names a binary to test instead of this build's, such as one built without some features.
const OTHER_BINARY: &str = "CAIRN_TEST_BINARY";

/// The binary under test.
static BINARY: LazyLock<String> =
    LazyLock::new(|| std::env::var(OTHER_BINARY).unwrap_or_else(|_| env!("CARGO_BIN_EXE_cairn").to_owned()));

/// A `cairn` process and its captured output.
#[derive(Debug)]
pub(crate) struct Process {
    name: String,
    child: Child,
    watchdog: Child,
    /// The stdin of an interactive process.
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

    /// Like [`Self::start`], with an open stdin.
    pub(crate) fn start_with_input(name: &str, arguments: &[String], environment: &[(&str, &str)]) -> Self {
        Self::run(name, Command::new(BINARY.as_str()), arguments, environment, Stdio::piped())
    }

    /// Writes a line to its stdin.
    pub(crate) fn enter(&mut self, line: &str) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Like [`Self::start`], with a limit on file sizes, in blocks: to a write it looks like a full disk.
    pub(crate) fn start_on_full_disk(name: &str, arguments: &[String], blocks: u32) -> Self {
        let mut shell = Command::new("sh");
        // SIGXFSZ would kill the process before it sees the error that a full disk causes.
        shell.args(["-c", &format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\""), BINARY.as_str()]);
        Self::run(name, shell, arguments, &[], Stdio::null())
    }

    /// Like [`Self::start`], on a terminal, which util-linux's `script` provides; `None` without it.
    pub(crate) fn start_on_terminal(name: &str, arguments: &[String]) -> Option<Self> {
        Command::new("script").arg("--version").output().ok()?;
        let mut terminal = Command::new("script");
        let command = std::iter::once(BINARY.as_str()).chain(arguments.iter().map(String::as_str));
        let quoted: Vec<String> = command.map(|word| format!("'{word}'")).collect();
        let command = format!("exec {}", quoted.join(" "));
        terminal.args(["--quiet", "--flush", "--return", "--command", &command, "/dev/null"]);
        Some(Self::run(name, terminal, &[], &[], Stdio::null()))
    }

    /// Like [`Self::start`], with that soft limit on open files.
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

    /// The process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Peak memory in bytes; `None` on systems without `/proc`.
    pub(crate) fn peak_memory(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id())).ok()?;
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        let kibibytes: u64 = peak.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(kibibytes * 1024)
    }

    /// Asks it to stop, as an orchestrator does, without waiting.
    pub(crate) fn ask_to_stop(&self) {
        self.signal("TERM");
    }

    /// Sends it a signal by name.
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.id().to_string();
        let status = Command::new("kill").args([&format!("-{name}"), &pid]).status().unwrap();
        assert!(status.success(), "kill -{name} {pid} failed");
    }

    /// Kills it without a chance to clean up: `kill -9`.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits until it has exited.
    pub(crate) async fn exit(&mut self) -> ExitStatus {
        let what = format!("{} ends", self.name);
        eventually(&what, async || self.child.try_wait().unwrap()).await
    }

    /// The exit status, if it has exited.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    /// Its stdout so far; all of it once it has exited.
    pub(crate) fn stdout(&mut self) -> String {
        let ended = self.ended().is_some();
        self.stdout.read(ended)
    }

    /// Its stderr so far; all of it once it has exited.
    pub(crate) fn stderr(&mut self) -> String {
        let ended = self.ended().is_some();
        self.stderr.read(ended)
    }

    /// The address that it printed after this word: `gRPC at ADDRESS`, `(admin ADDRESS)`.
    pub(crate) fn printed_address(&mut self, word: &str) -> Option<String> {
        let stdout = self.stdout();
        let (_, rest) = stdout.split_once(word)?;
        let line = rest.lines().next()?;
        let address = line
            .split([' ', '(', ')', '/'])
            .find(|part| part.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok()))?;
        Some(format!("http://{address}"))
    }

    /// Its stdout and stderr so far.
    pub(crate) fn output(&self) -> String {
        format!("{}{}", self.stdout.text.lock().unwrap(), self.stderr.text.lock().unwrap())
    }

    /// Shows the end of its output.
    pub(crate) fn show_log(&self) {
        let printed = self.output();
        let lines: Vec<&str> = printed.lines().collect();
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
        // An error means that the process has already exited.
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
