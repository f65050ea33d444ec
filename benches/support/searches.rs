//! Searches of a workspace, and waiting until the index has caught up.

use anyhow::bail;
use reqwest::Method;
use serde_json::{Value, json};

use super::api::{Api, accepted};

/// The number of polls; each waits for at most 10 s.
const WAITS: usize = 120;

/// A search for ten results, which waits until the index has reached that change.
pub(crate) async fn ask(api: &Api, query: &str, change: Option<&str>) -> anyhow::Result<Value> {
    let mut request =
        api.request(Method::POST, "/api/v1/search_context").json(&json!({"query": query, "limit": 10}));
    if let Some(change) = change {
        request = request.header("X-Cairn-Change", change).header("X-Cairn-Wait-Ms", "10000");
    }
    Ok(accepted(request).await?.json().await?)
}

/// Waits until the index has reached that change.
pub(crate) async fn wait_until_indexed(api: &Api, change: Option<&str>) -> anyhow::Result<()> {
    for _ in 0..WAITS {
        let answer = ask(api, "service", change).await?;
        if answer.get("coverage").and_then(Value::as_array).is_none_or(Vec::is_empty) {
            return Ok(());
        }
    }
    bail!("not all documents are indexed in time")
}
