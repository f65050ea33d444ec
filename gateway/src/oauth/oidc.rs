//! Sign-in by the operator's OpenID Connect provider: the redirects there and back. The rules and the client secret
//! belong to svc-auth; the state of a sign-in is kept in the browser, so that any gateway can finish it.

use std::time::Duration;

use axum::extract::{Request, State};
use axum::response::Response;
use cairn_chassis::status::{Problem, Reason};
use cairn_proto::auth::v1 as proto;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, StatusCode, header};

use super::OIDC_CALLBACK;
use super::fields::{Fields, without_nul};
use super::pages;
use super::redirect::see_other;
use super::refusal::Refusal;
use super::server::Server;
use crate::auth::{call_of, cookie_value};
use crate::error::{self, Error};
use crate::pages::words;

/// The state cookie of a sign-in in progress, and its path.
const COOKIE: &str = "cairn_oidc";
const COOKIE_PATH: &str = "/oauth/oidc";
/// A path of at most 2,800 bytes in base64, and a secret.
const MAX_STATE_LENGTH: usize = 4_000;
/// Whether the provider is down or rejects this server is in the log of the auth service.
const NOT_NOW: &str = "The identity provider cannot be used now: try again soon, or sign in with your password. If it \
    stays so, tell the operator of this server, whose log says why.";
const SINGLE: [&str; 3] = ["code", "state", "error"];

/// `GET /oauth/oidc/start?return_to=<path>`: redirects to the provider.
pub(super) async fn start(State(server): State<Server>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    begin(&server, &parts).await.unwrap_or_else(|problem| failed(&server, problem))
}

/// `GET /oauth/oidc/callback`: the redirect back from the provider.
pub(super) async fn callback(State(server): State<Server>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    finish(&server, &parts).await.unwrap_or_else(|problem| failed(&server, problem))
}

async fn begin(server: &Server, parts: &Parts) -> Result<Response, Failure> {
    let fields = read(parts, &["return_to"])?;
    let return_to = fields.first("return_to").unwrap_or_else(|| "/".to_owned());
    let message =
        proto::BeginSignInRequest { redirect_uri: redirect_uri(server, &parts.headers)?, return_to };
    let begun = server.upstreams.oidc().begin_sign_in(call_of(parts).request(message)).await;
    let begun = begun.map_err(|status| error::from_upstream(&status))?.into_inner();
    let lifetime = server.sessions.lifetime(begun.expires_at.as_ref());
    let mut response = see_other(&begun.authorization_url);
    response.headers_mut().append(header::SET_COOKIE, cookie(server, &begun.ticket, lifetime)?);
    Ok(response)
}

async fn finish(server: &Server, parts: &Parts) -> Result<Response, Failure> {
    let fields = read(parts, &SINGLE)?;
    if let Some(error) = fields.first("error") {
        return Err(Failure { status: StatusCode::BAD_REQUEST, message: error_message(&error).to_owned() });
    }
    let ticket = cookie_value(&parts.headers, COOKIE).filter(|ticket| ticket.len() <= MAX_STATE_LENGTH);
    let message = proto::FinishSignInRequest {
        ticket: ticket.unwrap_or_default().to_owned(),
        state: fields.text("state"),
        code: fields.text("code"),
        redirect_uri: redirect_uri(server, &parts.headers)?,
        source_address: None,
        agent: String::new(),
    };
    let finished = server.sessions.finish_sign_in(parts, message).await?;
    let opened = server.sessions.cookie(&finished.session_secret, finished.expires_at.as_ref())?;
    let mut response = see_other(&finished.return_to);
    response.headers_mut().append(header::SET_COOKIE, opened);
    response.headers_mut().append(header::SET_COOKIE, cookie(server, "", Duration::ZERO)?);
    Ok(response)
}

fn read(parts: &Parts, single: &[&'static str]) -> Result<Fields, Refusal> {
    let fields = Fields::read(parts.uri.query().unwrap_or_default().as_bytes());
    without_nul(&fields)?;
    fields.require_single(single)?;
    Ok(fields)
}

fn redirect_uri(server: &Server, headers: &HeaderMap) -> Result<String, Refusal> {
    let base = server.origins.base_url(headers).ok_or_else(Refusal::no_address)?;
    Ok(format!("{base}{OIDC_CALLBACK}"))
}

/// The provider's error in our words. Its own description is not shown: anybody can craft one in a URL.
fn error_message(error: &str) -> &'static str {
    match error {
        "access_denied" => "You did not allow the identity provider to tell who you are, or it refused to.",
        "temporarily_unavailable" | "server_error" => {
            "The identity provider cannot sign anybody in now: try again soon, or sign in with your password."
        }
        _ => "The identity provider refused this sign-in: begin again, or tell the server's operator.",
    }
}

/// Only on loopback may the cookie travel without TLS. The redirect comes from another site: `SameSite=Strict` would
/// drop the cookie.
fn cookie(server: &Server, ticket: &str, lifetime: Duration) -> Result<HeaderValue, Problem> {
    let secure = if server.origins.is_loopback() { "" } else { "; Secure" };
    let seconds = lifetime.as_secs();
    let text =
        format!("{COOKIE}={ticket}; Path={COOKIE_PATH}; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}");
    let mut value =
        HeaderValue::from_str(&text).map_err(|_| Problem::internal("a ticket is no cookie value"))?;
    value.set_sensitive(true);
    Ok(value)
}

/// An error page.
struct Failure {
    status: StatusCode,
    message: String,
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        // 401 would make the browser ask for a password.
        let is_unauthorized = problem.reason == Reason::Unauthorized;
        // A violation is more specific than the summary.
        let broken = problem.violations.first();
        let told = match broken {
            Some(broken) => format!("{} {}.", broken.path, broken.message),
            None if problem.reason == Reason::Unavailable => NOT_NOW.to_owned(),
            None => words::sentence(&problem.message),
        };
        let error = Error::from(problem);
        let status = if is_unauthorized { StatusCode::BAD_REQUEST } else { error.status };
        Self { status, message: told }
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self { status: refusal.status, message: words::sentence(&refusal.description) }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self { status: error.status, message: words::sentence(&error.message) }
    }
}

/// The sign-in in progress is over.
fn failed(server: &Server, failure: Failure) -> Response {
    let Failure { status, message } = failure;
    let mut response = pages::not_signed_in(status, &message);
    if let Ok(cookie) = cookie(server, "", Duration::ZERO) {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    response
}
