//! The public listeners: HTTP, and gRPC if configured.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, bail};
use axum::Router;
use cairn_chassis::shutdown::Shutdown;
use cairn_chassis::transport;
use cairn_gateway::{Gateway, Unconnected};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::cli::{EndingOptions, PublicOptions};

/// How long background work may take to stop.
const STOP_LIMIT: Duration = Duration::from_secs(5);

/// Builds the gateway. Except on loopback it needs a configured address: links, the session cookie's name and
/// attributes and the origin check derive from it, and the `Host` header proves nothing.
pub(crate) fn build(
    options: &PublicOptions,
    load: &EndingOptions,
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
        max_requests: load.max_requests(),
        capacity: load.capacity,
        allowed_origins: options.allowed_origins.clone(),
        plans: options.plans.as_deref().map(plans).transpose()?,
        trusted_proxies: proxies.cloned().collect(),
        redis: options.redis_url.clone(),
        redis_timeout: Duration::from_millis(options.redis_timeout_ms),
        ..cairn_gateway::Config::default()
    };
    Ok(Gateway::build(&config)?)
}

/// The plans as JSON, from the option itself or from the file that it names.
fn plans(given: &str) -> anyhow::Result<String> {
    if given.trim_start().starts_with('{') {
        return Ok(given.to_owned());
    }
    fs_err::read_to_string(given).context("CAIRN_PLANS is neither JSON nor a file that can be read")
}

/// A listener and how to serve it.
pub(crate) struct Endpoint {
    pub(crate) listener: TcpListener,
    pub(crate) settings: transport::Settings,
}

/// Serves the gateway over HTTP, and over gRPC if there is a listener for it, until shutdown; requests in flight then
/// have `drain_limit` to finish.
pub(crate) async fn serve_gateway(
    gateway: &Gateway,
    http: Endpoint,
    grpc: Option<Endpoint>,
    shutdown: &Shutdown,
    drain_limit: Duration,
) {
    let over_http = serve(http, gateway.router(), shutdown);
    let served = async {
        match grpc {
            None => over_http.await,
            Some(grpc) => {
                tokio::join!(over_http, serve(grpc, gateway.grpc_router(), shutdown));
            }
        }
    };
    // Event streams would stay open as long as the client is connected.
    let ends_streams = async {
        shutdown.closing.cancelled().await;
        gateway.close();
        std::future::pending::<()>().await;
    };
    let drained = async {
        tokio::select! {
            () = served => {}
            () = ends_streams => {}
        }
    };
    // Boxed: the future holds both listeners.
    if !shutdown.drained(Box::pin(drained), drain_limit).await {
        tracing::warn!("some requests did not finish in time and were cut off");
    }
}

async fn serve(endpoint: Endpoint, router: Router, shutdown: &Shutdown) {
    let settings = endpoint.settings.leaving(shutdown.leaving.clone());
    transport::serve(endpoint.listener, router, settings, shutdown.closing.clone()).await;
}

/// Waits for background work to stop, for at most [`STOP_LIMIT`].
pub(crate) async fn end_background(mut background: JoinSet<()>) {
    let ended = tokio::time::timeout(STOP_LIMIT, async { while background.join_next().await.is_some() {} });
    if ended.await.is_err() {
        tracing::warn!("background work did not end in time; it goes on at the next start");
    }
}
