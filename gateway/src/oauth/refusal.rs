//! OAuth errors: the JSON of RFC 6749, section 5.2.

use std::time::Duration;

use axum::response::{IntoResponse, Response};
use cairn_chassis::status::{Problem, Reason};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::json;

use crate::json_body::JsonBody;

const INVALID_CLIENT: &str = "invalid_client";

/// An OAuth error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    pub(super) error: String,
    pub(super) description: String,
    retry_after: Option<Duration>,
}

impl Refusal {
    pub(super) fn new(status: StatusCode, error: &str, description: impl Into<String>) -> Self {
        let description = plain(&description.into());
        Self { status, error: error.to_owned(), description, retry_after: None }
    }

    pub(super) fn invalid_request(description: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request", description)
    }

    pub(super) fn invalid_client(description: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, INVALID_CLIENT, description)
    }

    /// The deployment does not know its own base URL.
    pub(super) fn no_address() -> Self {
        let description = "this server does not know its own address: its operator has to set CAIRN_BASE_URL";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "temporarily_unavailable", description)
    }
}

/// svc-auth puts the RFC's error code into the violation.
impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        let retry_after = problem.retry_after;
        let refusal = match (problem.reason, problem.violations.into_iter().next()) {
            (Reason::ValidationError, Some(broken)) if broken.code == INVALID_CLIENT => {
                Self::invalid_client(broken.message)
            }
            (Reason::ValidationError, Some(broken)) if is_error_code(&broken.code) => {
                Self::new(StatusCode::BAD_REQUEST, &broken.code, broken.message)
            }
            (Reason::ValidationError, Some(broken)) => {
                Self::invalid_request(format!("{}: {}", broken.path, broken.message))
            }
            (Reason::ValidationError, None) => Self::invalid_request(problem.message),
            (Reason::Unavailable | Reason::DeadlineExceeded, _) => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "temporarily_unavailable", problem.message)
            }
            (Reason::RateLimited, _) => {
                Self::new(StatusCode::TOO_MANY_REQUESTS, "temporarily_unavailable", problem.message)
            }
            (_, _) => Self::new(StatusCode::INTERNAL_SERVER_ERROR, "server_error", problem.message),
        };
        Self { retry_after, ..refusal }
    }
}

/// The RFCs' error codes that svc-auth uses.
fn is_error_code(code: &str) -> bool {
    matches!(
        code,
        "invalid_request"
            | "invalid_grant"
            | "invalid_scope"
            | "invalid_target"
            | "invalid_redirect_uri"
            | "invalid_client_metadata"
            | "unsupported_response_type"
    )
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let body = JsonBody(json!({"error": self.error, "error_description": self.description}));
        let mut response = (self.status, body).into_response();
        not_kept(response.headers_mut());
        if let Some(wait) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(wait.as_secs().max(1)));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            let scheme = HeaderValue::from_static(r#"Basic realm="Cairn""#);
            response.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
        }
        response
    }
}

/// Responses with or about secrets must not be cached.
pub(super) fn not_kept(headers: &mut HeaderMap) {
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::PRAGMA, HeaderValue::from_static("no-cache"));
}

/// Restricts a text to the characters of error_description (RFC 6749, section 5.2).
fn plain(text: &str) -> String {
    let is_allowed = |character: char| matches!(character, ' '..='~') && !matches!(character, '"' | '\\');
    text.chars().map(|character| if is_allowed(character) { character } else { '?' }).collect()
}
