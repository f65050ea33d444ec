//! The command line. Every option can also be set by the environment variable that `--help` names.

mod agents;
mod asset_location;
mod backup;
mod bootstrap;
mod browse;
mod configuration;
mod connections;
mod content;
mod documentation;
mod embedder;
mod ending;
mod environment;
mod memory;
mod mesh;
mod models;
mod oidc;
mod outbound;
mod processes;
mod protection;
mod public;
mod qdrant;
mod refusals;
mod reranker;
mod services;
mod sources;
mod spans;
mod stored;
mod webhooks;
mod workspaces;

use clap::{Parser, Subcommand};

use self::asset_location::AssetLocationParser;
pub(crate) use self::backup::{
    BackupKeyOptions, BackupOptions, ChosenBackup, RestoreOptions, RetentionOptions, VerifyOptions,
};
pub(crate) use self::bootstrap::BootstrapOptions;
pub(crate) use self::configuration::{CheckedProcess, ConfigCommand};
pub(crate) use self::documentation::{CompletionsOptions, ManOptions, VersionOptions};
pub(crate) use self::embedder::models_in;
pub(crate) use self::ending::EndingOptions;
pub(crate) use self::environment::read;
pub(crate) use self::mesh::Role;
pub(crate) use self::models::{
    AddModelOptions, ListModelsOptions, ModelStatusOptions, ModelsCommand, ModelsPlace, NamedModelOptions,
    RemoveModelOptions,
};
use self::outbound::OutboundOptions;
pub(crate) use self::processes::{ServeOptions, UpOptions};
pub(crate) use self::protection::{
    KeysCommand, NewSecretsOptions, ResealOptions, SecretKeyOptions, SecretsCommand, SecretsFormat,
    StoredOptions,
};
pub(crate) use self::public::PublicOptions;
pub(crate) use self::services::{ASSETS_FOLDER, INDEX_FOLDER, ServiceOptions, Site};
pub(crate) use self::sources::{CheckSourceOptions, SourcesCommand, SyncSourceOptions};
pub(crate) use self::spans::shown as shown_span;
pub(crate) use self::stored::{
    BootstrapCommand, DoctorOptions, ShowBootstrapOptions, UpgradeCheckOptions, UpgradeCommand,
};
pub(crate) use self::workspaces::{PlanCommand, SetPlanOptions};

use crate::client::ClientCommand;
use crate::eval::{self, EvalOptions};

/// A workspace context service for AI agents: files searched and cited over MCP and REST.
#[derive(Debug, Parser)]
#[command(version, after_help = "Without a command, cairn runs `cairn up`.")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run everything in one process, with embedded storage.
    #[command(after_help = UP_EXAMPLES)]
    Up(Box<UpOptions>),
    /// Run one service of the mesh, over TCP.
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(Box<ServeOptions>),
    /// Check the stored data, from its files to every invariant; says OK, or what is wrong and ends with 1. Writes nothing unless it
    /// is to mend.
    #[command(after_help = stored::DOCTOR_EXAMPLES)]
    Doctor(DoctorOptions),
    /// Back up the data of `cairn up`, while it runs or not, to a folder or a bucket.
    #[command(after_help = backup::BACKUP_EXAMPLES)]
    Backup(BackupOptions),
    /// Put a backup into a data folder: the newest, or the one of a moment; or list what backups there are.
    #[command(after_help = backup::RESTORE_EXAMPLES)]
    Restore(RestoreOptions),
    /// Try whether a backup can be restored, or look over a data folder with its index; ends with 1 when something is wrong.
    #[command(after_help = backup::VERIFY_EXAMPLES)]
    Verify(VerifyOptions),
    /// Measure how well search finds what it should, and say what has changed since a run that was kept.
    #[command(after_help = eval::EXAMPLES)]
    Eval(EvalOptions),
    /// New secrets for a deployment, and the keys that stored ones are sealed with.
    #[command(after_help = protection::SECRETS_EXAMPLES)]
    Secrets {
        #[command(subcommand)]
        command: SecretsCommand,
    },
    /// The keys that identities are signed with.
    #[command(after_help = protection::KEYS_EXAMPLES)]
    Keys {
        #[command(subcommand)]
        command: KeysCommand,
    },
    /// The plans of workspaces, for whoever operates this deployment.
    #[command(after_help = workspaces::PLAN_EXAMPLES)]
    Plan {
        #[command(subcommand)]
        command: PlanCommand,
    },
    /// Connected sources, for whoever operates this deployment.
    #[command(after_help = sources::EXAMPLES)]
    Sources {
        #[command(subcommand)]
        command: SourcesCommand,
    },
    /// The embedding models of a data folder: what is there, and adding further ones.
    #[command(after_help = models::EXAMPLES)]
    Models {
        #[command(subcommand)]
        command: ModelsCommand,
    },
    /// How the first account of `cairn up` gets in.
    #[command(after_help = stored::BOOTSTRAP_EXAMPLES)]
    Bootstrap {
        #[command(subcommand)]
        command: BootstrapCommand,
    },
    /// The configuration that a process would start with.
    #[command(after_help = configuration::EXAMPLES)]
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// What stored data of another version needs.
    #[command(after_help = stored::UPGRADE_EXAMPLES)]
    Upgrade {
        #[command(subcommand)]
        command: UpgradeCommand,
    },
    #[command(flatten)]
    Client(ClientCommand),
    /// Print what was built: the version, the commit, the optional parts.
    #[command(after_help = documentation::VERSION_EXAMPLES)]
    Version(VersionOptions),
    /// Print what makes a shell complete commands and options.
    #[command(after_help = documentation::COMPLETIONS_EXAMPLES)]
    Completions(CompletionsOptions),
    /// Print the manual page of a command, or write those of all.
    #[command(after_help = documentation::MAN_EXAMPLES)]
    Man(ManOptions),
}

const UP_EXAMPLES: &str = "Examples:
  cairn up                                  data in ./cairn-data, on http://127.0.0.1:8700
  cairn up --data /srv/cairn --listen 0.0.0.0:8700 --base-url https://cairn.example
  cairn up --listen 127.0.0.1:0 --quiet     on a free port; <data>/bootstrap.json tells which
  cairn up --embedder candle:sentence-transformers/all-MiniLM-L6-v2     `cairn models add` has added it
  cairn up --embedder openai:http://127.0.0.1:11434/v1 --embedder-model nomic-embed-text
  CAIRN_SECRET_KEY_FILE=/run/secrets/key cairn up

A variable that is set to nothing is not set. Each secret may stand in a file instead: its variable's name with _FILE behind
it names that. `cairn config check up` says what is wrong with a configuration.";

const SERVE_EXAMPLES: &str = "Examples:
  export CAIRN_MESH_SECRET=$(openssl rand -hex 32)       the same for every service; or `cairn secrets new`
  cairn serve auth    --listen 0.0.0.0:8711 --database postgres://cairn@db/cairn
  cairn serve content --listen 0.0.0.0:8712 --database postgres://cairn@db/cairn --auth-url http://auth:8711
  cairn serve gateway --listen 0.0.0.0:8700 --auth-url http://auth:8711 --content-url http://content:8712 …
  CAIRN_DATABASE_URL_FILE=/run/secrets/database CAIRN_MESH_SECRET_FILE=/run/secrets/mesh cairn serve content

A variable that is set to nothing is not set. Each secret may stand in a file instead: its variable's name with _FILE behind
it names that. `cairn config check serve …` says what is wrong with a configuration, `cairn secrets new` makes secrets.";

/// The value of an option. A blank one counts as unset: that is how a compose file passes on a variable that is not set.
fn given(value: &Option<String>) -> Option<String> {
    value.clone().filter(|value| !value.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_says_what_it_is_for_and_gives_examples() {
        let mut waiting: Vec<clap::Command> = Cli::command().get_subcommands().cloned().collect();
        let mut seen = Vec::new();
        while let Some(mut command) = waiting.pop() {
            let name = command.get_name().to_owned();
            assert!(command.get_about().is_some(), "{name} says nothing of itself");
            let help = command.render_long_help().to_string();
            assert!(help.contains("Examples:\n  "), "{name} has no examples:\n{help}");
            assert!(help.contains(&format!("cairn {name}")) || help.contains(&format!(" {name} ")), "{help}");
            for argument in command.get_arguments() {
                assert!(argument.get_help().is_some(), "{name} {} has no help", argument.get_id());
            }
            // The parser's own `help` of a group says what it is.
            waiting.extend(command.get_subcommands().filter(|below| below.get_name() != "help").cloned());
            seen.push(name);
        }
        for expected in [
            "up",
            "backup",
            "restore",
            "verify",
            "rotate",
            "new",
            "check",
            "models",
            "show",
            "version",
            "search",
            "sync",
            "pull",
            "login",
            "completions",
            "man",
        ] {
            assert!(seen.iter().any(|name| name == expected), "{expected} was not looked at");
        }
    }
}
