//! JSON-RPC errors.
//!
//! Like `envelope` and `era` it depends on nothing else in the gateway: `fuzz/` compiles the three separately.

use http::StatusCode;
use serde_json::{Value, json};

/// -32768 to -32000 are reserved by JSON-RPC and MCP.
const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;
const METHOD_NOT_FOUND: i64 = -32601;
pub(super) const INVALID_PARAMS: i64 = -32602;
const HEADER_MISMATCH: i64 = -32020;
const UNSUPPORTED_VERSION: i64 = -32022;
/// Our own codes: outside of the reserved range, and equal to the HTTP status.
const RATE_LIMITED: i64 = 429;
const OVERLOADED: i64 = 503;
/// How much of an unknown URI is echoed.
const MAX_URI_LENGTH: usize = 512;

/// A JSON-RPC error with its HTTP status.
#[derive(Debug, PartialEq)]
pub(super) struct Failure {
    pub(super) code: i64,
    message: String,
    data: Option<Value>,
    /// The HTTP status for a modern peer, and for any peer if the message itself was rejected.
    pub(super) status: StatusCode,
}

impl Failure {
    pub(super) fn new(code: i64, status: StatusCode, message: impl Into<String>) -> Self {
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

    /// The request is well formed but its parameters are not: HTTP status 200.
    pub(super) fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, StatusCode::OK, message)
    }

    pub(super) fn wrong_cursor() -> Self {
        Self::invalid_params("the cursor must be a `nextCursor` as it came; leave it out to begin anew")
    }

    /// No resource visible to the caller has that URI.
    pub(super) fn unknown_resource(code: i64, uri: &str) -> Self {
        let message = "Resource not found: resources/list and resources/templates/list say what there is";
        Self::new(code, StatusCode::OK, message).about(uri)
    }

    /// The same failure with the URI it is about.
    pub(super) fn about(self, uri: &str) -> Self {
        let shown: String = uri.chars().take(MAX_URI_LENGTH).collect();
        Self { data: Some(json!({"uri": shown})), ..self }
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

    /// A window of the token is exhausted.
    pub(super) fn rate_limited(message: impl Into<String>, data: Value) -> Self {
        Self { data: Some(data), ..Self::new(RATE_LIMITED, StatusCode::TOO_MANY_REQUESTS, message) }
    }

    /// The process is overloaded.
    pub(super) fn overloaded(message: &str, retry_after_seconds: u64) -> Self {
        let data = json!({"retryAfterSeconds": retry_after_seconds});
        Self { data: Some(data), ..Self::new(OVERLOADED, StatusCode::SERVICE_UNAVAILABLE, message) }
    }

    /// The same failure for a message that violates the protocol itself.
    pub(super) fn bad_request(self) -> Self {
        Self { status: StatusCode::BAD_REQUEST, ..self }
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
