//! An OpenID Connect provider: it asks for no password, validates requests of clients as strictly as the protocol
//! permits, and issues faulty ID tokens when a test asks for them.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::extract::{RawQuery, State};
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cairn_chassis::clock::{Clock as _, SystemClock};
use cairn_chassis::entropy::OsEntropy;
use cairn_chassis::token_format;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use reqwest::StatusCode;
use reqwest::header::{AUTHORIZATION, HeaderMap};
use serde_json::{Value, json};

use super::oauth::{basic, encoded};

pub(crate) const CLIENT_ID: &str = "cairn-of-tests";
pub(crate) const CLIENT_SECRET: &str = "a-secret-of-the-oidc-client";

/// The fault of an ID token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    Nonce,
    NoNonce,
    Audience,
    SecondAudience,
    Issuer,
    Expired,
    Signature,
    UnknownKey,
    Unsigned,
    /// Signed with the client's secret, which must not prove the provider's identity.
    Symmetric,
    Missing,
}

/// Somebody who has an account at the provider.
#[derive(Debug, Clone, Default)]
pub(crate) struct Persona {
    /// Claims of the ID token besides the subject.
    pub(crate) claims: Value,
    /// Claims that only the userinfo endpoint returns.
    pub(crate) userinfo: Value,
    pub(crate) fault: Option<Fault>,
}

/// A running provider; its thread ends with the test process.
#[derive(Debug, Clone)]
pub(crate) struct Provider {
    address: SocketAddr,
    state: Arc<Mutex<Inner>>,
}

#[derive(Debug)]
struct Inner {
    /// The last one is the signing key.
    keys: Vec<Key>,
    people: HashMap<String, Persona>,
    codes: HashMap<String, Code>,
    access: HashMap<String, String>,
}

struct Key {
    kid: String,
    secret: EncodingKey,
    point: Vec<u8>,
}

cairn_chassis::debug_fields!(Key { kid });

#[derive(Debug)]
struct Code {
    subject: String,
    redirect_uri: String,
    challenge: String,
    nonce: String,
}

impl Key {
    fn generate() -> Self {
        let pair = rcgen::KeyPair::generate().unwrap();
        let secret = EncodingKey::from_ec_der(&pair.serialize_der());
        Self { kid: random(), secret, point: pair.public_key_raw().to_vec() }
    }

    fn jwk(&self) -> Value {
        let part = |range| URL_SAFE_NO_PAD.encode(&self.point[range]);
        json!({
            "kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": self.kid,
            "x": part(1..33), "y": part(33..65),
        })
    }
}

fn random() -> String {
    token_format::generate(&OsEntropy)
}

fn fields(query: &str) -> HashMap<String, String> {
    let address = reqwest::Url::parse(&format!("http://localhost/?{query}")).unwrap();
    address.query_pairs().into_owned().collect()
}

impl Provider {
    pub(crate) fn start() -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let inner = Inner {
            keys: vec![Key::generate()],
            people: HashMap::new(),
            codes: HashMap::new(),
            access: HashMap::new(),
        };
        let provider = Self { address, state: Arc::new(Mutex::new(inner)) };
        let routes = Router::new()
            .route("/.well-known/openid-configuration", get(metadata))
            .route("/keys", get(keys))
            .route("/authorize", get(authorize))
            .route("/token", post(token))
            .route("/userinfo", get(user_info))
            .with_state(provider.clone());
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                axum::serve(listener, routes).await.unwrap();
            });
        });
        provider
    }

    pub(crate) fn issuer(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Adds an account, or changes its claims.
    pub(crate) fn add_account(&self, subject: &str, persona: Persona) {
        self.state.lock().unwrap().people.insert(subject.to_owned(), persona);
    }

    /// Signs with a new key from here on.
    pub(crate) fn rotate(&self) {
        self.state.lock().unwrap().keys.push(Key::generate());
    }

    fn id_token(&self, code: &Code, persona: &Persona) -> Option<String> {
        let fault = persona.fault;
        let now = SystemClock.now().as_seconds();
        let mut claims = json!({
            "iss": self.issuer(), "sub": code.subject, "aud": CLIENT_ID,
            "iat": now, "exp": now + 600, "nonce": code.nonce,
        });
        let given = persona.claims.as_object().cloned().unwrap_or_default();
        claims.as_object_mut().unwrap().extend(given);
        match fault {
            Some(Fault::Nonce) => claims["nonce"] = json!("another"),
            Some(Fault::NoNonce) => claims["nonce"] = Value::Null,
            Some(Fault::Audience) => claims["aud"] = json!("another-client"),
            Some(Fault::SecondAudience) => claims["aud"] = json!([CLIENT_ID, "another-client"]),
            Some(Fault::Issuer) => claims["iss"] = json!("https://accounts.example.com"),
            Some(Fault::Expired) => claims["exp"] = json!(now - 1),
            _ => {}
        }
        let state = self.state.lock().unwrap();
        let key = state.keys.last().unwrap();
        let header = Header { kid: Some(key.kid.clone()), ..Header::new(Algorithm::ES256) };
        let other = Key::generate();
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        match fault {
            Some(Fault::Missing) => None,
            Some(Fault::Unsigned) => Some(format!("{}.{}.", part(&json!({"alg": "none"})), part(&claims))),
            Some(Fault::Symmetric) => {
                let secret = EncodingKey::from_secret(CLIENT_SECRET.as_bytes());
                Some(jsonwebtoken::encode(&Header::new(Algorithm::HS256), &claims, &secret).unwrap())
            }
            Some(Fault::Signature) => Some(jsonwebtoken::encode(&header, &claims, &other.secret).unwrap()),
            Some(Fault::UnknownKey) => {
                let header = Header { kid: Some(other.kid), ..header };
                Some(jsonwebtoken::encode(&header, &claims, &other.secret).unwrap())
            }
            _ => Some(jsonwebtoken::encode(&header, &claims, &key.secret).unwrap()),
        }
    }
}

async fn metadata(State(provider): State<Provider>) -> Json<Value> {
    let issuer = provider.issuer();
    Json(json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{issuer}/authorize"),
        "token_endpoint": format!("{issuer}/token"),
        "userinfo_endpoint": format!("{issuer}/userinfo"),
        "jwks_uri": format!("{issuer}/keys"),
        "response_types_supported": ["code"],
        "subject_types_supported": ["public"],
        // A provider that also offers algorithms that clients must not accept.
        "id_token_signing_alg_values_supported": ["ES256", "HS256", "none"],
    }))
}

async fn keys(State(provider): State<Provider>) -> Json<Value> {
    let state = provider.state.lock().unwrap();
    Json(json!({"keys": state.keys.iter().map(Key::jwk).collect::<Vec<_>>()}))
}

/// A non-standard parameter, `as`, names the person who signs in.
async fn authorize(State(provider): State<Provider>, RawQuery(query): RawQuery) -> Response {
    let asked = fields(&query.unwrap_or_default());
    let given = |name: &str| asked.get(name).cloned().unwrap_or_default();
    let is_right = given("client_id") == CLIENT_ID
        && given("response_type") == "code"
        && given("scope").split(' ').filter(|scope| *scope == "openid").count() == 1
        && given("code_challenge_method") == "S256"
        && given("redirect_uri").ends_with("/oauth/oidc/callback")
        && [given("code_challenge"), given("nonce"), given("state")].iter().all(|text| text.len() >= 43);
    let mut state = provider.state.lock().unwrap();
    if !is_right || !state.people.contains_key(&given("as")) {
        return (StatusCode::BAD_REQUEST, format!("{asked:?}")).into_response();
    }
    let code = random();
    let kept = Code {
        subject: given("as"),
        redirect_uri: given("redirect_uri"),
        challenge: given("code_challenge"),
        nonce: given("nonce"),
    };
    state.codes.insert(code.clone(), kept);
    let answer = encoded([("code", code.as_str()), ("state", &given("state"))]);
    Redirect::to(&format!("{}?{answer}", given("redirect_uri"))).into_response()
}

async fn token(State(provider): State<Provider>, headers: HeaderMap, body: String) -> Response {
    let refused = |error: &str| (StatusCode::BAD_REQUEST, Json(json!({"error": error}))).into_response();
    let proof = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    if proof != Some(basic(CLIENT_ID, CLIENT_SECRET).as_str()) {
        return refused("invalid_client");
    }
    let sent = fields(&body);
    let given = |name: &str| sent.get(name).cloned().unwrap_or_default();
    let Some(code) = provider.state.lock().unwrap().codes.remove(&given("code")) else {
        return refused("invalid_grant");
    };
    let digest = sha256(given("code_verifier").as_bytes());
    let is_theirs = URL_SAFE_NO_PAD.encode(digest) == code.challenge;
    if !is_theirs || given("redirect_uri") != code.redirect_uri || given("grant_type") != "authorization_code"
    {
        return refused("invalid_grant");
    }
    let persona = provider.state.lock().unwrap().people.get(&code.subject).cloned().unwrap_or_default();
    let access = random();
    provider.state.lock().unwrap().access.insert(access.clone(), code.subject.clone());
    let mut answer = json!({"access_token": access, "token_type": "Bearer", "expires_in": 600});
    if let Some(id_token) = provider.id_token(&code, &persona) {
        answer["id_token"] = json!(id_token);
    }
    Json(answer).into_response()
}

async fn user_info(State(provider): State<Provider>, headers: HeaderMap) -> Response {
    let proof = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let state = provider.state.lock().unwrap();
    let Some(subject) = proof.strip_prefix("Bearer ").and_then(|token| state.access.get(token)) else {
        return StatusCode::UNAUTHORIZED.into_response();
    };
    let mut claims = json!({"sub": subject});
    let persona = state.people.get(subject).cloned().unwrap_or_default();
    claims.as_object_mut().unwrap().extend(persona.userinfo.as_object().cloned().unwrap_or_default());
    Json(claims).into_response()
}

fn sha256(bytes: &[u8]) -> Vec<u8> {
    use sha2::Digest as _;
    sha2::Sha256::digest(bytes).to_vec()
}
