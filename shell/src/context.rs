//! The state of a run: the tree, the working folder, the remaining budget, and the output.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use bytes::Bytes;

use crate::meter::Meter;
use crate::session::{Limits, Session};
use crate::sink::Sink;
use crate::tree::{Node, Tree, Unreadable};
use crate::{Stats, paths};

/// The exit status of a command; 0 is success.
pub(crate) type Status = u8;

/// Success.
pub(crate) const DONE: Status = 0;

/// Why a command stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Halt {
    /// Its output is not read any more (like SIGPIPE). Not a failure.
    Closed,
    /// The script is aborted.
    Stop(Stop),
}

/// Why a script is aborted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    Files,
    Bytes,
    Nodes,
    Time,
    Cancelled,
    /// The output has reached its limit.
    Output,
    /// The memory limit of a command is reached.
    Memory,
}

/// The memory limit of one command: lines to sort, the end of an input, one line.
pub(crate) const HELD_BYTES: usize = 32 << 20;

/// Limits for the patterns of one pipe: their number, as each has a cache, and their total compiled size.
const MAX_SEARCHES: usize = 32;
const COMPILED_BYTES: usize = 32 << 20;

/// The patterns of the running pipe.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Patterns {
    count: usize,
    bytes: usize,
}

/// The state of one run.
pub(crate) struct Context<'a> {
    pub(crate) tree: &'a dyn Tree,
    pub(crate) now: i64,
    pub(crate) sink: RefCell<Sink>,
    /// Charged for work that is not linear in what is read, or has no other bound.
    pub(crate) meter: Meter<'a>,
    cwd: Cell<Node>,
    previous: Cell<Node>,
    limits: Limits,
    files: Cell<u64>,
    bytes: Cell<u64>,
    nodes: Cell<u64>,
    pub(crate) patterns: Cell<Patterns>,
    last: Cell<Option<Node>>,
}

impl<'a> Context<'a> {
    pub(crate) fn new(tree: &'a dyn Tree, session: &Session<'a>, cwd: Node) -> Self {
        Self {
            tree,
            now: session.now,
            sink: RefCell::new(Sink::new(session.limits.output_bytes)),
            meter: Meter::new(session.watch, session.limits.wall_clock),
            cwd: Cell::new(cwd),
            previous: Cell::new(cwd),
            limits: session.limits,
            files: Cell::new(0),
            bytes: Cell::new(0),
            nodes: Cell::new(0),
            patterns: Cell::default(),
            last: Cell::new(None),
        }
    }

    pub(crate) fn cwd(&self) -> Node {
        self.cwd.get()
    }

    /// The folder before the last `cd`.
    pub(crate) fn previous(&self) -> Node {
        self.previous.get()
    }

    pub(crate) fn enter(&self, folder: Node) {
        self.previous.set(self.cwd.replace(folder));
    }

    /// Restores the folder from before a pipeline: a `cd` in it is local.
    pub(crate) fn restore(&self, cwd: Node, previous: Node) {
        self.cwd.set(cwd);
        self.previous.set(previous);
    }

    /// Checks the clock and for cancellation.
    pub(crate) fn check(&self) -> Result<(), Halt> {
        self.meter.look()
    }

    /// Counts a folder or file that a walk or a glob visits.
    pub(crate) fn visit(&self, node: Node) -> Result<(), Halt> {
        let visited = self.nodes.get();
        if visited >= self.limits.nodes_visited {
            return Err(Halt::Stop(Stop::Nodes));
        }
        self.nodes.set(visited + 1);
        self.last.set(Some(node));
        if visited.is_multiple_of(512) {
            self.check()?;
        }
        Ok(())
    }

    /// Reads a body within the budget.
    pub(crate) fn read(&self, file: Node) -> Result<Result<Bytes, Unreadable>, Halt> {
        self.check()?;
        if self.files.get() >= self.limits.files_opened {
            return Err(Halt::Stop(Stop::Files));
        }
        if self.bytes.get().saturating_add(self.tree.size(file)) > self.limits.bytes_read {
            return Err(Halt::Stop(Stop::Bytes));
        }
        self.last.set(Some(file));
        self.files.set(self.files.get() + 1);
        let body = self.tree.read(file);
        if let Ok(body) = &body {
            self.bytes.set(self.bytes.get().saturating_add(body.len() as u64));
        }
        Ok(body)
    }

    /// Registers a pattern of the pipe that is being started, or says why no more are allowed.
    pub(crate) fn hold_pattern(&self, bytes: usize) -> Result<(), String> {
        let held = self.patterns.get();
        let held = Patterns { count: held.count + 1, bytes: held.bytes.saturating_add(bytes) };
        if held.count > MAX_SEARCHES {
            return Err(format!(
                "more than {MAX_SEARCHES} searches in one pipe: put patterns together as `a|b`, or split the pipe"
            ));
        }
        if held.bytes > COMPILED_BYTES {
            let most = in_mebibytes(COMPILED_BYTES as u64);
            return Err(format!(
                "the patterns of this pipe compile to more than {most}: use smaller repetitions, or split the pipe"
            ));
        }
        self.patterns.set(held);
        Ok(())
    }

    /// The remaining number of files and bytes.
    pub(crate) fn left_to_read(&self) -> (u64, u64) {
        (
            self.limits.files_opened.saturating_sub(self.files.get()),
            self.limits.bytes_read.saturating_sub(self.bytes.get()),
        )
    }

    pub(crate) fn stats(&self) -> Stats {
        Stats {
            files_opened: self.files.get(),
            bytes_read: self.bytes.get(),
            nodes_visited: self.nodes.get(),
        }
    }

    /// The message about an abort: the reason, the progress, and how to ask for less.
    pub(crate) fn farewell(&self, stop: Stop) -> String {
        let (what, advice) = match stop {
            Stop::Files => (
                format!("{} files opened, the limit of one script", self.limits.files_opened),
                "name a smaller folder, choose files with --include, or take `grep -l` or `find` first",
            ),
            Stop::Bytes => (
                format!("{} of content read, the limit of one script", in_mebibytes(self.limits.bytes_read)),
                "name a smaller folder, choose files with --include, or read parts with `head -n`",
            ),
            Stop::Nodes => (
                format!("{} folders and files looked at, the limit of one script", self.limits.nodes_visited),
                "name a smaller folder, or limit the depth with `find -maxdepth` or `tree -L`",
            ),
            Stop::Time => (
                format!("{} of time used, the limit of one script", in_seconds(self.limits.wall_clock)),
                "name a smaller folder, a plainer pattern (-F) or fewer globs and sort keys, or split the script",
            ),
            Stop::Cancelled => ("the caller went away".to_owned(), "run it again"),
            Stop::Output => ("the output is full".to_owned(), "ask for less"),
            Stop::Memory => (
                format!("a command would hold more than {} of text", in_mebibytes(HELD_BYTES as u64)),
                "narrow the input with grep, cut or head before it",
            ),
        };
        let stats = self.stats();
        let last = self.last.get().map(|node| format!(", last at {}", paths::absolute(self.tree, node)));
        format!(
            "shell: stopped: {what}. It got as far as {} files opened, {} bytes read, {} folders and files looked at{}. \
             To narrow it: {advice}.\n",
            stats.files_opened,
            stats.bytes_read,
            stats.nodes_visited,
            last.unwrap_or_default()
        )
    }
}

fn in_mebibytes(bytes: u64) -> String {
    if bytes >= 1 << 20 { format!("{} MiB", bytes >> 20) } else { format!("{bytes} bytes") }
}

fn in_seconds(time: Duration) -> String {
    format!("{} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{MemoryTree, NOW, StepClock};

    #[test]
    fn the_patterns_of_a_pipe_are_held_to_a_limit() {
        let (tree, watch) = (MemoryTree::new([]), StepClock::default());
        let session = Session { cwd: "/", now: NOW, limits: Limits::default(), watch: &watch };
        let ctx = Context::new(&tree, &session, tree.root());
        assert_eq!(ctx.hold_pattern(COMPILED_BYTES / 2), Ok(()));
        assert_eq!(ctx.hold_pattern(COMPILED_BYTES / 2), Ok(()));
        let why = ctx.hold_pattern(1).unwrap_err();
        assert!(why.contains("compile to more than 32 MiB"), "{why}");
    }
}
