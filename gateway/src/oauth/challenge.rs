//! The `WWW-Authenticate` challenge: where and for what scope to request a token (RFC 6750, RFC 9728).

use axum::response::{IntoResponse as _, Response};
use cairn_chassis::identity::{Identity, Permission, PrincipalKind};
use http::{HeaderMap, HeaderValue, StatusCode, header};

use super::{ENDPOINT, RESOURCE_METADATA};
use crate::error::Error;
use crate::origin::Origins;

/// The refusal of a request to the endpoint, with a challenge if the token is missing or invalid.
pub(crate) fn challenged(error: Error, origins: &Origins, headers: &HeaderMap) -> Response {
    let is_unauthorized = error.status == StatusCode::UNAUTHORIZED;
    let mut response = error.into_response();
    if let Some(base) = origins.base_url(headers).filter(|_| is_unauthorized) {
        let mut text = challenge(&base, &all());
        // `invalid_token` only applies if a token was sent.
        if headers.contains_key(header::AUTHORIZATION) {
            text.push_str(r#", error="invalid_token""#);
        }
        if let Ok(value) = HeaderValue::from_str(&text) {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, value);
        }
    }
    response
}

/// The challenge in a tool's refusal with which a client can request more scope from its user; API tokens cannot be
/// extended.
pub(crate) fn step_up(identity: &Identity, origins: &Origins, headers: &HeaderMap) -> Option<String> {
    if identity.principal.kind != PrincipalKind::Grant {
        return None;
    }
    let challenge = challenge(&origins.base_url(headers)?, &all());
    let description = "the tool needs a permission that was not granted";
    Some(format!(r#"{challenge}, error="insufficient_scope", error_description="{description}""#))
}

fn challenge(base: &str, scope: &str) -> String {
    format!(r#"Bearer resource_metadata="{base}{RESOURCE_METADATA}{ENDPOINT}", scope="{scope}""#)
}

/// Clients request exactly the scope of the challenge, and the person deselects what they do not grant.
fn all() -> String {
    Permission::ALL.map(Permission::as_str).join(" ")
}
