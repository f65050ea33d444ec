//! Searches of a workspace, and when they see all that was written.

use anyhow::bail;
use reqwest::Method;
use serde_json::{Value, json};

use super::api::{Api, accepted};

/// How often it is asked whether all is indexed; each time waits for 10 s at the most.
const WAITS: usize = 120;

/// A search for ten results, which waits for what was written up to a change.
pub(crate) async fn ask(api: &Api, query: &str, change: Option<&str>) -> anyhow::Result<Value> {
    let mut request =
        api.request(Method::POST, "/api/v1/search_context").json(&json!({"query": query, "limit": 10}));
    if let Some(change) = change {
        request = request.header("X-Cairn-Change", change).header("X-Cairn-Wait-Ms", "10000");
    }
    Ok(accepted(request).await?.json().await?)
}

/// Waits until searches see all that was written up to that change.
pub(crate) async fn wait_until_indexed(api: &Api, change: Option<&str>) -> anyhow::Result<()> {
    for _ in 0..WAITS {
        let answer = ask(api, "service", change).await?;
        if answer.get("coverage").and_then(Value::as_array).is_none_or(Vec::is_empty) {
            return Ok(());
        }
    }
    bail!("not all documents are indexed in time")
}
