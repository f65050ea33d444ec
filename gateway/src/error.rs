//! The one table from problems to HTTP, and the one error body (contract, "Errors").

use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use cairn_chassis::json::Unreadable;
use cairn_chassis::status::{Problem, Reason, Violation};
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use tonic::{Code, Status};
use utoipa::ToSchema;

use crate::validate;

/// `Retry-After` if the length of an outage is unknown.
const DEFAULT_RETRY: Duration = Duration::from_secs(1);

/// `Retry-After` while a service is older than the gateway (rolling upgrade).
const UPGRADE: Duration = Duration::from_secs(5);

/// An error on its way to the caller: HTTP status, error code of the contract, and message.
///
/// As a response it travels in the extensions; [`crate::edge`] renders the body, because only the edge knows the
/// request id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Error {
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) violations: Vec<Violation>,
    pub(crate) retry_after: Option<Duration>,
}

impl Error {
    const fn new(status: StatusCode, code: &'static str, message: String) -> Self {
        Self { status, code, message, violations: Vec::new(), retry_after: None }
    }

    pub(crate) fn unknown_route() -> Self {
        let message = "there is nothing at this address; GET /api/docs/openapi.json lists what there is";
        Self::new(StatusCode::NOT_FOUND, "NOT_FOUND", message.to_owned())
    }

    pub(crate) fn method_not_allowed() -> Self {
        let message = "this address does not take that method; the Allow header lists those that it takes";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED", message.to_owned())
    }

    pub(crate) fn body_too_large(limit: usize) -> Self {
        let message = format!("the request body is larger than {limit} bytes; send less in one request");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "PAYLOAD_TOO_LARGE", message)
    }

    /// A body that is not valid JSON, or exceeds the parser's limits.
    pub(crate) fn unreadable(why: Unreadable) -> Self {
        match why {
            Unreadable::Invalid(_) => {
                Problem::validation(vec![Violation::new("body", "invalid_json", why.to_string())]).into()
            }
            Unreadable::TooMany => Self::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "PAYLOAD_TOO_LARGE",
                format!("the request body {why}"),
            ),
        }
    }

    pub(crate) fn not_json() -> Self {
        let message = "send the body as JSON, with Content-Type: application/json";
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UNSUPPORTED_MEDIA_TYPE", message.to_owned())
    }

    pub(crate) fn gone(message: impl Into<String>) -> Self {
        Self::new(StatusCode::GONE, "GONE", message.into())
    }

    pub(crate) fn origin_not_allowed(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "ORIGIN_NOT_ALLOWED", message.into())
    }

    /// The body, with the request id for finding the log entries.
    pub(crate) fn body(&self, request_id: &str) -> ErrorBody {
        ErrorBody {
            error: self.code.to_owned(),
            message: self.message.clone(),
            errors: self.violations.iter().map(Issue::from).collect(),
            request_id: request_id.to_owned(),
        }
    }
}

/// The contract's table: every reason, its HTTP status and its code.
const fn row(reason: Reason) -> (StatusCode, &'static str) {
    match reason {
        Reason::ValidationError => (StatusCode::BAD_REQUEST, "VALIDATION_ERROR"),
        Reason::Unauthorized => (StatusCode::UNAUTHORIZED, "UNAUTHORIZED"),
        Reason::Forbidden => (StatusCode::FORBIDDEN, "FORBIDDEN"),
        Reason::OutOfScope => (StatusCode::FORBIDDEN, "OUT_OF_SCOPE"),
        Reason::LimitExceeded => (StatusCode::FORBIDDEN, "LIMIT_EXCEEDED"),
        Reason::NotFound => (StatusCode::NOT_FOUND, "NOT_FOUND"),
        Reason::VersionConflict => (StatusCode::CONFLICT, "VERSION_CONFLICT"),
        Reason::SlugTaken => (StatusCode::CONFLICT, "SLUG_TAKEN"),
        Reason::IdempotencyConflict => (StatusCode::CONFLICT, "IDEMPOTENCY_CONFLICT"),
        Reason::RunBusy => (StatusCode::CONFLICT, "RUN_BUSY"),
        Reason::RunNotStartable => (StatusCode::CONFLICT, "RUN_NOT_STARTABLE"),
        Reason::RunNotRevertible => (StatusCode::CONFLICT, "RUN_NOT_REVERTIBLE"),
        Reason::RunNotCancellable => (StatusCode::CONFLICT, "RUN_NOT_CANCELLABLE"),
        Reason::AlreadyExists => (StatusCode::CONFLICT, "ALREADY_EXISTS"),
        Reason::Gone => (StatusCode::GONE, "GONE"),
        Reason::PayloadTooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "PAYLOAD_TOO_LARGE"),
        Reason::RateLimited => (StatusCode::TOO_MANY_REQUESTS, "RATE_LIMITED"),
        Reason::DeliveryFailed => (StatusCode::BAD_GATEWAY, "DELIVERY_FAILED"),
        Reason::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, "UNAVAILABLE"),
        Reason::DeadlineExceeded => (StatusCode::GATEWAY_TIMEOUT, "DEADLINE_EXCEEDED"),
        Reason::Unimplemented => (StatusCode::NOT_IMPLEMENTED, "UNIMPLEMENTED"),
        Reason::Internal => (StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL"),
    }
}

impl From<Problem> for Error {
    fn from(problem: Problem) -> Self {
        let (status, code) = row(problem.reason);
        let waits = matches!(problem.reason, Reason::Unavailable | Reason::RateLimited);
        let retry_after = waits.then(|| problem.retry_after.unwrap_or(DEFAULT_RETRY));
        Self { status, code, message: problem.message, violations: problem.violations, retry_after }
    }
}

/// Converts an upstream's status. A message made by tonic or a proxy may contain addresses of the mesh, so unless
/// one of our services wrote it, it is replaced. Field names are translated from protobuf to JSON.
pub(crate) fn from_upstream(status: &Status) -> Problem {
    if is_unknown_there(status) {
        return Problem::unavailable("a service that this needs is being replaced; try again soon", UPGRADE);
    }
    let mut problem = Problem::from_status(status);
    for violation in &mut problem.violations {
        // What follows `values.` are the caller's own ids and names.
        if !violation.path.starts_with("values.") {
            violation.path = our_name(&violation.path);
        }
    }
    let replacement = match problem.reason {
        Reason::Unavailable => "a service that this needs does not answer now; try again soon",
        Reason::DeadlineExceeded => "the time for this request ran out; try again, or ask for less at once",
        Reason::Unimplemented => "this operation is not served yet",
        Reason::Internal => {
            tracing::error!(code = ?status.code(), detail = status.message(), "an upstream failed");
            "an internal error happened; the log has the detail under the request id"
        }
        Reason::ValidationError
        | Reason::Unauthorized
        | Reason::Forbidden
        | Reason::OutOfScope
        | Reason::LimitExceeded
        | Reason::NotFound
        | Reason::VersionConflict
        | Reason::SlugTaken
        | Reason::IdempotencyConflict
        | Reason::RunBusy
        | Reason::RunNotStartable
        | Reason::RunNotRevertible
        | Reason::RunNotCancellable
        | Reason::AlreadyExists
        | Reason::Gone
        | Reason::PayloadTooLarge
        | Reason::RateLimited
        | Reason::DeliveryFailed => return problem,
    };
    replacement.clone_into(&mut problem.message);
    problem
}

/// Whether the service lacks the method: it is older than this gateway, and about to be upgraded. Other
/// unimplemented features carry a message of their own.
fn is_unknown_there(status: &Status) -> bool {
    let is_generic = status.message().is_empty() || status.message() == Code::Unimplemented.description();
    status.code() == Code::Unimplemented && is_generic
}

/// The public name of a service's field: lists are paged with `cursor` and `limit` over REST and MCP.
fn our_name(path: &str) -> String {
    match path {
        "page_token" | "pageToken" => "cursor".to_owned(),
        "page_size" | "pageSize" => "limit".to_owned(),
        other => validate::camel_case(other),
    }
}

impl IntoResponse for Error {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        if let Some(wait) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(whole_seconds(wait)));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response.extensions_mut().insert(self);
        response
    }
}

/// Rounded up, so that a caller that waits this long is not early.
fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
}

/// The body of every error.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Error)]
pub(crate) struct ErrorBody {
    /// What went wrong, for programs.
    #[schema(examples("VALIDATION_ERROR"))]
    error: String,
    /// What went wrong and what to do next, for people.
    message: String,
    /// Every problem of the body or the parameters.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    errors: Vec<Issue>,
    /// The request, as the log knows it.
    request_id: String,
}

/// One problem of a body or a parameter.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ErrorIssue)]
struct Issue {
    /// Where.
    #[schema(examples("members[3].fileId"))]
    path: String,
    /// Which rule, for programs.
    #[schema(examples("required"))]
    code: String,
    /// What is wrong and what would be right.
    message: String,
}

impl From<&Violation> for Issue {
    fn from(violation: &Violation) -> Self {
        Self {
            path: violation.path.clone(),
            code: violation.code.clone(),
            message: violation.message.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_the_contracts() {
        let table = [
            (Reason::ValidationError, 400, "VALIDATION_ERROR"),
            (Reason::Unauthorized, 401, "UNAUTHORIZED"),
            (Reason::Forbidden, 403, "FORBIDDEN"),
            (Reason::OutOfScope, 403, "OUT_OF_SCOPE"),
            (Reason::LimitExceeded, 403, "LIMIT_EXCEEDED"),
            (Reason::NotFound, 404, "NOT_FOUND"),
            (Reason::IdempotencyConflict, 409, "IDEMPOTENCY_CONFLICT"),
            (Reason::RunBusy, 409, "RUN_BUSY"),
            (Reason::RunNotStartable, 409, "RUN_NOT_STARTABLE"),
            (Reason::RunNotRevertible, 409, "RUN_NOT_REVERTIBLE"),
            (Reason::RunNotCancellable, 409, "RUN_NOT_CANCELLABLE"),
            (Reason::SlugTaken, 409, "SLUG_TAKEN"),
            (Reason::Gone, 410, "GONE"),
            (Reason::VersionConflict, 409, "VERSION_CONFLICT"),
            (Reason::PayloadTooLarge, 413, "PAYLOAD_TOO_LARGE"),
            (Reason::RateLimited, 429, "RATE_LIMITED"),
            (Reason::DeliveryFailed, 502, "DELIVERY_FAILED"),
            (Reason::Unavailable, 503, "UNAVAILABLE"),
            (Reason::DeadlineExceeded, 504, "DEADLINE_EXCEEDED"),
            (Reason::Internal, 500, "INTERNAL"),
        ];
        for (reason, status, code) in table {
            let error = Error::from(Problem::new(reason, "why"));
            assert_eq!((error.status.as_u16(), error.code), (status, code));
        }
    }

    #[test]
    fn a_service_that_is_down_says_when_to_come_back_and_nothing_of_the_mesh() {
        let status = Status::unavailable("tcp connect error: 10.0.0.7:8703");
        let response = Error::from(from_upstream(&status)).into_response();
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(response.headers()["retry-after"], "1");
        let error = response.extensions().get::<Error>().unwrap();
        assert!(!error.message.contains("10.0.0.7"));
    }

    #[test]
    fn what_an_older_service_does_not_know_comes_with_its_replacement() {
        for message in ["", "Operation is not implemented or not supported"] {
            let response = Error::from(from_upstream(&Status::unimplemented(message))).into_response();
            assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE, "{message}");
            assert_eq!(response.headers()["retry-after"], "5");
        }
        let cannot = Status::from(Problem::unimplemented("this engine cannot"));
        assert_eq!(Error::from(from_upstream(&cannot)).status, StatusCode::NOT_IMPLEMENTED);
    }

    #[test]
    fn fields_are_named_as_json_does() {
        let problem =
            Problem::validation(vec![Violation::new("members[3].file_id", "required", "is required")]);
        assert_eq!(from_upstream(&Status::from(problem)).violations[0].path, "members[3].fileId");
        let problem = Problem::validation(vec![Violation::new("pageToken", "invalid", "is not known")]);
        assert_eq!(from_upstream(&Status::from(problem)).violations[0].path, "cursor");
    }

    #[test]
    fn the_body_of_an_error_without_issues_has_no_list() {
        let body = serde_json::to_value(Error::unknown_route().body("r-1")).unwrap();
        assert_eq!(body["error"], "NOT_FOUND");
        assert_eq!(body["requestId"], "r-1");
        assert!(body.get("errors").is_none());
    }

    #[test]
    fn a_wait_is_rounded_up() {
        assert_eq!(whole_seconds(Duration::from_millis(1)), 1);
        assert_eq!(whole_seconds(Duration::from_secs(2)), 2);
    }
}
