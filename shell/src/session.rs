//! The parameters of a run: the working folder, the budget, and the clock.

use std::fmt;
use std::time::Duration;

/// The parameters of a run.
#[derive(Clone, Copy)]
pub struct Session<'a> {
    /// The initial working folder, as an absolute path. If it does not exist, the script fails.
    pub cwd: &'a str,
    /// The current time in microseconds since 1970 UTC, for `find -mtime` and the dates of `ls -l`.
    pub now: i64,
    /// The budget of the script.
    pub limits: Limits,
    /// Polled while the script runs.
    pub watch: &'a dyn Watch,
}

impl fmt::Debug for Session<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("cwd", &self.cwd)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// The clock of one run, and its cancellation.
pub trait Watch {
    /// The elapsed time of the script.
    fn elapsed(&self) -> Duration;

    /// Whether the caller has cancelled.
    fn cancelled(&self) -> bool;
}

/// The budget of one script. The defaults are those of the product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Files whose body is read; a repeated read counts again.
    pub files_opened: u64,
    /// Bytes of their bodies.
    pub bytes_read: u64,
    /// Folders and files that walks and globs visit.
    pub nodes_visited: u64,
    /// Time from start to end.
    pub wall_clock: Duration,
    /// Bytes of the output, including the notice of truncation. At least [`Limits::MIN_OUTPUT`].
    pub output_bytes: usize,
    /// Bytes of the script.
    pub script_bytes: usize,
}

impl Limits {
    /// The minimum of `output_bytes`.
    pub const MIN_OUTPUT: usize = 1024;

    /// The maximum of `output_bytes`.
    pub const MAX_OUTPUT: usize = 200 * 1024;
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            files_opened: 20_000,
            bytes_read: 256 << 20,
            nodes_visited: 200_000,
            wall_clock: Duration::from_secs(10),
            output_bytes: 60 * 1024,
            script_bytes: 16 * 1024,
        }
    }
}
