//! What this process asks of glibc's allocator. Other C libraries are left as they are.

#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) use self::glibc::{set_up, trim};

/// Nothing to be asked.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn set_up() {}

/// Nothing to be asked.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn trim() {}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod glibc {
    use std::{env, thread};

    use libc::c_int;

    /// A buffer of so many bytes has a mapping of its own, which goes back whole when it is freed. Left to itself, glibc raises
    /// this to the largest mapping that was ever freed, up to 32 MiB, and large buffers then come to lie between small ones.
    /// The indexing buffers of 1 MiB stay below: to map each of them anew would cost a bulk of writes a tenth of its CPU.
    const MAPPED_FROM: c_int = 4 << 20;
    /// What may stay free at the end of a heap. glibc keeps twice the bound above, which is up to 64 MiB as it raises it.
    const KEPT_AT_END: c_int = 8 << 20;

    /// Says how memory is kept: an arena for each core instead of eight, since what one thread frees in its arena is of no use
    /// to the others (docs/adr/0066-an-arena-for-each-core.md), and bounds that do not grow
    /// (docs/adr/0091-memory-goes-back-at-rest.md). What an operator says in the environment stays. To be called before there
    /// is a second thread: arenas are not taken back.
    pub(crate) fn set_up() {
        let is_set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
        if is_set("GLIBC_TUNABLES") {
            return;
        }
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let settings = [
            ("MALLOC_ARENA_MAX", libc::M_ARENA_MAX, c_int::try_from(cores).unwrap_or(c_int::MAX)),
            ("MALLOC_MMAP_THRESHOLD_", libc::M_MMAP_THRESHOLD, MAPPED_FROM),
            ("MALLOC_TRIM_THRESHOLD_", libc::M_TRIM_THRESHOLD, KEPT_AT_END),
        ];
        for (name, parameter, value) in settings {
            if !is_set(name) {
                set(parameter, value);
            }
        }
    }

    /// What glibc does not take stays as it is.
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

    /// Has it give back the pages of its heaps that nothing is on.
    #[expect(unsafe_code, reason = "a call of the C library without arguments that could be wrong (ADR 91)")]
    pub(crate) fn trim() {
        // SAFETY: malloc_trim(3) may be called at any time and from any thread; it takes a number of bytes and touches only what
        // the allocator has free.
        unsafe {
            libc::malloc_trim(0);
        }
    }
}
