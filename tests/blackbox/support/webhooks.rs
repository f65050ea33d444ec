//! A webhook receiver that a test scripts, and webhooks that deliver to it.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use reqwest::StatusCode;
use reqwest::header::{HeaderMap, LOCATION};
use serde_json::{Value, json};
use sha2::Sha256;

use super::callers::{Caller, Session};
use super::http::{Reply, id, text};
use super::scripted;
use super::wait::eventually;
use super::workspace::Workspace;

const MAX_BYTES: usize = 1 << 20;

/// A received message.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    headers: HeaderMap,
    raw: Vec<u8>,
    pub(crate) body: Value,
    /// The status that it was answered with.
    pub(crate) status: u16,
}

impl Received {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// The raw body.
    pub(crate) fn raw(&self) -> &[u8] {
        &self.raw
    }

    pub(crate) fn id(&self) -> &str {
        self.header("webhook-id")
    }

    /// The number of signatures it carries.
    pub(crate) fn signatures(&self) -> usize {
        self.header("webhook-signature").split(' ').count()
    }

    /// Whether it is signed with that secret, verified as the specification tells receivers to.
    pub(crate) fn is_signed_with(&self, secret: &str) -> bool {
        let key = STANDARD.decode(secret.strip_prefix("whsec_").unwrap()).unwrap();
        let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
        mac.update(format!("{}.{}.", self.id(), self.header("webhook-timestamp")).as_bytes());
        mac.update(&self.raw);
        let wanted = format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()));
        self.header("webhook-signature").split(' ').any(|signature| signature == wanted)
    }

    /// The kind and id of each item in it.
    pub(crate) fn changes(&self) -> Vec<(String, String)> {
        let changes = self.body["data"]["changes"].as_array().unwrap().iter();
        changes.map(|change| (text(change, "kind"), text(change, "id"))).collect()
    }
}

/// A running receiver; its thread ends with the test process.
#[derive(Debug, Clone)]
pub(crate) struct Receiver {
    address: SocketAddr,
    received: Arc<Mutex<Vec<Received>>>,
    answers: Arc<Mutex<u16>>,
}

impl Receiver {
    pub(crate) fn start() -> Self {
        let (address, listener) = scripted::listen();
        let receiver = Self { address, received: Arc::default(), answers: Arc::new(Mutex::new(204)) };
        scripted::serve(listener, Router::new().fallback(answer).with_state(receiver.clone()));
        receiver
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    /// Answers with that status from here on.
    pub(crate) fn answer_with(&self, status: u16) {
        *self.answers.lock().unwrap() = status;
    }

    pub(crate) fn all(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }

    /// The messages that were answered with success.
    pub(crate) fn accepted(&self) -> Vec<Received> {
        self.all().into_iter().filter(|one| (200..300).contains(&one.status)).collect()
    }

    /// Waits until an accepted message contains that item.
    pub(crate) async fn wait_for(&self, item: &str) -> Received {
        eventually(&format!("the receiver is told of {item}"), async || {
            let mut taken = self.accepted().into_iter();
            taken.find(|one| one.body["type"] == "changes" && one.changes().iter().any(|(_, id)| id == item))
        })
        .await
    }
}

async fn answer(State(receiver): State<Receiver>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let raw = to_bytes(body, MAX_BYTES).await.unwrap().to_vec();
    let body = serde_json::from_slice(&raw).unwrap_or_default();
    let status = *receiver.answers.lock().unwrap();
    receiver.received.lock().unwrap().push(Received { headers: parts.headers, raw, body, status });
    let answer = StatusCode::from_u16(status).unwrap();
    let headers = [(LOCATION, format!("{}/elsewhere", receiver.url()))];
    // A long response body, which Cairn must not read.
    if answer.is_redirection() {
        (answer, headers).into_response()
    } else {
        (answer, "x".repeat(100_000)).into_response()
    }
}

/// A webhook of a workspace, as someone who manages it sees it.
pub(crate) struct Webhook {
    pub(crate) session: Session,
    pub(crate) workspace: String,
    pub(crate) id: String,
    pub(crate) secret: String,
}

/// Creates a webhook with these fields besides its name and its URL.
pub(crate) async fn make(workspace: &Workspace, url: &str, more: Value) -> Webhook {
    make_as(&workspace.session, &workspace.id, url, more).await
}

/// Like [`Self::make`], in the workspace with that id.
pub(crate) async fn make_as(session: &Session, workspace: &str, url: &str, more: Value) -> Webhook {
    let mut draft = json!({"name": "Hook", "url": url});
    draft.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let path = format!("/api/workspaces/{workspace}/webhooks");
    let made = session.post(&path).json(draft).await.expect(201).json();
    Webhook {
        session: session.clone(),
        workspace: workspace.to_owned(),
        id: id(&made),
        secret: text(&made, "secret"),
    }
}

impl Webhook {
    pub(crate) fn path(&self, rest: &str) -> String {
        format!("/api/workspaces/{}/webhooks/{}{rest}", self.workspace, self.id)
    }

    pub(crate) async fn get(&self) -> Value {
        self.session.get(&self.path("")).await.expect(200).json()
    }

    pub(crate) async fn change(&self, patch: Value) -> Reply {
        self.session.patch(&self.path("")).json(patch).await
    }

    pub(crate) async fn deliveries(&self, query: &str) -> Value {
        self.session.get(&self.path(&format!("/deliveries{query}"))).await.expect(200).json()
    }

    /// The webhook, once it has this status.
    pub(crate) async fn wait_for_status(&self, status: &str) -> Value {
        eventually(&format!("the webhook is {status}"), async || {
            let shown = self.get().await;
            (shown["status"] == status).then_some(shown)
        })
        .await
    }
}
