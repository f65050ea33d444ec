//! Runs a script on the async thread of its request, when that takes less than a handoff to a blocking thread (docs/adr/0024).
//!
//! Most scripts look at a file or a folder; mostly everything is cached, and they take microseconds. One that takes longer is aborted
//! and run again on a blocking thread: scripts have no side effects.

use std::cell::Cell;
use std::time::Duration;

use cairn_shell::{Session, Watch};

use super::request::Script;
use super::run::{RunWatch, ScriptRun};
use super::tree::Mounted;

/// How long the thread may be blocked.
const PATIENCE: Duration = Duration::from_micros(500);

/// The result of the script; `None` when it must run on a blocking thread.
pub(super) fn run<T>(
    script: &Script,
    mounted: &Mounted,
    watched: &RunWatch,
    then: impl FnOnce(&Mounted, ScriptRun) -> T,
) -> Option<T> {
    if !cairn_shell::is_brief(&script.text) {
        return None;
    }
    mounted.reader().read_from_memory_only(true);
    let fast_path = FastPath { watched, mounted, is_over: Cell::new(false) };
    let session = Session { watch: &fast_path, ..watched.session(script) };
    let outcome = cairn_shell::run(mounted, &script.text, &session);
    let done =
        (!fast_path.is_over.get()).then(|| then(mounted, ScriptRun { outcome, elapsed: watched.elapsed() }));
    // `then` may have read, too.
    let missed = mounted.reader().missed();
    mounted.reader().read_from_memory_only(false);
    done.filter(|_| !missed)
}

/// Aborts a script that takes too long, or reads a body that is not in memory.
struct FastPath<'a> {
    watched: &'a RunWatch,
    mounted: &'a Mounted,
    is_over: Cell<bool>,
}

impl Watch for FastPath<'_> {
    fn elapsed(&self) -> Duration {
        self.watched.elapsed()
    }

    fn cancelled(&self) -> bool {
        let is_over = self.is_over.get() || self.mounted.reader().missed() || self.elapsed() > PATIENCE;
        self.is_over.set(is_over);
        is_over
    }
}
