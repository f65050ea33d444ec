//! What the process asks of its system at its start.

use rustix::fs::Mode;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit, umask};

/// What a process has open beside its connections, at most: files of the index and of databases, connections to others.
const OTHER_FILES: u64 = 512;

/// Whatever this process makes is its owner's: databases hold password hashes.
pub(crate) fn keep_files_private() {
    umask(Mode::RWXG | Mode::RWXO);
}

/// Raises the limit of open files to what the system allows; the usual one is made for programs that serve nobody.
/// Answers how many connections there is room for; `None` when there is no limit.
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
    // Where few files are allowed, half of them are for connections.
    Some(limit.saturating_sub(OTHER_FILES).max(limit / 2))
}
