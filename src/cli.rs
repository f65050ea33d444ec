//! The command line. Every option can also be set by the environment variable that `--help` names.

mod asset_location;
mod backup;
mod browse;
mod configuration;
mod connections;
mod documentation;
mod embedder;
mod ending;
mod environment;
mod memory;
mod models;
mod oidc;
mod protection;
mod qdrant;
mod refusals;
mod reranker;
mod services;
mod sources;
mod spans;
mod stored;
mod webhooks;
mod workspaces;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use cairn_chassis::debug_fields;
use cairn_chassis::limits::PlanLimits;
use cairn_content::AssetLocation;
use clap::{Args, Parser, Subcommand, ValueEnum};

use self::asset_location::AssetLocationParser;
pub(crate) use self::backup::{
    BackupKeyOptions, BackupOptions, ChosenBackup, KeepingOptions, RestoreOptions, VerifyOptions,
};
pub(crate) use self::configuration::{CheckedProcess, ConfigCommand};
use self::connections::DatabaseConnections;
pub(crate) use self::documentation::{CompletionsOptions, ManOptions, VersionOptions};
pub(crate) use self::embedder::models_in;
pub(crate) use self::ending::EndingOptions;
pub(crate) use self::environment::read;
use self::memory::MemoryOptions;
pub(crate) use self::models::{
    AddModelOptions, ListModelsOptions, ModelStatusOptions, ModelsCommand, ModelsPlace, NamedModelOptions,
    RemoveModelOptions,
};
pub(crate) use self::protection::{
    KeysCommand, NewSecretsOptions, ResealOptions, SecretKeyOptions, SecretsCommand, SecretsFormat,
    StoredOptions, TlsClientOptions,
};
pub(crate) use self::services::{ASSETS_FOLDER, INDEX_FOLDER, ServiceOptions, Site};
pub(crate) use self::sources::{CheckSourceOptions, SourcesCommand, SyncSourceOptions};
pub(crate) use self::spans::shown as shown_span;
pub(crate) use self::stored::{
    BootstrapCommand, DoctorOptions, ShowBootstrapOptions, UpgradeCheckOptions, UpgradeCommand,
};
pub(crate) use self::workspaces::{PlanCommand, SetPlanOptions};

use crate::client::ClientCommand;
use crate::eval::{self, EvalOptions};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Where the public address is when nothing else is said (contract, "Starting it").
const DEFAULT_LISTEN: &str = "127.0.0.1:8700";

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
    #[command(after_help = DOCTOR_EXAMPLES)]
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

const DOCTOR_EXAMPLES: &str = "Examples:
  cairn doctor                              of cairn up, with its data in ./cairn-data
  cairn doctor --data /srv/cairn --json
  cairn doctor --database postgres://cairn@db/cairn
  cairn doctor --data /srv/cairn --mend     asks before it mends, and says what was mended and what is lost
  cairn doctor --data /srv/cairn --mend --yes --from /backups/cairn
                                            texts and assets that are damaged come from the newest backup
  cairn doctor --data /srv/cairn --mend --yes --give-up-assets
                                            the volume of assets is lost for good, and no backup has it

It may run while Cairn runs, and looks at each service's data as it was at one moment. To mend, stop Cairn first. What is
mended is mended in one transaction for each service, and the same again changes nothing. A file that cannot be read is kept beside
the new one, as <file>.damaged-<time>. It ends with 1 while something is wrong, also after it has mended what it can.";

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
    #[arg(long, env = "CAIRN_ASSET_LIMITS", value_name = "LIMITS", value_parser = PlanLimits::changed_by)]
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

/// How the gateway presents itself.
#[derive(Debug, Clone, Args)]
pub(crate) struct PublicOptions {
    /// The address that people and agents use, when a proxy stands in front.
    #[arg(long, env = "CAIRN_BASE_URL", value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// Further origins that may call /mcp, separated by commas.
    #[arg(long, env = "MCP_ALLOWED_ORIGINS", value_name = "ORIGINS", value_delimiter = ',')]
    pub(crate) allowed_origins: Vec<String>,
    /// Changes of the plans' rate limits: JSON such as {"free": {"minute": 60, "day": null}}, or a file that holds it.
    #[arg(long, env = "CAIRN_PLANS", value_name = "JSON|FILE")]
    pub(crate) plans: Option<String>,
    /// Proxies whose X-Forwarded-For or Forwarded is believed: addresses or networks, separated by commas.
    #[arg(long, env = "CAIRN_TRUSTED_PROXIES", value_name = "NETWORKS", value_delimiter = ',')]
    pub(crate) trusted_proxies: Vec<String>,
    /// Where gateways count rate limits together, such as redis://host:6379; several cluster nodes with commas.
    /// Default: each process counts for itself.
    #[arg(long, env = "CAIRN_REDIS_URL", hide_env_values = true, value_name = "URL")]
    pub(crate) redis_url: Option<cairn_gateway::RedisUrl>,
    /// How long Redis may take to answer before each process counts for itself for a second.
    #[arg(
        long,
        env = "CAIRN_REDIS_TIMEOUT_MS",
        value_name = "MILLISECONDS",
        default_value_t = 200,
        value_parser = clap::value_parser!(u64).range(1..=60_000)
    )]
    pub(crate) redis_timeout_ms: u64,
}

/// Where the services go when somebody names an address.
#[derive(Debug, Clone, Args)]
pub(crate) struct OutboundOptions {
    /// Networks inside that may be reached all the same, over http too, such as 10.1.0.0/16, separated by commas.
    /// Default: public hosts over https only.
    #[arg(long, env = "CAIRN_OUTBOUND_ALLOW", value_name = "NETWORKS", value_delimiter = ',')]
    pub(crate) outbound_allow: Vec<cairn_chassis::outbound::Network>,
}

/// Agents that come without a token.
#[derive(Debug, Clone, Args)]
pub(crate) struct AgentOptions {
    /// How many OAuth clients that registered themselves are kept before anybody has used them; further ones are
    /// refused until some are used or a day old.
    #[arg(
        long,
        env = "CAIRN_OAUTH_CLIENTS",
        value_name = "NUMBER",
        default_value_t = 10_000,
        value_parser = clap::value_parser!(u32).range(1..=1_000_000)
    )]
    pub(crate) oauth_clients: u32,
}

/// The first account; it is made when there is none yet.
#[derive(Clone, Args)]
pub(crate) struct BootstrapOptions {
    /// The owner's email.
    #[arg(long, env = "CAIRN_BOOTSTRAP_EMAIL", value_name = "EMAIL")]
    pub(crate) bootstrap_email: Option<String>,
    /// The owner's password; better set by the environment than on the command line.
    #[arg(long, env = "CAIRN_BOOTSTRAP_PASSWORD", hide_env_values = true, value_name = "PASSWORD")]
    pub(crate) bootstrap_password: Option<String>,
    /// The first token; better set by the environment than on the command line.
    #[arg(long, env = "CAIRN_BOOTSTRAP_TOKEN", hide_env_values = true, value_name = "TOKEN")]
    pub(crate) bootstrap_token: Option<String>,
    /// The plan of new workspaces.
    #[arg(long, env = "CAIRN_DEFAULT_PLAN", value_name = "PLAN", default_value = "selfhosted")]
    pub(crate) default_plan: String,
}

debug_fields!(BootstrapOptions { bootstrap_email });

#[derive(Debug, Args)]
pub(crate) struct UpOptions {
    /// The folder that holds all data; made when it is not there.
    #[arg(long, env = "CAIRN_DATA", value_name = "DIR", default_value = "./cairn-data")]
    pub(crate) data: PathBuf,
    /// The public address (HTTP); port 0 picks a free one.
    #[arg(long, env = "CAIRN_LISTEN", value_name = "ADDR", default_value = DEFAULT_LISTEN)]
    pub(crate) listen: SocketAddr,
    /// The admin address (/metrics, /healthz, /readyz). Default: the public port + 1 of 127.0.0.1, when that is free.
    #[arg(long, env = "CAIRN_ADMIN_LISTEN", value_name = "ADDR")]
    pub(crate) admin_listen: Option<SocketAddr>,
    /// An address for programs that call over gRPC: token exchange, content, retrieval, ingest and sync, under the
    /// same limits as REST. Default: none.
    #[arg(long, env = "CAIRN_GRPC_LISTEN", value_name = "ADDR")]
    pub(crate) grpc_listen: Option<SocketAddr>,
    /// Print nothing but errors.
    #[arg(long)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) services: ServiceOptions,
}

/// A service of the mesh.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Role {
    /// The edge: REST, MCP, console API.
    Gateway,
    /// Users, workspaces, tokens, signed identities.
    Auth,
    /// Files and folders.
    Content,
    /// Outside documents.
    Ingest,
    /// Index and search.
    Retrieval,
    /// Directory sync and imports.
    Sync,
}

impl Role {
    /// The name on the command line, in logs and in traces.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Gateway => "gateway",
            Self::Auth => "auth",
            Self::Content => "content",
            Self::Ingest => "ingest",
            Self::Retrieval => "retrieval",
            Self::Sync => "sync",
        }
    }

    /// The address when nothing else is said; the gateway's port is the public one.
    pub(crate) fn default_address(self) -> SocketAddr {
        let port = match self {
            Self::Gateway => 8700,
            Self::Auth => 8711,
            Self::Content => 8712,
            Self::Ingest => 8713,
            Self::Retrieval => 8714,
            Self::Sync => 8715,
        };
        SocketAddr::from((Ipv4Addr::LOCALHOST, port))
    }
}

/// Where the other services of the mesh are.
#[derive(Debug, Clone, Args)]
pub(crate) struct UpstreamOptions {
    /// svc-auth: a URL, or several with commas between. Calls are spread over every address of every name.
    #[arg(long, env = "CAIRN_AUTH_URL", value_name = "URL", default_value = "http://127.0.0.1:8711")]
    pub(crate) auth_url: String,
    /// svc-content, in the same way.
    #[arg(long, env = "CAIRN_CONTENT_URL", value_name = "URL", default_value = "http://127.0.0.1:8712")]
    pub(crate) content_url: String,
    /// svc-ingest, in the same way.
    #[arg(long, env = "CAIRN_INGEST_URL", value_name = "URL", default_value = "http://127.0.0.1:8713")]
    pub(crate) ingest_url: String,
    /// svc-retrieval, in the same way.
    #[arg(long, env = "CAIRN_RETRIEVAL_URL", value_name = "URL", default_value = "http://127.0.0.1:8714")]
    pub(crate) retrieval_url: String,
    /// svc-sync, in the same way.
    #[arg(long, env = "CAIRN_SYNC_URL", value_name = "URL", default_value = "http://127.0.0.1:8715")]
    pub(crate) sync_url: String,
}

impl UpstreamOptions {
    /// The address of each service that has one.
    pub(crate) fn urls(&self) -> [(Role, &str); 5] {
        [
            (Role::Auth, &self.auth_url),
            (Role::Content, &self.content_url),
            (Role::Ingest, &self.ingest_url),
            (Role::Retrieval, &self.retrieval_url),
            (Role::Sync, &self.sync_url),
        ]
    }
}

#[derive(Args)]
pub(crate) struct ServeOptions {
    /// Which service.
    #[arg(value_enum)]
    pub(crate) service: Role,
    /// The address to serve on: HTTP for the gateway, gRPC for the others. Default: 127.0.0.1 and the service's port.
    #[arg(long, env = "CAIRN_LISTEN", value_name = "ADDR")]
    pub(crate) listen: Option<SocketAddr>,
    /// The admin address (/metrics, /healthz, /readyz). Default: a free port of 127.0.0.1.
    #[arg(long, env = "CAIRN_ADMIN_LISTEN", value_name = "ADDR", default_value = "127.0.0.1:0")]
    pub(crate) admin_listen: SocketAddr,
    /// Of the gateway: an address for programs that call over gRPC, under the same limits as REST. Default: none.
    #[arg(long, env = "CAIRN_GRPC_LISTEN", value_name = "ADDR")]
    pub(crate) grpc_listen: Option<SocketAddr>,
    /// The folder for what the service keeps on its own disk: SQLite when no database is given, the search index.
    #[arg(long, env = "CAIRN_DATA", value_name = "DIR", default_value = "./cairn-data")]
    pub(crate) data: PathBuf,
    /// The database, such as postgres://user:password@host/database. Default: a SQLite file in the data folder.
    #[arg(long, env = "CAIRN_DATABASE_URL", hide_env_values = true, value_name = "URL")]
    pub(crate) database: Option<String>,
    #[command(flatten)]
    pub(crate) database_connections: DatabaseConnections,
    /// The secret that services of one mesh share, at least 16 characters; better set by the environment.
    #[arg(
        long,
        env = "CAIRN_MESH_SECRET",
        hide_env_values = true,
        value_name = "SECRET",
        default_value = "",
        hide_default_value = true
    )]
    pub(crate) mesh_secret: String,
    /// Let services of the mesh speak to each other without TLS beyond this machine: everything that they say, the
    /// mesh secret among it, can then be read on the way.
    #[arg(long, env = "CAIRN_INSECURE_MESH")]
    pub(crate) insecure_mesh: bool,
    #[command(flatten)]
    pub(crate) upstreams: UpstreamOptions,
    #[command(flatten)]
    pub(crate) services: ServiceOptions,
    #[command(flatten)]
    pub(crate) tls_client: TlsClientOptions,
}

debug_fields!(ServeOptions { service });

/// What was given for an option; a variable that is set to nothing, as a compose file leaves one out, is not.
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
