//! An MCP client for both protocol eras, low-level enough to send what no SDK would.

use serde_json::{Value, json};

use super::callers::Caller;
use super::http::{Reply, Request, items, text};

/// The modern version, sent in every request.
pub(crate) const MODERN: &str = "2026-07-28";
/// The versions that `initialize` negotiates, newest first.
pub(crate) const LEGACY: [&str; 3] = ["2025-11-25", "2025-06-18", "2025-03-26"];

const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// The `_meta` key that carries a write's position in the change feed.
pub(crate) const META_CHANGE: &str = "cairn/change";

/// A POST to the endpoint with the headers that every client sends.
pub(crate) fn post(caller: &impl Caller) -> Request {
    caller.post("/mcp").header("accept", "application/json, text/event-stream")
}

/// A JSON-RPC request.
pub(crate) fn message(id: u64, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// Sends a request as a client of the handshake era does.
pub(crate) async fn legacy(caller: &impl Caller, method: &str, params: Value) -> Reply {
    post(caller).header("mcp-protocol-version", LEGACY[0]).json(message(1, method, &params)).await
}

/// Sends a request as a client of the stateless era does.
pub(crate) async fn modern(caller: &impl Caller, method: &str, params: Value) -> Reply {
    let params = with_modern_meta(params);
    let mut request = post(caller).header("mcp-protocol-version", MODERN).header("mcp-method", method);
    let name = params.get("name").or_else(|| params.get("uri")).and_then(Value::as_str);
    if let Some(name) = name {
        request = request.header("mcp-name", name);
    }
    request.json(message(1, method, &params)).await
}

/// The parameters with the `_meta` that the stateless era requires.
pub(crate) fn with_modern_meta(mut params: Value) -> Value {
    let meta = &mut params["_meta"];
    meta[META_VERSION] = json!(MODERN);
    meta[META_CAPABILITIES] = json!({});
    params
}

/// The `result` of a request that must succeed.
#[track_caller]
pub(crate) fn result(reply: Reply) -> Value {
    let body = reply.expect(200).json();
    assert_eq!((&body["jsonrpc"], &body["id"]), (&json!("2.0"), &json!(1)), "{body}");
    assert!(body.get("error").is_none() && body["result"].is_object(), "{body}");
    body["result"].clone()
}

/// The JSON-RPC error code of a request that must fail.
#[track_caller]
pub(crate) fn error_code(body: &Value) -> i64 {
    assert!(body.get("result").is_none(), "{body}");
    assert!(body["error"]["message"].as_str().is_some_and(|text| !text.is_empty()), "{body}");
    body["error"]["code"].as_i64().unwrap_or_else(|| panic!("no error in {body}"))
}

/// Calls a tool that must succeed; returns the whole result.
pub(crate) async fn call(caller: &impl Caller, tool: &str, arguments: Value) -> Value {
    let answer = result(legacy(caller, "tools/call", json!({"name": tool, "arguments": arguments})).await);
    assert_ne!(answer["isError"], json!(true), "{tool}: {answer}");
    answer
}

/// Calls a tool that must succeed; returns its text parsed as JSON. A list may be followed by a hint on how to
/// continue.
pub(crate) async fn call_json(caller: &impl Caller, tool: &str, arguments: Value) -> Value {
    // Further content parts are notes about the result, not part of it.
    let answer_text = text(&call(caller, tool, arguments).await["content"][0], "text");
    let mut values = serde_json::Deserializer::from_str(&answer_text).into_iter();
    let value = values.next().unwrap_or_else(|| panic!("{tool} says nothing"));
    value.unwrap_or_else(|error| panic!("{tool}: not JSON ({error}): {answer_text}"))
}

/// Calls a tool that must fail with a tool error; returns the text for the agent.
pub(crate) async fn call_error(caller: &impl Caller, tool: &str, arguments: Value) -> String {
    let answer = result(legacy(caller, "tools/call", json!({"name": tool, "arguments": arguments})).await);
    assert_eq!(answer["isError"], json!(true), "{tool}: {answer}");
    text_of(&answer)
}

/// The text that an agent reads.
#[track_caller]
pub(crate) fn text_of(result: &Value) -> String {
    let parts = items(&result["content"]);
    let texts: Vec<String> =
        parts.iter().filter(|part| part["type"] == "text").map(|part| text(part, "text")).collect();
    assert!(!texts.is_empty(), "no text in {result}");
    texts.join("\n")
}
