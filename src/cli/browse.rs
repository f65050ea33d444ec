//! Options about scripts over the workspace as a file system.

use clap::Args;

use super::memory::MemoryOptions;

const MEBIBYTE: u64 = 1 << 20;

/// What scripts may take of this machine.
#[derive(Debug, Clone, Args)]
pub(crate) struct BrowseOptions {
    /// Megabytes of memory at most for what scripts read, all of it read again when it is gone: bodies of files, what
    /// tells where a text may be, trees. Default: 320, or two fifths of CAIRN_MEMORY_MB.
    #[arg(
        long,
        env = "CAIRN_BROWSE_MEMORY_MB",
        value_name = "MEGABYTES",
        value_parser = clap::value_parser!(u64).range(16..=1_048_576)
    )]
    pub(crate) browse_memory_mb: Option<u64>,
    /// Scripts that run at once; of one workspace a quarter less. Default: two for each core.
    #[arg(
        long,
        env = "CAIRN_BROWSE_SCRIPTS",
        value_name = "COUNT",
        value_parser = clap::value_parser!(u16).range(1..=400)
    )]
    pub(crate) browse_scripts: Option<u16>,
}

impl BrowseOptions {
    /// What the retrieval service is told.
    pub(crate) fn config(&self, memory: &MemoryOptions) -> cairn_browse::Config {
        let share = self.browse_scripts.map(|count| cairn_browse::Share::of(usize::from(count)));
        let own = self.browse_memory_mb.map(|megabytes| megabytes.saturating_mul(MEBIBYTE));
        cairn_browse::Config {
            memory: cairn_browse::Memory::of(own.unwrap_or_else(|| memory.scripts())),
            share: share.unwrap_or_default(),
        }
    }
}
