//! A small HTTP client: one request, one reply, and failures that show both.

use std::future::IntoFuture;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;
use reqwest::{Client, Method, RequestBuilder};
use serde::Serialize;
use serde_json::Value;

/// The header that carries a write's position in the change feed.
pub(crate) const CHANGE: &str = "x-cairn-change";

/// The base URL of a deployment and a connection pool. A runtime ends with its test, and connections end with it, so
/// every scenario has its own. It presents itself as a proxy that forwards for a unique source address: limits per
/// address are not shared with other scenarios.
#[derive(Debug, Clone)]
pub(crate) struct Http {
    base_url: String,
    client: Client,
    address: String,
}

/// The number of addresses handed out.
static ADDRESSES: AtomicU32 = AtomicU32::new(1);

/// An address that no other caller has.
pub(crate) fn fresh_address() -> String {
    let [_, high, middle, low] = ADDRESSES.fetch_add(1, Ordering::Relaxed).to_be_bytes();
    format!("10.{high}.{middle}.{low}")
}

impl Http {
    pub(crate) fn new(base_url: &str) -> Self {
        // rustls has no default crypto provider in this build.
        cairn_chassis::outbound::install_crypto();
        let client =
            Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build().unwrap();
        Self { base_url: base_url.to_owned(), client, address: fresh_address() }
    }

    /// The source address that the proxy header claims.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> Request {
        let label = format!("{method} {path}");
        let builder = self.client.request(method, format!("{}{path}", self.base_url));
        Request { label, builder: builder.header("x-forwarded-for", &self.address) }
    }
}

/// A request builder; awaiting it sends the request.
#[derive(Debug)]
#[must_use = "a request is sent by awaiting it"]
pub(crate) struct Request {
    label: String,
    builder: RequestBuilder,
}

impl Request {
    pub(crate) fn json(self, body: impl Serialize) -> Self {
        Self { builder: self.builder.json(&body), ..self }
    }

    pub(crate) fn body(self, content_type: &str, body: impl Into<Bytes>) -> Self {
        Self { builder: self.builder.header("content-type", content_type).body(body.into()), ..self }
    }

    pub(crate) fn header(self, name: &str, value: impl AsRef<str>) -> Self {
        Self { builder: self.builder.header(name, value.as_ref()), ..self }
    }

    /// Requires the response to reflect this write.
    pub(crate) fn after(self, change: &str) -> Self {
        self.header(CHANGE, change)
    }

    /// Sends it where a refused or broken connection is an expected outcome.
    pub(crate) async fn attempt(self) -> Result<Reply, String> {
        let failed = |error: reqwest::Error| format!("{}: {error:?}", self.label);
        let response = self.builder.send().await.map_err(failed)?;
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        let body = response.bytes().await.map_err(failed)?;
        Ok(Reply { label: self.label, status, headers, body })
    }
}

impl Request {
    /// Opens a stream of server-sent events.
    pub(crate) async fn events(self) -> Events {
        let response = self.builder.send().await.unwrap_or_else(|error| panic!("{}: {error:?}", self.label));
        assert_eq!(response.status().as_u16(), 200, "{}", self.label);
        let kind = response.headers().get("content-type").and_then(|kind| kind.to_str().ok());
        assert_eq!(kind, Some("text/event-stream"), "{}", self.label);
        Events { label: self.label, response, text: String::new() }
    }
}

/// A stream of server-sent events.
#[derive(Debug)]
pub(crate) struct Events {
    label: String,
    response: reqwest::Response,
    /// Received and not yet parsed.
    text: String,
}

/// A received event.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) id: Option<String>,
    pub(crate) data: Value,
}

impl Events {
    /// The next message without a name, as MCP sends them.
    pub(crate) async fn next_message(&mut self) -> Option<Value> {
        self.next("").await.map(|event| event.data)
    }

    /// The next event of that name; others and comments are skipped. `None` when the stream has ended.
    pub(crate) async fn next(&mut self, name: &str) -> Option<Event> {
        loop {
            while let Some((event, rest)) = self.text.split_once("\n\n") {
                let field = |name: &str| {
                    let begin = format!("{name}: ");
                    event.lines().find_map(|line| line.strip_prefix(begin.as_str())).map(ToOwned::to_owned)
                };
                let is_wanted = field("event").unwrap_or_default() == name && field("data").is_some();
                let (id, data) = (field("id"), field("data"));
                self.text = rest.to_owned();
                if is_wanted {
                    let data = serde_json::from_str(&data.unwrap_or_default()).unwrap();
                    return Some(Event { id, data });
                }
            }
            let chunk = tokio::time::timeout(super::wait::LIMIT, self.response.chunk()).await;
            let chunk = chunk.unwrap_or_else(|_| panic!("{}: waited in vain for '{name}'", self.label));
            // A server that shuts down may break the connection instead of ending the body.
            let bytes = chunk.ok()??;
            self.text.push_str(&String::from_utf8_lossy(&bytes));
        }
    }
}

impl IntoFuture for Request {
    type Output = Reply;
    type IntoFuture = Pin<Box<dyn Future<Output = Reply> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.attempt().await.unwrap_or_else(|error| panic!("{error}")) })
    }
}

/// A complete response.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    label: String,
    pub(crate) status: u16,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) body: Bytes,
}

impl Reply {
    /// Fails unless the response has this status, and shows the response.
    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{} answered: {}", self.label, self.text());
        self
    }

    /// Fails unless the response is the contract's error body with this code; returns the body.
    #[track_caller]
    pub(crate) fn expect_error(self, status: u16, code: &str) -> Value {
        let reply = self.expect(status);
        let body = reply.json();
        assert_eq!(body["error"], code, "{} answered: {body}", reply.label);
        assert!(
            body["message"].as_str().is_some_and(|text| !text.is_empty()),
            "no message for a person: {body}"
        );
        assert_eq!(body["requestId"].as_str(), reply.header("x-request-id"), "the body's request id: {body}");
        body
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| {
            panic!("{}: {} is not JSON ({error}): {}", self.label, self.status, self.text())
        })
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The position of this write in the change feed.
    #[track_caller]
    pub(crate) fn change(&self) -> String {
        let change = self.header(CHANGE);
        change.unwrap_or_else(|| panic!("{}: a write without {CHANGE}", self.label)).to_owned()
    }
}

/// The `id` of a record.
#[track_caller]
pub(crate) fn id(record: &Value) -> String {
    text(record, "id")
}

/// A field that must be a string.
#[track_caller]
pub(crate) fn text(record: &Value, field: &str) -> String {
    record[field].as_str().unwrap_or_else(|| panic!("no text `{field}` in {record}")).to_owned()
}

/// The entries of an array.
#[track_caller]
pub(crate) fn items(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("not an array: {value}"))
}

/// One field of every entry of an array.
#[track_caller]
pub(crate) fn each<'a>(list: &'a Value, field: &str) -> Vec<&'a str> {
    items(list)
        .iter()
        .map(|item| item[field].as_str().unwrap_or_else(|| panic!("no text `{field}` in {item}")))
        .collect()
}
