//! Waits until searches find what was written.

use std::time::{Duration, Instant};

use anyhow::ensure;
use reqwest::Method;
use serde_json::{Value, json};

use super::api::{Api, accepted};

const TIMEOUT: Duration = Duration::from_secs(600);

/// The strategy of a search.
#[derive(Debug, Clone, Copy)]
pub(crate) enum By {
    Words,
    /// And words.
    Meaning,
}

impl By {
    const fn strategy(self) -> &'static str {
        match self {
            Self::Words => "keyword",
            Self::Meaning => "hybrid",
        }
    }

    /// The interval between two searches. A keyword search waits for the index itself; a semantic one does not wait for vectors,
    /// and competes with the embedder for CPU time.
    const fn pause(self) -> Duration {
        match self {
            Self::Words => Duration::from_millis(20),
            Self::Meaning => Duration::from_millis(200),
        }
    }
}

/// Writes a last file, in the root; returns its change token, which covers all earlier writes.
pub(crate) async fn mark(api: &Api, name: &str) -> anyhow::Result<String> {
    let (_, change) = api.create_file(name, "# Last\n\nNothing comes after it.\n").await?;
    Ok(change)
}

/// Waits until searches find everything that was written up to that change.
pub(crate) async fn until_found(api: &Api, by: By, change: &str) -> anyhow::Result<()> {
    let began = Instant::now();
    while is_behind(&ask(api, by, "nothing comes after", Some(change)).await?) {
        ensure!(began.elapsed() < TIMEOUT, "not all is indexed after {TIMEOUT:?}");
        tokio::time::sleep(by.pause()).await;
    }
    Ok(())
}

/// Fails unless a search finds the word.
pub(crate) async fn ensure_found(api: &Api, word: &str) -> anyhow::Result<()> {
    let answer = ask(api, By::Words, word, None).await?;
    let is_found = answer.get("results").and_then(Value::as_array).is_some_and(|found| !found.is_empty());
    ensure!(is_found, "a search does not find `{word}`");
    Ok(())
}

fn is_behind(answer: &Value) -> bool {
    let notes = answer.get("coverage").and_then(Value::as_array);
    notes.is_some_and(|notes| {
        notes.iter().any(|note| note.get("code").and_then(Value::as_str) == Some("index_behind"))
    })
}

async fn ask(api: &Api, by: By, query: &str, change: Option<&str>) -> anyhow::Result<Value> {
    let body = json!({"query": query, "limit": 5, "mode": "fast", "strategy": by.strategy()});
    let mut request = api.request(Method::POST, "/api/v1/search_context").json(&body);
    if let Some(change) = change {
        request = request.header("X-Cairn-Change", change).header("X-Cairn-Wait-Ms", "10000");
    }
    Ok(accepted(request).await?.json().await?)
}
