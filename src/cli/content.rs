//! Options of the content service.

use std::path::PathBuf;
use std::time::Duration;

use cairn_chassis::limits::PlanLimits;
use cairn_content::AssetLocation;
use clap::Args;

use super::asset_location::AssetLocationParser;
use super::memory::MemoryOptions;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// What the content service keeps.
#[derive(Debug, Clone, Args)]
pub(crate) struct ContentOptions {
    /// Days after which what is in trash is removed for good, at least 1. Default: it is kept.
    #[arg(
        long,
        env = "CAIRN_TRASH_RETENTION_DAYS",
        value_name = "DAYS",
        value_parser = clap::value_parser!(u32).range(1..=36_500)
    )]
    pub(crate) trash_retention_days: Option<u32>,
    /// Where the bytes of assets are kept: a path, or s3://bucket/prefix?endpoint=…&region=… with credentials in
    /// AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY. Default: the folder `assets` in the data folder.
    #[arg(long, env = "CAIRN_ASSETS", value_name = "PLACE", value_parser = AssetLocationParser)]
    pub(crate) assets: Option<AssetLocation>,
    /// What a plan allows: plan=object, plan=object:storage or plan=object:storage:files, separated by commas. Megabytes of
    /// one asset, megabytes of all that a workspace keeps, and how many files; a number that is left out is no limit.
    #[arg(long, env = "CAIRN_ASSET_LIMITS", value_name = "LIMITS", value_parser = PlanLimits::with_overrides)]
    pub(crate) asset_limits: Option<PlanLimits>,
    /// Megabytes of memory at most for databases that are in use, whose records are filtered and sorted there; a database
    /// that is larger is read by SQL, as all are with 0. Default: 256, or a fifth of CAIRN_MEMORY_MB.
    #[arg(
        long,
        env = "CAIRN_RECORDS_MEMORY_MB",
        value_name = "MEGABYTES",
        value_parser = clap::value_parser!(u32).range(0..=1_048_576)
    )]
    pub(crate) records_memory_mb: Option<u32>,
}

impl ContentOptions {
    /// What databases may take in memory.
    pub(crate) fn columns_bytes(&self, memory: &MemoryOptions) -> usize {
        const MEBIBYTE: u64 = 1 << 20;
        let own = self.records_memory_mb.map(|megabytes| u64::from(megabytes).saturating_mul(MEBIBYTE));
        usize::try_from(own.unwrap_or_else(|| memory.records())).unwrap_or(usize::MAX)
    }

    /// How long trash is kept; for ever when absent.
    pub(crate) fn trash_retention(&self) -> Option<Duration> {
        self.trash_retention_days.map(|days| DAY * days)
    }

    /// Where the bytes of assets are, in that folder when nothing else is said.
    pub(crate) fn assets_or(&self, folder: PathBuf) -> AssetLocation {
        self.assets.clone().unwrap_or(AssetLocation::Folder(folder))
    }
}
