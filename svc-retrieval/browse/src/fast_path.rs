//! Runs a script where its request is served, when that takes less than waking another thread for it (docs/adr/0024).
//!
//! Most scripts look at a file or a folder. What such a script needs is mostly in memory, and it takes microseconds. One
//! that takes longer is given up here and run from its beginning on a thread that may block: it has written nothing.

use std::cell::Cell;
use std::time::Duration;

use cairn_shell::{Session, Watch};

use super::request::Script;
use super::run::{Ran, Watched};
use super::tree::Mounted;

/// How long other requests may be held up.
const PATIENCE: Duration = Duration::from_micros(500);

/// What came of the script; `None` when it has to be run elsewhere.
pub(super) fn run<T>(
    script: &Script,
    mounted: &Mounted,
    watched: &Watched,
    then: impl FnOnce(&Mounted, Ran) -> T,
) -> Option<T> {
    if !cairn_shell::is_brief(&script.text) {
        return None;
    }
    mounted.reader().read_from_memory_only(true);
    let fast_path = FastPath { watched, mounted, is_over: Cell::new(false) };
    let session = Session { watch: &fast_path, ..watched.session(script) };
    let outcome = cairn_shell::run(mounted, &script.text, &session);
    let done = (!fast_path.is_over.get()).then(|| then(mounted, Ran { outcome, elapsed: watched.elapsed() }));
    // Also what came after may have read.
    let lacked = mounted.reader().lacked();
    mounted.reader().read_from_memory_only(false);
    done.filter(|_| !lacked)
}

/// Ends a script that takes too long, or wants what is not in memory.
struct FastPath<'a> {
    watched: &'a Watched,
    mounted: &'a Mounted,
    is_over: Cell<bool>,
}

impl Watch for FastPath<'_> {
    fn elapsed(&self) -> Duration {
        self.watched.elapsed()
    }

    fn cancelled(&self) -> bool {
        let is_over = self.is_over.get() || self.mounted.reader().lacked() || self.elapsed() > PATIENCE;
        self.is_over.set(is_over);
        is_over
    }
}
