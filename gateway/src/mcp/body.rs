//! The parsed body of a request, before any of it is run.

use http::HeaderMap;
use serde_json::Value;

use super::batch;
use super::failure::Failure;

/// A parsed body.
#[derive(Debug)]
pub(super) enum Body {
    /// A single message, valid or not.
    Single(Value),
    /// A batch that passed its checks.
    Batch(Vec<Value>),
    /// Rejected as a whole.
    Refused(Failure),
}

impl Body {
    pub(super) fn of(headers: &HeaderMap, read: serde_json::Result<Value>) -> Self {
        match read {
            Ok(Value::Array(members)) => match batch::check(headers, &members) {
                Ok(()) => Self::Batch(members),
                Err(failure) => Self::Refused(failure),
            },
            Ok(message) => Self::Single(message),
            Err(error) => Self::Refused(Failure::parse_error(&error)),
        }
    }

    /// The messages.
    pub(super) fn messages(&self) -> &[Value] {
        match self {
            Self::Single(message) => std::slice::from_ref(message),
            Self::Batch(members) => members,
            Self::Refused(_) => &[],
        }
    }
}
