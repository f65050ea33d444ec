//! Liveness (`/healthz`) and readiness (`/readyz`, including the services).

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use cairn_chassis::channel::ServiceChannel;
use futures::future::join_all;
use http::StatusCode;
use serde::Serialize;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use crate::class::{Class, Surface, Who};
use crate::cost::Cost;
use crate::json_body::JsonBody;
use crate::routes::Routes;
use crate::upstreams::Upstreams;

/// Shorter than the timeout of any prober.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

const ALIVE: &str = "/healthz";
const READY: &str = "/readyz";
/// The probes of orchestrators and load balancers.
pub(crate) const PROBES: [&str; 2] = [ALIVE, READY];

pub(crate) fn routes() -> Routes {
    let open = Class::new(Surface::Open, Who::Anyone).costing(Cost::FREE);
    Routes::default().get(open, ALIVE, alive).get(open, READY, ready)
}

#[derive(Serialize)]
struct Health {
    status: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    down: Vec<&'static str>,
}

async fn alive() -> JsonBody<Health> {
    JsonBody(Health { status: "ok", down: Vec::new() })
}

async fn ready(State(upstreams): State<Arc<Upstreams>>) -> Response {
    let down: Vec<_> = service_statuses(&upstreams)
        .await
        .into_iter()
        .filter(|(_, serves)| !serves)
        .map(|(name, _)| name)
        .collect();
    if down.is_empty() {
        return JsonBody(Health { status: "ok", down }).into_response();
    }
    tracing::warn!(?down, "not ready");
    (StatusCode::SERVICE_UNAVAILABLE, JsonBody(Health { status: "unavailable", down })).into_response()
}

/// Every service by name, and whether it is serving.
pub(crate) async fn service_statuses(upstreams: &Upstreams) -> Vec<(&'static str, bool)> {
    let asked = upstreams.named().map(|(name, channel)| async move { (name, serves(channel.clone()).await) });
    join_all(asked).await
}

async fn serves(channel: ServiceChannel) -> bool {
    let mut client = HealthClient::new(channel);
    let mut request = tonic::Request::new(HealthCheckRequest { service: String::new() });
    request.set_timeout(PROBE_TIMEOUT);
    match tokio::time::timeout(PROBE_TIMEOUT, client.check(request)).await {
        Ok(Ok(response)) => response.into_inner().status() == ServingStatus::Serving,
        Ok(Err(_)) | Err(_) => false,
    }
}
