//! The admin port: Prometheus metrics, liveness and readiness.

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use cairn_chassis::telemetry::Telemetry;
use cairn_chassis::transport::{self, Bounds, Connections, Settings};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Monitoring needs few connections.
const BOUNDS: Bounds = Bounds { all: 64, per_address: 64, proxies: Vec::new() };

/// Serves the admin port until the process exits, so that a draining process can still be observed.
pub(crate) fn spawn(listener: TcpListener, telemetry: &Telemetry, leaving: CancellationToken) {
    let metrics = telemetry.metrics();
    let render = move || {
        metrics.run_upkeep();
        std::future::ready(metrics.render())
    };
    // The process is ready once it listens. Dependencies that all replicas share, such as databases and Qdrant, do not
    // count: all replicas would be taken out of service at once, along with everything that works without them.
    let ready = move || {
        let is_leaving = leaving.is_cancelled();
        std::future::ready(if is_leaving { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK })
    };
    let router = Router::new()
        .route("/metrics", get(render))
        .route("/healthz", get(|| std::future::ready(StatusCode::OK)))
        .route("/readyz", get(ready));
    let settings = Settings::http(&Connections::new(BOUNDS));
    tokio::spawn(transport::serve(listener, router, settings, CancellationToken::new()));
}
