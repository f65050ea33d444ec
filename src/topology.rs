//! The only place that decides whether a service is local or remote.
//!
//! [`Mesh::open`] opens the services that run here, in the order in which they need each other, and makes a channel to
//! each of the others. Which service is where is all that `cairn up` and `cairn serve` differ in.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use cairn_chassis::ambient::Ambient;
use cairn_chassis::channel::ServiceChannel;
use cairn_chassis::clock::{Clock, SystemClock};
use cairn_chassis::entropy::{Entropy, OsEntropy};
use cairn_chassis::identity::{RemoteKeys, ServiceIdentitySource, Verifier};
use cairn_chassis::lifecycle;
use cairn_chassis::sealing::Keyring;
use cairn_chassis::server::{self, Access, Composed};
use cairn_chassis::sql;
use cairn_chassis::tls;
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;

use crate::cli::Role;

/// Where a service runs.
#[derive(Debug, Clone)]
pub(crate) enum Location {
    /// In this process.
    Local,
    /// At an address such as `http://content:8712`.
    Remote(String),
}

/// Where each service runs.
#[derive(Debug, Clone)]
pub(crate) struct Locations {
    pub(crate) auth: Location,
    pub(crate) content: Location,
    pub(crate) ingest: Location,
    pub(crate) retrieval: Location,
    pub(crate) sync: Location,
}

impl Locations {
    /// Everything in this process.
    pub(crate) fn all_local() -> Self {
        let local = || Location::Local;
        Self { auth: local(), content: local(), ingest: local(), retrieval: local(), sync: local() }
    }
}

/// What the services that run here are told.
pub(crate) struct Settings {
    /// The database of a service that runs here.
    pub(crate) database: Box<dyn Fn(Role) -> anyhow::Result<sql::Config> + Send + Sync>,
    /// The folder of the search index.
    pub(crate) index_folder: PathBuf,
    /// Where Qdrant is, when it keeps the search index instead.
    pub(crate) qdrant: Option<cairn_index::qdrant::Config>,
    /// What turns texts into vectors.
    pub(crate) embedding: cairn_embed::Config,
    /// How search results are ranked.
    pub(crate) ranking: cairn_retrieval::Preferences,
    /// What scripts over the workspace may take.
    pub(crate) browse: cairn_browse::Config,
    /// The secret that services of the mesh share.
    pub(crate) mesh_secret: String,
    /// The plan of new workspaces.
    pub(crate) default_plan: String,
    /// Who may change the plan of a workspace.
    pub(crate) plan_changes: cairn_auth::PlanChanges,
    /// How many workspaces one person may own.
    pub(crate) workspaces_per_person: u32,
    /// The address of the deployment, for links that are mailed; absent: none is.
    pub(crate) base_url: Option<String>,
    /// How long the owner of a deleted workspace may take it back.
    pub(crate) workspace_grace: Duration,
    /// Networks that are not public and may yet be asked on somebody's behalf.
    pub(crate) outbound_allowed: Vec<cairn_chassis::outbound::Network>,
    /// How long what was deleted stays in trash; for ever when absent.
    pub(crate) trash_retention: Option<Duration>,
    /// Where the bytes of assets are.
    pub(crate) assets: cairn_content::AssetLocation,
    /// How much each plan may keep, and upload at once.
    pub(crate) plan_limits: cairn_content::PlanLimits,
    /// Where feedback and invitations are mailed; absent: nowhere.
    pub(crate) mail: Option<cairn_auth::MailConfig>,
    /// What stored secrets are sealed with; absent: they stand as they are.
    pub(crate) sealing: Option<Arc<Keyring>>,
    /// When signing keys are replaced.
    pub(crate) key_rotation: cairn_auth::Rotation,
    /// How many registered OAuth clients are kept that nobody has used yet.
    pub(crate) oauth_clients: u32,
    /// The OpenID Connect provider that people may sign in by.
    pub(crate) oidc: Option<cairn_auth::OidcConfig>,
    /// TLS of the calls to services at https:// addresses.
    pub(crate) tls_client: Option<tls::Client>,
}

/// The folder of assets among a service's data.
pub(crate) const ASSETS_FOLDER: &str = "assets";

/// The SQLite file of a service in that folder.
pub(crate) fn sqlite_in(folder: &Path, role: Role) -> sql::Config {
    sql::Config::sqlite(folder.join(format!("{}.db", role.name())))
}

/// The ways to the services.
#[derive(Debug, Clone)]
pub(crate) struct Channels {
    pub(crate) auth: ServiceChannel,
    pub(crate) content: ServiceChannel,
    pub(crate) ingest: ServiceChannel,
    pub(crate) retrieval: ServiceChannel,
    pub(crate) sync: ServiceChannel,
}

impl Channels {
    /// The services that keep something of workspaces, by their names.
    fn keeping(&self) -> Vec<(&'static str, ServiceChannel)> {
        let Self { auth: _, content, ingest, retrieval, sync } = self.clone();
        vec![("content", content), ("ingest", ingest), ("retrieval", retrieval), ("sync", sync)]
    }
}

/// Work that goes on beside the requests, until the token is cancelled.
type Background = Box<dyn FnOnce(CancellationToken) -> BoxFuture<'static, ()> + Send>;
/// Whether a service can do its work now.
type Ready = Arc<dyn Fn() -> bool + Send + Sync>;
/// What a service does when nothing is served any more.
type Closing = Box<dyn FnOnce() -> BoxFuture<'static, ()> + Send>;

/// The services that run here, and the ways to all of them.
pub(crate) struct Mesh {
    pub(crate) channels: Channels,
    pub(crate) ambient: Ambient,
    /// svc-auth, when it runs here: who starts a deployment asks it for the first account.
    pub(crate) auth: Option<Arc<cairn_auth::Service>>,
    /// What the gateway proves itself with to svc-auth.
    gateway: ServiceIdentitySource,
    hosted: Hosted,
}

/// What runs here.
#[derive(Default)]
struct Hosted {
    plain: Routes,
    /// LifecycleService of each service that has one: they share their name.
    lifecycles: Vec<Routes>,
    names: Vec<&'static str>,
    access: Vec<Access>,
    background: Vec<Background>,
    ready: Vec<Ready>,
    closing: Vec<Closing>,
}

impl Hosted {
    /// Takes in a service's routes; the channel that is answered calls them in this process.
    async fn host(
        &mut self,
        routes: Routes,
        lifecycle: Option<Routes>,
        names: &'static [&'static str],
        access: Access,
        verifier: &Verifier,
    ) -> anyhow::Result<ServiceChannel> {
        let mut own = (routes.clone(), names.to_vec());
        if let Some(lifecycle) = lifecycle {
            own = (merged(own.0, lifecycle.clone()), [names, &[lifecycle::SERVICE_NAME]].concat());
            self.lifecycles.push(lifecycle);
        }
        let composed = server::compose(own.0, &own.1, &[access], verifier).await?;
        self.plain = merged(std::mem::take(&mut self.plain), routes);
        self.names.extend_from_slice(names);
        self.access.push(access);
        Ok(ServiceChannel::local(composed.routes))
    }

    /// Work that begins when the services are open.
    fn on_start<F>(&mut self, work: impl FnOnce(CancellationToken) -> F + Send + 'static)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.background.push(Box::new(move |shutdown| Box::pin(work(shutdown))));
    }

    /// Whether the service can do its work now; asked often.
    fn ready_when(&mut self, is_ready: impl Fn() -> bool + Send + Sync + 'static) {
        self.ready.push(Arc::new(is_ready));
    }

    /// What is done when nothing is served any more.
    fn at_end<F>(&mut self, close: impl FnOnce() -> F + Send + 'static)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.closing.push(Box::new(move || Box::pin(close())));
    }
}

fn merged(routes: Routes, more: Routes) -> Routes {
    // The fallback of both is the same: only one may stay.
    Routes::from(routes.into_axum_router().reset_fallback().merge(more.into_axum_router()))
}

fn remote(name: &str, address: &str, settings: &Settings) -> anyhow::Result<ServiceChannel> {
    ServiceChannel::remote_over(address, settings.tls_client.as_ref())
        .with_context(|| format!("the address of the {name} service cannot be used"))
}

impl Mesh {
    /// Opens what runs here and makes channels to the rest; nothing remote is contacted yet.
    pub(crate) async fn open(locations: &Locations, settings: &Settings) -> anyhow::Result<Self> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let entropy: Arc<dyn Entropy> = Arc::new(OsEntropy);
        let mut hosted = Hosted::default();

        let (auth, auth_channel) = match &locations.auth {
            Location::Remote(address) => (None, remote("auth", address, settings)?),
            Location::Local => {
                let service = Arc::new(open_auth(settings, &clock, &entropy).await?);
                let (names, access) = (cairn_auth::SERVICE_NAMES, cairn_auth::ACCESS);
                let verifier = service.ambient().verifier;
                let channel = hosted.host(service.routes(), None, names, access, &verifier).await?;
                let (running, closing) = (Arc::clone(&service), Arc::clone(&service));
                hosted.on_start(|shutdown| async move { running.run(shutdown).await });
                hosted.at_end(|| async move { closing.close().await });
                (Some(service), channel)
            }
        };
        let ambient = match &auth {
            Some(service) => service.ambient(),
            None => {
                let verifier = Verifier::new(Arc::new(RemoteKeys(auth_channel.clone())), Arc::clone(&clock));
                Ambient::new(Arc::clone(&clock), entropy, verifier)
            }
        };

        let content = match &locations.content {
            Location::Remote(address) => remote("content", address, settings)?,
            Location::Local => open_content(settings, &ambient, &mut hosted).await?,
        };
        if let Some(service) = &auth {
            service.connect(content.clone());
        }
        let ingest = match &locations.ingest {
            Location::Remote(address) => remote("ingest", address, settings)?,
            Location::Local => {
                let service = cairn_ingest::Service::open(&ambient);
                let lifecycle = Some(service.lifecycle());
                let (names, access) = (cairn_ingest::SERVICE_NAMES, cairn_ingest::ACCESS);
                hosted.host(service.routes(), lifecycle, names, access, &ambient.verifier).await?
            }
        };
        let sync = match &locations.sync {
            Location::Remote(address) => remote("sync", address, settings)?,
            Location::Local => {
                let service = cairn_sync::Service::open(&ambient);
                let lifecycle = Some(service.lifecycle());
                let (names, access) = (cairn_sync::SERVICE_NAMES, cairn_sync::ACCESS);
                hosted.host(service.routes(), lifecycle, names, access, &ambient.verifier).await?
            }
        };
        let identity_of = |service| {
            let (secret, clock) = (settings.mesh_secret.clone(), Arc::clone(&clock));
            ServiceIdentitySource::new(service, secret, auth_channel.clone(), clock)
        };
        let gateway = identity_of("gateway");
        let retrieval = match &locations.retrieval {
            Location::Remote(address) => remote("retrieval", address, settings)?,
            Location::Local => {
                let identity = identity_of("retrieval");
                let upstreams = cairn_retrieval::Upstreams { content: content.clone(), identity };
                open_retrieval(settings, &ambient, upstreams, &mut hosted).await?
            }
        };
        let channels = Channels { auth: auth_channel, content, ingest, retrieval, sync };
        if let Some(service) = &auth {
            service.connect_services(channels.keeping());
        }
        Ok(Self { channels, ambient, auth, gateway, hosted })
    }

    /// Puts the gateway in front of the services.
    pub(crate) fn connect(&self, gateway: cairn_gateway::Unconnected) -> cairn_gateway::Gateway {
        let Channels { auth, content, ingest, retrieval, sync } = self.channels.clone();
        let auth = auth.presenting(self.gateway.clone());
        let upstreams = cairn_gateway::Upstreams { auth, content, ingest, retrieval, sync };
        gateway.connect(upstreams, self.ambient.clone())
    }

    /// Everything that runs here, for the gRPC listener of a service of the mesh.
    pub(crate) async fn served(&self) -> anyhow::Result<Composed> {
        let (mut routes, mut names) = (self.hosted.plain.clone(), self.hosted.names.clone());
        // Where several services are, svc-auth is among them and needs no way over a listener.
        if let [lifecycle] = self.hosted.lifecycles.as_slice() {
            routes = merged(routes, lifecycle.clone());
            names.push(lifecycle::SERVICE_NAME);
        }
        Ok(server::compose(routes, &names, &self.hosted.access, &self.ambient.verifier).await?)
    }

    /// Starts the work that goes on beside the requests; the token ends it.
    pub(crate) fn start_background(&mut self, shutdown: &CancellationToken) -> tokio::task::JoinSet<()> {
        let mut tasks = tokio::task::JoinSet::new();
        for work in self.hosted.background.drain(..) {
            tasks.spawn(work(shutdown.clone()));
        }
        tasks
    }

    /// Whether what runs here can do its work now.
    pub(crate) fn readiness(&self) -> impl Fn() -> bool + Clone + Send + Sync + 'static {
        let ready = self.hosted.ready.clone();
        move || ready.iter().all(|is_ready| is_ready())
    }

    /// Closes the storages, so that a SQLite file holds all its data again and not a log beside it.
    pub(crate) async fn close(self) {
        for close in self.hosted.closing {
            close().await;
        }
    }
}

async fn open_auth(
    settings: &Settings,
    clock: &Arc<dyn Clock>,
    entropy: &Arc<dyn Entropy>,
) -> anyhow::Result<cairn_auth::Service> {
    let config = cairn_auth::Config {
        storage: (settings.database)(Role::Auth)?,
        mesh_secret: settings.mesh_secret.clone(),
        default_plan: settings.default_plan.clone(),
        plan_changes: settings.plan_changes,
        workspaces_per_person: settings.workspaces_per_person,
        base_url: settings.base_url.clone(),
        workspace_grace: settings.workspace_grace,
        outbound_allowed: settings.outbound_allowed.clone(),
        mail: settings.mail.clone(),
        oidc: settings.oidc.clone(),
        oauth_clients: settings.oauth_clients,
        sealing: settings.sealing.clone(),
        key_rotation: settings.key_rotation,
    };
    let opened = cairn_auth::Service::open(config, Arc::clone(clock), Arc::clone(entropy)).await;
    opened.context("the auth service cannot open its storage")
}

async fn open_content(
    settings: &Settings,
    ambient: &Ambient,
    hosted: &mut Hosted,
) -> anyhow::Result<ServiceChannel> {
    let config = cairn_content::Config {
        storage: (settings.database)(Role::Content)?,
        trash_retention: settings.trash_retention,
        assets: settings.assets.clone(),
        limits: settings.plan_limits.clone(),
    };
    let opened = cairn_content::Service::open(config, ambient.clone()).await;
    let service = Arc::new(opened.context("the content service cannot open its storage")?);
    let (names, access) = (cairn_content::SERVICE_NAMES, cairn_content::ACCESS);
    let lifecycle = Some(service.lifecycle());
    let channel = hosted.host(service.routes(), lifecycle, names, access, &ambient.verifier).await?;
    let closing = Arc::clone(&service);
    hosted.on_start(|shutdown| async move { service.run(shutdown).await });
    hosted.at_end(|| async move { closing.close().await });
    Ok(channel)
}

async fn open_retrieval(
    settings: &Settings,
    ambient: &Ambient,
    upstreams: cairn_retrieval::Upstreams,
    hosted: &mut Hosted,
) -> anyhow::Result<ServiceChannel> {
    let config = cairn_retrieval::Config {
        index_folder: settings.index_folder.clone(),
        qdrant: settings.qdrant.clone(),
        embedding: settings.embedding.clone(),
        ranking: settings.ranking.clone(),
        browse: settings.browse,
        storage: (settings.database)(Role::Retrieval)?,
    };
    let opened = cairn_retrieval::Service::open(config, ambient.clone(), upstreams).await;
    let service = opened.context("the retrieval service cannot open its index or its storage")?;
    let (names, access) = (cairn_retrieval::SERVICE_NAMES, cairn_retrieval::ACCESS);
    let lifecycle = Some(service.lifecycle());
    let channel = hosted.host(service.routes(), lifecycle, names, access, &ambient.verifier).await?;
    let (closing, asked) = (service.clone(), service.clone());
    hosted.ready_when(move || asked.is_ready());
    hosted.on_start(|shutdown| async move { service.run(shutdown).await });
    hosted.at_end(|| async move { closing.close().await });
    Ok(channel)
}
