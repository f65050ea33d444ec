//! A client of the public API.

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use reqwest::header::ACCEPT;
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde::Deserialize;
use serde_json::json;

use super::options::Strategy;
use crate::client::Connection;

/// The maximum number of results of a search (spec 4.4).
pub(super) const MAX_RESULTS: usize = 50;

const CHANGE: &str = "x-cairn-change";
const WAIT_MS: (&str, &str) = ("x-cairn-wait-ms", "10000");
/// The `Accept` header of a client of `/mcp`.
const MCP_TYPES: &str = "application/json, text/event-stream";
const INDEX_BEHIND: &str = "index_behind";
/// The note of an answer that was ranked by words only, because the query could not be embedded: a transformer that is
/// busy embedding documents is too slow for queries at times.
const PROVIDER_UNAVAILABLE: &str = "provider_unavailable";
/// How long indexing all documents may take.
const INDEXING_LIMIT: Duration = Duration::from_secs(30 * 60);
/// How often a call is retried when the service asks for that.
const MAX_RETRIES: usize = 20;
const PAUSE: Duration = Duration::from_secs(1);
/// How often the progress of indexing is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// A caller with a token or a grant.
pub(super) struct Api {
    connection: Connection,
}

/// A search hit.
#[derive(Debug, Clone)]
pub(super) struct Hit {
    pub(super) document_id: String,
    pub(super) path: String,
    pub(super) start_line: u32,
    pub(super) end_line: u32,
    pub(super) score: f64,
}

#[derive(Deserialize)]
struct Created {
    id: String,
}

#[derive(Deserialize)]
struct Listed {
    id: String,
    path: String,
}

#[derive(Deserialize)]
struct Answer {
    results: Vec<Found>,
    coverage: Vec<Note>,
}

#[derive(Deserialize)]
struct Note {
    code: String,
    message: String,
}

impl Answer {
    fn note(&self, code: &str) -> Option<&Note> {
        self.coverage.iter().find(|note| note.code == code)
    }
}

/// The result of the tool `get_workspace_overview`, as far as it is used here.
#[derive(Deserialize)]
struct Called {
    result: ToolResult,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolResult {
    structured_content: Overview,
}

#[derive(Deserialize)]
struct Overview {
    indexing: Indexing,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Indexing {
    embedder: Option<String>,
    next_embedder: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Found {
    document_id: String,
    score: f64,
    citation: Citation,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Citation {
    path: String,
    #[serde(default)]
    start_line: u32,
    #[serde(default)]
    end_line: u32,
}

impl Api {
    pub(super) const fn new(connection: Connection) -> Self {
        Self { connection }
    }

    /// Creates a folder in the root or in `parent`; returns its id.
    pub(super) async fn create_folder(&self, name: &str, parent: Option<&str>) -> anyhow::Result<String> {
        let body = json!({"name": name, "parentId": parent});
        let request = self.request(Method::POST, "/api/v1/folders").json(&body);
        Ok(self.accepted(request).await?.json::<Created>().await?.id)
    }

    /// Moves a folder with its contents to the trash.
    pub(super) async fn delete_folder(&self, id: &str) -> anyhow::Result<()> {
        self.accepted(self.request(Method::DELETE, &format!("/api/v1/folders/{id}"))).await?;
        Ok(())
    }

    /// Creates a file; returns its id and the position of the write.
    pub(super) async fn create_file(
        &self,
        name: &str,
        file_type: &str,
        content: &str,
        folder: Option<&str>,
    ) -> anyhow::Result<(String, String)> {
        let body = json!({"name": name, "content": content, "fileType": file_type, "folderId": folder});
        let response = self.accepted(self.request(Method::POST, "/api/v1/files").json(&body)).await?;
        let change = response.headers().get(CHANGE).and_then(|value| value.to_str().ok());
        let change = change.context("the service answers a write without X-Cairn-Change")?.to_owned();
        Ok((response.json::<Created>().await?.id, change))
    }

    /// The content of the file with that path or id.
    pub(super) async fn read_file(&self, path: &str) -> anyhow::Result<String> {
        let mut next = "/api/v1/files".to_owned();
        loop {
            let response = self.accepted(self.request(Method::GET, &next)).await?;
            let link = response.headers().get("link").and_then(|value| value.to_str().ok()).and_then(next_of);
            let files: Vec<Listed> = response.json().await?;
            let named = |file: &&Listed| file.id == path || file.path.trim_start_matches('/') == path;
            if let Some(file) = files.iter().find(named) {
                let raw = self.request(Method::GET, &format!("/api/v1/files/{}/raw", file.id));
                return Ok(self.accepted(raw).await?.text().await?);
            }
            match link {
                Some(link) => next = link,
                None => bail!("the workspace has no file `{path}`"),
            }
        }
    }

    /// Waits until searches see that write, by words and by meaning.
    pub(super) async fn wait_for(&self, change: &str) -> anyhow::Result<()> {
        let asked = Instant::now();
        while asked.elapsed() < INDEXING_LIMIT {
            let request = self.search_request("ready", Strategy::Semantic, 1);
            let request = request.header(CHANGE, change).header(WAIT_MS.0, WAIT_MS.1);
            let answer: Answer = self.accepted(request).await?.json().await?;
            let is_whole =
                [INDEX_BEHIND, PROVIDER_UNAVAILABLE].iter().all(|code| answer.note(code).is_none());
            if is_whole {
                return Ok(());
            }
            // The answer does not block while only vectors are missing.
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        bail!("the service has not indexed the documents within {} minutes", INDEXING_LIMIT.as_secs() / 60)
    }

    /// The embedder whose vectors searches use, once no index of another one is being built.
    pub(super) async fn embedder(&self) -> anyhow::Result<Option<String>> {
        let asked = Instant::now();
        while asked.elapsed() < INDEXING_LIMIT {
            let indexing = self.indexing().await?;
            if indexing.next_embedder.is_none() {
                return Ok(indexing.embedder);
            }
            tokio::time::sleep(PAUSE).await;
        }
        bail!("the service has not built its index within {} minutes", INDEXING_LIMIT.as_secs() / 60)
    }

    async fn indexing(&self) -> anyhow::Result<Indexing> {
        let call = json!({
            "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": "get_workspace_overview", "arguments": {}},
        });
        let request = self.request(Method::POST, "/mcp").header(ACCEPT, MCP_TYPES).json(&call);
        let called: Called = self.accepted(request).await?.json().await?;
        Ok(called.result.structured_content.indexing)
    }

    /// The hits of a query, and the latency. An answer that was ranked by words only is requested again, as it says
    /// nothing about the embedder.
    pub(super) async fn search(
        &self,
        query: &str,
        strategy: Strategy,
    ) -> anyhow::Result<(Vec<Hit>, Duration)> {
        let mut repeats = 0;
        loop {
            let request = self.search_request(query, strategy, MAX_RESULTS);
            // Renewing a token must not count towards the latency of the search.
            let request = self.connection.authorized(request).await?;
            let asked = Instant::now();
            let response = request.send().await;
            let response =
                response.map_err(reqwest::Error::without_url).context("the service does not answer")?;
            let Some(response) = settled(response, &mut repeats).await? else { continue };
            let answer: Answer =
                response.json().await.context("the answer to a search is not as expected")?;
            let took = asked.elapsed();
            if let Some(note) = answer.note(PROVIDER_UNAVAILABLE) {
                ensure!(repeats < MAX_RETRIES, "the service answers without a part of it: {}", note.message);
                repeats += 1;
                tokio::time::sleep(PAUSE).await;
                continue;
            }
            return Ok((answer.results.into_iter().map(Hit::from).collect(), took));
        }
    }

    fn search_request(&self, query: &str, strategy: Strategy, limit: usize) -> RequestBuilder {
        // Live sources would make the result depend on the day.
        let body = json!({"query": query, "strategy": strategy.name(), "limit": limit, "mode": "fast"});
        self.request(Method::POST, "/api/v1/search_context").json(&body)
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.connection.request(method, path)
    }

    /// The successful response; a call that is rate limited or too early is retried.
    async fn accepted(&self, request: RequestBuilder) -> anyhow::Result<Response> {
        let mut repeats = 0;
        loop {
            let again = request.try_clone().context("a request cannot be repeated")?;
            let response = self.connection.authorized(again).await?.send().await;
            let response =
                response.map_err(reqwest::Error::without_url).context("the service does not answer")?;
            if let Some(response) = settled(response, &mut repeats).await? {
                return Ok(response);
            }
        }
    }
}

/// The response if it is successful; `None`, after a pause, if the call should be retried.
async fn settled(response: Response, repeats: &mut usize) -> anyhow::Result<Option<Response>> {
    let status = response.status();
    if status.is_success() {
        return Ok(Some(response));
    }
    let comes_again = matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
    if comes_again && *repeats < MAX_RETRIES {
        *repeats += 1;
        let seconds =
            response.headers().get("retry-after").and_then(|value| value.to_str().ok()?.parse().ok());
        tokio::time::sleep(seconds.map_or(PAUSE, Duration::from_secs).min(MAX_PAUSE)).await;
        return Ok(None);
    }
    let path = response.url().path().to_owned();
    let said = response.text().await.unwrap_or_default();
    bail!("the service answers {path} with {status}: {}", said.trim())
}

/// The path of the next page in a `Link` header, without the host: the service may know itself by another address than
/// we do.
fn next_of(link: &str) -> Option<String> {
    let part = link.split(',').find(|part| part.contains("rel=\"next\""))?;
    let (_, rest) = part.split_once('<')?;
    let (address, _) = rest.split_once('>')?;
    address.find("/api/").and_then(|start| address.get(start..)).map(str::to_owned)
}

impl From<Found> for Hit {
    fn from(found: Found) -> Self {
        Self {
            document_id: found.document_id,
            path: found.citation.path,
            start_line: found.citation.start_line,
            end_line: found.citation.end_line,
            score: found.score,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_is_found_in_a_link() {
        let link =
            "<http://a/api/v1/files?cursor=1>; rel=\"prev\", <http://a/api/v1/files?cursor=2>; rel=\"next\"";
        assert_eq!(next_of(link).as_deref(), Some("/api/v1/files?cursor=2"));
        assert_eq!(next_of("<http://a/api/v1/files>; rel=\"prev\""), None);
    }
}
