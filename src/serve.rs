//! `cairn serve`: one service of the mesh, over TCP.

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::IpAddr;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use cairn_chassis::shutdown::Shutdown;
use cairn_chassis::telemetry::{self, Telemetry};
use cairn_chassis::{server, shutdown, tls, transport};

use crate::cli::{Role, ServeOptions, Site};
use crate::data_folder::DataFolder;
use crate::public::Endpoint;
use crate::topology::{Location, Locations, Mesh, sqlite_in};
use crate::up::bootstrap;
use crate::{admin, memory, observation, public, secret_keys};

pub(crate) const LOG_FILTER: &str = "info";
/// The minimum that svc-auth requires; checked here too, so that every service reports it at its own start.
const MIN_SECRET_CHARACTERS: usize = 16;

/// Runs one service until a signal ends it.
pub(crate) async fn run(options: ServeOptions) -> anyhow::Result<()> {
    check_mesh_secret(&options)?;
    check_mesh(&options)?;
    let telemetry = telemetry::install(options.service.name(), LOG_FILTER)?;
    observation::start();
    memory::spawn_trimmer(options.services.memory.bound());
    let shutdown =
        shutdown::graceful(options.services.ending.delay()).context("cannot listen for signals")?;
    let ended = serve(&options, &telemetry, &shutdown).await;
    telemetry.shutdown();
    ended
}

/// Rejects a secret that could be guessed.
pub(crate) fn check_mesh_secret(options: &ServeOptions) -> anyhow::Result<()> {
    if options.mesh_secret.chars().count() < MIN_SECRET_CHARACTERS {
        bail!(
            "CAIRN_MESH_SECRET must have at least {MIN_SECRET_CHARACTERS} characters and be the same for every \
             service; `cairn secrets new` makes one"
        );
    }
    Ok(())
}

/// Rejects a configuration that sends identities, the mesh secret or contents over a network in clear text.
pub(crate) fn check_mesh(options: &ServeOptions) -> anyhow::Result<()> {
    const ADVICE: &str = "give the mesh TLS (--tls-cert and --tls-key for what is listened on, https:// addresses and \
                          --tls-ca for calls), or say --insecure-mesh (CAIRN_INSECURE_MESH=true) when nobody else is \
                          on that network";
    if options.insecure_mesh {
        return Ok(());
    }
    let listened = options.listen.filter(|address| !address.ip().to_canonical().is_loopback());
    if let Some(address) = listened
        && options.service != Role::Gateway
        && options.services.tls.tls_cert.is_none()
    {
        bail!("{address} can be reached from other machines and has no TLS: {ADVICE}");
    }
    let others = options.upstreams.urls().into_iter().filter(|(service, _)| *service != options.service);
    for url in others.flat_map(|(_, urls)| urls.split(',')) {
        if leaves_in_the_clear(url.trim()) {
            bail!("calls to {url} leave this machine without TLS: {ADVICE}");
        }
    }
    Ok(())
}

/// Whether calls to that address leave this machine unencrypted.
fn leaves_in_the_clear(url: &str) -> bool {
    let Ok(url) = url.parse::<http::Uri>() else { return false };
    let host = url.host().unwrap_or_default().trim_matches(['[', ']']);
    let is_here =
        host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback());
    url.scheme_str() != Some("https") && !is_here
}

async fn serve(options: &ServeOptions, telemetry: &Telemetry, shutdown: &Shutdown) -> anyhow::Result<()> {
    let role = options.service;
    let connections = options.services.connections.open(&options.services.public.trusted_proxies);
    let listener = server::bind(options.listen.unwrap_or_else(|| role.default_address())).await?;
    let gateway = match role {
        Role::Gateway => Some(public::build(
            &options.services.public,
            &options.services.ending,
            options.services.public.base_url.clone(),
            listener.local_addr()?,
        )?),
        Role::Auth | Role::Content | Role::Ingest | Role::Retrieval | Role::Sync => None,
    };
    let admin_listener = server::bind(options.admin_listen).await?;
    let grpc = match options.grpc_listen.filter(|_| role == Role::Gateway) {
        Some(address) => Some(server::bind(address).await?),
        None => None,
    };
    let mut announcement = format!(
        "cairn {} listening on {} (admin {})",
        role.name(),
        listener.local_addr()?,
        admin_listener.local_addr()?
    );
    if let Some(listener) = &grpc {
        write!(announcement, "\ncairn gateway answers gRPC on {}", listener.local_addr()?)?;
    }

    if role == Role::Auth && secret_keys::given(&options.services.secret_key)?.is_none() {
        tracing::warn!("signing keys stand unsealed in the database; set CAIRN_SECRET_KEY to seal them");
    }
    // Holds the claim on the data folder, so it must live until the end.
    let site = site(options)?;
    let mut mesh = Mesh::open(locations(options, &site)?).await?;
    if role == Role::Auth {
        make_first_account(&mesh, options).await?;
    }
    admin::spawn(admin_listener, telemetry, shutdown.leaving.clone());
    // Ends when draining begins: open feed streams would keep the server from draining.
    let background = mesh.start_background(&shutdown.closing);
    {
        let mut out = std::io::stdout().lock();
        writeln!(out, "{announcement}")?;
        out.flush()?;
    }
    let drain_limit = options.services.ending.drain_limit();
    if let Some(gateway) = gateway {
        let tls = options.services.tls.mutual(tls::Protocols::Http)?;
        let grpc_tls = options.services.tls.mutual(tls::Protocols::Grpc)?;
        let grpc = grpc.map(|listener| Endpoint {
            listener,
            settings: transport::Settings::grpc(&connections).over(grpc_tls),
        });
        let http = Endpoint { listener, settings: transport::Settings::http(&connections).over(tls) };
        public::serve_gateway(&mesh.connect(gateway), http, grpc, shutdown, drain_limit).await;
    } else {
        let tls = options.services.tls.mutual(tls::Protocols::Grpc)?;
        let settings = transport::Settings::mesh(&connections).over(tls).leaving(shutdown.leaving.clone());
        let serving = mesh.served().await?.serve_over(listener, settings, shutdown.closing.clone());
        if !shutdown.drained(serving, drain_limit).await {
            tracing::warn!("some calls did not finish in time and were cut off");
        }
    }
    public::end_background(background).await;
    mesh.close().await;
    Ok(())
}

/// The location of each service: this one local, the others remote at the configured addresses.
fn locations(options: &ServeOptions, site: &Site) -> anyhow::Result<Locations> {
    let (role, urls, services) = (options.service, &options.upstreams, &options.services);
    Ok(Locations {
        auth: location(role == Role::Auth, &urls.auth_url, || services.auth(site))?,
        content: location(role == Role::Content, &urls.content_url, || services.content(site))?,
        ingest: location(role == Role::Ingest, &urls.ingest_url, || services.ingest(site))?,
        retrieval: location(role == Role::Retrieval, &urls.retrieval_url, || services.retrieval(site))?,
        sync: location(role == Role::Sync, &urls.sync_url, || services.sync(site))?,
        mesh_secret: site.mesh_secret.clone(),
        tls_client: options.tls_client.client(&services.tls)?,
    })
}

fn location<C>(
    is_local: bool,
    url: &str,
    config: impl FnOnce() -> anyhow::Result<C>,
) -> anyhow::Result<Location<C>> {
    if is_local { config().map(Location::Local) } else { Ok(Location::Remote(url.to_owned())) }
}

fn site(options: &ServeOptions) -> anyhow::Result<Site> {
    let role = options.service;
    // Each service has its own subfolder, so that several services on one machine do not collide.
    let folder = options.data.join(role.name());
    let keeps_index = role == Role::Retrieval && !options.services.index_is_external()?;
    let keeps_files = keeps_index || (options.database.is_none() && role != Role::Gateway);
    let data = if keeps_files { Some(Arc::new(DataFolder::claim(&folder)?)) } else { None };
    let (database, connections) = (options.database.clone(), options.database_connections);
    Ok(Site {
        folder,
        database: Box::new(move |role| match (&database, &data) {
            (Some(url), _) => connections.config(url),
            (None, Some(data)) => Ok(sqlite_in(data.path(), role)),
            (None, None) => bail!("the {} service has no database", role.name()),
        }),
        mesh_secret: options.mesh_secret.clone(),
        base_url: options.services.public.base_url.clone(),
        sealing: secret_keys::given(&options.services.secret_key)?.map(Arc::new),
    })
}

/// The first account of a mesh is created only from the environment: generated secrets would have to be printed into a
/// log.
async fn make_first_account(mesh: &Mesh, options: &ServeOptions) -> anyhow::Result<()> {
    let given = &options.services.bootstrap;
    if given.bootstrap_email.is_none() || given.bootstrap_password.is_none() {
        tracing::info!(
            "no first account is made; set CAIRN_BOOTSTRAP_EMAIL and CAIRN_BOOTSTRAP_PASSWORD (and \
             CAIRN_BOOTSTRAP_TOKEN) for the first start of the auth service"
        );
        return Ok(());
    }
    if let Some(made) = bootstrap(mesh, given, |_| Ok(())).await? {
        tracing::info!(workspace.id = %made.workspace_id, "the first account was made");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_stays_here_may_do_without_tls() {
        for here in [
            "http://127.0.0.1:8711",
            "http://localhost:8711",
            "http://[::1]:8711",
            "https://auth:8711",
            "https://10.0.0.1",
        ] {
            assert!(!leaves_in_the_clear(here), "{here}");
        }
        for away in
            ["http://auth:8711", "http://10.0.0.1:8711", "http://127.0.0.1.example.com", "http://[fd00::1]:1"]
        {
            assert!(leaves_in_the_clear(away), "{away}");
        }
    }
}
