//! Documents to fill a workspace with, and a search over them.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, bail};
use reqwest::Method;
use serde_json::{Value, json};

use super::api::{Api, accepted};
use super::markdown;

/// The vocabulary of generated documents, by descending frequency.
const WORDS: [&str; 24] = [
    "service", "request", "server", "index", "folder", "change", "token", "answer", "search", "position",
    "release", "deploy", "staging", "owner", "write", "cache", "query", "schema", "backup", "metric",
    "trace", "budget", "retry", "quorum",
];
const SEARCHES_WAITED: u32 = 6;
const SECTIONS: u64 = 6;
const WORDS_PER_SECTION: u64 = 60;

/// Writes the Markdown files below a folder, or that many generated ones, and waits until all are indexed.
pub(crate) async fn fill(api: &Api, folder: Option<&Path>, generated: u64) -> anyhow::Result<usize> {
    let mut count = 0;
    let mut last = None;
    match folder {
        Some(folder) => {
            for path in markdown::files(folder)? {
                let name =
                    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
                last = Some(api.create_file(&name, &fs::read_to_string(&path)?).await?);
                count += 1;
            }
        }
        None => {
            for number in 0..generated {
                last = Some(api.create_file(&format!("document-{number}.md"), &document(number)).await?);
                count += 1;
            }
        }
    }
    if let Some((id, change)) = last {
        wait_until_indexed(api, &id, &change).await?;
    }
    Ok(count)
}

/// A search waits at most 10 s for a write, and reports when it is not indexed by then.
async fn wait_until_indexed(api: &Api, id: &str, change: &str) -> anyhow::Result<()> {
    for _ in 0..SEARCHES_WAITED {
        let answer = ask(api, "service", Some(change)).await?;
        let behind = answer.get("coverage").and_then(Value::as_array).is_some_and(|notes| !notes.is_empty());
        if !behind {
            return Ok(());
        }
    }
    bail!("the file {id} is not indexed in time")
}

/// The ids of the files that a search finds.
pub(crate) async fn search(api: &Api, query: &str, change: Option<&str>) -> anyhow::Result<Vec<String>> {
    let answer = ask(api, query, change).await?;
    let results = answer.get("results").and_then(Value::as_array).context("an answer without results")?;
    let ids = results.iter().filter_map(|result| result.get("documentId")?.as_str().map(ToOwned::to_owned));
    Ok(ids.collect())
}

async fn ask(api: &Api, query: &str, change: Option<&str>) -> anyhow::Result<Value> {
    let mut request =
        api.request(Method::POST, "/api/v1/search_context").json(&json!({"query": query, "limit": 5}));
    if let Some(change) = change {
        request = request.header("X-Cairn-Change", change).header("X-Cairn-Wait-Ms", "10000");
    }
    Ok(accepted(request).await?.json().await?)
}

/// About 2.5 kB of Markdown with headings, deterministic for a number.
fn document(number: u64) -> String {
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut text = format!("# Document {number}\n");
    for section in 0..SECTIONS {
        text.push_str(&format!("\n## Section {section}\n\n"));
        for _ in 0..WORDS_PER_SECTION {
            // xorshift64: any uniform generator is sufficient.
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let place = usize::try_from((state % 24).min(state / 24 % 24)).unwrap_or_default();
            text.push_str(WORDS.get(place).copied().unwrap_or_default());
            text.push(' ');
        }
        text.push('\n');
    }
    text
}
