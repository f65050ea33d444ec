//! The commands that talk to a running Cairn over its public API, like any other client.

mod connection;
mod exec;
mod feedback;
mod health;
mod import;
mod ingest;
mod login;
pub(crate) mod mcp;
mod output;
mod profiles;
mod pull;
mod search;
mod sync;

use std::fmt;

use clap::Subcommand;

pub(crate) use self::connection::{Connection, ConnectionOptions};
use self::exec::ExecOptions;
use self::feedback::FeedbackOptions;
use self::health::HealthOptions;
use self::import::ImportOptions;
use self::ingest::IngestOptions;
use self::login::{LoginOptions, LogoutOptions};
use self::mcp::McpOptions;
use self::profiles::ProfilesOptions;
use self::pull::PullOptions;
use self::search::SearchOptions;
use self::sync::SyncOptions;

/// What a client can do.
#[derive(Debug, Subcommand)]
pub(crate) enum ClientCommand {
    /// Search the workspace, and cite what is found.
    #[command(after_help = search::EXAMPLES)]
    Search(Box<SearchOptions>),
    /// Run a read-only shell script over the workspace; ends with 1 when it fails.
    #[command(after_help = exec::EXAMPLES)]
    Exec(ExecOptions),
    /// Send files for searching: texts, PDF, Office, e-books, mail, HTML, tables, notebooks.
    #[command(after_help = ingest::EXAMPLES)]
    Ingest(IngestOptions),
    /// Bring a directory into the workspace, and keep it there as it is here.
    #[command(after_help = sync::EXAMPLES)]
    Sync(SyncOptions),
    /// Import the archive of an Obsidian vault or of a Notion export, or take an import back.
    #[command(after_help = import::EXAMPLES)]
    Import(Box<ImportOptions>),
    /// Take everything out of the workspace into a directory: files, databases, memories, assets.
    #[command(after_help = pull::EXAMPLES)]
    Pull(PullOptions),
    /// Speak MCP on stdin and stdout for clients that know only that, and pass every message on to /mcp.
    #[command(after_help = mcp::EXAMPLES)]
    Mcp(McpOptions),
    /// Report to the maintainers of the workspace what is missing, out of date or wrong.
    #[command(after_help = feedback::EXAMPLES)]
    Feedback(FeedbackOptions),
    /// Say whether a Cairn answers, and whether all that it needs does; ends with 1 when not.
    #[command(after_help = health::EXAMPLES)]
    Health(HealthOptions),
    /// Let the commands of this machine into a workspace, and keep what opens it.
    #[command(after_help = login::LOGIN_EXAMPLES)]
    Login(LoginOptions),
    /// End a login, and forget what opened the workspace.
    #[command(after_help = login::LOGOUT_EXAMPLES)]
    Logout(LogoutOptions),
    /// List what `cairn login` has kept, or choose the default.
    #[command(after_help = profiles::EXAMPLES)]
    Profiles(ProfilesOptions),
}

/// Runs one.
pub(crate) async fn run(command: ClientCommand) -> anyhow::Result<()> {
    match command {
        ClientCommand::Search(options) => search::run(*options).await,
        ClientCommand::Exec(options) => exec::run(options).await,
        ClientCommand::Ingest(options) => ingest::run(options).await,
        ClientCommand::Sync(options) => sync::run(options).await,
        ClientCommand::Import(options) => import::run(*options).await,
        ClientCommand::Pull(options) => pull::run(options).await,
        ClientCommand::Mcp(options) => mcp::run(options).await,
        ClientCommand::Feedback(options) => feedback::run(options).await,
        ClientCommand::Health(options) => health::run(options).await,
        ClientCommand::Login(options) => login::run(options).await,
        ClientCommand::Logout(options) => login::log_out(options).await,
        ClientCommand::Profiles(options) => profiles::run(options).await,
    }
}

/// The outcome of a command that did not do all it was asked, with the exit status that scripts distinguish
/// (docs/CLI.md).
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: u8,
    message: String,
}

impl Ended {
    /// It failed.
    const fn failed(message: String) -> Self {
        Self { status: 1, message }
    }

    /// It succeeded in part.
    fn left_alone() -> Self {
        Self { status: 3, message: "something was left as it is; see above".to_owned() }
    }

    /// It has no valid credentials.
    const fn not_let_in(message: String) -> Self {
        Self { status: 4, message }
    }

    /// Whether credentials were missing or invalid.
    const fn is_not_let_in(&self) -> bool {
        self.status == 4
    }

    /// Whether it succeeded in part.
    const fn is_left_alone(&self) -> bool {
        self.status == 3
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for Ended {}
