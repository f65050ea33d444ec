//! What comes out of a script.

use std::ops::RangeInclusive;

use crate::tree::Node;

/// What a script printed, how it ended, and what it read on the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Output and complaints in the order in which they came.
    pub output: String,
    /// Whether the status of the last command was not 0, as in bash; also after a script that does not parse and after
    /// a spent budget. Output that was cut is no failure.
    pub failed: bool,
    /// Whether the output was cut at its limit; its last line says so.
    pub truncated: bool,
    /// The folder in which it ended.
    pub cwd: String,
    /// The files whose content is in the output, in the order in which they first appear.
    pub reads: Vec<Read>,
    /// What it spent.
    pub stats: Stats,
}

/// The lines of one file that are in the output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read {
    /// The file.
    pub node: Node,
    /// Its lines, counted from 1, in ascending ranges that do not touch.
    pub lines: Vec<RangeInclusive<u64>>,
}

/// What a script spent of its [`Limits`](crate::Limits).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Files whose body was read.
    pub files_opened: u64,
    /// Bytes of those bodies.
    pub bytes_read: u64,
    /// Folders and files that were looked at.
    pub nodes_visited: u64,
}
