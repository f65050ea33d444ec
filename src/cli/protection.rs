//! Options about secrets, signing keys, TLS and mail.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use cairn_auth::{MailConfig, Rotation};
use cairn_chassis::{debug_fields, tls};
use clap::{Args, Subcommand, ValueEnum};

use super::given;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

pub(crate) const NEW_SECRETS_EXAMPLES: &str = "Examples:
  cairn secrets new > cairn.env                     for --env-file, or `set -a; . ./cairn.env`
  cairn secrets new --format json
  cairn secrets new --format kubernetes --name cairn --namespace context | kubectl create -f -

It prints what it makes and keeps nothing: a mesh secret, a key for stored secrets, and the first password and token. Keep the
key apart from the backups.";

pub(crate) const SECRETS_EXAMPLES: &str = "Examples:
  cairn secrets new > cairn.env             secrets for a new deployment
  cairn secrets rotate                      of cairn up, which must not run: makes a new <data>/secret.key
  cairn secrets rotate --data /srv/cairn
  CAIRN_SECRET_KEY=<new>,<old> cairn secrets rotate --database postgres://cairn@db/cairn

With CAIRN_SECRET_KEY it may run while Cairn runs: first start every auth service with <new>,<old>, then run this, then
take <old> away. Interrupted, it may be run again.";

pub(crate) const KEYS_EXAMPLES: &str = "Examples:
  cairn keys list                           of cairn up, with its data in ./cairn-data
  cairn keys rotate --data /srv/cairn
  cairn keys rotate --database postgres://cairn@db/cairn

It may run while Cairn runs, and no request fails: a new key is published, signs when every service knows it, and the
old one goes on to verify until the last identity that it signed has ended. Keys are also replaced by their age
(CAIRN_SIGNING_KEY_DAYS).";

/// What is done about secrets.
#[derive(Debug, Subcommand)]
pub(crate) enum SecretsCommand {
    /// Make the secrets of a new deployment and print them.
    #[command(after_help = NEW_SECRETS_EXAMPLES)]
    New(NewSecretsOptions),
    /// Seal every stored secret under a new key.
    #[command(after_help = SECRETS_EXAMPLES)]
    Rotate(ResealOptions),
}

/// How new secrets are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SecretsFormat {
    /// Lines of NAME=value.
    Env,
    /// An object with the names of the variables.
    Json,
    /// A Secret with the keys that the chart reads.
    Kubernetes,
}

/// Which form new secrets get.
#[derive(Debug, Args)]
pub(crate) struct NewSecretsOptions {
    /// How they are written.
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "env")]
    pub(crate) format: SecretsFormat,
    /// Of Kubernetes: the name of the Secret.
    #[arg(long, value_name = "NAME", default_value = "cairn", value_parser = object_name)]
    pub(crate) name: String,
    /// Of Kubernetes: its namespace. Default: that of whoever creates it.
    #[arg(long, value_name = "NAME", value_parser = object_name)]
    pub(crate) namespace: Option<String>,
}

/// A name as Kubernetes takes it.
fn object_name(text: &str) -> Result<String, String> {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let ends_well = |byte: Option<u8>| byte.is_some_and(is_plain);
    let inner = text.bytes().all(|byte| is_plain(byte) || matches!(byte, b'-' | b'.'));
    if inner && text.len() <= 253 && ends_well(text.bytes().next()) && ends_well(text.bytes().next_back()) {
        return Ok(text.to_owned());
    }
    Err("a name is of lower-case letters, digits, `-` and `.`, at most 253".to_owned())
}

/// What is done to the keys that identities are signed with.
#[derive(Debug, Subcommand)]
pub(crate) enum KeysCommand {
    /// Show the keys: which one signs, which is next, which only verify.
    #[command(after_help = KEYS_EXAMPLES)]
    List(StoredOptions),
    /// Have the key that signs replaced.
    #[command(after_help = KEYS_EXAMPLES)]
    Rotate(StoredOptions),
}

/// Which storage.
#[derive(Args)]
pub(crate) struct StoredOptions {
    /// The data folder of `cairn up`, or of services that keep SQLite files.
    #[arg(long, env = "CAIRN_DATA", value_name = "DIR", default_value = "./cairn-data")]
    pub(crate) data: PathBuf,
    /// The database of services that have one instead, such as postgres://user:password@host/database.
    #[arg(long, env = "CAIRN_DATABASE_URL", hide_env_values = true, value_name = "URL")]
    pub(crate) database: Option<String>,
}

debug_fields!(StoredOptions { data });

/// Which storage, and the keys for it.
#[derive(Debug, Args)]
pub(crate) struct ResealOptions {
    #[command(flatten)]
    pub(crate) stored: StoredOptions,
    #[command(flatten)]
    pub(crate) secret_key: SecretKeyOptions,
    /// Say nothing on the way, only the result.
    #[arg(long)]
    pub(crate) quiet: bool,
}

/// What stored secrets are sealed with.
#[derive(Clone, Args)]
pub(crate) struct SecretKeyOptions {
    /// The key that seals stored secrets: 32 bytes in hexadecimal or base64, better set by the environment; older keys
    /// behind it, separated by commas, still open. Default for `cairn up`: <data>/secret.key, made when it is missing.
    #[arg(long, env = "CAIRN_SECRET_KEY", hide_env_values = true, value_name = "KEY[,OLD…]")]
    pub(crate) secret_key: Option<String>,
}

debug_fields!(SecretKeyOptions);

/// When signing keys are replaced.
#[derive(Debug, Clone, Args)]
pub(crate) struct SigningKeyOptions {
    /// Days after which the key that signs identities is replaced.
    #[arg(
        long,
        env = "CAIRN_SIGNING_KEY_DAYS",
        value_name = "DAYS",
        default_value = "90",
        value_parser = clap::value_parser!(u32).range(1..=3_650)
    )]
    pub(crate) signing_key_days: u32,
    /// Seconds for which a new key is published before it signs; other services ask for keys at least every minute.
    #[arg(
        long,
        env = "CAIRN_SIGNING_KEY_LEAD_SECONDS",
        value_name = "SECONDS",
        default_value = "120",
        value_parser = clap::value_parser!(u32).range(2..=86_400)
    )]
    pub(crate) signing_key_lead_seconds: u32,
}

impl SigningKeyOptions {
    pub(crate) fn rotation(&self) -> Rotation {
        let lead = Duration::from_secs(u64::from(self.signing_key_lead_seconds));
        Rotation { max_age: DAY * self.signing_key_days, lead }
    }
}

/// Where mail goes out.
#[derive(Clone, Args)]
pub(crate) struct MailOptions {
    /// The mail server for feedback and invitations: smtps://user:password@host:465, or smtp://user:password@host:587?tls=required;
    /// better set by the environment. Default: nothing is mailed.
    #[arg(long, env = "CAIRN_SMTP_URL", hide_env_values = true, value_name = "URL")]
    pub(crate) smtp_url: Option<String>,
    /// Whom mail comes from, such as 'Cairn <cairn@example.com>'.
    #[arg(long, env = "CAIRN_MAIL_FROM", value_name = "ADDRESS")]
    pub(crate) mail_from: Option<String>,
}

debug_fields!(MailOptions { mail_from });

impl MailOptions {
    pub(crate) fn config(&self) -> anyhow::Result<Option<MailConfig>> {
        let Some(url) = given(&self.smtp_url) else { return Ok(None) };
        let from =
            given(&self.mail_from).context("CAIRN_SMTP_URL needs CAIRN_MAIL_FROM: whom mail comes from")?;
        Ok(Some(MailConfig { url, from }))
    }
}

/// TLS of what is listened on.
#[derive(Debug, Clone, Args)]
pub(crate) struct TlsOptions {
    /// The certificate (PEM, with its chain) to listen with TLS; read again when it changes. Default: no TLS.
    #[arg(long, env = "CAIRN_TLS_CERT", value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The certificate's private key (PEM).
    #[arg(long, env = "CAIRN_TLS_KEY", value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// The authority (PEM) that callers' certificates must come from (mTLS). `cairn up`: for gRPC only. Default: callers
    /// need no certificate.
    #[arg(long, env = "CAIRN_TLS_CLIENT_CA", value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_client_ca: Option<PathBuf>,
}

impl TlsOptions {
    fn pair(&self) -> Option<tls::Pair> {
        let (certificate, key) = self.tls_cert.clone().zip(self.tls_key.clone())?;
        Some(tls::Pair { certificate, key })
    }

    /// A listener that demands certificates of its callers when that is configured.
    pub(crate) fn mutual(&self, protocols: tls::Protocols) -> Result<Option<tls::Server>, tls::Error> {
        let files = |pair| tls::ServerFiles { pair, client_ca: self.tls_client_ca.clone() };
        self.pair().map(|pair| tls::Server::load(files(pair), protocols)).transpose()
    }

    /// A listener for everybody.
    pub(crate) fn public(&self) -> Result<Option<tls::Server>, tls::Error> {
        let files = |pair| tls::ServerFiles { pair, client_ca: None };
        self.pair().map(|pair| tls::Server::load(files(pair), tls::Protocols::Http)).transpose()
    }

    pub(crate) fn scheme(&self) -> &'static str {
        if self.tls_cert.is_some() { "https" } else { "http" }
    }
}

/// TLS of calls to other services.
#[derive(Debug, Clone, Args)]
pub(crate) struct TlsClientOptions {
    /// The authority (PEM) that the certificates of services at https:// addresses must come from.
    #[arg(long, env = "CAIRN_TLS_CA", value_name = "FILE")]
    pub(crate) tls_ca: Option<PathBuf>,
    /// The certificate (PEM) to show to services that demand one. Default: that of --tls-cert.
    #[arg(long, env = "CAIRN_TLS_CLIENT_CERT", value_name = "FILE", requires = "tls_client_key")]
    pub(crate) tls_client_cert: Option<PathBuf>,
    /// Its private key (PEM). Default: that of --tls-key.
    #[arg(long, env = "CAIRN_TLS_CLIENT_KEY", value_name = "FILE", requires = "tls_client_cert")]
    pub(crate) tls_client_key: Option<PathBuf>,
}

impl TlsClientOptions {
    pub(crate) fn client(&self, own: &TlsOptions) -> Result<Option<tls::Client>, tls::Error> {
        let given = self.tls_client_cert.clone().zip(self.tls_client_key.clone());
        let pair = given.map(|(certificate, key)| tls::Pair { certificate, key }).or_else(|| own.pair());
        let files = |ca: &PathBuf| tls::ClientFiles { ca: ca.clone(), pair };
        self.tls_ca.as_ref().map(|ca| tls::Client::load(&files(ca))).transpose()
    }
}
