//! How programs are told no: the JSON of RFC 6749, section 5.2.

use std::time::Duration;

use axum::response::{IntoResponse, Response};
use cairn_chassis::status::{Problem, Reason};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::json;

use crate::json_body::JsonBody;

const INVALID_CLIENT: &str = "invalid_client";

/// An error of the protocol.
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

    /// The deployment was not told its own address.
    pub(super) fn no_address() -> Self {
        let description = "this server does not know its own address: its operator has to set CAIRN_BASE_URL";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "temporarily_unavailable", description)
    }
}

/// svc-auth names the error of the RFC in the violation.
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

/// The codes of the RFCs that svc-auth answers with.
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

/// Answers with secrets, or to them, stay with who asked.
pub(super) fn not_kept(headers: &mut HeaderMap) {
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::PRAGMA, HeaderValue::from_static("no-cache"));
}

/// The characters that an error_description may have (RFC 6749, section 5.2).
fn plain(text: &str) -> String {
    let is_allowed = |character: char| matches!(character, ' '..='~') && !matches!(character, '"' | '\\');
    text.chars().map(|character| if is_allowed(character) { character } else { '?' }).collect()
}
