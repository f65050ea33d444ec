//! Connected sources: what they may reach, and the commands of whoever operates the deployment.

use std::path::PathBuf;

use cairn_proto::ids::SourceId;
use clap::{Args, Subcommand};

use super::{OutboundOptions, SecretKeyOptions, StoredOptions};

pub(super) const EXAMPLES: &str = "Examples:
  cairn sources list                        of every workspace, with how each stands
  cairn sources sync 0199c0de-… --full      read again by the Cairn that runs, or by the next one
  cairn sources check 0199c0de-…            ask the provider now whether it takes the credentials";

/// What sources of the provider `folder` may read.
#[derive(Debug, Clone, Args)]
pub(crate) struct SourceOptions {
    /// Folders of this machine that sources may read, with all that is below them, separated by commas. Default: none.
    #[arg(long, env = "CAIRN_SOURCE_ROOTS", value_name = "DIRS", value_delimiter = ',')]
    pub(crate) source_roots: Vec<PathBuf>,
}

/// What is done about sources.
#[derive(Debug, Subcommand)]
pub(crate) enum SourcesCommand {
    /// Show the sources of every workspace.
    #[command(after_help = EXAMPLES)]
    List(StoredOptions),
    /// Ask the provider of a source whether it takes the stored settings and credentials.
    #[command(after_help = EXAMPLES)]
    Check(CheckSourceOptions),
    /// Have a source read.
    #[command(after_help = EXAMPLES)]
    Sync(SyncSourceOptions),
}

/// Which source is checked.
#[derive(Debug, Args)]
pub(crate) struct CheckSourceOptions {
    /// The source's id, as `cairn sources list` shows it.
    #[arg(value_name = "SOURCE")]
    pub(crate) source: SourceId,
    #[command(flatten)]
    pub(crate) stored: StoredOptions,
    #[command(flatten)]
    pub(crate) sources: SourceOptions,
    #[command(flatten)]
    pub(crate) outbound: OutboundOptions,
    #[command(flatten)]
    pub(crate) secret_key: SecretKeyOptions,
}

/// Which source is read.
#[derive(Debug, Args)]
pub(crate) struct SyncSourceOptions {
    /// The source's id, as `cairn sources list` shows it.
    #[arg(value_name = "SOURCE")]
    pub(crate) source: SourceId,
    /// Read everything, and not what has changed alone.
    #[arg(long)]
    pub(crate) full: bool,
    #[command(flatten)]
    pub(crate) stored: StoredOptions,
}
