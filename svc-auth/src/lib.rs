//! Authentication and authorization: users, workspaces, members, API tokens, sessions, and the signed identities that
//! every service verifies.
//!
//! It stores no content: whether a folder in a token's scope exists is a question to svc-content. Identities are signed
//! (Ed25519) and short-lived, so that every service verifies them locally; permissions are evaluated anew at each
//! exchange.

mod bootstrap;
mod delegation;
mod doctor;
mod error;
mod feedback;
mod folders;
mod invitations;
mod keys;
mod lifecycle;
mod mail;
mod mailed_invitations;
mod maintenance;
mod members;
mod model;
mod names;
mod oauth;
mod oidc;
mod passwords;
mod proof;
mod rpc;
mod secrets;
mod sessions;
mod sign_ins;
mod store;
#[cfg(test)]
mod tests;
mod tokens;
mod users;
mod workspaces;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use cairn_chassis::ambient::Ambient;
use cairn_chassis::channel::ServiceChannel;
use cairn_chassis::clock::Clock;
use cairn_chassis::entropy::Entropy;
use cairn_chassis::identity::Verifier;
use cairn_chassis::outbound::{Guard, Network};
use cairn_chassis::sealing::Keyring;
use cairn_chassis::server::Access;
use cairn_chassis::sql::{self, Db};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;

use self::bootstrap::Bootstrapper;
pub use self::bootstrap::{Bootstrap, Bootstrapped};
use self::delegation::Delegation;
pub use self::doctor::{examine, mend};
pub use self::error::Error;
use self::feedback::Feedback;
use self::folders::Folders;
use self::invitations::Invitations;
pub use self::keys::Rotation;
use self::keys::{Keys, ServiceIdentities};
pub use self::lifecycle::DEFAULT_GRACE;
use self::lifecycle::Lifecycle;
pub use self::mail::Config as MailConfig;
use self::mail::Mailer;
use self::mailed_invitations::InvitationMailer;
pub use self::maintenance::{
    PlannedWorkspace, SigningKey, ask_for_rotation, reseal, set_plan, signing_keys, workspace_plans,
};
use self::members::Members;
pub use self::model::oauth_error::{Code, OauthError};
pub use self::model::oidc_error::OidcError;
pub use self::oidc::Config as OidcConfig;
use self::oidc::Oidc;
use self::passwords::Passwords;
use self::sessions::Sessions;
use self::sign_ins::SignIns;
use self::tokens::Tokens;
pub use self::workspaces::{PLANS, PlanChanges};
use self::workspaces::{Policy, Workspaces};

/// The tables of this service, for tools that inspect their schema.
pub const TABLES: sql::Tables = sql::Tables { service: store::SERVICE, migrations: store::MIGRATIONS };

/// The full names of the gRPC services, for health and reflection.
pub const SERVICE_NAMES: &[&str] = &[
    cairn_proto::auth::v1::token_service_server::SERVICE_NAME,
    cairn_proto::auth::v1::session_service_server::SERVICE_NAME,
    cairn_proto::auth::v1::workspace_service_server::SERVICE_NAME,
    cairn_proto::auth::v1::member_service_server::SERVICE_NAME,
    cairn_proto::auth::v1::invitation_service_server::SERVICE_NAME,
    cairn_proto::auth::v1::oauth_service_server::SERVICE_NAME,
    cairn_proto::auth::v1::oidc_service_server::SERVICE_NAME,
    cairn_proto::auth::v1::grant_service_server::SERVICE_NAME,
    cairn_proto::auth::v1::feedback_service_server::SERVICE_NAME,
    cairn_proto::auth::v1::key_service_server::SERVICE_NAME,
    cairn_proto::auth::v1::delegation_service_server::SERVICE_NAME,
];

/// RPCs that need no identity: each takes another kind of secret, or returns public information.
pub const ACCESS: Access = Access {
    open: &[
        "/cairn.auth.v1.TokenService/Exchange",
        "/cairn.auth.v1.SessionService/CreateSession",
        "/cairn.auth.v1.SessionService/ExchangeSession",
        "/cairn.auth.v1.SessionService/DeleteSession",
        "/cairn.auth.v1.InvitationService/LookUpInvitation",
        "/cairn.auth.v1.InvitationService/AcceptInvitation",
        "/cairn.auth.v1.OauthService/RegisterClient",
        "/cairn.auth.v1.OauthService/CheckAuthorization",
        "/cairn.auth.v1.OauthService/RedeemCode",
        "/cairn.auth.v1.OauthService/RedeemRefreshToken",
        "/cairn.auth.v1.OauthService/RevokeToken",
        "/cairn.auth.v1.OauthService/ExchangeAccessToken",
        "/cairn.auth.v1.OidcService/GetProvider",
        "/cairn.auth.v1.OidcService/BeginSignIn",
        "/cairn.auth.v1.OidcService/FinishSignIn",
        "/cairn.auth.v1.KeyService/ListKeys",
        "/cairn.auth.v1.KeyService/IssueServiceIdentity",
    ],
    large: &[],
};

/// The identity of any service could be forged with a guessed mesh secret.
const MIN_MESH_SECRET: usize = 16;
/// How stale a token's time of last use may be in the storage.
const LAST_USE_INTERVAL: Duration = Duration::from_secs(60);
const PURGE_INTERVAL: Duration = Duration::from_secs(60 * 60);
/// How often a replica checks whether the signing key is due for rotation or has been rotated.
const KEY_INTERVAL: Duration = Duration::from_secs(5);

/// The settings of svc-auth.
#[derive(Clone)]
pub struct Config {
    /// The storage of its tables.
    pub storage: sql::Config,
    /// The shared secret of the services of the mesh; at least 16 characters.
    pub mesh_secret: String,
    /// The plan of new workspaces, one of [`PLANS`].
    pub default_plan: String,
    /// How long the owner of a deleted workspace may restore it.
    pub workspace_grace: Duration,
    /// Who may change the plan of a workspace.
    pub plan_changes: PlanChanges,
    /// How many workspaces one person may own.
    pub workspaces_per_person: u32,
    /// The public address, for links in mails; absent: no invitation is mailed.
    pub base_url: Option<String>,
    /// The mail server for feedback and invitations; absent: nothing is mailed.
    pub mail: Option<MailConfig>,
    /// The keyring that seals secrets in the storage; absent: they are stored in the clear.
    pub sealing: Option<Arc<Keyring>>,
    /// When signing keys are replaced.
    pub key_rotation: Rotation,
    /// Private networks from which client metadata may be fetched nevertheless.
    pub outbound_allowed: Vec<Network>,
    /// The maximum number of registered OAuth clients that have never been used.
    pub oauth_clients: u32,
    /// The OpenID Connect provider for sign-in; absent: passwords only.
    pub oidc: Option<OidcConfig>,
}

cairn_chassis::debug_fields!(Config { storage, default_plan, mail, sealing, key_rotation, oidc });

/// The service; cheap to clone.
#[derive(Debug, Clone)]
pub struct Service {
    db: Db,
    ambient: Ambient,
    passwords: Passwords,
    keys: Arc<Keys>,
    service_identities: Arc<ServiceIdentities>,
    delegation: Arc<Delegation>,
    sessions: Arc<Sessions>,
    tokens: Arc<Tokens>,
    workspaces: Arc<Workspaces>,
    lifecycle: Arc<Lifecycle>,
    members: Arc<Members>,
    invitations: Arc<Invitations>,
    folders: Folders,
    feedback: Arc<Feedback>,
    oauth_clients: Arc<oauth::Clients>,
    oauth_authorizations: Arc<oauth::Authorizations>,
    oauth_tokens: Arc<oauth::Tokens>,
    grants: Arc<oauth::Grants>,
    oidc: Arc<Oidc>,
}

impl Service {
    /// Opens the storage and the signing key. Takes time and randomness instead of an [`Ambient`], which needs a
    /// verifier, which needs these keys: [`Self::ambient`] returns one.
    ///
    /// # Errors
    /// When the configuration is invalid or the storage cannot be opened.
    pub async fn open(
        config: Config,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
    ) -> Result<Self, Error> {
        check_names(&config)?;
        let mailer = config.mail.as_ref().map(Mailer::new).transpose()?;
        let invitation_mailer = InvitationMailer::new(mailer.clone(), config.base_url.as_deref());
        let policy = Policy {
            default_plan: config.default_plan,
            plan_changes: config.plan_changes,
            per_person: config.workspaces_per_person,
        };
        let db = Db::open(&config.storage, store::SERVICE, store::MIGRATIONS).await?;
        let keys = Keys::open(db.clone(), config.sealing, config.key_rotation, &*clock, &*entropy).await?;
        let keys = Arc::new(keys);
        let directory = rpc::keys::Directory(Arc::clone(&keys));
        let verifier = Verifier::new(Arc::new(directory), Arc::clone(&clock));
        let ambient = Ambient::new(clock, entropy, verifier);
        let passwords = Passwords::new();
        let folders = Folders::default();
        let guard = Guard::new(&config.outbound_allowed).map_err(|error| Error::Config(error.to_string()))?;
        let most_unused = i64::from(config.oauth_clients);
        let oauth_clients =
            Arc::new(oauth::Clients::new(db.clone(), ambient.clone(), guard.clone(), most_unused));
        let sign_ins = SignIns::new(db.clone(), ambient.clone());
        let sessions = Arc::new(Sessions::new(
            db.clone(),
            ambient.clone(),
            Arc::clone(&keys),
            passwords.clone(),
            sign_ins,
        ));
        let grace = config.workspace_grace;
        let lifecycle = Arc::new(Lifecycle::new(db.clone(), ambient.clone(), Arc::clone(&keys), grace));
        let oidc = Oidc::new(db.clone(), ambient.clone(), Arc::clone(&sessions), config.oidc, guard)?;
        Ok(Self {
            feedback: Arc::new(Feedback { db: db.clone(), ambient: ambient.clone(), mailer }),
            service_identities: Arc::new(ServiceIdentities::new(
                ambient.clone(),
                Arc::clone(&keys),
                config.mesh_secret,
            )),
            delegation: Arc::new(Delegation {
                db: db.clone(),
                ambient: ambient.clone(),
                keys: Arc::clone(&keys),
            }),
            tokens: Arc::new(Tokens::new(db.clone(), ambient.clone(), Arc::clone(&keys), folders.clone())),
            workspaces: Arc::new(Workspaces::new(
                db.clone(),
                ambient.clone(),
                policy,
                Arc::clone(&lifecycle),
            )),
            lifecycle,
            members: Arc::new(Members::new(db.clone(), ambient.clone(), invitation_mailer)),
            invitations: Arc::new(Invitations {
                db: db.clone(),
                ambient: ambient.clone(),
                passwords: passwords.clone(),
                sessions: Arc::clone(&sessions),
            }),
            sessions,
            folders,
            oauth_authorizations: Arc::new(oauth::Authorizations::new(
                db.clone(),
                ambient.clone(),
                Arc::clone(&oauth_clients),
            )),
            oauth_tokens: Arc::new(oauth::Tokens::new(
                db.clone(),
                ambient.clone(),
                Arc::clone(&keys),
                Arc::clone(&oauth_clients),
            )),
            oauth_clients,
            oidc: Arc::new(oidc),
            grants: Arc::new(oauth::Grants::new(db.clone(), ambient.clone())),
            db,
            ambient,
            passwords,
            keys,
        })
    }

    /// An ambient whose verifier reads these keys directly: for all services in this process. Services in other
    /// processes fetch them over a channel (`identity::RemoteKeys`).
    pub fn ambient(&self) -> Ambient {
        self.ambient.clone()
    }

    /// Connects svc-content, which needs this service to open first. Until then no token can be restricted to folders.
    pub fn connect(&self, content: ServiceChannel) {
        self.folders.connect(content);
    }

    /// Connects the services that store data of workspaces, by name: `content`, `ingest`, `sync`, `retrieval`. Notices
    /// of deleted workspaces wait until then.
    pub fn connect_services(&self, services: Vec<(&'static str, ServiceChannel)>) {
        self.lifecycle.connect(services);
    }

    /// Creates the first account, workspace and token; `None` if an account exists. `keep` receives the secrets before
    /// the commit.
    ///
    /// # Errors
    /// When a given value is invalid, or `keep` or the storage fails; nothing was created then.
    pub async fn bootstrap(
        &self,
        wanted: Bootstrap,
        keep: impl FnOnce(&Bootstrapped) -> io::Result<()>,
    ) -> Result<Option<Bootstrapped>, Error> {
        let bootstrapper = Bootstrapper {
            db: &self.db,
            ambient: &self.ambient,
            passwords: &self.passwords,
            workspaces: &self.workspaces,
            tokens: &self.tokens,
        };
        bootstrapper.run(wanted, keep).await
    }

    /// The plain generated servers; layers are added by the composition.
    pub fn routes(&self) -> Routes {
        rpc::routes(self)
    }

    /// Runs the background work until shutdown, then flushes.
    pub async fn run(&self, shutdown: CancellationToken) {
        let mut last_use = interval(LAST_USE_INTERVAL);
        let mut purge = interval(PURGE_INTERVAL);
        let mut keys = interval(KEY_INTERVAL);
        let lifecycle = tokio::spawn({
            let (lifecycle, shutdown) = (Arc::clone(&self.lifecycle), shutdown.clone());
            async move { lifecycle.run(shutdown).await }
        });
        loop {
            tokio::select! {
                () = shutdown.cancelled() => break,
                _ = keys.tick() => self.rotate_keys().await,
                _ = last_use.tick() => self.flush_last_use().await,
                _ = purge.tick() => self.purge().await,
            }
        }
        self.flush_last_use().await;
        if let Err(error) = lifecycle.await {
            tracing::error!(%error, "looking after deleted workspaces ended early");
        }
    }

    /// Checks that the storage is reachable.
    ///
    /// # Errors
    /// When it is not.
    pub async fn ping(&self) -> Result<(), Error> {
        Ok(self.db.ping().await?)
    }

    /// Closes the storage, after the drain.
    pub async fn close(&self) {
        self.db.close().await;
    }

    async fn rotate_keys(&self) {
        let rotated = self.keys.rotate(self.ambient.clock.now(), &*self.ambient.entropy).await;
        if let Err(error) = rotated {
            tracing::warn!(%error, "the signing keys cannot be looked after; the present one goes on to sign");
        }
    }

    async fn flush_last_use(&self) {
        if let Err(error) = self.tokens.flush_last_use().await {
            tracing::warn!(%error, "the last use of tokens is not recorded yet");
        }
        if let Err(error) = self.sessions.flush_last_use().await {
            tracing::warn!(%error, "the last use of sessions is not recorded yet");
        }
    }

    async fn purge(&self) {
        match self.sessions.purge().await {
            Ok(0) => {}
            Ok(sessions) => tracing::info!(sessions, "forgot sessions that had ended"),
            Err(error) => tracing::warn!(%error, "sessions that ended are not forgotten yet"),
        }
        if let Err(error) = self.sessions.sign_ins().purge().await {
            tracing::warn!(%error, "failed sign-ins of the past are not forgotten yet");
        }
        if let Err(error) = self.feedback.purge().await {
            tracing::warn!(%error, "feedback that was mailed is not forgotten yet");
        }
        if let Err(error) = self.oauth_tokens.purge().await {
            tracing::warn!(%error, "OAuth tokens that ended are not forgotten yet");
        }
        // After grants: clients whose last grant has just been purged go too.
        if let Err(error) = self.oauth_clients.purge().await {
            tracing::warn!(%error, "OAuth clients that nobody uses are not forgotten yet");
        }
        if let Err(error) = self.oidc.purge().await {
            tracing::warn!(%error, "sign-ins by the OpenID Connect provider are not forgotten yet");
        }
        match self.invitations.purge().await {
            Ok(0) => {}
            Ok(invitations) => tracing::info!(invitations, "forgot invitations that had ended"),
            Err(error) => tracing::warn!(%error, "invitations that ended are not forgotten yet"),
        }
    }
}

/// Validates the configuration without opening anything.
///
/// # Errors
/// When a setting is invalid.
pub fn check(config: &Config) -> Result<(), Error> {
    check_names(config)?;
    config.mail.as_ref().map(Mailer::new).transpose()?;
    let guard = Guard::new(&config.outbound_allowed).map_err(|error| Error::Config(error.to_string()))?;
    config.oidc.as_ref().map_or(Ok(()), |oidc| oidc::check(oidc, &guard))
}

fn check_names(config: &Config) -> Result<(), Error> {
    if config.mesh_secret.len() < MIN_MESH_SECRET {
        return Err(Error::Config(format!(
            "the mesh secret must have at least {MIN_MESH_SECRET} characters"
        )));
    }
    if !PLANS.contains(&config.default_plan.as_str()) {
        let plan = &config.default_plan;
        return Err(Error::Config(format!("the default plan '{plan}' is not one of: {}", PLANS.join(", "))));
    }
    Ok(())
}

fn interval(period: Duration) -> tokio::time::Interval {
    let mut interval = tokio::time::interval(period);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}
