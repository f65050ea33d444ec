//! OAuth 2.1 with the authorization server of a Cairn, as a public client with PKCE (RFC 7636, 8252, 8414, 9728).

use std::io;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use oauth2::basic::{BasicClient, BasicErrorResponseType, BasicRequestTokenError, BasicTokenResponse};
use oauth2::{
    AuthUrl, AuthorizationCode, ClientId, CsrfToken, EndpointNotSet, EndpointSet, HttpRequest, HttpResponse,
    PkceCodeChallenge, PkceCodeVerifier, RedirectUrl, RefreshToken, Scope, TokenResponse as _, TokenUrl,
};
use reqwest::{Client, Url};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::answer::Answer;
use crate::client::Ended;
use crate::client::output::visible;
use crate::client::profiles::model::Grant;

/// The scopes that the consent page offers; the user chooses among them.
const SCOPES: [&str; 3] = ["read", "write", "delete"];
const CLIENT_NAME: &str = "cairn command line";
/// The registered URI; the port of a loopback redirect may differ (RFC 8252, section 7.3).
const REGISTERED_REDIRECT: &str = "http://127.0.0.1/callback";
/// The lifetime of an access token if the server does not state it.
const DEFAULT_LIFETIME: Duration = Duration::from_secs(300);
const FORM: &str = "application/x-www-form-urlencoded";

type Configured = BasicClient<EndpointSet, EndpointNotSet, EndpointNotSet, EndpointNotSet, EndpointSet>;

/// Protected resource metadata (RFC 9728).
#[derive(Deserialize)]
struct ResourceMetadata {
    resource: String,
    authorization_servers: Vec<String>,
}

/// Authorization server metadata (RFC 8414).
#[derive(Deserialize)]
struct ServerMetadata {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    registration_endpoint: String,
    revocation_endpoint: String,
}

#[derive(Deserialize)]
struct Registered {
    client_id: String,
}

/// The authorization server of a Cairn, and the resource that tokens are for.
pub(super) struct Server {
    resource: String,
    metadata: ServerMetadata,
}

/// A login that waits for the user.
pub(super) struct Pending {
    server: Server,
    client: Configured,
    client_id: String,
    address: Url,
    state: CsrfToken,
    verifier: PkceCodeVerifier,
}

/// Discovers the authorization server of the API.
pub(super) async fn discover(client: &Client, url: &str) -> anyhow::Result<Server> {
    let address = format!("{url}/.well-known/oauth-protected-resource/api");
    let found: ResourceMetadata = read(client, &address).await?;
    let Some(issuer) = found.authorization_servers.first() else {
        bail!("this Cairn names nobody who gives tokens for it: use an API token (--with-token)");
    };
    if found.resource != format!("{url}/api") {
        let own = found.resource.trim_end_matches("/api");
        bail!("this Cairn is known under another address: use --url {own}");
    }
    let metadata: ServerMetadata =
        read(client, &format!("{issuer}/.well-known/oauth-authorization-server")).await?;
    if metadata.issuer != *issuer {
        bail!("the authorization server calls itself by another address than the Cairn does");
    }
    Ok(Server { resource: found.resource, metadata })
}

/// Registers this client and prepares the authorization request.
pub(super) async fn begin(client: &Client, server: Server, redirect_uri: &str) -> anyhow::Result<Pending> {
    let body = json!({
        "client_name": CLIENT_NAME,
        "redirect_uris": [REGISTERED_REDIRECT],
        "token_endpoint_auth_method": "none",
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
    });
    let sent = client.post(&server.metadata.registration_endpoint).json(&body).send().await;
    let registered: Registered = json_of(sent).await.context("the command line cannot be registered")?;
    let configured = BasicClient::new(ClientId::new(registered.client_id.clone()))
        .set_auth_uri(AuthUrl::new(server.metadata.authorization_endpoint.clone())?)
        .set_token_uri(TokenUrl::new(server.metadata.token_endpoint.clone())?)
        .set_redirect_uri(RedirectUrl::new(redirect_uri.to_owned())?);
    let (challenge, verifier) = PkceCodeChallenge::new_random_sha256();
    let (address, state) = configured
        .authorize_url(CsrfToken::new_random)
        .add_scopes(SCOPES.map(|scope| Scope::new(scope.to_owned())))
        .add_extra_param("resource", server.resource.clone())
        .set_pkce_challenge(challenge)
        .url();
    Ok(Pending { server, client: configured, client_id: registered.client_id, address, state, verifier })
}

impl Pending {
    /// The URL to open in a browser.
    pub(super) fn address(&self) -> &str {
        self.address.as_str()
    }

    /// The code in an authorization response, or its error; `None` if the response belongs to another login.
    pub(super) fn code_of(&self, answer: Answer) -> Option<Result<String, Ended>> {
        judged(answer, self.state.secret(), &self.server.metadata.issuer)
    }

    /// Exchanges the code for tokens.
    pub(super) async fn redeem(self, client: &Client, code: String, now: i64) -> anyhow::Result<Grant> {
        let answer = self
            .client
            .exchange_code(AuthorizationCode::new(code))
            .set_pkce_verifier(self.verifier)
            .add_extra_param("resource", self.server.resource.clone())
            .request_async(&|request| execute(client.clone(), request))
            .await
            .map_err(refusal)?;
        let refresh_token = answer.refresh_token().context("the server gave no refresh token")?;
        Ok(Grant {
            client_id: self.client_id,
            token_endpoint: self.server.metadata.token_endpoint,
            revocation_endpoint: self.server.metadata.revocation_endpoint,
            resource: self.server.resource,
            access_token: answer.access_token().secret().clone(),
            refresh_token: refresh_token.secret().clone(),
            expires_at: end_of(&answer, now),
        })
    }
}

/// See [`Pending::code_of`]. A redirect is authenticated by its `state`; a code that was pasted alone by the PKCE
/// verifier, which nobody else has.
fn judged(answer: Answer, state: &str, issuer: &str) -> Option<Result<String, Ended>> {
    let is_own = match &answer.state {
        Some(sent) => sent == state,
        None => answer.is_pasted,
    };
    // RFC 9207: a response of another issuer must be discarded.
    if !is_own || answer.issuer.as_ref().is_some_and(|sent| sent != issuer) {
        return None;
    }
    match (answer.error, answer.code) {
        (Some(error), _) if error == "access_denied" => {
            Some(Err(Ended::not_let_in("you allowed nothing: nobody is logged in".to_owned())))
        }
        (Some(error), _) => {
            let code = error.replace(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_', "");
            Some(Err(Ended::failed(format!("the server refused ({code}): start again"))))
        }
        (None, code) => code.map(Ok),
    }
}

/// Refreshes the tokens.
pub(crate) async fn renew(client: &Client, grant: &Grant, now: i64) -> anyhow::Result<Grant> {
    let configured = BasicClient::new(ClientId::new(grant.client_id.clone()))
        .set_token_uri(TokenUrl::new(grant.token_endpoint.clone())?);
    let answer = configured
        .exchange_refresh_token(&RefreshToken::new(grant.refresh_token.clone()))
        .add_extra_param("resource", grant.resource.clone())
        .request_async(&|request| execute(client.clone(), request))
        .await
        .map_err(refusal)?;
    let mut renewed = grant.clone();
    renewed.access_token = answer.access_token().secret().clone();
    renewed.expires_at = end_of(&answer, now);
    if let Some(next) = answer.refresh_token() {
        renewed.refresh_token = next.secret().clone();
    }
    Ok(renewed)
}

/// Revokes the grant (RFC 7009).
pub(super) async fn revoke(client: &Client, grant: &Grant) -> anyhow::Result<()> {
    let mut form = Url::parse("http://localhost")?;
    form.query_pairs_mut()
        .append_pair("client_id", &grant.client_id)
        .append_pair("token", &grant.refresh_token)
        .append_pair("token_type_hint", "refresh_token");
    let body = form.query().unwrap_or_default().to_owned();
    let request = client.post(&grant.revocation_endpoint).header("content-type", FORM).body(body);
    let answered = request.send().await.map_err(reqwest::Error::without_url)?;
    answered.error_for_status().map(drop).map_err(|error| error.without_url().into())
}

fn end_of(answer: &BasicTokenResponse, now: i64) -> i64 {
    let life = answer.expires_in().unwrap_or(DEFAULT_LIFETIME).as_secs();
    now.saturating_add(i64::try_from(life).unwrap_or(i64::MAX))
}

async fn read<T: DeserializeOwned>(client: &Client, address: &str) -> anyhow::Result<T> {
    json_of(client.get(address).send().await).await
}

async fn json_of<T: DeserializeOwned>(sent: reqwest::Result<reqwest::Response>) -> anyhow::Result<T> {
    let response = sent.map_err(reqwest::Error::without_url);
    let response = response.context("Cairn does not answer at the address in --url (CAIRN_URL)")?;
    let status = response.status();
    if !status.is_success() {
        let hint = "is a Cairn at --url that knows `cairn login`? Otherwise use an API token (--with-token)";
        return Err(anyhow!("HTTP {}: {hint}", status.as_u16()));
    }
    let body = response.bytes().await.map_err(reqwest::Error::without_url)?;
    serde_json::from_slice(&body).context("the answer is not what an authorization server says")
}

/// Sends a request of the `oauth2` crate.
async fn execute(client: Client, request: HttpRequest) -> io::Result<HttpResponse> {
    let request = reqwest::Request::try_from(request).map_err(io::Error::other)?;
    let answered = client.execute(request).await.map_err(|error| io::Error::other(error.without_url()))?;
    let mut response = http::Response::builder().status(answered.status());
    if let Some(kind) = answered.headers().get(http::header::CONTENT_TYPE) {
        response = response.header(http::header::CONTENT_TYPE, kind);
    }
    let body = answered.bytes().await.map_err(|error| io::Error::other(error.without_url()))?;
    response.body(body.to_vec()).map_err(io::Error::other)
}

/// The error of a token request, without the credentials that were sent.
fn refusal(error: BasicRequestTokenError<io::Error>) -> anyhow::Error {
    use oauth2::RequestTokenError;

    match error {
        RequestTokenError::ServerResponse(response) => match response.error() {
            BasicErrorResponseType::InvalidGrant | BasicErrorResponseType::InvalidClient => {
                Ended::not_let_in("the login has ended: run `cairn login` again".to_owned()).into()
            }
            code @ (BasicErrorResponseType::InvalidRequest
            | BasicErrorResponseType::InvalidScope
            | BasicErrorResponseType::UnauthorizedClient
            | BasicErrorResponseType::UnsupportedGrantType
            | BasicErrorResponseType::Extension(_)) => {
                anyhow!("the server refused ({})", visible(code.as_ref()))
            }
        },
        RequestTokenError::Request(error) => {
            anyhow::Error::from(error).context("the authorization server does not answer")
        }
        RequestTokenError::Parse(..) | RequestTokenError::Other(_) => {
            anyhow!("the answer is not what an authorization server says")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ISSUER: &str = "https://cairn.example";

    fn of(query: &str) -> Option<Result<String, u8>> {
        judged(Answer::of_query(query), "s", ISSUER).map(|code| code.map_err(|ended| ended.status))
    }

    #[test]
    fn only_an_answer_to_this_login_counts() {
        assert_eq!(of("code=c&state=s&iss=https://cairn.example"), Some(Ok("c".to_owned())));
        assert_eq!(of("code=c&state=s"), Some(Ok("c".to_owned())));
        for strange in
            ["code=c", "code=c&state=other", "code=c&state=s&iss=https://evil.example", "state=s", ""]
        {
            assert_eq!(of(strange), None, "{strange}");
        }
        assert_eq!(of("error=access_denied&state=s"), Some(Err(4)));
        assert_eq!(of("error=server_error&state=s"), Some(Err(1)));
        let pasted = |text: &str| judged(Answer::pasted(text), "s", ISSUER).map(Result::unwrap);
        assert_eq!(pasted("cairn_oc_x"), Some("cairn_oc_x".to_owned()));
        assert_eq!(pasted("http://127.0.0.1/callback?code=c&state=other"), None);
    }
}
