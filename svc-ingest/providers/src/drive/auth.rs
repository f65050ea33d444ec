//! Access tokens for Drive: a fixed one, or those that a service account requests with a signed assertion (RFC 7523).

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use bytes::Bytes;
use cairn_chassis::clock::Timestamp;
use cairn_chassis::outbound::Guard;
use http::{HeaderValue, Method, Request, header};
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};
use tokio::sync::Mutex;
use url::Url;
use zeroize::Zeroizing;

use crate::rest::read;
use crate::settings::Fields;
use crate::{Call, Fault, Secret};

const TOKEN_URI: &str = "https://oauth2.googleapis.com/token";
const SCOPE: &str = "https://www.googleapis.com/auth/drive.readonly";
const GRANT: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
/// The lifetime of an assertion, and the maximum lifetime of its token.
const LIFETIME: Duration = Duration::from_secs(60 * 60);
/// A token is renewed this long before it expires.
const MARGIN: Duration = Duration::from_secs(2 * 60);
const MAX_BYTES: usize = 64 * 1024;

/// How requests are authorized.
#[derive(Debug)]
pub(super) enum Auth {
    /// A fixed token, which its owner renews.
    Given(Secret),
    /// Tokens of a service account.
    Account(Box<ServiceAccount>),
}

/// A service account with its key.
pub(super) struct ServiceAccount {
    email: String,
    /// The user that it impersonates, with domain-wide delegation.
    subject: Option<String>,
    token_uri: Url,
    key: RsaKeyPair,
    token: Mutex<Option<Token>>,
}

/// A cached token.
struct Token {
    secret: Secret,
    until: Timestamp,
    /// It replaced a rejected token and was rejected, too: no further one is requested.
    is_refused: bool,
}

cairn_chassis::debug_fields!(ServiceAccount);

#[derive(Deserialize)]
struct KeyFile {
    client_email: String,
    #[serde(deserialize_with = "secret")]
    private_key: Secret,
    #[serde(default)]
    token_uri: Option<String>,
}

impl Auth {
    /// Parses the credentials.
    pub(super) fn of(credentials: &mut Fields<'_>, guard: &Guard) -> Option<Self> {
        const NAME: &str = "serviceAccount";
        let subject = credentials.text("subject");
        let token = credentials.secret("accessToken");
        match (credentials.value(NAME), token) {
            (Some(_), Some(_)) => {
                credentials.refuse(
                    "accessToken",
                    "invalid_value",
                    "stands instead of `serviceAccount`: give one of them",
                );
                None
            }
            (None, Some(_)) if subject.is_some() => {
                credentials.refuse("subject", "invalid_value", "belongs to `serviceAccount`");
                None
            }
            (None, Some(token)) => Some(Self::Given(token)),
            (None, None) => {
                credentials.refuse(
                    NAME,
                    "required",
                    "give the key file of a service account, or an `accessToken`",
                );
                None
            }
            (Some(key), None) => match ServiceAccount::of(key, subject, guard) {
                Ok(account) => Some(Self::Account(Box::new(account))),
                Err(words) => {
                    credentials.refuse(NAME, "invalid_value", words);
                    None
                }
            },
        }
    }

    /// The header `Authorization`.
    pub(super) async fn header(&self, call: &Call) -> Result<HeaderValue, Fault> {
        match self {
            Self::Given(token) => token.bearer(),
            Self::Account(account) => account.header(call).await,
        }
    }

    /// Invalidates a rejected token. Returns whether to retry with a new one.
    pub(super) async fn invalidate(&self) -> bool {
        let Self::Account(account) = self else { return false };
        let mut token = account.token.lock().await;
        let is_worth_it = token.as_ref().is_some_and(|token| !token.is_refused);
        if is_worth_it {
            *token = None;
        }
        is_worth_it
    }

    /// Records that the replacement token was rejected, too.
    pub(super) async fn mark_rejected(&self) {
        if let Self::Account(account) = self
            && let Some(token) = account.token.lock().await.as_mut()
        {
            token.is_refused = true;
        }
    }
}

impl ServiceAccount {
    fn of(key: &Value, subject: Option<String>, guard: &Guard) -> Result<Self, &'static str> {
        let odd = "must be the key file of a service account: JSON with `client_email` and `private_key`";
        let file = match key.as_str() {
            Some(text) => serde_json::from_str::<KeyFile>(text),
            None => KeyFile::deserialize(key),
        };
        let file = file.map_err(|_| odd)?;
        let token_uri = file.token_uri.as_deref().unwrap_or(TOKEN_URI);
        let token_uri = guard
            .check(token_uri)
            .map_err(|_| "holds a `token_uri` that does not lead to a public host over https")?;
        let key =
            key_of(file.private_key.expose()).ok_or("holds a `private_key` that is no RSA key in PEM")?;
        Ok(Self { email: file.client_email, subject, token_uri, key, token: Mutex::new(None) })
    }

    async fn header(&self, call: &Call) -> Result<HeaderValue, Fault> {
        let now = call.now();
        let mut token = self.token.lock().await;
        if let Some(token) = token.as_ref().filter(|token| now < token.until) {
            return token.secret.bearer();
        }
        let fresh = self.ask(call, now).await?;
        let header = fresh.secret.bearer();
        *token = Some(fresh);
        header
    }

    async fn ask(&self, call: &Call, now: Timestamp) -> Result<Token, Fault> {
        #[derive(Deserialize)]
        struct Granted {
            #[serde(deserialize_with = "secret")]
            access_token: Secret,
            #[serde(default)]
            expires_in: Option<u64>,
        }
        let assertion = self.assertion(now)?;
        let form = url::form_urlencoded::Serializer::new(String::new())
            .append_pair("grant_type", GRANT)
            .append_pair("assertion", &assertion)
            .finish();
        let request = Request::builder()
            .method(Method::POST)
            .uri(self.token_uri.as_str())
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(Bytes::from(form))
            .map_err(|_| Fault::Credentials)?;
        let answer = match call.send(request, MAX_BYTES).await {
            // `invalid_grant`: the key was revoked, or the account deleted.
            Err(Fault::Refused | Fault::Forbidden) => return Err(Fault::Credentials),
            answer => answer?,
        };
        let granted: Granted = read(answer.body())?;
        let lifetime = Duration::from_secs(granted.expires_in.unwrap_or(0)).min(LIFETIME);
        let until = now.plus(lifetime.saturating_sub(MARGIN));
        Ok(Token { secret: granted.access_token, until, is_refused: false })
    }

    /// The signed assertion.
    fn assertion(&self, now: Timestamp) -> Result<String, Fault> {
        let mut claims = json!({
            "iss": self.email, "scope": SCOPE, "aud": self.token_uri.as_str(),
            "iat": now.as_seconds(), "exp": now.plus(LIFETIME).as_seconds(),
        });
        if let (Some(subject), Value::Object(fields)) = (&self.subject, &mut claims) {
            fields.insert("sub".to_owned(), subject.as_str().into());
        }
        let header = URL_SAFE_NO_PAD.encode(json!({"alg": "RS256", "typ": "JWT"}).to_string());
        let signed = format!("{header}.{}", URL_SAFE_NO_PAD.encode(claims.to_string()));
        let mut signature = vec![0; self.key.public().modulus_len()];
        self.key
            .sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), signed.as_bytes(), &mut signature)
            .map_err(|_| Fault::Credentials)?;
        Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }
}

fn secret<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Secret, D::Error> {
    String::deserialize(deserializer).map(Secret::new)
}

/// Parses a PEM key: PKCS#8, as Google issues them, or PKCS#1.
fn key_of(pem: &str) -> Option<RsaKeyPair> {
    let (_, behind) = pem.split_once("-----BEGIN ")?;
    let (label, behind) = behind.split_once("-----")?;
    let (packed, _) = behind.split_once("-----END ")?;
    let packed: Zeroizing<Vec<u8>> =
        Zeroizing::new(packed.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect());
    let der = Zeroizing::new(STANDARD.decode(packed.as_slice()).ok()?);
    match label {
        "PRIVATE KEY" => RsaKeyPair::from_pkcs8(&der).ok(),
        "RSA PRIVATE KEY" => RsaKeyPair::from_der(&der).ok(),
        _ => None,
    }
}
