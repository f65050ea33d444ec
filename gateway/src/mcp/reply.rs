//! Responses: JSON-RPC messages with their HTTP status, by era.

use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde_json::{Map, Value};

use super::era::Era;
use super::failure::{Failure, failure_message};
use crate::json_body::JsonBody;

/// Public results change only with a release; this is how stale they may be after a deployment.
const LIST_TTL_MS: u64 = 300_000;

/// The cache lifetime and scope of a result.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cache {
    ttl_ms: u64,
    scope: &'static str,
}

impl Cache {
    /// The same for every caller.
    pub(super) const PUBLIC: Self = Self { ttl_ms: LIST_TTL_MS, scope: "public" };
    /// Specific to the caller, and never cached.
    pub(super) const PRIVATE: Self = Self { ttl_ms: 0, scope: "private" };

    /// The fields of a result with its cache fields added.
    pub(super) fn completed(self, result: Value) -> Map<String, Value> {
        let mut fields = match result {
            Value::Object(fields) => fields,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                Map::new()
            }
        };
        fields.insert("ttlMs".to_owned(), Value::from(self.ttl_ms));
        fields.insert("cacheScope".to_owned(), Value::from(self.scope));
        fields
    }
}

/// An HTTP response.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: StatusCode,
    pub(super) body: Option<Value>,
}

impl Reply {
    /// A notification or a response was accepted.
    pub(super) fn accepted() -> Self {
        Self { status: StatusCode::ACCEPTED, body: None }
    }

    /// The message was rejected before its method ran.
    pub(super) fn refusal(id: Value, failure: Failure) -> Self {
        Self { status: failure.status, body: Some(failure_message(id, failure)) }
    }

    /// The outcome of the method. Peers of the 2025 era expect errors in the body of a 200.
    pub(super) fn answer(era: Era, id: Value, answer: Result<Map<String, Value>, Failure>) -> Self {
        let status = match (&answer, era) {
            (Err(failure), Era::Modern) => failure.status,
            (Err(_), Era::Legacy) | (Ok(_), _) => StatusCode::OK,
        };
        Self { status, body: Some(message(era, id, answer)) }
    }

    pub(super) fn batch(answers: Vec<Value>) -> Self {
        Self { status: StatusCode::OK, body: Some(Value::Array(answers)) }
    }
}

impl IntoResponse for Reply {
    fn into_response(self) -> Response {
        match self.body {
            Some(body) => (self.status, JsonBody(body)).into_response(),
            None => self.status.into_response(),
        }
    }
}

/// The JSON-RPC message of an outcome.
pub(super) fn message(era: Era, id: Value, answer: Result<Map<String, Value>, Failure>) -> Value {
    let result = match answer {
        Ok(result) => era.stamped(result),
        Err(failure) => return failure_message(id, failure),
    };
    // `json!` would copy the result, which may be a whole document.
    let fields = [("jsonrpc", Value::from("2.0")), ("id", id), ("result", result)];
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
