//! What tells a client where to ask for a token, and what for (RFC 6750, RFC 9728).

use axum::response::{IntoResponse as _, Response};
use cairn_chassis::identity::{Identity, Permission, PrincipalKind};
use http::{HeaderMap, HeaderValue, StatusCode, header};

use super::{ENDPOINT, RESOURCE_METADATA};
use crate::error::Error;
use crate::origin::Origins;

/// The refusal of a request to the endpoint, with the way to a token when that is what is missing.
pub(crate) fn challenged(error: Error, origins: &Origins, headers: &HeaderMap) -> Response {
    let is_unauthorized = error.status == StatusCode::UNAUTHORIZED;
    let mut response = error.into_response();
    if let Some(base) = origins.base_url(headers).filter(|_| is_unauthorized) {
        let mut text = challenge(&base, &all());
        // Without a token nothing was wrong with one.
        if headers.contains_key(header::AUTHORIZATION) {
            text.push_str(r#", error="invalid_token""#);
        }
        if let Ok(value) = HeaderValue::from_str(&text) {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, value);
        }
    }
    response
}

/// What a tool's refusal carries so that a client can ask its user for more; an API token cannot be given more.
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

/// Clients ask for exactly what the challenge names, and the person takes away what should not be.
fn all() -> String {
    Permission::ALL.map(Permission::as_str).join(" ")
}
