//! A fake GitHub with one repository, scripted by a test. It accepts one token, and echoes every token that it
//! receives.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use axum::{Json, Router};
use reqwest::StatusCode;
use reqwest::header::{AUTHORIZATION, RETRY_AFTER};
use serde_json::{Value, json};

use super::scripted;

pub(crate) const TOKEN: &str = "github_pat_zqgoodtokenx1234";

/// A running server; its thread ends with the test process.
#[derive(Debug, Clone)]
pub(crate) struct GitHub {
    address: SocketAddr,
    state: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    issues: Vec<Value>,
    requests: u64,
    /// Pending 429 responses, each with its `Retry-After` in seconds.
    limits: Vec<u32>,
}

impl GitHub {
    pub(crate) fn start() -> Self {
        let (address, listener) = scripted::listen();
        let server = Self { address, state: Arc::default() };
        scripted::serve(listener, Router::new().fallback(answer).with_state(server.clone()));
        server
    }

    /// The body that connects a source of its issues.
    pub(crate) fn draft(&self, name: &str, token: &str) -> Value {
        let base = format!("http://{}", self.address);
        let settings = json!({"owner": "acme", "repo": "shop", "content": ["issues"], "baseUrl": base});
        json!({"name": name, "provider": "github", "settings": settings, "credentials": {"token": token}})
    }

    pub(crate) fn open_issue(&self, number: u64, title: &str, body: &str) {
        let issue = json!({
            "number": number, "title": title, "body": body, "state": "open", "user": {"login": "alice"}, "labels": [],
            "comments": 0, "updated_at": format!("2026-11-01T12:00:{:02}Z", number % 60),
            "html_url": format!("https://github.example/acme/shop/issues/{number}"),
        });
        self.state.lock().unwrap().issues.push(issue);
    }

    /// The next response is a 429.
    pub(crate) fn rate_limit_next(&self, seconds: u32) {
        self.state.lock().unwrap().limits.push(seconds);
    }

    pub(crate) fn requests(&self) -> u64 {
        self.state.lock().unwrap().requests
    }
}

async fn answer(State(server): State<GitHub>, request: Request) -> Response {
    let mut state = server.state.lock().unwrap();
    state.requests += 1;
    let sent = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let message = Json(json!({"message": format!("you sent {sent}")}));
    if let Some(seconds) = state.limits.pop() {
        return (StatusCode::TOO_MANY_REQUESTS, [(RETRY_AFTER, seconds.to_string())], message)
            .into_response();
    }
    if sent != format!("Bearer {TOKEN}") {
        return (StatusCode::UNAUTHORIZED, message).into_response();
    }
    match request.uri().path() {
        "/user" => Json(json!({"login": "reader"})).into_response(),
        "/repos/acme/shop" => {
            let web = "https://github.example/acme/shop";
            Json(json!({"name": "shop", "html_url": web, "default_branch": "main"})).into_response()
        }
        "/repos/acme/shop/issues" => Json(state.issues.clone()).into_response(),
        "/repos/acme/shop/issues/comments" | "/repos/acme/shop/pulls/comments" => {
            Json(json!([])).into_response()
        }
        _ => (StatusCode::NOT_FOUND, message).into_response(),
    }
}
