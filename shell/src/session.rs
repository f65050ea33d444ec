//! What a caller hands along with a script: where it starts, what it may spend, and the time.

use std::fmt;
use std::time::Duration;

/// Where a script starts, what it may spend, and who looks at the clock for it.
#[derive(Clone, Copy)]
pub struct Session<'a> {
    /// The folder to start in, as an absolute path. A script in a folder that is not there ends with an error.
    pub cwd: &'a str,
    /// The time of day in microseconds since 1970 UTC, for what compares with it: `find -mtime`, the dates of `ls -l`.
    pub now: i64,
    /// What the script may spend.
    pub limits: Limits,
    /// Asked again and again while the script runs.
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

/// The clock of one run, and whether its caller still waits.
pub trait Watch {
    /// How long the script has been running.
    fn elapsed(&self) -> Duration;

    /// Whether nobody waits for it any more.
    fn cancelled(&self) -> bool;
}

/// What one script may spend. The defaults are those of the product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Files whose body is read; one that is read twice counts twice.
    pub files_opened: u64,
    /// Bytes of their bodies.
    pub bytes_read: u64,
    /// Folders and files that walks and globs look at.
    pub nodes_visited: u64,
    /// Time from start to end.
    pub wall_clock: Duration,
    /// Bytes of the output, the last line that tells of a cut included. Never less than [`Limits::LEAST_OUTPUT`].
    pub output_bytes: usize,
    /// Bytes of the script.
    pub script_bytes: usize,
}

impl Limits {
    /// The least output that a caller can ask for.
    pub const LEAST_OUTPUT: usize = 1024;

    /// The most output that a caller can ask for.
    pub const MOST_OUTPUT: usize = 200 * 1024;
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
