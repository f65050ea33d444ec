//! The public listeners: HTTP, and gRPC where it is asked for.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, bail};
use axum::Router;
use cairn_chassis::transport;
use cairn_gateway::{Gateway, Unconnected};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::cli::PublicOptions;

/// How long requests under way may take after the shutdown began.
pub(crate) const DRAIN_LIMIT: Duration = Duration::from_secs(20);

/// The gateway as configured. Off loopback it must be told its address: links, the name and the guard of the
/// session cookie and the check of origins follow it, and what a caller says of it (`Host`) proves nothing.
pub(crate) fn build(
    options: &PublicOptions,
    base_url: Option<String>,
    listens_at: SocketAddr,
) -> anyhow::Result<Unconnected> {
    if options.base_url.is_none() && !listens_at.ip().to_canonical().is_loopback() {
        bail!(
            "{listens_at} is reached from other machines, so Cairn must know the address that people and agents use: \
             set --base-url (CAIRN_BASE_URL), such as https://cairn.example, or listen on 127.0.0.1"
        );
    }
    let proxies = options.trusted_proxies.iter().filter(|network| !network.trim().is_empty());
    let config = cairn_gateway::Config {
        base_url,
        allowed_origins: options.allowed_origins.clone(),
        plans: options.plans.as_deref().map(plans).transpose()?,
        trusted_proxies: proxies.cloned().collect(),
        redis: options.redis_url.clone(),
        redis_timeout: Duration::from_millis(options.redis_timeout_ms),
        ..cairn_gateway::Config::default()
    };
    Ok(Gateway::build(&config)?)
}

/// JSON, or what the file of that name holds.
fn plans(given: &str) -> anyhow::Result<String> {
    if given.trim_start().starts_with('{') {
        return Ok(given.to_owned());
    }
    fs_err::read_to_string(given).context("CAIRN_PLANS is neither JSON nor a file that can be read")
}

/// A listener, and how it is served.
pub(crate) struct Endpoint {
    pub(crate) listener: TcpListener,
    pub(crate) settings: transport::Settings,
}

/// Serves the gateway over HTTP, and over gRPC when there is a listener for it, until the shutdown.
pub(crate) async fn serve_gateway(
    gateway: &Gateway,
    http: Endpoint,
    grpc: Option<Endpoint>,
    shutdown: &CancellationToken,
) {
    let over_http = serve(http, gateway.router(), shutdown.clone());
    let served = async {
        match grpc {
            None => over_http.await,
            Some(grpc) => {
                tokio::join!(over_http, serve(grpc, gateway.grpc_router(), shutdown.clone()));
            }
        }
    };
    // They would go on for as long as somebody looks.
    let ends_streams = async {
        shutdown.cancelled().await;
        gateway.close();
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = served => {}
        () = ends_streams => {}
    }
}

/// Serves until the shutdown; then lets requests under way finish.
async fn serve(endpoint: Endpoint, router: Router, shutdown: CancellationToken) {
    let drained = async {
        shutdown.cancelled().await;
        tokio::time::sleep(DRAIN_LIMIT).await;
    };
    tokio::select! {
        () = transport::serve(endpoint.listener, router, endpoint.settings, shutdown.clone()) => {}
        () = drained => tracing::warn!("some requests did not finish in time and were cut off"),
    }
}
