//! The HTTP side of the authorization server for agents: metadata, the pages of the consent flow, and the endpoints
//! that clients call. The rules belong to svc-auth.
//!
//! Nothing here accepts an API token. Client endpoints answer JSON only, errors as in RFC 6749.

mod authorize;
mod challenge;
mod client;
mod fields;
mod metadata;
mod oidc;
mod pages;
mod redirect;
mod refusal;
mod register;
mod server;
mod sign_in;
mod token;

use axum::extract::Request;
use axum::middleware::{self, Next};
use axum::response::Response;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};

pub(crate) use self::challenge::{challenged, step_up};
use crate::class::{Class, FORM_BYTES, Surface, Who};
use crate::cost::Cost;
use crate::pages::sign_in::PROVIDER_START;
use crate::routes::Routes;

const METADATA: &str = "/.well-known/oauth-authorization-server";
const RESOURCE_METADATA: &str = "/.well-known/oauth-protected-resource";
const TOKEN: &str = "/oauth/token";
const REVOKE: &str = "/oauth/revoke";
const REGISTER: &str = "/oauth/register";
/// The redirect URI registered with the identity provider.
const OIDC_CALLBACK: &str = "/oauth/oidc/callback";
/// The protected endpoint.
const ENDPOINT: &str = "/mcp";
/// The API, below which everything is protected, too.
const API: &str = "/api";

const OPEN: Class = Class::new(Surface::Open, Who::Anyone);
const FORM: Class = OPEN.up_to(FORM_BYTES).with_secrets();

pub(crate) fn routes() -> Routes {
    let with_endpoint = |path: &str| format!("{path}{ENDPOINT}");
    let mut for_programs = Routes::default()
        .get(OPEN, METADATA, metadata::server)
        // Some clients append the path of the resource.
        .get(OPEN, &with_endpoint(METADATA), metadata::server)
        .get(OPEN, RESOURCE_METADATA, metadata::resource)
        .get(OPEN, &with_endpoint(RESOURCE_METADATA), metadata::resource)
        .get(OPEN, &format!("{RESOURCE_METADATA}{API}"), metadata::api)
        .post(FORM, TOKEN, token::redeem)
        .post(FORM, REVOKE, token::revoke)
        .post(FORM, REGISTER, register::register);
    for path in [METADATA, RESOURCE_METADATA] {
        for_programs =
            for_programs.options(OPEN, path, preflight).options(OPEN, &with_endpoint(path), preflight);
    }
    for path in [TOKEN, REVOKE, REGISTER] {
        for_programs = for_programs.options(FORM, path, preflight);
    }
    let for_people = Routes::default()
        .get(FORM, "/oauth/authorize", authorize::ask)
        .post(FORM, "/oauth/authorize", authorize::answer)
        .post(FORM.costing(Cost::PASSWORD), "/oauth/sign-in", sign_in::sign_in)
        .post(FORM, "/oauth/sign-out", sign_in::sign_out)
        .get(FORM, PROVIDER_START, oidc::start)
        .get(FORM, OIDC_CALLBACK, oidc::callback);
    for_programs.changed(|router| router.route_layer(middleware::from_fn(share))).merge(for_people)
}

/// CORS: programs in browsers may call endpoints that read no cookie.
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
