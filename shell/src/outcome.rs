//! The result of a script.

use std::ops::RangeInclusive;

use crate::tree::Node;

/// The output, the status, and the statistics of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Output and error messages in the order of writing.
    pub output: String,
    /// Whether the exit status of the last command was not 0, as in bash; also after a parse error and an exhausted
    /// budget. Truncated output is not a failure.
    pub failed: bool,
    /// Whether the output was truncated at its limit; its last line says so.
    pub truncated: bool,
    /// The final working folder.
    pub cwd: String,
    /// The files whose content is in the output, in the order of their first appearance.
    pub reads: Vec<Read>,
    /// The resources used.
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

/// The resources that a script used of its [`Limits`](crate::Limits).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Files whose body was read.
    pub files_opened: u64,
    /// Bytes of those bodies.
    pub bytes_read: u64,
    /// Folders and files that were visited.
    pub nodes_visited: u64,
}
