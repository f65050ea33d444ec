//! The parts of a JSON-RPC message that the bridge needs.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::{Value, json};

pub(super) const PARSE_ERROR: i64 = -32700;
pub(super) const INVALID_REQUEST: i64 = -32600;
/// The protocol version in a message of the stateless protocol.
const VERSION: &str = "/params/_meta/io.modelcontextprotocol~1protocolVersion";
const INITIALIZE: &str = "initialize";

/// A message from the client, or a batch of them.
#[derive(Debug, PartialEq)]
pub(super) struct Message {
    /// The ids of the requests in it, each of which expects a response.
    pub(super) ids: Vec<Value>,
    is_batch: bool,
    is_initialize: bool,
    /// For stateless messages, whose headers repeat parts of the body.
    pub(super) version: Option<String>,
    pub(super) method: Option<String>,
    pub(super) name: Option<String>,
}

impl Message {
    /// Parses a line; fails if it is not JSON.
    pub(super) fn read(line: &[u8]) -> Result<Self, String> {
        let value: Value = serde_json::from_slice(line)
            .map_err(|error| format!("a line must be one JSON message: {error}"))?;
        let (is_batch, members) = match &value {
            Value::Array(members) => (true, members.as_slice()),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
                (false, std::slice::from_ref(&value))
            }
        };
        let id = |member: &Value| member.get("id").cloned().unwrap_or_default();
        let ids = members.iter().filter(|member| waits(member)).map(id).collect();
        let text = |place: &str| value.pointer(place).and_then(Value::as_str).map(ToOwned::to_owned);
        let (version, method) = (text(VERSION), text("/method"));
        let of_body = |text: Option<String>| text.filter(|_| version.is_some());
        let uri = || text("/params/uri").filter(|_| method.as_deref() == Some("resources/read"));
        let name = of_body(text("/params/name").or_else(uri));
        Ok(Self {
            // An empty batch is an invalid request, which gets an error response.
            ids: if is_batch && members.is_empty() { vec![Value::Null] } else { ids },
            is_batch,
            is_initialize: method.as_deref() == Some(INITIALIZE),
            method: of_body(method),
            name,
            version,
        })
    }

    /// The same error for each request in it.
    pub(super) fn failures(&self, code: i64, why: &str) -> Bytes {
        match self.ids.as_slice() {
            [only] if !self.is_batch => failure(only.clone(), code, why),
            several => {
                let answers: Value = several.iter().map(|id| failure_value(id.clone(), code, why)).collect();
                Bytes::from(answers.to_string())
            }
        }
    }

    /// The version that the response to `initialize` negotiates.
    pub(super) fn negotiated_by(&self, body: &[u8]) -> Option<String> {
        if !self.is_initialize {
            return None;
        }
        let answer: Value = serde_json::from_slice(body).ok()?;
        answer.pointer("/result/protocolVersion").and_then(Value::as_str).map(ToOwned::to_owned)
    }
}

/// Whether a response is expected: not for notifications and responses.
fn waits(member: &Value) -> bool {
    let is_response = member.get("result").is_some() || member.get("error").is_some();
    let is_notification = member.get("method").is_some() && member.get("id").is_none();
    !is_response && !is_notification
}

/// Whether it is a JSON-RPC response rather than an HTTP error.
pub(super) fn is_answer(body: &[u8]) -> bool {
    let is_message = |value: &Value| value.get("jsonrpc").is_some_and(|version| version == "2.0");
    match serde_json::from_slice::<Value>(body) {
        Ok(Value::Array(answers)) => !answers.is_empty() && answers.iter().all(is_message),
        Ok(answer) => is_message(&answer),
        Err(_) => false,
    }
}

/// JSON on one line; line breaks in strings are escaped anyway.
pub(super) fn on_one_line(body: Bytes) -> Bytes {
    if !body.iter().any(|byte| matches!(byte, b'\n' | b'\r')) {
        return body;
    }
    Bytes::from_iter(body.into_iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte }))
}

/// A JSON-RPC error as a line.
pub(super) fn failure(id: Value, code: i64, why: &str) -> Bytes {
    Bytes::from(failure_value(id, code, why).to_string())
}

fn failure_value(id: Value, code: i64, why: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": why}})
}

/// A text as a header value: verbatim if valid, else in the protocol's encoding.
pub(super) fn header_value(text: &str) -> Cow<'_, str> {
    let is_plain = text.bytes().all(|byte| matches!(byte, 0x20..=0x7e)) && text.trim() == text;
    if is_plain && !text.is_empty() && !text.starts_with("=?base64?") {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("=?base64?{}?=", STANDARD.encode(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: &Value) -> Message {
        Message::read(value.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn headers_repeat_what_a_modern_body_says() {
        let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28"});
        let call = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "x", "_meta": meta}});
        let message = read(&call);
        assert_eq!(message.version.as_deref(), Some("2026-07-28"));
        assert_eq!((message.method.as_deref(), message.name.as_deref()), (Some("tools/call"), Some("x")));
        let resource =
            json!({"id": 1, "method": "resources/read", "params": {"uri": "skill://a", "_meta": meta}});
        assert_eq!(read(&resource).name.as_deref(), Some("skill://a"));
        let skill = json!({"id": 1, "method": "skills/get", "params": {"uri": "skill://a", "_meta": meta}});
        assert_eq!(read(&skill).name, None);
        let legacy = read(&json!({"id": 1, "method": "tools/call", "params": {"name": "x"}}));
        assert_eq!((legacy.version, legacy.method, legacy.name), (None, None, None));
    }

    #[test]
    fn only_requests_wait_for_an_answer() {
        let batch = json!([
            {"id": "a", "method": "ping"}, {"method": "notifications/initialized"}, {"id": 3, "result": {}}, 5,
        ]);
        assert_eq!(read(&batch).ids, [json!("a"), Value::Null]);
        assert_eq!(read(&json!({"method": "notifications/cancelled"})).ids, Vec::<Value>::new());
        assert_eq!(read(&json!({"method": "x", "id": null})).ids, [Value::Null]);
        assert_eq!(read(&json!([])).ids, [Value::Null]);
        assert!(Message::read(b"{\"id\":").is_err());
    }

    #[test]
    fn every_request_of_a_batch_learns_of_a_failure() {
        let text = |value: Value| String::from_utf8(read(&value).failures(503, "w").to_vec()).unwrap();
        let one = "{\"error\":{\"code\":503,\"message\":\"w\"},\"id\":1,\"jsonrpc\":\"2.0\"}";
        assert_eq!(text(json!({"id": 1, "method": "ping"})), one);
        assert_eq!(text(json!([{"id": 1, "method": "ping"}])), format!("[{one}]"));
    }

    #[test]
    fn an_answer_is_told_from_an_error_of_http() {
        assert!(is_answer(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}"));
        assert!(is_answer(b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}]"));
        for other in ["", "[]", "{\"error\":\"UNAUTHORIZED\"}", "<html>"] {
            assert!(!is_answer(other.as_bytes()), "{other}");
        }
        assert_eq!(on_one_line(Bytes::from_static(b"{\r\n}")), Bytes::from_static(b"{  }"));
    }

    #[test]
    fn a_header_holds_any_text() {
        assert_eq!(header_value("get_file"), "get_file");
        assert_eq!(header_value("dépôt"), "=?base64?ZMOpcMO0dA==?=");
        for odd in ["", " a", "=?base64?x?="] {
            assert!(header_value(odd).starts_with("=?base64?"), "{odd}");
        }
    }

    #[test]
    fn the_version_is_that_of_the_answer() {
        let asked = read(&json!({"id": 1, "method": "initialize", "params": {"protocolVersion": "2030"}}));
        let body = br#"{"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": "2025-11-25"}}"#;
        assert_eq!(asked.negotiated_by(body).as_deref(), Some("2025-11-25"));
        assert_eq!(read(&json!({"id": 1, "method": "ping"})).negotiated_by(body), None);
    }
}
