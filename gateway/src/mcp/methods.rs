//! The methods of the protocol.

use serde_json::{Map, Value, json};

use super::envelope::Request;
use super::era::{self, Era};
use super::failure::Failure;
use super::reply::Cache;
use super::{resources, skills, tools};
use crate::operations::Context;

/// The method that opens a session of the legacy era.
pub(super) const INITIALIZE: &str = "initialize";
/// What agents read before anything else.
const INSTRUCTIONS: &str = include_str!("instructions.md");

/// Answers one request.
pub(super) async fn answer(
    context: &Context,
    era: Era,
    request: Request,
) -> Result<Map<String, Value>, Failure> {
    if request.method == "tools/call" {
        return tools::call(context, request).await;
    }
    let request = &request;
    match (request.method.as_str(), era) {
        (INITIALIZE, Era::Legacy) => initialize(request),
        ("ping", Era::Legacy) => Ok(Map::new()),
        ("server/discover", Era::Modern) => Ok(discover()),
        ("tools/list", _) => list_tools(request),
        // Seldom asked for, and large: every request would carry their room around.
        ("resources/list", _) => Box::pin(resources::list(context, request)).await,
        ("resources/templates/list", _) => resources::templates(request),
        ("resources/read", _) => Box::pin(resources::read(context, era, request)).await,
        ("resources/directory/read", _) => skills::read_folder(request),
        ("skills/list", _) => skills::list(request),
        ("skills/get", _) => skills::get(request),
        _ => Err(Failure::method_not_found(&request.method)),
    }
}

fn initialize(request: &Request) -> Result<Map<String, Value>, Failure> {
    let requested = request.required("protocolVersion")?;
    let result = json!({
        "protocolVersion": era::negotiated(requested),
        "capabilities": capabilities(),
        "serverInfo": era::server_info(),
        "instructions": INSTRUCTIONS,
    });
    Ok(result.as_object().cloned().unwrap_or_default())
}

fn discover() -> Map<String, Value> {
    Cache::PUBLIC.completed(json!({
        "supportedVersions": era::SUPPORTED,
        "capabilities": capabilities(),
        "instructions": INSTRUCTIONS,
    }))
}

fn list_tools(request: &Request) -> Result<Map<String, Value>, Failure> {
    request.no_cursor()?;
    Ok(Cache::PUBLIC.completed(json!({"tools": tools::list()})))
}

/// What changes, changes with the release: nobody is told of it.
fn capabilities() -> Value {
    json!({
        "tools": {"listChanged": false},
        "resources": {"listChanged": false, "subscribe": false},
        "extensions": {skills::EXTENSION: {"directoryRead": true}},
    })
}
