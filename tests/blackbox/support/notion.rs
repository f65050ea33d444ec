//! A fake Notion with nested pages, scripted by a test. It accepts one token, and echoes every token that it receives.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use axum::{Json, Router};
use reqwest::StatusCode;
use reqwest::header::{AUTHORIZATION, RETRY_AFTER};
use serde_json::{Value, json};

use super::scripted;

pub(crate) const TOKEN: &str = "ntn_zqgoodtokenx5678";

/// A running server; its thread ends with the test process.
#[derive(Debug, Clone)]
pub(crate) struct Notion {
    address: SocketAddr,
    state: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    pages: BTreeMap<String, StoredPage>,
    /// The minute of the latest edit: each edit is a minute after the previous one.
    minute: u32,
    requests: u64,
    /// Pending 429 responses, each with its `Retry-After` in seconds.
    limits: Vec<u32>,
}

#[derive(Debug)]
struct StoredPage {
    title: String,
    text: String,
    minute: u32,
    /// The parent page; the search does not return nested pages.
    parent: Option<String>,
    is_in_trash: bool,
}

impl StoredPage {
    fn edited_at(&self) -> String {
        format!("2026-11-01T{:02}:{:02}:00.000Z", self.minute / 60, self.minute % 60)
    }

    fn json(&self, id: &str) -> Value {
        let title = json!({"type": "title", "title": [{"plain_text": self.title}]});
        json!({"object": "page", "id": id, "last_edited_time": self.edited_at(), "in_trash": self.is_in_trash,
            "url": format!("https://notion.example/{id}"), "properties": {"title": title}})
    }

    fn block(&self, id: &str) -> Value {
        json!({"object": "block", "id": id, "type": "child_page", "has_children": true, "child_page": {"title": self.title},
            "last_edited_time": self.edited_at()})
    }
}

impl Notion {
    pub(crate) fn start() -> Self {
        let (address, listener) = scripted::listen();
        let server = Self { address, state: Arc::default() };
        scripted::serve(listener, Router::new().fallback(answer).with_state(server.clone()));
        server
    }

    /// The body that connects a source of its pages.
    pub(crate) fn draft(&self, name: &str, mode: &str) -> Value {
        let settings = json!({"baseUrl": format!("http://{}", self.address)});
        json!({"name": name, "provider": "notion", "mode": mode, "settings": settings, "credentials": {"token": TOKEN}})
    }

    /// Creates or rewrites a page.
    pub(crate) fn write(&self, id: &str, parent: Option<&str>, title: &str, text: &str) {
        let mut state = self.state.lock().unwrap();
        state.minute += 1;
        let (title, text, parent) = (title.to_owned(), text.to_owned(), parent.map(str::to_owned));
        let page = StoredPage { title, text, minute: state.minute, parent, is_in_trash: false };
        state.pages.insert(id.to_owned(), page);
    }

    /// Moves a page to the trash.
    pub(crate) fn trash(&self, id: &str) {
        let mut state = self.state.lock().unwrap();
        state.minute += 1;
        let minute = state.minute;
        let page = state.pages.get_mut(id).unwrap();
        (page.minute, page.is_in_trash) = (minute, true);
    }

    /// The next response is a 429.
    pub(crate) fn rate_limit_next(&self, seconds: u32) {
        self.state.lock().unwrap().limits.push(seconds);
    }

    pub(crate) fn requests(&self) -> u64 {
        self.state.lock().unwrap().requests
    }
}

fn list(results: Vec<Value>) -> Response {
    Json(json!({"object": "list", "results": results, "has_more": false, "next_cursor": null}))
        .into_response()
}

async fn answer(State(server): State<Notion>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let body = to_bytes(body, 1_000_000).await.unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let mut state = server.state.lock().unwrap();
    state.requests += 1;
    let sent = head.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let message = Json(json!({"object": "error", "message": format!("you sent {sent}")}));
    if let Some(seconds) = state.limits.pop() {
        return (StatusCode::TOO_MANY_REQUESTS, [(RETRY_AFTER, seconds.to_string())], message)
            .into_response();
    }
    if sent != format!("Bearer {TOKEN}") {
        return (StatusCode::UNAUTHORIZED, message).into_response();
    }
    let parts: Vec<&str> = head.uri.path().trim_start_matches('/').split('/').collect();
    match parts.as_slice() {
        ["v1", "users", "me"] => {
            Json(json!({"object": "user", "bot": {"workspace_name": "Acme"}})).into_response()
        }
        ["v1", "search"] if body["filter"]["value"] == "data_source" => list(Vec::new()),
        ["v1", "search"] => {
            let (query, wants_trash) =
                (body["query"].as_str().unwrap_or_default(), body["filter"]["in_trash"] == true);
            let mut found: Vec<_> = state.pages.iter().collect();
            found.retain(|(_, page)| {
                page.is_in_trash == wants_trash
                    && (wants_trash || page.parent.is_none())
                    && page.title.contains(query)
            });
            found.sort_by_key(|(_, page)| std::cmp::Reverse(page.minute));
            list(found.into_iter().map(|(id, page)| page.json(id)).collect())
        }
        ["v1", "blocks", parent, "children"] => {
            let below = state
                .pages
                .iter()
                .filter(|(_, page)| page.parent.as_deref() == Some(parent) && !page.is_in_trash);
            list(below.map(|(id, page)| page.block(id)).collect())
        }
        ["v1", "pages", id] if state.pages.contains_key(*id) => {
            Json(state.pages[*id].json(id)).into_response()
        }
        ["v1", "pages", id, "markdown"] if state.pages.contains_key(*id) => {
            let markdown = &state.pages[*id].text;
            Json(json!({"markdown": markdown, "truncated": false, "unknown_block_ids": []})).into_response()
        }
        _ => (StatusCode::NOT_FOUND, message).into_response(),
    }
}
