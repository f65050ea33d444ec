//! Process-wide settings that are made at the start: umask and the limit of open files.

use rustix::fs::Mode;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit, umask};

/// File descriptors that are reserved for everything but connections of clients: index, databases, upstream
/// connections.
const OTHER_FILES: u64 = 512;

/// New files are readable by their owner only: databases hold password hashes.
pub(crate) fn keep_files_private() {
    umask(Mode::RWXG | Mode::RWXO);
}

/// Raises the limit of open files to the hard limit; the default soft limit is too low for a server. Returns how many
/// connections fit below it, `None` if there is no limit.
pub(crate) fn raise_file_limit() -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    let limit = match raised {
        Ok(()) => maximum?,
        Err(error) => {
            tracing::warn!(%error, "the limit of open files cannot be raised");
            current?
        }
    };
    // Where the limit is low, half of it is for connections.
    Some(limit.saturating_sub(OTHER_FILES).max(limit / 2))
}
