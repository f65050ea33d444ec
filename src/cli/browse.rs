//! Options about scripts over the workspace as a file system.

use clap::Args;

const MEBIBYTE: u64 = 1 << 20;

/// What scripts may take of this machine.
#[derive(Debug, Clone, Args)]
pub(crate) struct BrowseOptions {
    /// Megabytes of memory at most for what scripts read, all of it read again when it is gone: bodies of files, what
    /// tells where a text may be, trees.
    #[arg(
        long,
        env = "CAIRN_BROWSE_MEMORY_MB",
        value_name = "MEGABYTES",
        default_value_t = 320,
        value_parser = clap::value_parser!(u64).range(16..=1_048_576)
    )]
    pub(crate) browse_memory_mb: u64,
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
    pub(crate) fn config(&self) -> cairn_browse::Config {
        let share = self.browse_scripts.map(|count| cairn_browse::Share::of(usize::from(count)));
        cairn_browse::Config {
            memory: cairn_browse::Memory::of(self.browse_memory_mb.saturating_mul(MEBIBYTE)),
            share: share.unwrap_or_default(),
        }
    }
}
