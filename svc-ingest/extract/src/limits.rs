//! What a child may use. It sets these limits itself, before it reads the first byte that somebody sent.

use std::time::Duration;

use rustix::io::Result;
use rustix::process::{Resource, Rlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};

/// Address space of a child: what it allocates beyond ends it.
const MOST_MEMORY_BYTES: u64 = 1024 * 1024 * 1024;
/// CPU time of one document.
const MOST_CPU: Duration = Duration::from_secs(20);
/// Standard input, output and error, which are open already: a child opens no file and no connection.
const OPEN_FILES: u64 = 3;

/// Sets the limits of this process that hold for all documents.
pub(crate) fn confine() -> Result<()> {
    #[cfg(target_os = "linux")]
    {
        setrlimit(Resource::As, exactly(MOST_MEMORY_BYTES))?;
        rustix::thread::set_no_new_privs(true)?;
    }
    setrlimit(Resource::Core, exactly(0))?;
    setrlimit(Resource::Fsize, exactly(0))?;
    setrlimit(Resource::Nofile, exactly(OPEN_FILES))
}

/// Gives this process the CPU time of one more document. The limit counts from the start of the process, so it moves on.
pub(crate) fn allow_one_document() -> Result<()> {
    let used = clock_gettime(ClockId::ProcessCPUTime).tv_sec;
    let used = u64::try_from(used).unwrap_or(0);
    setrlimit(Resource::Cpu, Rlimit { current: Some(used + 1 + MOST_CPU.as_secs()), maximum: None })
}

fn exactly(limit: u64) -> Rlimit {
    Rlimit { current: Some(limit), maximum: Some(limit) }
}
