//! A fake OpenAI-compatible `/embeddings` endpoint: texts that share words are near each other, and some words are
//! synonyms to it.

use std::net::{Ipv4Addr, TcpListener as StdListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::callers::Caller;
use super::mcp;
use super::wait::eventually;

const DIMENSIONS: usize = 64;
const KEY: &str = "embedder-s3cret";
/// Synonyms that only this endpoint knows.
const SYNONYMS: [(&str, &str); 2] = [("quokka", "marsupial"), ("espresso", "beverage")];

/// The endpoint; it serves as long as the test's runtime runs.
#[derive(Debug, Clone)]
pub(crate) struct EmbedderServer {
    address: String,
    state: Arc<ServerState>,
}

#[derive(Debug, Default)]
struct ServerState {
    is_down: AtomicBool,
    are_batches_stalled: AtomicBool,
    is_stalled: AtomicBool,
    calls: AtomicUsize,
}

impl EmbedderServer {
    pub(crate) fn start() -> Self {
        let listener = StdListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let listener = TcpListener::from_std(listener).unwrap();
        let state = Arc::new(ServerState::default());
        let router = Router::new().route("/v1/embeddings", post(answer)).with_state(Arc::clone(&state));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { address, state }
    }

    /// Environment that makes this endpoint a process's embedder; `model` names its vectors.
    pub(crate) fn environment(&self, model: &str) -> Vec<(&'static str, String)> {
        vec![
            ("CAIRN_EMBEDDER", format!("openai:http://{}/v1", self.address)),
            ("CAIRN_EMBEDDER_MODEL", model.to_owned()),
            ("CAIRN_EMBEDDER_KEY", KEY.to_owned()),
            ("CAIRN_EMBEDDER_PAUSE_MS", "100".to_owned()),
            // Long enough that a loaded machine does not cause the timeout.
            ("CAIRN_EMBEDDER_QUERY_TIMEOUT_MS", "10000".to_owned()),
        ]
    }

    /// Whether every call is answered with 503.
    pub(crate) fn set_down(&self, is_down: bool) {
        self.state.is_down.store(is_down, Ordering::SeqCst);
    }

    /// Whether calls with more than one text hang, as if they were slow.
    pub(crate) fn set_batches_stalled(&self, are_batches_stalled: bool) {
        self.state.are_batches_stalled.store(are_batches_stalled, Ordering::SeqCst);
    }

    /// Whether every call hangs, as if it were slow.
    pub(crate) fn set_stalled(&self, is_stalled: bool) {
        self.state.is_stalled.store(is_stalled, Ordering::SeqCst);
    }

    pub(crate) fn calls(&self) -> usize {
        self.state.calls.load(Ordering::SeqCst)
    }
}

/// Waits until searches use the endpoint's vectors: until then the built-in embedder answers and may well find the
/// same.
pub(crate) async fn wait_until_active(caller: &impl Caller, model: &str) {
    let embedder = json!(format!("openai-{model}"));
    eventually("the endpoint's index answers", async || {
        let overview = mcp::call_json(caller, "get_workspace_overview", json!({})).await;
        let indexing = &overview["indexing"];
        (indexing["embedder"] == embedder && indexing.get("nextEmbedder").is_none()).then_some(())
    })
    .await;
}

async fn answer(
    State(state): State<Arc<ServerState>>,
    headers: HeaderMap,
    Json(body): Json<Value>,
) -> Response {
    state.calls.fetch_add(1, Ordering::SeqCst);
    if headers.get("authorization").and_then(|value| value.to_str().ok()) != Some(&format!("Bearer {KEY}")) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    if state.is_down.load(Ordering::SeqCst) {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let texts: Vec<String> = serde_json::from_value(body["input"].clone()).unwrap();
    while state.is_stalled.load(Ordering::SeqCst)
        || (texts.len() > 1 && state.are_batches_stalled.load(Ordering::SeqCst))
    {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let embedded =
        texts.iter().enumerate().map(|(index, text)| json!({"index": index, "embedding": vector(text)}));
    Json(json!({"data": embedded.collect::<Vec<_>>(), "usage": {"total_tokens": texts.len()}}))
        .into_response()
}

fn vector(text: &str) -> Vec<f32> {
    let mut vector = vec![0.01; DIMENSIONS];
    for word in text.to_lowercase().split(|character: char| !character.is_alphanumeric()) {
        let known = SYNONYMS.iter().find(|(other, _)| *other == word).map_or(word, |(_, meaning)| meaning);
        let hash =
            known.bytes().fold(7_usize, |hash, byte| hash.wrapping_mul(31).wrapping_add(usize::from(byte)));
        if !word.is_empty() {
            vector[hash % DIMENSIONS] += 1.0;
        }
    }
    vector
}
