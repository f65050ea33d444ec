//! `cairn config`: options of processes that are looked at and not started.

use clap::Subcommand;

use super::{ServeOptions, UpOptions};

pub(super) const EXAMPLES: &str = "Examples:
  cairn config check up                     as `cairn up` would start here
  cairn config check up --data /srv/cairn --listen 0.0.0.0:8700
  cairn config check serve content          as `cairn serve content` would start here

It takes the options and the variables of the process, names every one that is wrong, and ends with 1 when there is any. It
starts nothing, connects to nothing, writes nothing, and prints no secret.";

/// What is done about a configuration.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Say what is wrong with the configuration that a process would start with.
    #[command(after_help = EXAMPLES)]
    Check {
        #[command(subcommand)]
        process: CheckedProcess,
    },
}

/// Which process.
#[derive(Debug, Subcommand)]
pub(crate) enum CheckedProcess {
    /// Everything in one process.
    #[command(after_help = EXAMPLES)]
    Up(Box<UpOptions>),
    /// One service of the mesh.
    #[command(after_help = EXAMPLES)]
    Serve(Box<ServeOptions>),
}
