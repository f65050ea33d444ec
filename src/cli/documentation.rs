//! What the command line tells of itself: completions for shells, and manual pages.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

pub(super) const COMPLETIONS_EXAMPLES: &str = "Examples:
  cairn completions bash > ~/.local/share/bash-completion/completions/cairn
  cairn completions zsh > ~/.zfunc/_cairn            with ~/.zfunc in $fpath
  cairn completions fish > ~/.config/fish/completions/cairn.fish";

pub(super) const MAN_EXAMPLES: &str = "Examples:
  cairn man | man -l -                               of cairn itself
  cairn man sync | man -l -
  cairn man --out ~/.local/share/man/man1            a page for each command";

pub(super) const VERSION_EXAMPLES: &str = "Examples:
  cairn version
  cairn version --json | jq -r .commit";

#[derive(Debug, Args)]
pub(crate) struct VersionOptions {
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsOptions {
    /// The shell.
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}

#[derive(Debug, Args)]
pub(crate) struct ManOptions {
    /// The command that the page is of, such as `sync` or `secrets rotate`. Default: cairn itself.
    #[arg(value_name = "COMMAND", conflicts_with = "out")]
    pub(crate) command: Vec<String>,
    /// Write the pages of all commands into this folder, which is made when it is not there.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}
