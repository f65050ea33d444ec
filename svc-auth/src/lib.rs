//! Who may do what: users, workspaces, members, API tokens, sessions, and the signed identities that every service
//! checks.
//!
//! It knows nothing of content: folder ids in a token's scope are ids to it. Its answers are signed (Ed25519) and
//! short-lived, so that every service checks them by itself; what they say is decided anew at each exchange.

mod bootstrap;
mod doctor;
mod error;
mod keys;
mod names;
mod passwords;
mod rpc;
mod secrets;
mod sessions;
mod store;
#[cfg(test)]
mod tests;
mod tokens;
mod users;
mod workspaces;

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use cairn_chassis::ambient::Ambient;
use cairn_chassis::clock::Clock;
use cairn_chassis::entropy::Entropy;
use cairn_chassis::identity::Verifier;
use cairn_chassis::sql::{self, Db};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;

use self::bootstrap::Bootstrapper;
pub use self::bootstrap::{Bootstrap, Bootstrapped};
pub use self::doctor::examine;
pub use self::error::Error;
use self::keys::{Keys, ServiceIdentities};
use self::passwords::Passwords;
use self::sessions::Sessions;
use self::tokens::Tokens;
pub use self::workspaces::PLANS;
use self::workspaces::Workspaces;

/// The full names of the gRPC services, for health and reflection.
pub const SERVICE_NAMES: &[&str] = &[
    "cairn.auth.v1.TokenService",
    "cairn.auth.v1.SessionService",
    "cairn.auth.v1.WorkspaceService",
    "cairn.auth.v1.KeyService",
];

/// A shorter mesh secret could be guessed, and with it the identity of any service.
const MIN_MESH_SECRET: usize = 16;
/// How stale a token's time of last use may become on the disk.
const LAST_USE_INTERVAL: Duration = Duration::from_secs(60);
const PURGE_INTERVAL: Duration = Duration::from_secs(60 * 60);

/// The settings of svc-auth.
#[derive(Clone)]
pub struct Config {
    /// Where its tables are.
    pub storage: sql::Config,
    /// What the services of the mesh prove themselves with; at least 16 characters.
    pub mesh_secret: String,
    /// The plan of new workspaces, one of [`PLANS`].
    pub default_plan: String,
}

impl fmt::Debug for Config {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Config")
            .field("storage", &self.storage)
            .field("default_plan", &self.default_plan)
            .finish_non_exhaustive()
    }
}

/// The service; cheap to clone.
#[derive(Debug, Clone)]
pub struct Service {
    db: Db,
    ambient: Ambient,
    passwords: Passwords,
    keys: Arc<Keys>,
    service_identities: Arc<ServiceIdentities>,
    sessions: Arc<Sessions>,
    tokens: Arc<Tokens>,
    workspaces: Arc<Workspaces>,
}

impl Service {
    /// Opens the storage and the signing key. It takes time and randomness rather than an [`Ambient`], which needs a
    /// verifier, which needs these keys: [`Self::ambient`] answers one.
    ///
    /// # Errors
    /// When the settings are not usable or the storage cannot be opened.
    pub async fn open(
        config: Config,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
    ) -> Result<Self, Error> {
        check(&config)?;
        let db = Db::open(&config.storage, store::SERVICE, store::MIGRATIONS).await?;
        let keys = Arc::new(Keys::open(db.clone(), &*clock, &*entropy).await?);
        let directory = rpc::keys::Directory(Arc::clone(&keys));
        let verifier = Verifier::new(Arc::new(directory), Arc::clone(&clock));
        let ambient = Ambient::new(clock, entropy, verifier);
        let passwords = Passwords::new();
        Ok(Self {
            service_identities: Arc::new(ServiceIdentities::new(
                ambient.clone(),
                Arc::clone(&keys),
                config.mesh_secret,
            )),
            sessions: Arc::new(Sessions::new(
                db.clone(),
                ambient.clone(),
                Arc::clone(&keys),
                passwords.clone(),
            )),
            tokens: Arc::new(Tokens::new(db.clone(), ambient.clone(), Arc::clone(&keys))),
            workspaces: Arc::new(Workspaces::new(db.clone(), ambient.clone(), config.default_plan)),
            db,
            ambient,
            passwords,
            keys,
        })
    }

    /// An ambient whose verifier asks these keys directly: for every service in the process of svc-auth. Services in
    /// other processes ask over a channel (`identity::RemoteKeys`).
    pub fn ambient(&self) -> Ambient {
        self.ambient.clone()
    }

    /// Makes the first account, workspace and token; `None` when somebody has an account already. `keep` is given the
    /// secrets before anything is made for good.
    ///
    /// # Errors
    /// When a given value breaks a rule, `keep` or the storage fails; nothing was made then.
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

    /// The plain generated servers; the composition adds layers.
    pub fn routes(&self) -> Routes {
        rpc::routes(self)
    }

    /// Does the background work until the shutdown, and what is left of it then.
    pub async fn run(&self, shutdown: CancellationToken) {
        let mut last_use = interval(LAST_USE_INTERVAL);
        let mut purge = interval(PURGE_INTERVAL);
        loop {
            tokio::select! {
                () = shutdown.cancelled() => break,
                _ = last_use.tick() => self.flush_last_use().await,
                _ = purge.tick() => self.purge_sessions().await,
            }
        }
        self.flush_last_use().await;
    }

    /// Checks that the storage answers.
    ///
    /// # Errors
    /// When it does not.
    pub async fn ping(&self) -> Result<(), Error> {
        Ok(self.db.ping().await?)
    }

    /// Closes the storage, after the drain.
    pub async fn close(&self) {
        self.db.close().await;
    }

    async fn flush_last_use(&self) {
        if let Err(error) = self.tokens.flush_last_use().await {
            tracing::warn!(%error, "the last use of tokens is not recorded yet");
        }
    }

    async fn purge_sessions(&self) {
        match self.sessions.purge().await {
            Ok(0) => {}
            Ok(sessions) => tracing::info!(sessions, "forgot sessions that had ended"),
            Err(error) => tracing::warn!(%error, "sessions that ended are not forgotten yet"),
        }
    }
}

fn check(config: &Config) -> Result<(), Error> {
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
