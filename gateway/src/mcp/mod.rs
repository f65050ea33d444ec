//! MCP over stateless Streamable HTTP: our own thin JSON-RPC layer, for both eras of the protocol on one endpoint.
//!
//! A message passes the origin check, authentication and the rate limits ([`limits`]), is read as JSON-RPC
//! ([`envelope`]), judged by the rules of its era ([`era`]), and answered by its method ([`methods`]). What is wrong
//! with the HTTP request (401, 403, 405, 410, 413, 415) gets the common error body; everything after it gets a JSON-RPC
//! answer.

mod batch;
mod connections;
mod envelope;
mod era;
mod failure;
mod limits;
mod methods;
mod reply;
mod resources;
mod skills;
mod tools;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use cairn_chassis::json::{self, Unreadable};
use cairn_proto::ids::WorkspaceId;
use http::HeaderMap;
use http::request::Parts;
use serde_json::Value;

pub(crate) use self::connections::Connections;
use self::envelope::Message;
use self::era::Era;
use self::failure::Failure;
use self::reply::Reply;
use crate::app::App;
use crate::auth;
use crate::class::{Class, Surface, Who};
use crate::error::Error;
use crate::extract::is_json;
use crate::oauth;
use crate::operations::Context;
use crate::own_writes::Writer;
use crate::routes::Routes;

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

async fn receive(State(app): State<App>, request: Request) -> Result<Response, Error> {
    let (parts, body) = request.into_parts();
    if !app.origins.allow(&parts.headers) {
        let message = "this Origin may not call /mcp; the operator can list it in MCP_ALLOWED_ORIGINS";
        return Err(Error::origin_not_allowed(message));
    }
    let identity = match auth::authenticate_agent(&parts, &app).await {
        Ok(identity) => identity,
        Err(error) => return Ok(oauth::challenged(error, &app, &parts.headers)),
    };
    let read = read(&app, &parts, body, identity.claims.workspace).await;
    // What cannot be read counts nothing, and still tells how the windows stand.
    let asked = read.as_ref().ok().and_then(|parsed| parsed.as_ref().ok()).unwrap_or(&Value::Null);
    if let Err(refusal) =
        app.limits.admit(&parts, &identity.claims, limits::units(&parts.headers, asked)).await
    {
        return Ok(limits::refuse(refusal, asked));
    }
    let call = auth::call_of(&parts).with_identity(&identity.signed);
    connections::note(&app, identity.claims.workspace, &call);
    let step_up = oauth::step_up(&identity.claims, &app, &parts.headers);
    let writer = Some(Writer::of(&identity.claims));
    let context = Context { app, call, identity, step_up, writer };
    Ok(serve(&context, &parts.headers, read?).await.into_response())
}

/// The body as JSON, if it is some.
async fn read(
    app: &App,
    parts: &Parts,
    body: Body,
    workspace: Option<WorkspaceId>,
) -> Result<serde_json::Result<Value>, Error> {
    if !is_json(&parts.headers) {
        return Err(Error::not_json());
    }
    let bytes = app
        .intake
        .receive(body, Class::of(&parts.extensions).most_bytes, &parts.extensions, workspace)
        .await?;
    match app.intake.read(bytes, json::read).await? {
        Ok(value) => Ok(Ok(value)),
        Err(Unreadable::Invalid(error)) => Ok(Err(error)),
        Err(too_many @ Unreadable::TooMany) => Err(Error::unreadable(too_many)),
    }
}

/// Answers a body: whatever it is, with JSON-RPC.
async fn serve(context: &Context, headers: &HeaderMap, body: serde_json::Result<Value>) -> Reply {
    match body {
        Ok(Value::Array(members)) => batch::answer(context, headers, members).await,
        Ok(message) => single(context, headers, message).await,
        Err(error) => Reply::refusal(Value::Null, Failure::parse_error(&error)),
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
            let answer = methods::answer(context, era, &request).await;
            Reply::answer(era, request.id, answer)
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
