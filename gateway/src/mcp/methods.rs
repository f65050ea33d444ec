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
/// The server instructions that agents read first.
const INSTRUCTIONS: &str = include_str!("instructions.md");

/// Dispatches one request.
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
        // Boxed: rare and large, and every request's future would reserve space for them.
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

/// Tools change only with a release. Other list changes are announced to peers of the modern era, in the response of
/// `subscriptions/listen`; the legacy era would need a stream bound to a session.
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
