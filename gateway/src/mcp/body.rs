//! What a body asks for, before anything of it is run.

use http::HeaderMap;
use serde_json::Value;

use super::batch;
use super::failure::Failure;

/// A body that was read.
#[derive(Debug)]
pub(super) enum Body {
    /// One message, whatever it is.
    Single(Value),
    /// Several, of which each may be run.
    Batch(Vec<Value>),
    /// Nothing of it is run.
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

    /// Its messages.
    pub(super) fn messages(&self) -> &[Value] {
        match self {
            Self::Single(message) => std::slice::from_ref(message),
            Self::Batch(members) => members,
            Self::Refused(_) => &[],
        }
    }
}
