//! The methods of the protocol.

use serde_json::{Map, Value, json};

use super::envelope::Request;
use super::era::{self, Era};
use super::reply::Failure;
use super::tools;
use crate::operations::Context;

/// The method that opens a session of the legacy era.
pub(super) const INITIALIZE: &str = "initialize";
/// What agents read before anything else.
const INSTRUCTIONS: &str = include_str!("instructions.md");
/// The list changes with the release and never within it; after a deployment it may be this old.
const LIST_TTL_MS: u64 = 300_000;

/// Answers one request.
pub(super) async fn answer(
    context: &Context,
    era: Era,
    request: &Request,
) -> Result<Map<String, Value>, Failure> {
    match (request.method.as_str(), era) {
        (INITIALIZE, Era::Legacy) => initialize(request),
        ("ping", Era::Legacy) => Ok(Map::new()),
        ("server/discover", Era::Modern) => Ok(discover()),
        ("tools/list", _) => list_tools(era, request),
        ("tools/call", _) => tools::call(context, request).await,
        _ => Err(Failure::method_not_found(&request.method)),
    }
}

fn initialize(request: &Request) -> Result<Map<String, Value>, Failure> {
    let Some(requested) = request.text("protocolVersion") else {
        return Err(Failure::invalid_params("initialize: `protocolVersion` must be a string"));
    };
    Ok(fields(json!({
        "protocolVersion": era::negotiated(requested),
        "capabilities": capabilities(),
        "serverInfo": era::server_info(),
        "instructions": INSTRUCTIONS,
    })))
}

fn discover() -> Map<String, Value> {
    cacheable(fields(json!({
        "supportedVersions": era::SUPPORTED,
        "capabilities": capabilities(),
        "instructions": INSTRUCTIONS,
    })))
}

fn list_tools(era: Era, request: &Request) -> Result<Map<String, Value>, Failure> {
    if request.params.get("cursor").is_some_and(|cursor| !cursor.is_null()) {
        return Err(Failure::invalid_params("tools/list: there is one page, so no cursor is valid"));
    }
    let list = fields(json!({"tools": tools::list()}));
    Ok(if era == Era::Modern { cacheable(list) } else { list })
}

fn capabilities() -> Value {
    json!({"tools": {"listChanged": false}})
}

/// What is the same for every caller may be kept and shared.
fn cacheable(mut result: Map<String, Value>) -> Map<String, Value> {
    result.insert("ttlMs".to_owned(), Value::from(LIST_TTL_MS));
    result.insert("cacheScope".to_owned(), Value::from("public"));
    result
}

fn fields(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Map::new(),
    }
}
