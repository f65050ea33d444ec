//! An OAuth client without a token, and the person who uses it.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::callers::{ApiToken, Caller, Session};
use super::deployment::Deployment;
use super::http::{Reply, text};

/// RFC 7636, appendix B.
pub(crate) const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
pub(crate) const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
pub(crate) const REDIRECT: &str = "http://127.0.0.1:3000/callback";

/// Encodes a form or a query.
pub(crate) fn encoded<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let byte = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    let text = |text: &str| text.bytes().map(byte).collect::<String>();
    let pairs = pairs.into_iter().map(|(name, value)| format!("{}={}", text(name), text(value)));
    pairs.collect::<Vec<_>>().join("&")
}

/// A parameter of the redirect's query.
pub(crate) fn answer(reply: &Reply, name: &str) -> Option<String> {
    let location = reply.header("location")?;
    let address = reqwest::Url::parse(location).ok()?;
    let found = address.query_pairs().find(|(given, _)| given == name);
    found.map(|(_, value)| value.into_owned())
}

/// The value of an input of a page.
pub(crate) fn input(page: &str, name: &str) -> String {
    let (_, rest) =
        page.split_once(&format!(r#"name="{name}" value=""#)).unwrap_or_else(|| panic!("no {name}: {page}"));
    let value = rest.split('"').next().unwrap_or_default();
    value.replace("&amp;", "&").replace("&quot;", "\"").replace("&lt;", "<").replace("&gt;", ">")
}

/// A registered public client.
#[derive(Debug)]
pub(crate) struct Agent<'a> {
    pub(crate) deployment: &'a Deployment,
    pub(crate) client_id: String,
}

impl<'a> Agent<'a> {
    pub(crate) async fn register(deployment: &'a Deployment) -> Self {
        let metadata = json!({"client_name": "Test <agent>", "redirect_uris": [REDIRECT], "token_endpoint_auth_method": "none"});
        let reply = deployment.anonymous().post("/oauth/register").json(metadata).await.expect(201);
        Self { deployment, client_id: text(&reply.json(), "client_id") }
    }

    /// The authorization URL that the person is sent to, with some parameters changed; an empty one is left out.
    pub(crate) fn address(&self, changes: &[(&str, &str)]) -> String {
        let resource = format!("{}/mcp", self.deployment.base_url());
        let usual = [
            ("client_id", self.client_id.as_str()),
            ("redirect_uri", REDIRECT),
            ("response_type", "code"),
            ("scope", "read write delete"),
            ("state", "a state"),
            ("resource", &resource),
            ("code_challenge", CHALLENGE),
            ("code_challenge_method", "S256"),
        ];
        let changed = |name: &str| changes.iter().any(|(other, _)| *other == name);
        let kept = usual.into_iter().filter(|(name, _)| !changed(name));
        let given = changes.iter().copied().filter(|(_, value)| !value.is_empty());
        format!("/oauth/authorize?{}", encoded(kept.chain(given)))
    }

    /// The person opens the page and presses a button; returns the redirect or the next page.
    pub(crate) async fn decide(
        &self,
        person: &Session,
        workspace: &str,
        permissions: &[&str],
        decision: &str,
    ) -> Reply {
        let page = person.get(&self.address(&[])).await.expect(200).text();
        let (request, csrf) = (input(&page, "request"), input(&page, "csrf"));
        let fields = [
            ("request", request.as_str()),
            ("csrf", &csrf),
            ("workspace", workspace),
            ("decision", decision),
        ];
        let ticked = permissions.iter().map(|permission| ("permission", *permission));
        person.post("/oauth/authorize").body(FORM, encoded(fields.into_iter().chain(ticked))).await
    }

    /// An authorization code for these permissions in a workspace.
    pub(crate) async fn code(&self, person: &Session, workspace: &str, permissions: &[&str]) -> String {
        let reply = self.decide(person, workspace, permissions, "allow").await.expect(303);
        answer(&reply, "code").unwrap_or_else(|| panic!("no code: {:?}", reply.header("location")))
    }

    /// A token request with a code, with some parameters changed.
    pub(crate) async fn redeem(&self, code: &str, changes: &[(&str, &str)]) -> Reply {
        let usual = [
            ("grant_type", "authorization_code"),
            ("client_id", self.client_id.as_str()),
            ("code", code),
            ("redirect_uri", REDIRECT),
            ("code_verifier", VERIFIER),
        ];
        self.token_request(&usual, changes).await
    }

    /// A token request with a refresh token.
    pub(crate) async fn refresh(&self, refresh_token: &str) -> Reply {
        let usual = [
            ("grant_type", "refresh_token"),
            ("client_id", self.client_id.as_str()),
            ("refresh_token", refresh_token),
        ];
        self.token_request(&usual, &[]).await
    }

    async fn token_request(&self, usual: &[(&str, &str)], changes: &[(&str, &str)]) -> Reply {
        let changed = |name: &str| changes.iter().any(|(other, _)| *other == name);
        let kept = usual.iter().copied().filter(|(name, _)| !changed(name));
        let given = changes.iter().copied().filter(|(_, value)| !value.is_empty());
        self.deployment.anonymous().post("/oauth/token").body(FORM, encoded(kept.chain(given))).await
    }

    /// Tokens for these permissions in a workspace.
    pub(crate) async fn tokens(&self, person: &Session, workspace: &str, permissions: &[&str]) -> Value {
        let code = self.code(person, workspace, permissions).await;
        self.redeem(&code, &[]).await.expect(200).json()
    }

    /// A caller with an access token.
    pub(crate) fn caller(&self, tokens: &Value) -> ApiToken {
        self.deployment.token(&text(tokens, "access_token"))
    }
}

/// The content type of forms.
pub(crate) const FORM: &str = "application/x-www-form-urlencoded";

/// `client:secret` as a Basic authorization header.
pub(crate) fn basic(client: &str, secret: &str) -> String {
    let joined = format!("{client}:{secret}");
    format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(joined))
}

/// A JWT with a forged signature.
pub(crate) fn forged_jwt() -> String {
    let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let claims = json!({"iss": "cairn-auth", "aud": "cairn-mesh", "sub": "x", "exp": 4_000_000_000_u64, "kind": "grant"});
    format!("{}.{}.", part(json!({"alg": "none", "typ": "JWT"})), part(claims))
}
