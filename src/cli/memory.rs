//! How much memory a process may take for what it could read again.

use clap::Args;

const MEBIBYTE: u64 = 1 << 20;
/// Of scripts, when nothing is said.
const SCRIPTS_MB: u64 = 320;
/// With less, no script could read anything.
const FEWEST_SCRIPTS_MB: u64 = 16;
/// Of sources that are asked while somebody waits, when nothing is said.
const PROVIDER_BODIES_MB: u64 = 16;
/// Of names of files, when nothing is said: more than a million of them.
const NAMES_MB: u64 = 192;

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
        self.share(2, 5, SCRIPTS_MB).max(FEWEST_SCRIPTS_MB * MEBIBYTE)
    }

    /// Bytes for documents of sources that were read a moment ago: a twentieth, and never more than by default.
    pub(crate) fn provider_bodies(&self) -> u64 {
        self.share(1, 20, PROVIDER_BODIES_MB)
    }

    /// Bytes for names of files that are looked for: a tenth, and never more than by default.
    pub(crate) fn names(&self) -> usize {
        usize::try_from(self.share(1, 10, NAMES_MB)).unwrap_or(usize::MAX)
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
            let names = options.names() as u64 / MEBIBYTE;
            (options.scripts() / MEBIBYTE, options.provider_bodies() / MEBIBYTE, names)
        };
        assert_eq!(of(None), (320, 16, 192));
        assert_eq!(of(Some(200)), (80, 10, 20));
        assert_eq!(of(Some(128)), (51, 6, 12));
        assert_eq!(of(Some(100_000)), (320, 16, 192), "nobody wanted more than usual");
    }
}
