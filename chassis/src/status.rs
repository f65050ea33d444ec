//! The one error that crosses a service boundary, as a [`tonic::Status`] with the details of the google.rpc model.
//!
//! Every service maps its own error enum to a [`Problem`] in one exhaustive match. A problem has only what the client may read;
//! internal details are only logged.

mod bounds;

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use tonic::{Code, Status};
use tonic_types::{BadRequest, ErrorDetails, FieldViolation, StatusExt as _};

pub use self::bounds::{MAX_ERROR_BYTES, MAX_VIOLATIONS};
use crate::wording;

/// The `domain` of every google.rpc.ErrorInfo.
pub const DOMAIN: &str = "cairn.dev";

/// What went wrong, as google.rpc.ErrorInfo.reason says it; mirrors `cairn.common.v1.ErrorReason`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// A field breaks a rule.
    ValidationError,
    /// No usable identity.
    Unauthorized,
    /// The permission or the role is missing.
    Forbidden,
    /// Outside the token's folders.
    OutOfScope,
    /// The plan does not allow it.
    LimitExceeded,
    /// No such resource in the caller's workspace.
    NotFound,
    /// Changed since the version that the caller named.
    VersionConflict,
    /// The slug belongs to another resource.
    SlugTaken,
    /// The idempotency key was used with other content.
    IdempotencyConflict,
    /// The run is queued or running.
    RunBusy,
    /// The run's state allows no start.
    RunNotStartable,
    /// The run cannot be rolled back.
    RunNotRevertible,
    /// The run is over.
    RunNotCancellable,
    /// The object is too large.
    PayloadTooLarge,
    /// A rate-limit window is exhausted.
    RateLimited,
    /// Mail could not be delivered.
    DeliveryFailed,
    /// A dependency is down, or load is being shed.
    Unavailable,
    /// The time budget ran out.
    DeadlineExceeded,
    /// Part of the contract, not served yet.
    Unimplemented,
    /// A fault of the service.
    Internal,
    /// The resource exists already.
    AlreadyExists,
    /// Older than its retention.
    Gone,
}

/// Every reason with its spelling and its gRPC code: the one table.
const REASONS: [(Reason, &str, Code); 22] = [
    (Reason::ValidationError, "VALIDATION_ERROR", Code::InvalidArgument),
    (Reason::Unauthorized, "UNAUTHORIZED", Code::Unauthenticated),
    (Reason::Forbidden, "FORBIDDEN", Code::PermissionDenied),
    (Reason::OutOfScope, "OUT_OF_SCOPE", Code::PermissionDenied),
    (Reason::LimitExceeded, "LIMIT_EXCEEDED", Code::PermissionDenied),
    (Reason::NotFound, "NOT_FOUND", Code::NotFound),
    (Reason::VersionConflict, "VERSION_CONFLICT", Code::Aborted),
    (Reason::SlugTaken, "SLUG_TAKEN", Code::AlreadyExists),
    (Reason::IdempotencyConflict, "IDEMPOTENCY_CONFLICT", Code::AlreadyExists),
    (Reason::RunBusy, "RUN_BUSY", Code::FailedPrecondition),
    (Reason::RunNotStartable, "RUN_NOT_STARTABLE", Code::FailedPrecondition),
    (Reason::RunNotRevertible, "RUN_NOT_REVERTIBLE", Code::FailedPrecondition),
    (Reason::RunNotCancellable, "RUN_NOT_CANCELLABLE", Code::FailedPrecondition),
    (Reason::PayloadTooLarge, "PAYLOAD_TOO_LARGE", Code::ResourceExhausted),
    (Reason::RateLimited, "RATE_LIMITED", Code::ResourceExhausted),
    (Reason::DeliveryFailed, "DELIVERY_FAILED", Code::Unavailable),
    (Reason::Unavailable, "UNAVAILABLE", Code::Unavailable),
    (Reason::DeadlineExceeded, "DEADLINE_EXCEEDED", Code::DeadlineExceeded),
    (Reason::Unimplemented, "UNIMPLEMENTED", Code::Unimplemented),
    (Reason::Internal, "INTERNAL", Code::Internal),
    (Reason::AlreadyExists, "ALREADY_EXISTS", Code::AlreadyExists),
    (Reason::Gone, "GONE", Code::FailedPrecondition),
];

impl Reason {
    /// The spelling in google.rpc.ErrorInfo.reason.
    pub fn as_str(self) -> &'static str {
        REASONS.iter().find(|(reason, ..)| *reason == self).map_or("INTERNAL", |(_, name, _)| name)
    }

    /// The gRPC code that goes with it.
    pub fn code(self) -> Code {
        REASONS.iter().find(|(reason, ..)| *reason == self).map_or(Code::Internal, |(.., code)| *code)
    }

    fn parse(name: &str) -> Option<Self> {
        REASONS.iter().find(|(_, spelled, _)| *spelled == name).map(|(reason, ..)| *reason)
    }

    /// The best guess for a status without ErrorInfo, such as one of tonic itself or of a proxy.
    fn from_code(code: Code) -> Self {
        match code {
            Code::InvalidArgument => Self::ValidationError,
            Code::Unauthenticated => Self::Unauthorized,
            Code::PermissionDenied => Self::Forbidden,
            Code::NotFound => Self::NotFound,
            Code::AlreadyExists => Self::AlreadyExists,
            Code::Aborted | Code::FailedPrecondition => Self::VersionConflict,
            // tonic's code for a message beyond the limit.
            Code::OutOfRange | Code::ResourceExhausted => Self::PayloadTooLarge,
            // Services say what happened: what is unknown is a connection that ended.
            Code::Unavailable | Code::Unknown => Self::Unavailable,
            Code::DeadlineExceeded | Code::Cancelled => Self::DeadlineExceeded,
            Code::Unimplemented => Self::Unimplemented,
            Code::Ok | Code::Internal | Code::DataLoss => Self::Internal,
        }
    }
}

/// One rule that one field breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Where: `name`, `members[3].fileId`.
    pub path: String,
    /// Which rule, for programs: `required`, `too_long`, `cycle`.
    pub code: String,
    /// What is wrong and what would be right, for people.
    pub message: String,
}

impl Violation {
    /// A violation of the rule `code` at `path`.
    pub fn new(path: impl Into<String>, code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), code: code.into(), message: message.into() }
    }
}

/// An error as the caller gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// What went wrong.
    pub reason: Reason,
    /// For a person: what happened and what to do next.
    pub message: String,
    /// All the broken rules of a [`Reason::ValidationError`].
    pub violations: Vec<Violation>,
    /// After how long a retry may succeed.
    pub retry_after: Option<Duration>,
}

impl Problem {
    /// Whether the request itself is at fault, and not the service.
    pub fn is_refusal(&self) -> bool {
        matches!(
            self.reason.code(),
            Code::InvalidArgument | Code::Unauthenticated | Code::PermissionDenied | Code::NotFound
        )
    }

    /// A problem with a message for the caller.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), violations: Vec::new(), retry_after: None }
    }

    /// Fields break rules: all of them at once.
    pub fn validation(violations: Vec<Violation>) -> Self {
        let message = match violations.as_slice() {
            [only] => format!("{}: {}", only.path, only.message),
            several => wording::invalid_fields(several.len()),
        };
        Self { violations, ..Self::new(Reason::ValidationError, message) }
    }

    /// No usable identity.
    pub fn unauthorized(message: impl Into<String>) -> Self {
        Self::new(Reason::Unauthorized, message)
    }

    /// The permission or the role is missing.
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::new(Reason::Forbidden, message)
    }

    /// Outside the token's folders.
    pub fn out_of_scope(message: impl Into<String>) -> Self {
        Self::new(Reason::OutOfScope, message)
    }

    /// No such resource in the caller's workspace.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(Reason::NotFound, message)
    }

    /// Changed since the version that the caller named.
    pub fn version_conflict(message: impl Into<String>) -> Self {
        Self::new(Reason::VersionConflict, message)
    }

    /// A dependency is down.
    pub fn unavailable(message: impl Into<String>, retry_after: Duration) -> Self {
        Self { retry_after: Some(retry_after), ..Self::new(Reason::Unavailable, message) }
    }

    /// Part of the contract, not served yet.
    pub fn unimplemented(message: impl Into<String>) -> Self {
        Self::new(Reason::Unimplemented, message)
    }

    /// An internal error: the detail is logged here, and not sent to the client.
    pub fn internal(detail: impl fmt::Display) -> Self {
        tracing::error!(%detail, "internal error");
        Self::new(Reason::Internal, "an internal error happened; the log has the detail under the request id")
    }

    /// Decodes the status of a service.
    pub fn from_status(status: &Status) -> Self {
        let details = status.get_error_details();
        let reason = details
            .error_info()
            .filter(|info| info.domain == DOMAIN)
            .and_then(|info| Reason::parse(&info.reason))
            .unwrap_or_else(|| Reason::from_code(status.code()));
        let violations = details.bad_request().map(read_violations).unwrap_or_default();
        let retry_after = details.retry_info().and_then(|info| info.retry_delay);
        Self { reason, message: status.message().to_owned(), violations, retry_after }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.reason.as_str(), self.message)
    }
}

impl std::error::Error for Problem {}

impl From<Problem> for Status {
    fn from(problem: Problem) -> Self {
        let mut details = ErrorDetails::new();
        details.set_error_info(problem.reason.as_str(), DOMAIN, HashMap::new());
        if !problem.violations.is_empty() {
            let fields: Vec<_> = bounds::violations(problem.violations).map(write_violation).collect();
            details.set_bad_request(fields);
        }
        if problem.retry_after.is_some() {
            details.set_retry_info(problem.retry_after);
        }
        Self::with_error_details(problem.reason.code(), bounds::message(&problem.message), details)
    }
}

fn write_violation(violation: Violation) -> FieldViolation {
    let mut field = FieldViolation::new(violation.path, violation.message);
    field.reason = violation.code;
    field
}

fn read_violations(details: &BadRequest) -> Vec<Violation> {
    let read = |field: &FieldViolation| Violation::new(&field.field, &field.reason, &field.description);
    details.field_violations.iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_survives_the_wire() {
        let problem = Problem::validation(vec![
            Violation::new("name", "too_long", "must have at most 255 characters"),
            Violation::new("folderId", "invalid", "must be an id"),
        ]);
        assert_eq!(Problem::from_status(&Status::from(problem.clone())), problem);

        let waiting = Problem::unavailable("content is down", Duration::from_secs(3));
        assert_eq!(Problem::from_status(&Status::from(waiting.clone())), waiting);
    }

    #[test]
    fn no_error_weighs_more_than_a_call_carries() {
        let long = "ü%x".repeat(3_000);
        let one = |path: &str| Violation::new(path, "too_long", "must have at most 255 characters");
        for problem in [
            Problem::version_conflict(long.clone()),
            Problem::version_conflict("\u{1}".repeat(9_000)),
            Problem::validation(vec![one("writes[1].createFile.name"); 1_000_000]),
            Problem::validation(vec![one(&long), one(&long), one("c")]),
            Problem::validation(vec![Violation::new(long.as_str(), long.as_str(), long.as_str())]),
        ] {
            let (count, message) = (problem.violations.len(), problem.message.clone());
            let status = Status::from(problem);
            let headers = status.clone().into_http::<tonic::body::Body>().into_parts().0.headers;
            let weight: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
            assert!(weight <= MAX_ERROR_BYTES, "{weight} bytes for {count} violations");
            let read = Problem::from_status(&status);
            assert!(count == 0 || !read.violations.is_empty(), "none of {count} violations is left");
            assert!(read.violations.len() <= MAX_VIOLATIONS);
            let kept = read.message.trim_end_matches('…');
            assert!(message.starts_with(kept) && kept.len() > 80.min(message.len() - 1), "{kept}");
        }
    }

    #[test]
    fn usual_errors_are_whole() {
        let several =
            (0..40).map(|place| Violation::new(format!("writes[{place}].name"), "required", "say a name"));
        let problem = Problem::validation(several.collect());
        assert_eq!(Problem::from_status(&Status::from(problem.clone())), problem);
    }

    #[test]
    fn every_reason_is_in_the_contract() {
        for (reason, name, code) in REASONS {
            let spelled = format!("ERROR_REASON_{name}");
            assert!(
                cairn_proto::common::v1::ErrorReason::from_str_name(&spelled).is_some(),
                "{name} is not in error_reason.proto"
            );
            assert_eq!(reason.code(), code);
            assert_eq!(Problem::from_status(&Problem::new(reason, "x").into()).reason, reason);
        }
    }

    #[test]
    fn a_foreign_status_is_read_by_its_code() {
        assert_eq!(
            Problem::from_status(&Status::unavailable("connection refused")).reason,
            Reason::Unavailable
        );
        assert_eq!(Problem::from_status(&Status::unknown("transport error")).reason, Reason::Unavailable);
        assert_eq!(Problem::from_status(&Status::internal("?")).reason, Reason::Internal);
    }
}
