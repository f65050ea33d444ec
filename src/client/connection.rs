//! The HTTP connection of a client command to a Cairn.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use reqwest::header::RETRY_AFTER;
use reqwest::redirect::Policy;
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode};
use serde::Deserialize;
use serde_json::Value;

use super::Ended;
use super::profiles::choice::{self, Access, Overrides};
use super::profiles::renewal::Renewing;
use super::profiles::store::Store;

/// Longer than the service's limit for any request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(120);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// How often a request is sent if it is rate limited.
const ATTEMPTS: u32 = 5;
/// The longest wait for the rate limit, in seconds; beyond it the command fails.
const MAX_WAIT_SECONDS: u64 = 90;

/// Where it is.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ServerOptions {
    /// The address of the Cairn. Default: that of the profile, else http://127.0.0.1:8700.
    #[arg(long, env = "CAIRN_URL", value_name = "URL")]
    pub(crate) url: Option<String>,
    /// What `cairn login` has kept under this name. Default: the profile of the address, or the default one.
    #[arg(long, env = "CAIRN_PROFILE", value_name = "NAME")]
    pub(crate) profile: Option<String>,
}

/// Where it is, and who asks.
#[derive(Clone, Args)]
pub(crate) struct ConnectionOptions {
    #[command(flatten)]
    pub(crate) server: ServerOptions,
    /// An API token of the workspace; better set by the environment than on the command line. Default: what `cairn login`
    /// has kept.
    #[arg(long, env = "CAIRN_TOKEN", hide_env_values = true, value_name = "TOKEN")]
    pub(crate) token: Option<String>,
}

cairn_chassis::debug_fields!(ConnectionOptions { server });

/// A client of one Cairn.
#[derive(Clone)]
pub(crate) struct Connection {
    client: Client,
    base: String,
    credential: Credential,
}

/// The credential of a request.
#[derive(Clone)]
enum Credential {
    Nothing,
    Token(Arc<str>),
    /// OAuth tokens, refreshed before they expire.
    Renewed(Arc<Renewing>),
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
    /// For authenticated calls.
    pub(crate) fn open(options: &ConnectionOptions) -> anyhow::Result<Self> {
        let given = Overrides {
            url: filled(&options.server.url),
            profile: filled(&options.server.profile),
            token: filled(&options.token),
        };
        // With address and token given, no configuration folder is needed.
        let (store, profiles) = match (&given.token, &given.profile) {
            (Some(_), None) => (None, Default::default()),
            _ => {
                let store = Store::open()?;
                let profiles = store.read()?;
                (Some(store), profiles)
            }
        };
        let target = choice::choose(&given, &profiles)?;
        let client = http_client()?;
        let credential = match (target.access, store) {
            (Access::Token(token), _) => Credential::Token(token.into()),
            (Access::Granted { profile, grant }, Some(store)) => {
                Credential::Renewed(Arc::new(Renewing::new(store, profile, grant, client.clone())))
            }
            (Access::Granted { .. }, None) => Credential::Nothing,
        };
        Ok(Self { client, base: target.url, credential })
    }

    /// For calls that need no token.
    pub(crate) fn without_token(options: &ServerOptions) -> anyhow::Result<Self> {
        let (url, profile) = (filled(&options.url), filled(&options.profile));
        let url = match (url, profile) {
            (Some(url), _) => url,
            (None, profile) => choice::address(profile.as_deref(), &Store::open()?.read()?)?,
        };
        Self::at(&url, None)
    }

    /// For this address, with this API token if there is one.
    pub(crate) fn at(url: &str, token: Option<&str>) -> anyhow::Result<Self> {
        let credential = token.map_or(Credential::Nothing, |token| Credential::Token(token.into()));
        Ok(Self { client: http_client()?, base: url.trim_end_matches('/').to_owned(), credential })
    }

    /// A request, to be sent by [`Self::send`].
    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.base))
    }

    /// The request with the caller's credential.
    pub(crate) async fn authorized(&self, request: RequestBuilder) -> anyhow::Result<RequestBuilder> {
        Ok(match &self.credential {
            Credential::Nothing => request,
            Credential::Token(token) => request.bearer_auth(token),
            Credential::Renewed(renewing) => request.bearer_auth(renewing.token().await?),
        })
    }

    /// The response, whatever its status. A rate-limited request is retried after the window ends, unless its body
    /// cannot be replayed.
    pub(crate) async fn send(&self, request: RequestBuilder) -> anyhow::Result<Response> {
        let mut request = request;
        for _ in 1..ATTEMPTS {
            let Some(again) = request.try_clone() else { break };
            let response = self.send_once(request).await?;
            match wait_of(&response) {
                Some(wait) => tokio::time::sleep(wait).await,
                None => return Ok(response),
            }
            request = again;
        }
        self.send_once(request).await
    }

    async fn send_once(&self, request: RequestBuilder) -> anyhow::Result<Response> {
        let answered = self.authorized(request).await?.send().await.map_err(reqwest::Error::without_url);
        answered.context("Cairn does not answer at the address in --url (CAIRN_URL) or of the profile")
    }

    /// A successful response, to be streamed; otherwise its error.
    pub(crate) async fn good(&self, request: RequestBuilder) -> anyhow::Result<Response> {
        good(self.send(request).await?).await
    }

    /// The JSON of a successful response; otherwise its error.
    pub(crate) async fn json(&self, request: RequestBuilder) -> anyhow::Result<Value> {
        self.read(self.send(request).await?).await
    }

    /// Like [`Self::json`], for a response that has been received.
    pub(crate) async fn read(&self, response: Response) -> anyhow::Result<Value> {
        let response = good(response).await?;
        let body =
            response.bytes().await.map_err(reqwest::Error::without_url).context("the answer broke off")?;
        serde_json::from_slice(&body).context("the answer is not JSON: is a Cairn at --url (CAIRN_URL)?")
    }
}

/// The response if it is successful.
async fn good(response: Response) -> anyhow::Result<Response> {
    if response.status().is_success() {
        return Ok(response);
    }
    let status = response.status();
    let body = response.bytes().await.unwrap_or_default();
    Err(refused(status, &body).into())
}

/// A client that follows no redirects: the token is only for the given address.
pub(super) fn http_client() -> anyhow::Result<Client> {
    // rustls needs a process-wide crypto provider.
    cairn_chassis::outbound::install_crypto();
    let client = Client::builder()
        .user_agent(concat!("cairn/", env!("CARGO_PKG_VERSION")))
        .redirect(Policy::none())
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(REQUEST_TIMEOUT)
        .build();
    client.context("the HTTP client cannot be made")
}

/// An empty variable counts as unset.
fn filled(value: &Option<String>) -> Option<String> {
    value.as_deref().map(str::trim).filter(|value| !value.is_empty()).map(str::to_owned)
}

/// How long the rate limit asks to wait.
fn wait_of(response: &Response) -> Option<Duration> {
    if response.status() != StatusCode::TOO_MANY_REQUESTS {
        return None;
    }
    let seconds: u64 = response.headers().get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    (seconds <= MAX_WAIT_SECONDS).then(|| Duration::from_secs(seconds.max(1)))
}

fn refused(status: StatusCode, body: &[u8]) -> Ended {
    let text = told(status.as_u16(), body);
    match status {
        StatusCode::UNAUTHORIZED => Ended::not_let_in(text),
        _ => Ended::failed(text),
    }
}

/// The message of an error response.
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
        assert_eq!(refused(StatusCode::UNAUTHORIZED, body).status, 4);
        assert_eq!(refused(StatusCode::BAD_REQUEST, body).status, 1);
    }

    #[test]
    fn the_token_is_not_shown() {
        let options =
            ConnectionOptions { server: ServerOptions::default(), token: Some("cairn_secret".to_owned()) };
        assert!(!format!("{options:?}").contains("secret"));
    }

    #[test]
    fn what_is_set_to_nothing_is_not_given() {
        assert_eq!(filled(&Some("  ".to_owned())), None);
        assert_eq!(filled(&Some(" a ".to_owned())), Some("a".to_owned()));
    }
}
