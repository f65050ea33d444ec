//! What the process asks of its system at its start.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::{env, thread};

use rustix::fs::Mode;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit, umask};

/// What a process has open beside its connections, at most: files of the index and of databases, connections to others.
const OTHER_FILES: u64 = 512;

/// Whatever this process makes is its owner's: databases hold password hashes.
pub(crate) fn keep_files_private() {
    umask(Mode::RWXG | Mode::RWXO);
}

/// What glibc's allocator reads, once, when a program starts.
const ARENAS: &str = "MALLOC_ARENA_MAX";

/// Starts this program again in this process, with an arena of glibc's allocator for each core. By default there are eight for
/// each, and what one thread frees in its arena is of no use to the others (docs/adr/0066-an-arena-for-each-core.md). What
/// an operator chose stays; where the program cannot be started again, it goes on as it is.
pub(crate) fn limit_arenas() {
    let is_set = |name: &&str| env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_chosen = [ARENAS, "GLIBC_TUNABLES"].iter().any(is_set);
    if is_chosen || !cfg!(target_env = "gnu") {
        return;
    }
    let arenas = thread::available_parallelism().map_or(1, usize::from);
    let arguments: Vec<OsString> = env::args_os().collect();
    if let (Ok(program), Some((name, rest))) = (env::current_exe(), arguments.split_first()) {
        // Returns only when it fails.
        let _error = Command::new(program).arg0(name).args(rest).env(ARENAS, arenas.to_string()).exec();
    }
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
