//! The memory limit of the process and how caches share it.

use clap::Args;

const MEBIBYTE: u64 = 1 << 20;
/// Default for scripts.
const SCRIPTS_MB: u64 = 320;
/// With less, no script could read anything.
const MIN_SCRIPTS_MB: u64 = 16;
/// Default for databases in use.
const RECORDS_MB: u64 = 256;
/// Default for the names of folders and databases that searches read.
const NAMES_MB: u64 = 32;
/// Default for responses of sources that are queried during a request.
const PROVIDER_BODIES_MB: u64 = 16;
/// Default for file names: more than a million of them.
const FILE_NAMES_MB: u64 = 192;

/// The bound, and its shares.
#[derive(Debug, Clone, Args)]
pub(crate) struct MemoryOptions {
    /// Megabytes that the process should stay within. Caches get their shares of it (docs/OPERATIONS.md#memory); what an option
    /// of its own says stays. Default: each cache has its usual bound.
    #[arg(
        long,
        env = "CAIRN_MEMORY_MB",
        value_name = "MEGABYTES",
        value_parser = clap::value_parser!(u64).range(128..=1_048_576)
    )]
    pub(crate) memory_mb: Option<u64>,
}

impl MemoryOptions {
    /// Bytes for what scripts read: two fifths, and never more than by default.
    pub(crate) fn scripts(&self) -> u64 {
        self.share(2, 5, SCRIPTS_MB).max(MIN_SCRIPTS_MB * MEBIBYTE)
    }

    /// Bytes for databases in use: a fifth, and never more than by default.
    pub(crate) fn records(&self) -> u64 {
        self.share(1, 5, RECORDS_MB)
    }

    /// Bytes for the names that searches read: a twentieth, and never more than by default.
    pub(crate) fn names(&self) -> u64 {
        self.share(1, 20, NAMES_MB)
    }

    /// Bytes for documents of sources that were read a moment ago: a twentieth, and never more than by default.
    pub(crate) fn provider_bodies(&self) -> u64 {
        self.share(1, 20, PROVIDER_BODIES_MB)
    }

    /// Bytes for names of files that are looked for: a twentieth, and never more than by default.
    pub(crate) fn file_names(&self) -> usize {
        usize::try_from(self.share(1, 20, FILE_NAMES_MB)).unwrap_or(usize::MAX)
    }

    /// Bytes that the process should stay within.
    pub(crate) fn bound(&self) -> Option<u64> {
        self.memory_mb.map(|megabytes| megabytes.saturating_mul(MEBIBYTE))
    }

    fn share(&self, parts: u64, of: u64, usual_mb: u64) -> u64 {
        let usual = usual_mb * MEBIBYTE;
        self.bound().map_or(usual, |bound| (bound / of * parts).min(usual))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_divided() {
        let of = |memory_mb| {
            let options = MemoryOptions { memory_mb };
            let file_names = options.file_names() as u64;
            let all = [
                options.scripts(),
                options.records(),
                options.names(),
                options.provider_bodies(),
                file_names,
            ];
            all.map(|bytes| bytes / MEBIBYTE)
        };
        assert_eq!(of(None), [320, 256, 32, 16, 192]);
        assert_eq!(of(Some(200)), [80, 40, 10, 10, 10]);
        assert_eq!(of(Some(128)), [51, 25, 6, 6, 6]);
        assert_eq!(of(Some(100_000)), [320, 256, 32, 16, 192], "nobody wanted more than usual");
        for bound in [128, 512, 4_096] {
            let all: u64 = of(Some(bound)).iter().sum();
            assert!(
                all * 4 <= bound * 3,
                "{all} of {bound}: vectors and what a process is made of need the rest"
            );
        }
    }
}
