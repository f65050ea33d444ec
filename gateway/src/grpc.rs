//! The public gRPC listener: an alternative to REST for programs, under the same limits.
//!
//! A call names a method of one of the public services ([`public_methods`]), or is answered UNIMPLEMENTED. The caller is
//! authenticated by metadata, before any of the message is read, and counted like a REST request. The message is
//! proxied unchanged: every service validates and authorizes it anew.

mod exchange;
mod public_methods;

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{FromRef, Request, State};
use axum::response::{IntoResponse as _, Response};
use cairn_chassis::ambient::Ambient;
use cairn_chassis::call::{CHANNEL, REQUEST_ID};
use cairn_chassis::channel::ServiceChannel;
use cairn_chassis::deadline;
use cairn_chassis::identity::{Identity, PrincipalKind, SERVICE_IDENTITY, Verifier};
use cairn_chassis::ids::IdSource;
use cairn_chassis::status::{Problem, Reason};
use cairn_chassis::telemetry;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, StatusCode, Version, header};
use tonic::Status;
use tonic::codegen::Service as _;
use tracing::Instrument as _;

use self::public_methods::PublicMethod;
use crate::admission::{Admission, Tenant};
use crate::app::App;
use crate::auth::Authenticator;
use crate::cost::Cost;
use crate::edge;
use crate::in_flight::InFlight;
use crate::rate_limit::Limits;
use crate::rate_limit::headers::ShownWindow;
use crate::suspension::{self, Permits};
use crate::upstreams::Upstreams;

/// Metadata of hops inside the mesh, which callers may not send.
const INSIDE_ONLY: [&str; 2] = [SERVICE_IDENTITY, CHANNEL];
const CALLS: &str = "cairn_grpc_public_requests_total";

/// The state of the listener.
#[derive(Clone)]
struct Listener {
    upstreams: Arc<Upstreams>,
    authenticator: Arc<Authenticator>,
    limits: Arc<Limits>,
    verifier: Verifier,
    in_flight: Arc<InFlight>,
    admission: Arc<Admission>,
    ids: IdSource,
}

/// The router of public gRPC.
pub(crate) fn router(app: &App) -> Router {
    let Ambient { verifier, ids, .. } = FromRef::from_ref(app);
    let listener = Listener {
        upstreams: FromRef::from_ref(app),
        authenticator: FromRef::from_ref(app),
        limits: FromRef::from_ref(app),
        verifier,
        in_flight: FromRef::from_ref(app),
        admission: FromRef::from_ref(app),
        ids,
    };
    Router::new().fallback(serve).with_state(listener)
}

async fn serve(State(listener): State<Listener>, request: Request) -> Response {
    // gRPC needs trailers, which require HTTP/2.
    if request.version() != Version::HTTP_2 {
        return StatusCode::HTTP_VERSION_NOT_SUPPORTED.into_response();
    }
    let (mut parts, body) = request.into_parts();
    let shown = ShownWindow::listen(&mut parts.extensions);
    let id = edge::request_id(&parts.headers, &listener.ids);
    let public_method = PublicMethod::of(parts.uri.path());
    let method = public_method.map_or("unknown", PublicMethod::name);
    let span = tracing::info_span!("grpc", method, request_id = id);
    telemetry::continue_trace(&span, &parts.headers);
    let answered = answer(&listener, public_method, parts, body, &id).instrument(span).await;
    let outcome = if answered.is_ok() { "passed" } else { "refused" };
    metrics::counter!(CALLS, "service" => method, "outcome" => outcome).increment(1);
    let mut response = answered.unwrap_or_else(|problem| Status::from(problem).into_http());
    shown.write(response.headers_mut());
    if let Ok(value) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    response
}

async fn answer(
    listener: &Listener,
    public_method: Option<PublicMethod>,
    mut parts: Parts,
    body: Body,
    id: &str,
) -> Result<Response, Problem> {
    let Some(public_method) = public_method else {
        return Err(Problem::unimplemented(
            "there is no such method at this address: it serves cairn.auth.v1.TokenService/Exchange and the \
             services of content, retrieval, ingest and sync that are for programs",
        ));
    };
    let taken = listener.in_flight.acquire()?;
    Permits::add(&mut parts.extensions, &taken);
    let body = suspension::track_body(&taken, body);
    prepare(&mut parts.headers, id);
    let budget = deadline::budget(&parts.headers).unwrap_or(deadline::DEFAULT);
    let (owner, tenant, cost) = match public_method {
        PublicMethod::Exchange => return exchange::serve(listener, parts, body, budget, id).await,
        PublicMethod::Public { owner, .. } if !parts.headers.contains_key(header::AUTHORIZATION) => {
            listener.limits.public_read(&parts).await?;
            (owner, Tenant::Address(listener.limits.source(&parts)), Cost::LIST)
        }
        PublicMethod::Public { owner, .. } => (owner, let_in(listener, &parts).await?, Cost::LIST),
        PublicMethod::Service { owner, cost, .. } => (owner, let_in(listener, &parts).await?, cost),
    };
    let place = listener.admission.enter(tenant, cost, &mut parts.extensions).await?;
    let body = match &place {
        Some(place) => suspension::track_body(place, body),
        None => body,
    };
    pass_on(owner.channel(&listener.upstreams), parts, body, budget).await
}

/// Authenticates and counts a call; returns its tenant.
async fn let_in(listener: &Listener, parts: &Parts) -> Result<Tenant, Problem> {
    let caller = authenticate(listener, parts).await?;
    listener.limits.admit(parts, &caller, 1).await.map_err(Problem::from)?;
    Ok(Tenant::of(&caller))
}

/// Prepares the metadata for the service: strips what is reserved to the mesh and sets the request id.
fn prepare(headers: &mut HeaderMap, id: &str) {
    for name in INSIDE_ONLY {
        headers.remove(name);
    }
    if let Ok(value) = HeaderValue::from_str(id) {
        headers.insert(REQUEST_ID, value);
    }
}

/// The identity in the call's metadata. An invalid one counts against the source address; an expired one does not:
/// its program exchanges its token again.
async fn authenticate(listener: &Listener, parts: &Parts) -> Result<Identity, Problem> {
    let Some(sent) = parts.headers.get(header::AUTHORIZATION) else {
        return Err(Problem::unauthorized(
            "the call carries no identity: exchange an API token with cairn.auth.v1.TokenService/Exchange and send \
             `authorization: Bearer <identity>`",
        ));
    };
    let caller = match listener.verifier.authenticate_headers(&parts.headers).await {
        Ok(caller) => caller,
        Err(problem) if problem.reason == Reason::Unauthorized => {
            let token = sent.to_str().ok().and_then(|value| value.strip_prefix("Bearer "));
            if listener.verifier.has_expired(token.unwrap_or_default()).await {
                return Err(problem);
            }
            return Err(listener.limits.invalid_token(parts, problem).await);
        }
        Err(problem) => return Err(problem),
    };
    match caller.principal.kind {
        PrincipalKind::Token | PrincipalKind::Grant => Ok(caller),
        PrincipalKind::User | PrincipalKind::Service => Err(Problem::forbidden(
            "this address is for programs with an API token: exchange one with cairn.auth.v1.TokenService/Exchange",
        )),
    }
}

/// Proxies the call to the service, and the response unchanged.
async fn pass_on(
    mut channel: ServiceChannel,
    parts: Parts,
    body: Body,
    budget: Duration,
) -> Result<Response, Problem> {
    let mut request = http::Request::from_parts(parts, tonic::body::Body::new(body));
    request.extensions_mut().clear();
    let answered = tokio::time::timeout(budget, async {
        poll_fn(|context| channel.poll_ready(context)).await?;
        channel.call(request).await
    });
    match answered.await {
        Ok(Ok(response)) => Ok(response.map(Body::new)),
        Ok(Err(error)) => Err(Problem::from_status(&Status::from_error(error))),
        Err(_elapsed) => {
            Err(Problem::new(Reason::DeadlineExceeded, "the time for this call ran out; try again"))
        }
    }
}
