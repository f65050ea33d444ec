//! `cairn up`: the whole mesh in one process, on embedded storage.

use std::io::{self, IsTerminal as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use anyhow::Context as _;
use cairn_auth::{Bootstrap, Bootstrapped};
use cairn_chassis::entropy::{Entropy as _, OsEntropy};
use cairn_chassis::shutdown::Shutdown;
use cairn_chassis::telemetry::{self, Telemetry};
use cairn_chassis::{server, shutdown, tls, transport};
use tokio::net::TcpListener;

use crate::bootstrap_file::{self, BootstrapFile};
use crate::cli::{BootstrapOptions, Site, UpOptions};
use crate::data_folder::DataFolder;
use crate::public::Endpoint;
use crate::topology::{Location, Locations, Mesh, sqlite_in};
use crate::{admin, memory, observation, public, secret_keys, starter_guide};

/// On a terminal the banner carries the information.
pub(crate) const LOG_FILTER: &str = "warn";

/// Runs until a signal ends it.
pub(crate) async fn run(options: UpOptions) -> anyhow::Result<()> {
    let telemetry = telemetry::install("up", LOG_FILTER)?;
    observation::start();
    memory::spawn_trimmer(options.services.memory.bound());
    let shutdown =
        shutdown::graceful(options.services.ending.delay()).context("cannot listen for signals")?;
    let ended = serve(&options, &telemetry, &shutdown).await;
    telemetry.shutdown();
    ended
}

async fn serve(options: &UpOptions, telemetry: &Telemetry, shutdown: &Shutdown) -> anyhow::Result<()> {
    let data = DataFolder::claim(&options.data)?;
    let connections = options.services.connections.open(&options.services.public.trusted_proxies);
    let listener = server::bind(options.listen).await?;
    let address = listener.local_addr()?;
    let admin = bind_admin(options).await?;
    let mut further = Vec::new();
    if let Some(listener) = &admin {
        further.push(format!("Admin {} (/metrics, /healthz, /readyz)", listener.local_addr()?));
    }
    let grpc = match options.grpc_listen {
        Some(address) => Some(server::bind(address).await?),
        None => None,
    };
    if let Some(listener) = &grpc {
        further.push(format!("gRPC {}", listener.local_addr()?));
    }

    let scheme = options.services.tls.scheme();
    let (tls, grpc_tls) =
        (options.services.tls.public()?, options.services.tls.mutual(tls::Protocols::Grpc)?);
    let base_url =
        options.services.public.base_url.clone().unwrap_or_else(|| format!("{scheme}://{address}"));
    let gateway =
        public::build(&options.services.public, &options.services.ending, Some(base_url.clone()), address)?;
    let mut mesh = Mesh::open(all_local(options, &data, &base_url)?).await?;
    let made =
        bootstrap(&mesh, &options.services.bootstrap, |made| file_of(made, &base_url).write(data.path()))
            .await?;
    if let Some(made) = &made {
        starter_guide::write(&mesh.channels, &made.token).await?;
    }
    let file = refresh_bootstrap_file(&data, &base_url)?;
    if let Some(listener) = admin {
        admin::spawn(listener, telemetry, shutdown.leaving.clone());
    }

    let background = mesh.start_background(&shutdown.closing);
    let gateway = mesh.connect(gateway);
    if !options.quiet {
        announce(&base_url, &data, made.is_some(), file.as_ref(), &further)?;
    }
    let grpc = grpc.map(|listener| Endpoint {
        listener,
        settings: transport::Settings::grpc(&connections).over(grpc_tls),
    });
    let http = Endpoint { listener, settings: transport::Settings::http(&connections).over(tls) };
    public::serve_gateway(&gateway, http, grpc, shutdown, options.services.ending.drain_limit()).await;
    public::end_background(background).await;
    mesh.close().await;
    Ok(())
}

/// The default admin port is a convenience: if it is taken, the process starts without it.
async fn bind_admin(options: &UpOptions) -> anyhow::Result<Option<TcpListener>> {
    if let Some(address) = options.admin_listen {
        return Ok(Some(server::bind(address).await?));
    }
    let port = match options.listen.port() {
        0 => 0,
        port => port.checked_add(1).unwrap_or(0),
    };
    // It has no authentication: unless an address is set, only this machine can reach it.
    match server::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await {
        Ok(listener) => Ok(Some(listener)),
        Err(error) => {
            tracing::warn!(%error, "no admin port; choose one with --admin-listen");
            Ok(None)
        }
    }
}

/// All services, in this process.
fn all_local(options: &UpOptions, data: &DataFolder, base_url: &str) -> anyhow::Result<Locations> {
    let services = &options.services;
    let folder = data.path().to_owned();
    let mut secret = [0_u8; 32];
    OsEntropy.fill(&mut secret);
    let site = Site {
        database: Box::new(move |role| Ok(sqlite_in(&folder, role))),
        folder: data.path().to_owned(),
        // Only this process needs it.
        mesh_secret: hex::encode(secret),
        base_url: Some(base_url.to_owned()),
        sealing: Some(Arc::new(secret_keys::establish(&services.secret_key, data.path())?)),
    };
    Ok(Locations {
        auth: Location::Local(services.auth(&site)?),
        content: Location::Local(services.content(&site)?),
        ingest: Location::Local(services.ingest(&site)?),
        retrieval: Location::Local(services.retrieval(&site)?),
        sync: Location::Local(services.sync(&site)?),
        mesh_secret: site.mesh_secret,
        tls_client: None,
    })
}

/// Creates the first account if there is none; `keep` receives its secrets before the account is committed.
pub(crate) async fn bootstrap(
    mesh: &Mesh,
    options: &BootstrapOptions,
    keep: impl FnOnce(&Bootstrapped) -> io::Result<()>,
) -> anyhow::Result<Option<Bootstrapped>> {
    let Some(auth) = &mesh.auth else { return Ok(None) };
    let wanted = Bootstrap {
        email: options.bootstrap_email.clone(),
        password: options.bootstrap_password.clone(),
        token: options.bootstrap_token.clone(),
        workspace_name: "My workspace".to_owned(),
    };
    auth.bootstrap(wanted, keep).await.context("the first account cannot be made")
}

fn file_of(made: &Bootstrapped, base_url: &str) -> BootstrapFile {
    BootstrapFile {
        base_url: base_url.to_owned(),
        email: made.email.clone(),
        password: made.password.clone(),
        workspace_id: made.workspace_id.to_string(),
        token: made.token.clone(),
    }
}

/// Updates the bootstrap file with the address of this start; `None` if it was removed.
fn refresh_bootstrap_file(data: &DataFolder, base_url: &str) -> anyhow::Result<Option<BootstrapFile>> {
    let Some(kept) = BootstrapFile::read(data.path()) else { return Ok(None) };
    let file = BootstrapFile { base_url: base_url.to_owned(), ..kept };
    file.write(data.path()).context("the address cannot be written to the bootstrap file")?;
    Ok(Some(file))
}

fn announce(
    base_url: &str,
    data: &DataFolder,
    first_start: bool,
    file: Option<&BootstrapFile>,
    further_addresses: &[String],
) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    // Output that is not a terminal may be a log, which is kept and which others read.
    let is_seen = out.is_terminal();
    writeln!(out, "Cairn is ready at {base_url}   (data in {})", data.path().display())?;
    for address in further_addresses {
        writeln!(out, "{address}")?;
    }
    let kept_in = data.join(bootstrap_file::FILE_NAME);
    match file {
        Some(file) if first_start && is_seen => announce_access(&mut out, file, &kept_in)?,
        Some(_) => writeln!(out, "Sign-in and token: {}", kept_in.display())?,
        None => writeln!(out, "Sign in with the account that was made at the first start.")?,
    }
    writeln!(out, "API documentation: {base_url}/api/docs/swagger\nCtrl-C stops it.")?;
    Ok(out.flush()?)
}

fn announce_access(
    out: &mut impl std::io::Write,
    file: &BootstrapFile,
    kept_in: &std::path::Path,
) -> anyhow::Result<()> {
    let BootstrapFile { base_url, email, password, token, .. } = file;
    let mcp = serde_json::json!({"mcpServers": {"cairn": {
        "type": "http",
        "url": format!("{base_url}/mcp"),
        "headers": {"Authorization": format!("Bearer {token}")},
    }}});
    writeln!(out, "\nSign in as   {email}\nPassword     {password}\nAPI token    {token}")?;
    writeln!(out, "(kept in {}, readable by you only)", kept_in.display())?;
    writeln!(out, "\nAsk it something:")?;
    writeln!(out, "  curl -s {base_url}/api/v1/search_context \\")?;
    writeln!(out, "    -H 'Authorization: Bearer {token}' -H 'Content-Type: application/json' \\")?;
    writeln!(out, "    -d '{{\"query\": \"How do I add my first file?\"}}'")?;
    writeln!(out, "\nGive it to an agent (MCP client configuration):")?;
    for line in serde_json::to_string_pretty(&mcp)?.lines() {
        writeln!(out, "  {line}")?;
    }
    writeln!(out)?;
    Ok(())
}
