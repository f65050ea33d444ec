//! JSON-RPC with servers of both protocol generations: the stateless one since 2026-07-28, and sessions that start with `initialize` before
//! that. The generation is probed once.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Response, StatusCode, header};
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::sync::Mutex;

use super::sse;
use crate::rest::{Api, read};
use crate::{Call, Fault};

const MODERN: &str = "2026-07-28";
const LEGACY: &str = "2025-11-25";
/// Protocol versions that legacy servers may answer `initialize` with.
const LEGACIES: [&str; 3] = [LEGACY, "2025-06-18", "2025-03-26"];
/// Bytes of a session id.
const MAX_SESSION_ID_BYTES: usize = 1_024;
/// Bytes of the response to a handshake.
const MAX_GREETING_BYTES: usize = 256 * 1024;

const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// The outcome of a request that the server processed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    /// The result, as JSON text.
    Result(String),
    /// An error with this code. Its message is dropped.
    Error(i64),
}

/// A connection to a server.
#[derive(Debug)]
pub(super) struct Session {
    api: Api,
    greeted: Mutex<Option<Greeting>>,
}

/// The result of the handshake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Greeting {
    era: Era,
    /// Its name.
    pub(super) name: Option<String>,
    /// Whether it supports resources, and tools.
    pub(super) has_resources: bool,
    pub(super) has_tools: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Era {
    Modern,
    Legacy { version: &'static str, session: Option<HeaderValue> },
}

#[derive(Deserialize)]
struct Discovered {
    #[serde(rename = "supportedVersions", default)]
    supported_versions: Vec<String>,
    #[serde(default)]
    capabilities: Capabilities,
    #[serde(rename = "_meta", default)]
    meta: Meta,
}

#[derive(Default, Deserialize)]
struct Meta {
    #[serde(rename = "io.modelcontextprotocol/serverInfo", default)]
    server: Option<Named>,
}

#[derive(Deserialize)]
struct Initialized {
    #[serde(rename = "protocolVersion")]
    protocol_version: String,
    #[serde(default)]
    capabilities: Capabilities,
    #[serde(rename = "serverInfo", default)]
    server: Option<Named>,
}

#[derive(Default, Deserialize)]
struct Capabilities {
    #[serde(default, deserialize_with = "is_there")]
    resources: bool,
    #[serde(default, deserialize_with = "is_there")]
    tools: bool,
}

#[derive(Deserialize)]
struct Named {
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    name: Option<String>,
}

fn is_there<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Option::<IgnoredAny>::deserialize(deserializer).map(|value| value.is_some())
}

impl Session {
    pub(super) fn new(api: Api) -> Self {
        Self { api, greeted: Mutex::new(None) }
    }

    /// Calls a method. An expired session is restarted once.
    pub(super) async fn request(
        &self,
        call: &Call,
        method: &'static str,
        params: Value,
        most_bytes: usize,
    ) -> Result<Answer, Fault> {
        let greeting = self.greet(call).await?;
        let response = self.exchange(call, &greeting.era, method, &params, most_bytes).await?;
        if response.status() != StatusCode::NOT_FOUND || !greeting.era.has_session() {
            return answer(&response);
        }
        *self.greeted.lock().await = None;
        let greeting = self.greet(call).await?;
        answer(&self.exchange(call, &greeting.era, method, &params, most_bytes).await?)
    }

    /// The cached result of the handshake.
    pub(super) async fn greet(&self, call: &Call) -> Result<Greeting, Fault> {
        let mut greeted = self.greeted.lock().await;
        if let Some(greeting) = greeted.as_ref() {
            return Ok(greeting.clone());
        }
        let greeting = match self.discover(call).await? {
            Some(greeting) => greeting,
            None => self.initialize(call).await?,
        };
        *greeted = Some(greeting.clone());
        Ok(greeting)
    }

    /// Handshake of 2026-07-28; `None` for an older server, which can reject it in many ways.
    async fn discover(&self, call: &Call) -> Result<Option<Greeting>, Fault> {
        let asked =
            self.exchange(call, &Era::Modern, "server/discover", &json!({}), MAX_GREETING_BYTES).await?;
        match asked.status().as_u16() {
            401 => return Err(Fault::Credentials),
            403 => return Err(Fault::Forbidden),
            408 | 500..=599 => return Err(Fault::Unavailable),
            _ => {}
        }
        let Ok(Answer::Result(result)) = answer(&asked) else { return Ok(None) };
        let Ok(found) = read::<Discovered>(result.as_bytes()) else { return Ok(None) };
        if !found.supported_versions.iter().any(|version| version == MODERN) {
            return Ok(None);
        }
        Ok(Some(Greeting::new(Era::Modern, found.capabilities, found.meta.server)))
    }

    async fn initialize(&self, call: &Call) -> Result<Greeting, Fault> {
        let params = json!({ "protocolVersion": LEGACY, "capabilities": {}, "clientInfo": client() });
        let beginning = Era::Legacy { version: LEGACY, session: None };
        let response = self.exchange(call, &beginning, "initialize", &params, MAX_GREETING_BYTES).await?;
        let Answer::Result(result) = answer(&response)? else {
            return Err(Fault::broken("the server begins no session: is the address that of an MCP server?"));
        };
        let found: Initialized = read(result.as_bytes())?;
        let version = LEGACIES.into_iter().find(|version| *version == found.protocol_version);
        let version =
            version.ok_or(Fault::broken("the server speaks no version of MCP that is spoken here"))?;
        let session =
            response.headers().get(SESSION_ID).filter(|id| id.len() <= MAX_SESSION_ID_BYTES).cloned();
        let session = session.map(|mut id| {
            id.set_sensitive(true);
            id
        });
        let era = Era::Legacy { version, session };
        let note = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        let noted = call.exchange(self.message(&era, &note)?, MAX_GREETING_BYTES).await?;
        crate::call::judge(noted.status())?;
        Ok(Greeting::new(era, found.capabilities, found.server))
    }

    async fn exchange(
        &self,
        call: &Call,
        era: &Era,
        method: &'static str,
        params: &Value,
        most_bytes: usize,
    ) -> Result<Response<Bytes>, Fault> {
        let mut params = params.clone();
        if let (Era::Modern, Value::Object(fields)) = (era, &mut params) {
            fields.insert("_meta".to_owned(), modern_meta());
        }
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let mut request = self.message(era, &message)?;
        if *era == Era::Modern {
            let headers = request.headers_mut();
            headers.insert(METHOD, HeaderValue::from_static(method));
            let name = match method {
                "resources/read" => params.get("uri"),
                "tools/call" => params.get("name"),
                _ => None,
            };
            if let Some(name) = name.and_then(Value::as_str) {
                headers.insert(NAME, header_text(name)?);
            }
        }
        call.exchange(request, most_bytes).await
    }

    fn message(&self, era: &Era, message: &Value) -> Result<Request<Bytes>, Fault> {
        let mut request = self.api.posting(self.api.base(), message)?;
        let headers = request.headers_mut();
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        let (version, session) = match era {
            Era::Modern => (MODERN, None),
            Era::Legacy { version, session } => (*version, session.clone()),
        };
        headers.insert(PROTOCOL_VERSION, HeaderValue::from_static(version));
        if let Some(session) = session {
            headers.insert(SESSION_ID, session);
        }
        Ok(request)
    }
}

impl Era {
    const fn has_session(&self) -> bool {
        matches!(self, Self::Legacy { session: Some(_), .. })
    }
}

impl Greeting {
    fn new(era: Era, capabilities: Capabilities, server: Option<Named>) -> Self {
        let name = server.and_then(|server| server.title.or(server.name));
        Self { era, name, has_resources: capabilities.resources, has_tools: capabilities.tools }
    }
}

fn client() -> Value {
    json!({ "name": "cairn", "version": env!("CARGO_PKG_VERSION") })
}

fn modern_meta() -> Value {
    let mut meta = Map::new();
    meta.insert("io.modelcontextprotocol/protocolVersion".to_owned(), MODERN.into());
    meta.insert("io.modelcontextprotocol/clientCapabilities".to_owned(), json!({}));
    meta.insert("io.modelcontextprotocol/clientInfo".to_owned(), client());
    meta.into()
}

/// Encodes a name for a header: as it is, or as tagged base64 of its UTF-8.
fn header_text(name: &str) -> Result<HeaderValue, Fault> {
    let is_plain = name.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        && !name.starts_with("=?base64?")
        && name.trim() == name;
    let text =
        if is_plain { Cow::Borrowed(name) } else { format!("=?base64?{}?=", STANDARD.encode(name)).into() };
    HeaderValue::from_str(&text).map_err(|_| Fault::Refused)
}

/// The response to our request, plain or as server-sent events.
fn answer(response: &Response<Bytes>) -> Result<Answer, Fault> {
    match message(response) {
        Some(answer) => Ok(answer),
        None => {
            crate::call::judge(response.status())?;
            Err(Fault::broken("the server's answer is no JSON-RPC: is the address that of an MCP server?"))
        }
    }
}

fn message(response: &Response<Bytes>) -> Option<Answer> {
    let status = response.status();
    if status == StatusCode::UNAUTHORIZED || status == StatusCode::FORBIDDEN || status.is_server_error() {
        return None;
    }
    let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let is_stream =
        kind.is_some_and(|kind| kind.trim_start().to_ascii_lowercase().starts_with("text/event-stream"));
    if !is_stream {
        return reply(response.body());
    }
    let text = String::from_utf8_lossy(response.body());
    sse::events(&text).find_map(|event| reply(event.as_bytes()))
}

/// The message, if it is the response to our request and not a notification or request of the server.
fn reply(message: &[u8]) -> Option<Answer> {
    #[derive(Deserialize)]
    struct Reply<'a> {
        #[serde(borrow, default)]
        result: Option<&'a RawValue>,
        #[serde(default)]
        error: Option<Refusal>,
        #[serde(default)]
        method: Option<IgnoredAny>,
    }
    #[derive(Deserialize)]
    struct Refusal {
        code: i64,
    }
    let reply: Reply<'_> = serde_json::from_slice(message).ok()?;
    if reply.method.is_some() {
        return None;
    }
    let error = reply.error.map(|refusal| Answer::Error(refusal.code));
    error.or_else(|| reply.result.map(|result| Answer::Result(result.get().to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_in_a_header_is_plain_or_encoded() {
        assert_eq!(header_text("search").unwrap(), "search");
        assert_eq!(header_text("docs://ä").unwrap(), "=?base64?ZG9jczovL8Ok?=");
        assert_eq!(header_text(" a").unwrap(), "=?base64?IGE=?=");
        assert_eq!(header_text("=?base64?x?=").unwrap(), "=?base64?PT9iYXNlNjQ/eD89?=");
    }

    #[test]
    fn only_what_answers_us_is_the_answer() {
        assert_eq!(
            reply(br#"{"jsonrpc":"2.0","id":1,"result":{"a":1}}"#),
            Some(Answer::Result("{\"a\":1}".to_owned()))
        );
        assert_eq!(reply(br#"{"id":1,"error":{"code":-32601,"message":"x"}}"#), Some(Answer::Error(-32601)));
        for none in [
            r#"{"method":"notifications/progress","params":{}}"#,
            "{}",
            "[]",
            "<html>",
            "",
            r#"{"error":{}}"#,
        ] {
            assert_eq!(reply(none.as_bytes()), None, "{none}");
        }
    }
}
