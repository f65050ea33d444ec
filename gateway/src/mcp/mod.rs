//! MCP over stateless Streamable HTTP: our own thin JSON-RPC layer, for both eras of the protocol on one endpoint.
//!
//! A message passes the origin check, authentication and the rate limits ([`limits`]), is read as JSON-RPC
//! ([`envelope`]), judged by the rules of its era ([`era`]), and answered by its method ([`methods`]). What is wrong
//! with the HTTP request (401, 403, 405, 410, 413) gets the common error body; everything after it gets a JSON-RPC
//! answer.

mod connections;
mod envelope;
mod era;
mod limits;
mod methods;
mod reply;
mod tools;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{any, post};
use http::HeaderMap;
use serde_json::Value;

pub(crate) use self::connections::Connections;
use self::envelope::Message;
use self::era::Era;
use self::reply::{Failure, Reply};
use crate::app::App;
use crate::auth;
use crate::error::Error;
use crate::extract::whole_body;
use crate::oauth;
use crate::operations::Context;

/// A batch runs one message after the other within one deadline.
const LONGEST_BATCH: usize = 50;

pub(crate) fn routes() -> Router<App> {
    Router::new().route("/mcp", post(receive)).route("/mcp/sse", any(gone)).route("/mcp/message", any(gone))
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
    let passport = match auth::authenticate_agent(&parts, &app).await {
        Ok(passport) => passport,
        Err(error) => return Ok(oauth::challenged(error, &app, &parts.headers)),
    };
    let read = whole_body(body, app.max_body_bytes).await.map(|bytes| serde_json::from_slice(&bytes));
    // What cannot be read counts nothing, and still tells how the windows stand.
    let asked = read.as_ref().ok().and_then(|parsed| parsed.as_ref().ok()).unwrap_or(&Value::Null);
    if let Err(refusal) =
        app.limits.admit(&parts, &passport.identity, limits::units(&parts.headers, asked)).await
    {
        return Ok(limits::refuse(refusal, asked));
    }
    let call = auth::call_of(&parts).with_identity(&passport.signed);
    connections::note(&app, passport.identity.workspace, &call);
    let step_up = oauth::step_up(&passport.identity, &app, &parts.headers);
    Ok(serve(&Context { app, call, step_up }, &parts.headers, read?).await.into_response())
}

/// Answers a body: whatever it is, with JSON-RPC.
async fn serve(context: &Context, headers: &HeaderMap, body: serde_json::Result<Value>) -> Reply {
    match body {
        Ok(Value::Array(members)) => batch(context, headers, members).await,
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

/// Several messages in one body, as 2025-03-26 has it; later versions of the 2025 era dropped it, and we still take it.
async fn batch(context: &Context, headers: &HeaderMap, members: Vec<Value>) -> Reply {
    if let Err(failure) = era::allow_batch(headers) {
        return Reply::refusal(Value::Null, failure);
    }
    if members.is_empty() || members.len() > LONGEST_BATCH {
        let message =
            format!("a batch holds 1 to {LONGEST_BATCH} messages; send the rest in another request");
        return Reply::refusal(Value::Null, Failure::invalid_request(message));
    }
    let mut answers = Vec::new();
    for member in members {
        if let Some(answer) = member_of_batch(context, member).await {
            answers.push(answer);
        }
    }
    if answers.is_empty() { Reply::accepted() } else { Reply::batch(answers) }
}

async fn member_of_batch(context: &Context, value: Value) -> Option<Value> {
    let request = match envelope::read(value) {
        Ok(Message::Request(request)) => request,
        Ok(Message::Notification(_) | Message::Response) => return None,
        Err((id, failure)) => return Some(reply::failure_message(id, failure)),
    };
    if request.method == methods::INITIALIZE || era::is_modern(&request) {
        let message = format!("{} must be sent alone, not in a batch", request.method);
        return Some(reply::failure_message(request.id, Failure::invalid_request(message)));
    }
    let answer = methods::answer(context, Era::Legacy, &request).await;
    Some(reply::message(Era::Legacy, request.id, answer))
}

#[cfg(test)]
mod tests;
