//! What a child may use. It sets these limits itself, before it reads the first byte that somebody sent.

use std::io;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};

/// Standard input, output and error, which are open already: a child opens no file and no connection.
const OPEN_FILES: u64 = 3;

/// Sets the limits of this process that hold for all of its work. What is allocated beyond the memory ends it.
///
/// # Errors
/// When the system refuses a limit.
pub fn confine(memory_bytes: u64) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        setrlimit(Resource::As, exactly(memory_bytes))?;
        rustix::thread::set_no_new_privs(true)?;
    }
    setrlimit(Resource::Core, exactly(0))?;
    setrlimit(Resource::Fsize, exactly(0))?;
    Ok(setrlimit(Resource::Nofile, exactly(OPEN_FILES))?)
}

/// Gives this process that much more CPU time. The limit counts from the start of the process, so it moves on.
///
/// # Errors
/// When the system refuses the limit.
pub fn allow_cpu(more: Duration) -> io::Result<()> {
    let used = clock_gettime(ClockId::ProcessCPUTime).tv_sec;
    let used = u64::try_from(used).unwrap_or(0);
    Ok(setrlimit(Resource::Cpu, Rlimit { current: Some(used + 1 + more.as_secs()), maximum: None })?)
}

fn exactly(limit: u64) -> Rlimit {
    Rlimit { current: Some(limit), maximum: Some(limit) }
}
