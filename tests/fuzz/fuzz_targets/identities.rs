//! Answers a sign-in at an OpenID Connect provider with any bytes: the answer for a code, the ID token in it, and what the provider tells
//! of the person. Its metadata and keys are those of a provider that is right.
//!
//! To run it: `tests/fuzz/run.sh identities`.
#![no_main]

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cairn_fuzz::parts;
use cairn_fuzz::requests::{HOST, PEER, address};
use cairn_fuzz::services::{CLIENT_ID, open};
use ed25519_dalek::{Signer as _, SigningKey};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tower::ServiceExt as _;

const START: &str = "/oauth/oidc/start?return_to=%2F";
const CALLBACK: &str = "/oauth/oidc/callback";
const SESSION: &str = "cairn_session=";
/// What stands for the address of the provider, the nonce of the sign-in and the ID token in an input.
const PLACES: [&str; 3] = ["$issuer", "$nonce", "$token"];

struct Stage {
    runtime: Runtime,
    issuer: String,
    http: Router,
    key: SigningKey,
    _folder: TempDir,
}

/// What the provider answers now.
#[derive(Default)]
struct Script {
    /// For a code.
    token: Vec<u8>,
    /// Of the person.
    told: Vec<u8>,
}

static SCRIPT: LazyLock<Mutex<Script>> = LazyLock::new(Mutex::default);

static STAGE: LazyLock<Stage> = LazyLock::new(|| {
    let runtime = Runtime::new().expect("a runtime");
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a port");
    let issuer = format!("http://{}", listener.local_addr().expect("an address"));
    let key = SigningKey::from_bytes(&[7; 32]);
    let point = URL_SAFE_NO_PAD.encode(key.verifying_key().to_bytes());
    let own = issuer.clone();
    let router: Router =
        Router::new().fallback(move |request: Request<Body>| answer(own.clone(), point.clone(), request));
    runtime.spawn(async move { axum::serve(listener, router).await });
    let folder = TempDir::new().expect("a folder");
    let (http, ..) = runtime.block_on(open(&folder, Some(issuer.clone())));
    let stage = Stage { runtime, issuer, http, key, _folder: folder };
    let begun = stage.runtime.block_on(stage.get(START, ""));
    assert!(begun.status().is_redirection(), "a sign-in begins: {}", begun.status());
    stage
});

fn script() -> MutexGuard<'static, Script> {
    SCRIPT.lock().unwrap_or_else(PoisonError::into_inner)
}

// The input in parts, which lines of `%%%%` divide: the claims of the ID token, what the provider tells of the person, its answer for
// the code, the header of the token and its signature; what is empty from the third on is as it should be.
fuzz_target!(|input: &[u8]| {
    let stage: &Stage = &STAGE;
    stage.runtime.block_on(stage.sign_in(input));
});

impl Stage {
    /// Nobody signs in but who the provider vouches for, to us, now.
    async fn sign_in(&self, input: &[u8]) {
        let begun = self.get(START, "").await;
        if !begun.status().is_redirection() {
            return;
        }
        let place = begun.headers()[header::LOCATION].to_str().expect("an address");
        let (_, query) = place.split_once('?').expect("a query");
        let asked: HashMap<String, String> = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        let nonce = asked["nonce"].clone();
        let claims = self.write(input, &nonce);
        let state: String = form_urlencoded::byte_serialize(asked["state"].as_bytes()).collect();
        let ticket = cookies(begun.headers()).next().unwrap_or_default().to_owned();
        let finished = self.get(&format!("{CALLBACK}?code=c&state={state}"), &ticket).await;
        assert_ne!(finished.status(), StatusCode::INTERNAL_SERVER_ERROR);
        let is_in = cookies(finished.headers())
            .any(|cookie| cookie.strip_prefix(SESSION).is_some_and(|secret| !secret.is_empty()));
        if !is_in {
            return;
        }
        let claims: Value = serde_json::from_slice(&claims).expect("claims");
        let audience = &claims["aud"];
        let is_ours =
            audience == CLIENT_ID || audience.as_array().is_some_and(|many| many.contains(&json!(CLIENT_ID)));
        assert!(is_ours && claims["iss"] == self.issuer && claims["nonce"] == nonce, "{claims}");
        assert!(claims["sub"].as_str().is_some_and(|subject| !subject.is_empty()), "{claims}");
    }

    /// Has the provider answer what an input says; tells the claims.
    fn write(&self, input: &[u8], nonce: &str) -> Vec<u8> {
        let [issuer_place, nonce_place, token_place] = PLACES;
        let mut parts = parts::divided(input);
        let mut next = || parts.next().unwrap_or_default();
        let filled = |part: &[u8]| match std::str::from_utf8(part) {
            Ok(text) => text.replace(issuer_place, &self.issuer).replace(nonce_place, nonce).into_bytes(),
            Err(_) => part.to_vec(),
        };
        let (claims, told) = (filled(next()), filled(next()));
        let (answer, head, signature) = (next(), next(), next());
        let head = if head.is_empty() { &br#"{"alg":"EdDSA","kid":"k"}"#[..] } else { head };
        let signed = format!("{}.{}", URL_SAFE_NO_PAD.encode(head), URL_SAFE_NO_PAD.encode(&claims));
        let signature = match signature {
            [] => self.key.sign(signed.as_bytes()).to_bytes().to_vec(),
            sent => sent.to_vec(),
        };
        let token = format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature));
        let answer = match std::str::from_utf8(answer) {
            Ok("") => json!({ "access_token": "a", "token_type": "Bearer", "id_token": token })
                .to_string()
                .into_bytes(),
            Ok(text) => text.replace(token_place, &token).into_bytes(),
            Err(_) => answer.to_vec(),
        };
        *script() = Script { token: answer, told };
        claims
    }

    async fn get(&self, path: &str, cookie: &str) -> Response<Body> {
        let request = Request::get(path)
            .header(header::HOST, HOST)
            .header(header::COOKIE, cookie)
            .header("x-forwarded-for", address())
            .extension(ConnectInfo(PEER));
        let request = request.body(Body::empty()).expect("a request");
        self.http.clone().oneshot(request).await.expect("an answer")
    }
}

/// Names and values of the cookies that an answer sets.
fn cookies(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let lines = headers.get_all(header::SET_COOKIE).iter().filter_map(|line| line.to_str().ok());
    lines.map(|line| line.split(';').next().unwrap_or_default())
}

async fn answer(issuer: String, point: String, request: Request<Body>) -> Response<Body> {
    let bytes = match request.uri().path() {
        "/.well-known/openid-configuration" => metadata(&issuer).to_string().into_bytes(),
        "/keys" => {
            let key = json!({ "kty": "OKP", "crv": "Ed25519", "use": "sig", "alg": "EdDSA", "kid": "k", "x": point });
            json!({ "keys": [key] }).to_string().into_bytes()
        }
        "/token" => script().token.clone(),
        _ => script().told.clone(),
    };
    let mut response = Response::new(Body::from(bytes));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn metadata(issuer: &str) -> Value {
    json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{issuer}/authorize"),
        "token_endpoint": format!("{issuer}/token"),
        "userinfo_endpoint": format!("{issuer}/userinfo"),
        "jwks_uri": format!("{issuer}/keys"),
        "response_types_supported": ["code"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["EdDSA"],
    })
}
