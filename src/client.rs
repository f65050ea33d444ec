//! The commands that talk to a running Cairn over its public API, as any other program does.

mod connection;
mod exec;
mod feedback;
mod health;
mod ingest;
pub(crate) mod mcp;
mod output;
mod search;
mod sync;

use std::fmt;

use clap::Subcommand;

use self::exec::ExecOptions;
use self::feedback::FeedbackOptions;
use self::health::HealthOptions;
use self::ingest::IngestOptions;
use self::mcp::McpOptions;
use self::search::SearchOptions;
use self::sync::SyncOptions;

/// What a client can do.
#[derive(Debug, Subcommand)]
pub(crate) enum ClientCommand {
    /// Search the workspace, and cite what is found.
    #[command(after_help = search::EXAMPLES)]
    Search(SearchOptions),
    /// Run a read-only shell script over the workspace; ends with 1 when it fails.
    #[command(after_help = exec::EXAMPLES)]
    Exec(ExecOptions),
    /// Send files for searching: texts, PDF, Office, e-books, mail, HTML, tables, notebooks.
    #[command(after_help = ingest::EXAMPLES)]
    Ingest(IngestOptions),
    /// Bring a directory into the workspace, and keep it there as it is here.
    #[command(after_help = sync::EXAMPLES)]
    Sync(SyncOptions),
    /// Speak MCP on stdin and stdout for clients that know only that, and pass every message on to /mcp.
    #[command(after_help = mcp::EXAMPLES)]
    Mcp(McpOptions),
    /// Report to the maintainers of the workspace what is missing, out of date or wrong.
    #[command(after_help = feedback::EXAMPLES)]
    Feedback(FeedbackOptions),
    /// Say whether a Cairn answers, and whether all that it needs does; ends with 1 when not.
    Health(HealthOptions),
}

/// Runs one.
pub(crate) async fn run(command: ClientCommand) -> anyhow::Result<()> {
    match command {
        ClientCommand::Search(options) => search::run(options).await,
        ClientCommand::Exec(options) => exec::run(options).await,
        ClientCommand::Ingest(options) => ingest::run(options).await,
        ClientCommand::Sync(options) => sync::run(options).await,
        ClientCommand::Mcp(options) => mcp::run(options).await,
        ClientCommand::Feedback(options) => feedback::run(options).await,
        ClientCommand::Health(options) => health::run(options).await,
    }
}

/// A command that ended as scripts tell apart from failure.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: u8,
    message: &'static str,
}

impl Ended {
    const fn new(status: u8, message: &'static str) -> Self {
        Self { status, message }
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.message)
    }
}

impl std::error::Error for Ended {}
