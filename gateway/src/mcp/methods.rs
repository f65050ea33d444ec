//! The methods of the protocol.

use serde_json::{Map, Value, json};

use super::envelope::Request;
use super::era::{self, Era};
use super::failure::Failure;
use super::reply::Cache;
use super::{completion, prompts, resources, skills, tools};
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
        ("tools/list", _) => list_tools(era, request),
        // Seldom asked for, and large: every request would carry their room around.
        ("resources/list", _) => Box::pin(resources::list(context, request)).await,
        ("resources/templates/list", _) => resources::templates(request),
        ("resources/read", _) => Box::pin(resources::read(context, era, request)).await,
        ("prompts/list", _) => Box::pin(prompts::list(context, request)).await,
        ("prompts/get", _) => Box::pin(prompts::get(context, request)).await,
        ("completion/complete", _) => Box::pin(completion::complete(context, request)).await,
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
        "capabilities": capabilities(Era::Legacy),
        "serverInfo": era::server_info(),
        "instructions": INSTRUCTIONS,
    });
    Ok(result.as_object().cloned().unwrap_or_default())
}

fn discover() -> Map<String, Value> {
    Cache::PUBLIC.completed(json!({
        "supportedVersions": era::SUPPORTED,
        "capabilities": capabilities(Era::Modern),
        "instructions": INSTRUCTIONS,
    }))
}

fn list_tools(era: Era, request: &Request) -> Result<Map<String, Value>, Failure> {
    request.no_cursor()?;
    let tools = match era {
        Era::Legacy => tools::legacy_list(),
        Era::Modern => tools::list(),
    };
    Ok(Cache::PUBLIC.completed(json!({"tools": tools})))
}

/// Tools change with the release. That the rest changes is told to peers that can hear it without a session: in the modern
/// era, as the answer of `subscriptions/listen`. In the legacy one it would take a stream that belongs to a session.
fn capabilities(era: Era) -> Value {
    let is_told = era == Era::Modern;
    json!({
        "tools": {"listChanged": false},
        "resources": {"listChanged": is_told, "subscribe": is_told},
        "prompts": {"listChanged": is_told},
        "completions": {},
        "extensions": {skills::EXTENSION: {"directoryRead": true}},
    })
}
