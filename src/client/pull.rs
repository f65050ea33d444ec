//! `cairn pull`: everything of a workspace as files of a directory.
//!
//! The directory is laid out as the tree of the shell is: `files/`, `databases/`, `memories/`, and `assets/` beside them.

mod database;
mod decide;
mod memory;
mod names;
mod place;
mod remote;
mod report;
mod state;
mod work;

use std::path::PathBuf;

use clap::Args;

use self::names::Rules;
use self::place::Place;
use self::remote::Remote;
use self::state::State;
use self::work::Work;
use super::Ended;
use super::connection::{Connection, ConnectionOptions};
use super::output::{print, print_json};

pub(super) const EXAMPLES: &str = "Examples:
  cairn pull backup/                          everything, or what has changed since the last pull
  cairn pull backup/ --prune                  and remove here what the workspace no longer has
  cairn pull backup/ --overwrite              take the workspace's side where a file was edited here
  cairn pull backup/ --json | jq .conflicts

files/ holds files and folders as they are, databases/ each database as CSV and JSON, memories/ a folder for each memory,
assets/ what is attached. What was edited here is never overwritten without --overwrite. Names that cannot stand here are
changed, and told. It ends with 0 when all is here, 1 when it failed, 3 when something was left as it is, and 4 when nothing
opens the workspace.";

#[derive(Debug, Args)]
pub(crate) struct PullOptions {
    #[command(flatten)]
    connection: ConnectionOptions,
    /// The directory; made when it is not there.
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Remove files that an earlier pull wrote and the workspace no longer has.
    #[arg(long)]
    prune: bool,
    /// Overwrite what was edited here since the last pull, and what else stands in the way.
    #[arg(long)]
    overwrite: bool,
    /// Change names to such as Windows takes, too, and tell apart those that differ in case only.
    #[arg(long)]
    portable: bool,
    /// Print what was done as JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(options: PullOptions) -> anyhow::Result<()> {
    let remote = Remote::new(Connection::open(&options.connection)?);
    let workspace = remote.workspace().await?;
    let place = Place::open(&options.directory)?;
    let portable = options.portable || cfg!(windows);
    let rules = Rules { portable, folds_case: portable || place.folds_case()? };
    let state = State::read(&place, &workspace.id)?;
    let mut work = Work::new(remote, place, state, rules, options.overwrite);
    let done = work.run(options.prune).await;
    // Recorded even if the rest failed, so that the next pull knows what was written.
    work.note()?;
    done?;
    let report = work.report();
    if options.json {
        print_json(&serde_json::to_value(report)?)?;
    } else {
        print(&report.text())?;
    }
    if report.is_whole() { Ok(()) } else { Err(Ended::left_alone().into()) }
}
