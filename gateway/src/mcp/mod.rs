//! MCP over stateless Streamable HTTP: our own thin JSON-RPC layer, for both eras of the protocol on one endpoint.
//!
//! A message passes the origin check, authentication, rate limits and admission ([`limits`]), is parsed as JSON-RPC
//! ([`envelope`]), validated by the rules of its era ([`era`]), and dispatched to its method ([`methods`]). Errors
//! of the HTTP request itself (401, 403, 405, 410, 413, 415) get the common error body; everything after it gets a
//! JSON-RPC response.

mod batch;
mod body;
mod completion;
mod envelope;
mod era;
mod failure;
mod limits;
mod methods;
mod prompts;
mod reply;
mod resources;
mod skills;
mod subscriptions;
mod tools;

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRef, Request, State};
use axum::response::{IntoResponse as _, Response};
use cairn_chassis::json::{self, Unreadable};
use cairn_proto::ids::WorkspaceId;
use http::HeaderMap;
use http::request::Parts;
use serde_json::Value;

use self::body::Body as RpcBody;
use self::envelope::Message;
use self::era::Era;
use self::failure::Failure;
use self::reply::Reply;
use crate::admission::{Admission, Tenant};
use crate::answers::Links;
use crate::app::App;
use crate::auth::{self, Authenticator};
use crate::class::{Class, Surface, Who};
use crate::connections::Connections;
use crate::error::Error;
use crate::events::Events;
use crate::extract::is_json;
use crate::follow::FollowLimit;
use crate::intake::Intake;
use crate::oauth;
use crate::operations::Context;
use crate::origin::Origins;
use crate::own_writes::{OwnWrites, Writer};
use crate::rate_limit::Limits;
use crate::routes::Routes;
use crate::seen_contents::SeenContents;
use crate::upstreams::Upstreams;

const AGENT: Class = Class::new(Surface::Mcp, Who::Agent).patient().up_to(usize::MAX);
const NOBODY: Class = Class::new(Surface::Mcp, Who::Anyone);

pub(crate) fn routes() -> Routes {
    Routes::default().below("/mcp", NOBODY).post(AGENT, "/mcp", receive).any(NOBODY, "/mcp/sse", gone).any(
        NOBODY,
        "/mcp/message",
        gone,
    )
}

async fn gone() -> Error {
    Error::gone("the SSE transport is gone: send JSON-RPC with POST /mcp (Streamable HTTP)")
}

/// The state of the endpoint.
#[derive(Clone)]
struct Endpoint {
    upstreams: Arc<Upstreams>,
    links: Arc<Links>,
    own_writes: Arc<OwnWrites>,
    seen_contents: Arc<SeenContents>,
    authenticator: Arc<Authenticator>,
    limits: Arc<Limits>,
    origins: Arc<Origins>,
    connections: Arc<Connections>,
    events: Arc<Events>,
    follows: Arc<FollowLimit>,
    intake: Arc<Intake>,
    admission: Arc<Admission>,
}

impl FromRef<App> for Endpoint {
    fn from_ref(app: &App) -> Self {
        Self {
            upstreams: FromRef::from_ref(app),
            links: FromRef::from_ref(app),
            own_writes: FromRef::from_ref(app),
            seen_contents: FromRef::from_ref(app),
            authenticator: FromRef::from_ref(app),
            limits: FromRef::from_ref(app),
            origins: FromRef::from_ref(app),
            connections: FromRef::from_ref(app),
            events: FromRef::from_ref(app),
            follows: FromRef::from_ref(app),
            intake: FromRef::from_ref(app),
            admission: FromRef::from_ref(app),
        }
    }
}

async fn receive(State(endpoint): State<Endpoint>, request: Request) -> Result<Response, Error> {
    let (mut parts, body) = request.into_parts();
    if !endpoint.origins.allow(&parts.headers) {
        let message = "this Origin may not call /mcp; the operator can list it in MCP_ALLOWED_ORIGINS";
        return Err(Error::origin_not_allowed(message));
    }
    let identity = match endpoint.authenticator.authenticate_agent(&parts).await {
        Ok(identity) => identity,
        Err(error) => return Ok(oauth::challenged(error, &endpoint.origins, &parts.headers)),
    };
    let read = read(&endpoint.intake, &parts, body, identity.claims.workspace).await;
    // An unreadable body costs nothing, but its response still carries the rate-limit headers.
    let units = read.as_ref().map_or(0, limits::units);
    if let Err(refusal) = endpoint.limits.admit(&parts, &identity.claims, units).await {
        return Ok(limits::refuse(refusal, read.as_ref().ok()));
    }
    let read = read?;
    let (tenant, cost) = (Tenant::of(&identity.claims), limits::cost(&read));
    let _place = match endpoint.admission.enter(tenant, cost, &mut parts.extensions).await {
        Ok(place) => place,
        Err(busy) => return Ok(limits::shed(&busy, &read)),
    };
    let call = auth::call_of(&parts).with_credential(&identity.credential);
    endpoint.connections.report(identity.claims.workspace, &call);
    let step_up = oauth::step_up(&identity.claims, &endpoint.origins, &parts.headers);
    let writer = Some(Writer::of(&identity.claims));
    let context = Context {
        upstreams: Arc::clone(&endpoint.upstreams),
        links: Arc::clone(&endpoint.links),
        own_writes: Arc::clone(&endpoint.own_writes),
        seen_contents: Some(Arc::clone(&endpoint.seen_contents)),
        events: Some(Arc::clone(&endpoint.events)),
        call,
        identity,
        step_up,
        writer,
    };
    if let Some(request) = listens(&read, &parts.headers) {
        return Ok(match Box::pin(subscriptions::listen(&endpoint, &context, &parts, &request)).await {
            Ok(stream) => stream,
            Err(failure) => Reply::answer(Era::Modern, request.id, Err(failure)).into_response(),
        });
    }
    Ok(serve(&context, &parts.headers, read).await.into_response())
}

/// The request of the modern era that is answered with a stream.
fn listens(body: &RpcBody, headers: &HeaderMap) -> Option<envelope::Request> {
    let RpcBody::Single(value) = body else { return None };
    if value.get("method").and_then(Value::as_str) != Some(subscriptions::LISTEN) {
        return None;
    }
    let message = envelope::read(value.clone()).ok()?;
    if era::judge(&message, headers).ok()? != Era::Modern {
        return None;
    }
    match message {
        Message::Request(request) => Some(request),
        Message::Notification(_) | Message::Response => None,
    }
}

/// Receives and parses the body.
async fn read(
    intake: &Intake,
    parts: &Parts,
    body: Body,
    workspace: Option<WorkspaceId>,
) -> Result<RpcBody, Error> {
    if !is_json(&parts.headers) {
        return Err(Error::not_json());
    }
    let bytes =
        intake.receive(body, Class::of(&parts.extensions).max_bytes, &parts.extensions, workspace).await?;
    match intake.read(bytes, json::read).await? {
        Ok(value) => Ok(RpcBody::of(&parts.headers, Ok(value))),
        Err(Unreadable::Invalid(error)) => Ok(RpcBody::of(&parts.headers, Err(error))),
        Err(too_many @ Unreadable::TooMany) => Err(Error::unreadable(too_many)),
    }
}

/// Answers a body, always with JSON-RPC.
async fn serve(context: &Context, headers: &HeaderMap, body: RpcBody) -> Reply {
    match body {
        RpcBody::Batch(members) => batch::answer(context, members).await,
        RpcBody::Single(message) => single(context, headers, message).await,
        RpcBody::Refused(failure) => Reply::refusal(Value::Null, failure),
    }
}

async fn single(context: &Context, headers: &HeaderMap, value: Value) -> Reply {
    let message = match envelope::read(value) {
        Ok(message) => message,
        Err((id, failure)) => return Reply::refusal(id, failure),
    };
    let era = match era::judge(&message, headers) {
        Ok(era) => era,
        Err(failure) => return Reply::refusal(message.id(), failure),
    };
    match message {
        Message::Request(request) => {
            let id = request.id.clone();
            let answer = methods::answer(context, era, request).await;
            Reply::answer(era, id, answer)
        }
        Message::Notification(_) => Reply::accepted(),
        Message::Response if era == Era::Modern => Reply::refusal(
            Value::Null,
            Failure::invalid_request("send a request or a notification, not a response"),
        ),
        Message::Response => Reply::accepted(),
    }
}

#[cfg(test)]
mod tests;
