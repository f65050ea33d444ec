//! How a client command reaches a Cairn.

use std::time::Duration;

use anyhow::{Context as _, anyhow};
use clap::Args;
use reqwest::redirect::Policy;
use reqwest::{Client, Method, RequestBuilder, Response};
use serde::Deserialize;
use serde_json::Value;

/// Longer than the service takes over any request.
const LIMIT: Duration = Duration::from_secs(120);

/// Where it is.
#[derive(Debug, Clone, Args)]
pub(crate) struct ServerOptions {
    /// The address of the Cairn.
    #[arg(long, env = "CAIRN_URL", value_name = "URL", default_value = "http://127.0.0.1:8700")]
    pub(crate) url: String,
}

/// Where it is, and who asks.
#[derive(Clone, Args)]
pub(crate) struct ConnectionOptions {
    #[command(flatten)]
    pub(crate) server: ServerOptions,
    /// An API token of the workspace; better set by the environment than on the command line.
    #[arg(long, env = "CAIRN_TOKEN", hide_env_values = true, value_name = "TOKEN")]
    pub(crate) token: String,
}

cairn_chassis::debug_fields!(ConnectionOptions { server });

/// A client of one Cairn.
#[derive(Clone)]
pub(crate) struct Connection {
    client: Client,
    base: String,
    token: Option<String>,
}

/// The error body (contract, "Errors").
#[derive(Deserialize)]
struct ErrorBody {
    error: String,
    message: String,
    #[serde(default)]
    errors: Vec<Issue>,
}

#[derive(Deserialize)]
struct Issue {
    path: String,
    message: String,
}

impl Connection {
    /// For calls with the token.
    pub(crate) fn open(options: &ConnectionOptions) -> anyhow::Result<Self> {
        let token = Some(options.token.trim().to_owned());
        Ok(Self { token, ..Self::without_token(&options.server)? })
    }

    /// For what everybody may call.
    pub(crate) fn without_token(options: &ServerOptions) -> anyhow::Result<Self> {
        // The HTTP client brings TLS without a default of its own.
        cairn_chassis::outbound::install_crypto();
        // A redirect is told instead of followed: the token is for the address that was given.
        let client = Client::builder()
            .user_agent(concat!("cairn/", env!("CARGO_PKG_VERSION")))
            .redirect(Policy::none())
            .timeout(LIMIT)
            .build()
            .context("the HTTP client cannot be made")?;
        Ok(Self { client, base: options.url.trim_end_matches('/').to_owned(), token: None })
    }

    /// A request, with the token when there is one.
    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.client.request(method, format!("{}{path}", self.base));
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    /// The response, whatever it says.
    pub(crate) async fn send(&self, request: RequestBuilder) -> anyhow::Result<Response> {
        let answered = request.send().await.map_err(reqwest::Error::without_url);
        answered.context("Cairn does not answer at the address in --url (CAIRN_URL)")
    }

    /// The JSON of a good response; of another one what it says as an error.
    pub(crate) async fn json(&self, request: RequestBuilder) -> anyhow::Result<Value> {
        let response = self.send(request).await?;
        let is_success = response.status().is_success();
        let status = response.status();
        let body =
            response.bytes().await.map_err(reqwest::Error::without_url).context("the answer broke off")?;
        if !is_success {
            return Err(anyhow!(told(status.as_u16(), &body)));
        }
        serde_json::from_slice(&body).context("the answer is not JSON: is a Cairn at --url (CAIRN_URL)?")
    }
}

/// What an error response says, for a person.
pub(crate) fn told(status: u16, body: &[u8]) -> String {
    let Ok(body) = serde_json::from_slice::<ErrorBody>(body) else {
        return format!("HTTP {status}: is a Cairn at --url (CAIRN_URL)?");
    };
    let mut text = format!("{}: {}", body.error, body.message);
    if body.errors.len() > 1 {
        text.extend(body.errors.iter().map(|issue| format!("\n  {}: {}", issue.path, issue.message)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_told_with_all_its_problems() {
        let body = br#"{"error": "VALIDATION_ERROR", "message": "2 fields are not valid", "requestId": "r",
            "errors": [{"path": "a", "code": "x", "message": "is wrong"}, {"path": "b", "code": "x", "message": "too"}]}"#;
        let expected = "VALIDATION_ERROR: 2 fields are not valid\n  a: is wrong\n  b: too";
        assert_eq!(told(400, body), expected);
        assert_eq!(told(502, b"<html>"), "HTTP 502: is a Cairn at --url (CAIRN_URL)?");
    }

    #[test]
    fn the_token_is_not_shown() {
        let server = ServerOptions { url: "http://127.0.0.1:1".to_owned() };
        let options = ConnectionOptions { server, token: "cairn_secret".to_owned() };
        assert!(!format!("{options:?}").contains("secret"));
    }
}
