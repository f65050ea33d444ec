//! Settings of glibc's allocator. Other C libraries keep their defaults.

#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) use self::glibc::{set_up, trim};

/// Only glibc has these settings.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn set_up() {}

/// Only glibc can trim.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn trim() {}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod glibc {
    use std::{env, thread};

    use libc::c_int;

    /// Allocations of this size or more get their own mapping, which is returned to the OS as a whole when they are
    /// freed. By default, glibc raises this threshold to the largest mapping that was ever freed, up to 32 MiB, and
    /// large buffers then end up between small ones. The indexing buffers of 1 MiB stay below it: mapping each of them
    /// anew would cost a bulk of writes a tenth of its CPU.
    const MMAP_THRESHOLD: c_int = 4 << 20;
    /// How much may stay free at the top of a heap. glibc's default is twice the threshold above, up to 64 MiB as it
    /// grows.
    const TRIM_THRESHOLD: c_int = 8 << 20;

    /// Configures the allocator: one arena per core instead of eight, since memory freed in one thread's arena is of no
    /// use to the others (docs/adr/0066-an-arena-for-each-core.md), and thresholds that do not grow
    /// (docs/adr/0091-memory-goes-back-at-rest.md). Settings in the environment take precedence. Must be called before
    /// a second thread exists: arenas are never removed.
    pub(crate) fn set_up() {
        let is_set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
        if is_set("GLIBC_TUNABLES") {
            return;
        }
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let settings = [
            ("MALLOC_ARENA_MAX", libc::M_ARENA_MAX, c_int::try_from(cores).unwrap_or(c_int::MAX)),
            ("MALLOC_MMAP_THRESHOLD_", libc::M_MMAP_THRESHOLD, MMAP_THRESHOLD),
            ("MALLOC_TRIM_THRESHOLD_", libc::M_TRIM_THRESHOLD, TRIM_THRESHOLD),
        ];
        for (name, parameter, value) in settings {
            if !is_set(name) {
                set(parameter, value);
            }
        }
    }

    /// Parameters that glibc rejects keep their values.
    #[expect(
        unsafe_code,
        reason = "a call of the C library that takes two numbers and refuses those that make no sense"
    )]
    fn set(parameter: c_int, value: c_int) {
        // SAFETY: mallopt(3) takes its lock, and touches only the allocator's own settings.
        unsafe {
            libc::mallopt(parameter, value);
        }
    }

    /// Returns the free pages of all heaps to the OS.
    #[expect(unsafe_code, reason = "a call of the C library without arguments that could be wrong (ADR 91)")]
    pub(crate) fn trim() {
        // SAFETY: malloc_trim(3) may be called at any time and from any thread; it takes a number of bytes and touches only what
        // the allocator has free.
        unsafe {
            libc::malloc_trim(0);
        }
    }
}
