//! A client of the REST API with the token of the first start.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use anyhow::Context as _;
use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value, json};

/// A client with a base address and a token.
#[derive(Debug)]
pub(crate) struct Api {
    client: reqwest::Client,
    base: String,
    token: String,
}

impl Api {
    /// With the token that `cairn up` has written to its data folder.
    pub(crate) fn open(address: SocketAddr, data: &Path) -> anyhow::Result<Self> {
        let file: Value = serde_json::from_slice(&fs::read(data.join("bootstrap.json"))?)?;
        let token = file.get("token").and_then(Value::as_str).context("no token in bootstrap.json")?;
        Ok(Self::with_token(client()?, address, token))
    }

    /// With the token of any workspace, sharing the connections of an HTTP client.
    pub(crate) fn with_token(client: reqwest::Client, address: SocketAddr, token: &str) -> Self {
        Self { client, base: format!("http://{address}"), token: token.to_owned() }
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.base)).bearer_auth(&self.token)
    }

    /// Creates a Markdown file in the root; returns its id and the value of `X-Cairn-Change`.
    pub(crate) async fn create_file(&self, name: &str, content: &str) -> anyhow::Result<(String, String)> {
        let body = json!({"name": name, "content": content, "fileType": "markdown"});
        let response = accepted(self.request(Method::POST, "/api/v1/files").json(&body)).await?;
        let change = response.headers().get("x-cairn-change").and_then(|value| value.to_str().ok());
        let change = change.context("a write answered no X-Cairn-Change")?.to_owned();
        let file: Value = response.json().await?;
        let id = file.get("id").and_then(Value::as_str).context("a file without id")?.to_owned();
        Ok((id, change))
    }
}

/// An HTTP client with its own connections.
pub(crate) fn client() -> anyhow::Result<reqwest::Client> {
    // The TLS of this build has no default crypto provider.
    cairn_chassis::outbound::install_crypto();
    Ok(reqwest::Client::builder().no_proxy().build()?)
}

/// The response, or an error unless its status is a success.
pub(crate) async fn accepted(request: RequestBuilder) -> anyhow::Result<Response> {
    Ok(request.send().await?.error_for_status()?)
}
