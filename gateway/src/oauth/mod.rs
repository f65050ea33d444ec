//! The HTTP side of the authorization server for agents: what it says of itself, the pages that ask a person, and the
//! endpoints that programs call. The rules are svc-auth's.
//!
//! Nothing here takes an API token. What programs call answers JSON and nothing else, errors as RFC 6749 has them.

mod authorize;
mod challenge;
mod client;
mod fields;
mod issuer;
mod metadata;
mod oidc;
pub(crate) mod pages;
mod redirect;
mod refusal;
mod register;
mod sign_in;
mod token;

use axum::Router;
use axum::extract::Request;
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{get, post};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};

pub(crate) use self::challenge::{challenged, step_up};
pub(crate) use self::issuer::base_url;
use crate::app::App;

const METADATA: &str = "/.well-known/oauth-authorization-server";
const RESOURCE_METADATA: &str = "/.well-known/oauth-protected-resource";
/// Where the endpoint that is protected stands.
const ENDPOINT: &str = "/mcp";

pub(crate) fn routes() -> Router<App> {
    let with_endpoint = |path: &str| format!("{path}{ENDPOINT}");
    let for_programs = Router::new()
        .route(METADATA, get(metadata::server).options(preflight))
        // Some clients put the path of the resource behind it.
        .route(&with_endpoint(METADATA), get(metadata::server).options(preflight))
        .route(RESOURCE_METADATA, get(metadata::resource).options(preflight))
        .route(&with_endpoint(RESOURCE_METADATA), get(metadata::resource).options(preflight))
        .route("/oauth/token", post(token::redeem).options(preflight))
        .route("/oauth/revoke", post(token::revoke).options(preflight))
        .route("/oauth/register", post(register::register).options(preflight))
        .route_layer(middleware::from_fn(share));
    let for_people = Router::new()
        .route("/oauth/authorize", get(authorize::ask).post(authorize::answer))
        .route("/oauth/sign-in", post(sign_in::sign_in))
        .route("/oauth/sign-out", post(sign_in::sign_out))
        .route(oidc::START, get(oidc::start))
        .route(oidc::CALLBACK, get(oidc::callback))
        .route("/oauth/style.css", get(pages::style));
    for_programs.merge(for_people)
}

/// Programs in browsers may call what reads no cookie.
async fn share(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    open_to_all(response.headers_mut());
    response
}

async fn preflight() -> StatusCode {
    StatusCode::NO_CONTENT
}

fn open_to_all(headers: &mut HeaderMap) {
    const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
    let values = [
        (header::ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
        (header::ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, OPTIONS"),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, "authorization, content-type, mcp-protocol-version"),
        (header::ACCESS_CONTROL_MAX_AGE, "86400"),
        (RESOURCE_POLICY, "cross-origin"),
    ];
    for (name, value) in values {
        headers.insert(name, HeaderValue::from_static(value));
    }
}
