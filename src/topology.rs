//! The only place that decides whether a service is local or remote.
//!
//! [`Mesh::open`] opens the local services in dependency order and creates a channel to each of the others. `cairn up`
//! and `cairn serve` differ only in the locations of the services.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use cairn_chassis::ambient::Ambient;
use cairn_chassis::channel::ServiceChannel;
use cairn_chassis::clock::{Clock, SystemClock};
use cairn_chassis::entropy::{Entropy, OsEntropy};
use cairn_chassis::identity::{RemoteKeys, ServiceIdentitySource, Verifier};
use cairn_chassis::lifecycle;
use cairn_chassis::server::{self, Access, Composed};
use cairn_chassis::sql;
use cairn_chassis::tls;
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;

use crate::cli::Role;

/// Where a service runs.
pub(crate) enum Location<C> {
    /// In this process, with this configuration.
    Local(C),
    /// At an address such as `http://content:8712`.
    Remote(String),
}

/// The location of each service, and how they reach each other.
pub(crate) struct Locations {
    pub(crate) auth: Location<cairn_auth::Config>,
    pub(crate) content: Location<cairn_content::Config>,
    pub(crate) ingest: Location<cairn_ingest::Config>,
    pub(crate) retrieval: Location<cairn_retrieval::Config>,
    pub(crate) sync: Location<cairn_sync::Config>,
    /// The secret that services of the mesh share.
    pub(crate) mesh_secret: String,
    /// TLS of the calls to services at https:// addresses.
    pub(crate) tls_client: Option<tls::Client>,
}

/// The SQLite file of a service in that folder.
pub(crate) fn sqlite_in(folder: &Path, role: Role) -> sql::Config {
    sql::Config::sqlite(folder.join(format!("{}.db", role.name())))
}

/// The channels to the services.
#[derive(Debug, Clone)]
pub(crate) struct Channels {
    pub(crate) auth: ServiceChannel,
    pub(crate) content: ServiceChannel,
    pub(crate) ingest: ServiceChannel,
    pub(crate) retrieval: ServiceChannel,
    pub(crate) sync: ServiceChannel,
}

impl Channels {
    /// The services that store data of workspaces, by name.
    fn stateful(&self) -> Vec<(&'static str, ServiceChannel)> {
        let Self { auth: _, content, ingest, retrieval, sync } = self.clone();
        vec![("content", content), ("ingest", ingest), ("retrieval", retrieval), ("sync", sync)]
    }
}

/// Work that runs beside the requests until the token is cancelled.
type Background = Box<dyn FnOnce(CancellationToken) -> BoxFuture<'static, ()> + Send>;
/// A hook that runs when nothing is served any more.
type Closing = Box<dyn FnOnce() -> BoxFuture<'static, ()> + Send>;

/// The local services, and the channels to all services.
pub(crate) struct Mesh {
    pub(crate) channels: Channels,
    pub(crate) ambient: Ambient,
    /// svc-auth, if it runs here: the first account is created through it.
    pub(crate) auth: Option<Arc<cairn_auth::Service>>,
    /// The gateway's identity towards svc-auth and the change feeds.
    gateway: ServiceIdentitySource,
    hosted: Hosted,
}

/// The local services and their hooks.
#[derive(Default)]
struct Hosted {
    services: Vec<Served>,
    background: Vec<Background>,
    closing: Vec<Closing>,
}

/// The gRPC routes of a service.
struct Served {
    routes: Routes,
    names: Vec<&'static str>,
    access: Access,
}

impl Hosted {
    /// Adds a service's routes; the returned channel calls them in this process.
    async fn host(
        &mut self,
        routes: Routes,
        lifecycle: Option<Routes>,
        names: &'static [&'static str],
        access: Access,
        verifier: &Verifier,
    ) -> anyhow::Result<ServiceChannel> {
        let (routes, names) = match lifecycle {
            Some(lifecycle) => (merged(routes, lifecycle), [names, &[lifecycle::SERVICE_NAME]].concat()),
            None => (routes, names.to_vec()),
        };
        let composed = server::compose(routes.clone(), &names, &[access], verifier).await?;
        self.services.push(Served { routes, names, access });
        Ok(ServiceChannel::local(composed.routes))
    }

    /// Registers work that starts once the services are open.
    fn on_start<F>(&mut self, work: impl FnOnce(CancellationToken) -> F + Send + 'static)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.background.push(Box::new(move |shutdown| Box::pin(work(shutdown))));
    }

    /// Registers a hook that runs when nothing is served any more.
    fn on_close<F>(&mut self, close: impl FnOnce() -> F + Send + 'static)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.closing.push(Box::new(move || Box::pin(close())));
    }
}

fn merged(routes: Routes, more: Routes) -> Routes {
    // Both routers have the same fallback, and axum accepts only one.
    Routes::from(routes.into_axum_router().reset_fallback().merge(more.into_axum_router()))
}

fn remote(name: &str, address: &str, tls: Option<&tls::Client>) -> anyhow::Result<ServiceChannel> {
    ServiceChannel::remote_over(address, tls)
        .with_context(|| format!("the address of the {name} service cannot be used"))
}

impl Mesh {
    /// Opens the local services and creates channels to the others; no remote service is contacted yet.
    pub(crate) async fn open(locations: Locations) -> anyhow::Result<Self> {
        let tls = locations.tls_client.as_ref();
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let entropy: Arc<dyn Entropy> = Arc::new(OsEntropy);
        let mut hosted = Hosted::default();

        let (auth, auth_channel) = match locations.auth {
            Location::Remote(address) => (None, remote("auth", &address, tls)?),
            Location::Local(config) => {
                let opened =
                    cairn_auth::Service::open(config, Arc::clone(&clock), Arc::clone(&entropy)).await;
                let service = Arc::new(opened.context("the auth service cannot open its storage")?);
                let (names, access) = (cairn_auth::SERVICE_NAMES, cairn_auth::ACCESS);
                let verifier = service.ambient().verifier;
                let channel = hosted.host(service.routes(), None, names, access, &verifier).await?;
                let (running, closing) = (Arc::clone(&service), Arc::clone(&service));
                hosted.on_start(|shutdown| async move { running.run(shutdown).await });
                hosted.on_close(|| async move { closing.close().await });
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

        let (content_service, content) = match locations.content {
            Location::Remote(address) => (None, remote("content", &address, tls)?),
            Location::Local(config) => {
                let (service, channel) = open_content(config, &ambient, &mut hosted).await?;
                (Some(service), channel)
            }
        };
        if let Some(service) = &auth {
            service.connect(content.clone());
        }
        let (ingest_service, ingest) = match locations.ingest {
            Location::Remote(address) => (None, remote("ingest", &address, tls)?),
            Location::Local(config) => {
                let (service, channel) = open_ingest(config, &ambient, &mut hosted).await?;
                (Some(service), channel)
            }
        };
        let identity_of = |service| {
            let (secret, clock) = (locations.mesh_secret.clone(), Arc::clone(&clock));
            ServiceIdentitySource::new(service, secret, auth_channel.clone(), clock)
        };
        let sync = match locations.sync {
            Location::Remote(address) => remote("sync", &address, tls)?,
            Location::Local(config) => {
                let (auth, content, identity) = (auth_channel.clone(), content.clone(), identity_of("sync"));
                let upstreams = cairn_sync::Upstreams { auth, content, identity };
                open_sync(config, &ambient, upstreams, &mut hosted).await?
            }
        };
        if let Some(service) = content_service {
            service.connect(ingest.clone(), identity_of("content"));
        }
        if let Some(service) = ingest_service {
            service.connect(auth_channel.clone(), content.clone(), identity_of("ingest"));
        }
        let gateway = identity_of("gateway");
        let retrieval = match locations.retrieval {
            Location::Remote(address) => remote("retrieval", &address, tls)?,
            Location::Local(config) => {
                let identity = identity_of("retrieval");
                let upstreams =
                    cairn_retrieval::Upstreams { content: content.clone(), ingest: ingest.clone(), identity };
                open_retrieval(config, &ambient, upstreams, &mut hosted).await?
            }
        };
        let channels = Channels { auth: auth_channel, content, ingest, retrieval, sync };
        if let Some(service) = &auth {
            service.connect_services(channels.stateful());
        }
        Ok(Self { channels, ambient, auth, gateway, hosted })
    }

    /// Puts the gateway in front of the services.
    pub(crate) fn connect(&self, gateway: cairn_gateway::Unconnected) -> cairn_gateway::Gateway {
        let Channels { auth, content, ingest, retrieval, sync } = self.channels.clone();
        let auth = auth.presenting(self.gateway.clone());
        let presented = |way: &ServiceChannel| way.clone().presenting(self.gateway.clone());
        let (content_feed, ingest_feed) = (presented(&content), presented(&ingest));
        let upstreams =
            cairn_gateway::Upstreams { auth, content, ingest, retrieval, sync, content_feed, ingest_feed };
        gateway.connect(upstreams, self.ambient.clone())
    }

    /// The routes for the gRPC listener of a single service. Services share names, such as that of the change feed, so
    /// a process with several services has no such listener.
    pub(crate) async fn served(&self) -> anyhow::Result<Composed> {
        let [Served { routes, names, access }] = self.hosted.services.as_slice() else {
            anyhow::bail!("a gRPC listener is for one service");
        };
        Ok(server::compose(routes.clone(), names, &[*access], &self.ambient.verifier).await?)
    }

    /// Starts the background work; cancelling the token ends it.
    pub(crate) fn start_background(&mut self, shutdown: &CancellationToken) -> tokio::task::JoinSet<()> {
        let mut tasks = tokio::task::JoinSet::new();
        for work in self.hosted.background.drain(..) {
            tasks.spawn(work(shutdown.clone()));
        }
        tasks
    }

    /// Closes the storages, which checkpoints the write-ahead log of SQLite.
    pub(crate) async fn close(self) {
        for close in self.hosted.closing {
            close().await;
        }
    }
}

async fn open_content(
    config: cairn_content::Config,
    ambient: &Ambient,
    hosted: &mut Hosted,
) -> anyhow::Result<(Arc<cairn_content::Service>, ServiceChannel)> {
    let opened = cairn_content::Service::open(config, ambient.clone()).await;
    let service = Arc::new(opened.context("the content service cannot open its storage")?);
    let (names, access) = (cairn_content::SERVICE_NAMES, cairn_content::ACCESS);
    let lifecycle = Some(service.lifecycle());
    let channel = hosted.host(service.routes(), lifecycle, names, access, &ambient.verifier).await?;
    let (running, closing) = (Arc::clone(&service), Arc::clone(&service));
    hosted.on_start(|shutdown| async move { Box::pin(running.run(shutdown)).await });
    hosted.on_close(|| async move { closing.close().await });
    Ok((service, channel))
}

async fn open_ingest(
    config: cairn_ingest::Config,
    ambient: &Ambient,
    hosted: &mut Hosted,
) -> anyhow::Result<(Arc<cairn_ingest::Service>, ServiceChannel)> {
    let opened = cairn_ingest::Service::open(config, ambient.clone()).await;
    let service = Arc::new(opened.context("the ingest service cannot open its storage")?);
    let (names, access) = (cairn_ingest::SERVICE_NAMES, cairn_ingest::ACCESS);
    let lifecycle = Some(service.lifecycle());
    let channel = hosted.host(service.routes(), lifecycle, names, access, &ambient.verifier).await?;
    let (running, closing) = (Arc::clone(&service), Arc::clone(&service));
    hosted.on_start(|shutdown| async move { running.run(shutdown).await });
    hosted.on_close(|| async move { closing.close().await });
    Ok((service, channel))
}

async fn open_sync(
    config: cairn_sync::Config,
    ambient: &Ambient,
    upstreams: cairn_sync::Upstreams,
    hosted: &mut Hosted,
) -> anyhow::Result<ServiceChannel> {
    let opened = cairn_sync::Service::open(config, ambient.clone(), upstreams).await;
    let service = Arc::new(opened.context("the sync service cannot open its storage")?);
    let (names, access) = (cairn_sync::SERVICE_NAMES, cairn_sync::ACCESS);
    let lifecycle = Some(service.lifecycle());
    let channel = hosted.host(service.routes(), lifecycle, names, access, &ambient.verifier).await?;
    let closing = Arc::clone(&service);
    hosted.on_start(|shutdown| async move { service.run(shutdown).await });
    hosted.on_close(|| async move { closing.close().await });
    Ok(channel)
}

async fn open_retrieval(
    config: cairn_retrieval::Config,
    ambient: &Ambient,
    upstreams: cairn_retrieval::Upstreams,
    hosted: &mut Hosted,
) -> anyhow::Result<ServiceChannel> {
    let opened = cairn_retrieval::Service::open(config, ambient.clone(), upstreams).await;
    let service = opened.context("the retrieval service cannot open its index or its storage")?;
    let (names, access) = (cairn_retrieval::SERVICE_NAMES, cairn_retrieval::ACCESS);
    let lifecycle = Some(service.lifecycle());
    let channel = hosted.host(service.routes(), lifecycle, names, access, &ambient.verifier).await?;
    let closing = service.clone();
    hosted.on_start(|shutdown| async move { service.run(shutdown).await });
    hosted.on_close(|| async move { closing.close().await });
    Ok(channel)
}
