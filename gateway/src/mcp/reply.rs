//! Answers: JSON-RPC messages and the HTTP status of each, by era.

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde_json::{Map, Value, json};

use super::era::Era;

/// The media type does not matter to a parser; -32768 to -32000 is JSON-RPC's and MCP's own range.
const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;
const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;
const HEADER_MISMATCH: i64 = -32020;
const UNSUPPORTED_VERSION: i64 = -32022;
/// Ours: outside of what is reserved, and easy to guess.
const RATE_LIMITED: i64 = 429;

/// Why there is no result.
#[derive(Debug, PartialEq)]
pub(super) struct Failure {
    pub(super) code: i64,
    message: String,
    data: Option<Value>,
    /// The HTTP status for a modern peer, and for any peer when the message itself was refused.
    pub(super) status: StatusCode,
}

impl Failure {
    fn new(code: i64, status: StatusCode, message: impl Into<String>) -> Self {
        Self { code, status, message: message.into(), data: None }
    }

    pub(super) fn parse_error(error: &serde_json::Error) -> Self {
        Self::new(PARSE_ERROR, StatusCode::BAD_REQUEST, format!("the body is not JSON: {error}"))
    }

    pub(super) fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(INVALID_REQUEST, StatusCode::BAD_REQUEST, message)
    }

    pub(super) fn method_not_found(method: &str) -> Self {
        let shown: String = method.chars().take(64).collect();
        Self::new(METHOD_NOT_FOUND, StatusCode::NOT_FOUND, format!("Method not found: {shown}"))
    }

    /// The request is well formed and its parameters are not: HTTP sees nothing wrong.
    pub(super) fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, StatusCode::OK, message)
    }

    pub(super) fn header_mismatch(message: impl Into<String>) -> Self {
        Self::new(HEADER_MISMATCH, StatusCode::BAD_REQUEST, message)
    }

    pub(super) fn unsupported_version(requested: &str, supported: &[&str]) -> Self {
        let shown: String = requested.chars().take(32).collect();
        let data = json!({"supported": supported, "requested": shown});
        let message = format!("Unsupported protocol version; this server speaks {}", supported.join(", "));
        Self { data: Some(data), ..Self::new(UNSUPPORTED_VERSION, StatusCode::BAD_REQUEST, message) }
    }

    /// A window of the token is full.
    pub(super) fn rate_limited(message: impl Into<String>, data: Value) -> Self {
        Self { data: Some(data), ..Self::new(RATE_LIMITED, StatusCode::TOO_MANY_REQUESTS, message) }
    }

    /// The same failure of a message that breaks the protocol itself.
    pub(super) fn bad_request(self) -> Self {
        Self { status: StatusCode::BAD_REQUEST, ..self }
    }
}

/// An HTTP answer.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: StatusCode,
    pub(super) body: Option<Value>,
}

impl Reply {
    /// A notification or a response was taken.
    pub(super) fn accepted() -> Self {
        Self { status: StatusCode::ACCEPTED, body: None }
    }

    /// The message was refused before its method was asked.
    pub(super) fn refusal(id: Value, failure: Failure) -> Self {
        Self { status: failure.status, body: Some(failure_message(id, failure)) }
    }

    /// What the method gave. Peers of the 2025 era read the error from the body of a 200.
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
            Some(body) => (self.status, Json(body)).into_response(),
            None => self.status.into_response(),
        }
    }
}

/// The JSON-RPC message of an answer.
pub(super) fn message(era: Era, id: Value, answer: Result<Map<String, Value>, Failure>) -> Value {
    match answer {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": era.stamped(result)}),
        Err(failure) => failure_message(id, failure),
    }
}

/// The JSON-RPC message of a failure.
pub(super) fn failure_message(id: Value, failure: Failure) -> Value {
    let mut error = json!({"code": failure.code, "message": failure.message});
    if let (Some(data), Some(fields)) = (failure.data, error.as_object_mut()) {
        fields.insert("data".to_owned(), data);
    }
    json!({"jsonrpc": "2.0", "id": id, "error": error})
}
