//! Resource limits of a child, which it sets for itself before it reads the first byte of input.

use std::io;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};

/// Standard input, output and error are open already: a child can open no further file or connection.
const OPEN_FILES: u64 = 3;

/// Sets the limits for the lifetime of this process. An allocation beyond the memory limit aborts it.
///
/// # Errors
/// When the OS refuses a limit.
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

/// Grants this process that much further CPU time. The limit of the OS counts from the start of the process, so it is raised
/// each time.
///
/// # Errors
/// When the OS refuses the limit.
pub fn allow_cpu(more: Duration) -> io::Result<()> {
    let used = clock_gettime(ClockId::ProcessCPUTime).tv_sec;
    let used = u64::try_from(used).unwrap_or(0);
    Ok(setrlimit(Resource::Cpu, Rlimit { current: Some(used + 1 + more.as_secs()), maximum: None })?)
}

fn exactly(limit: u64) -> Rlimit {
    Rlimit { current: Some(limit), maximum: Some(limit) }
}
