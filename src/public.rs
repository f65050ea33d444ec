//! The public listeners: HTTP, and gRPC where it is asked for.

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

/// How long the background work may take to end.
const STOP_LIMIT: Duration = Duration::from_secs(5);

/// The gateway as configured. Off loopback it must be told its address: links, the name and the guard of the
/// session cookie and the check of origins follow it, and what a caller says of it (`Host`) proves nothing.
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
        max_requests: load.most_requests(),
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

/// Serves the gateway over HTTP, and over gRPC when there is a listener for it, until the shutdown, and requests under way
/// for so long after it.
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
    // They would go on for as long as somebody looks.
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
    // Boxed: both listeners are in it.
    if !shutdown.drained(Box::pin(drained), drain_limit).await {
        tracing::warn!("some requests did not finish in time and were cut off");
    }
}

async fn serve(endpoint: Endpoint, router: Router, shutdown: &Shutdown) {
    let settings = endpoint.settings.leaving(shutdown.leaving.clone());
    transport::serve(endpoint.listener, router, settings, shutdown.closing.clone()).await;
}

/// Waits until the background work has ended, and not much longer than it should take.
pub(crate) async fn end_background(mut background: JoinSet<()>) {
    let ended = tokio::time::timeout(STOP_LIMIT, async { while background.join_next().await.is_some() {} });
    if ended.await.is_err() {
        tracing::warn!("background work did not end in time; it goes on at the next start");
    }
}
