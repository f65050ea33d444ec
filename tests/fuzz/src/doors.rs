//! Every operation over HTTP, every page and every RPC, in this process, with all services. A panic ends a run, also one that the
//! services catch.
//!
//! Nothing goes on beside the requests (runs, deliveries, the feeds' followers), and what would ask addresses that an input names is left
//! out: `providers` reads what these answer.

use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use cairn_proto::auth::v1::{ExchangeRequest, ExchangeResponse};
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Limited};
use prost::Message as _;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tonic::service::Routes;
use tower::ServiceExt as _;

use crate::requests::{Caller, HOST, PEER, address, filled, over_grpc, over_http};
use crate::services::{Account, Served, open};

/// Bits of an input's first byte: it is a call over gRPC, and not a request over HTTP.
const OVER_GRPC: u8 = 1;
/// Over gRPC: the message frames itself. Over HTTP: it comes from a person in a browser.
const OTHERWISE: u8 = 2;
/// Over gRPC: the first line behind the door is the credential.
const OWN_CREDENTIAL: u8 = 4;
/// A line names the door, such as `POST /api/v1/files`, instead of a number in two bytes.
const NAMED: u8 = 0x80;
/// An answer that has not ended by then waits for news (`Health/Watch`, an event stream).
const READING_LIMIT: Duration = Duration::from_millis(50);
/// An answer that has not begun by then waits for news, or for a service that is out of reach.
const BEGINNING_LIMIT: Duration = Duration::from_secs(2);
/// More than any answer here: the OpenAPI document is the longest.
const MAX_ANSWER_BYTES: usize = 4 << 20;
/// What an error over gRPC may carry (docs/SECURITY.md), and the usual headers.
const MAX_HEADER_BYTES: usize = 16 << 10;

const DOCUMENTS: [&str; 2] = ["/api/docs/openapi.json", "/api/docs/console.json"];
/// What the OpenAPI documents do not name.
const FURTHER: &[(Method, &str)] = &[
    (Method::GET, "/invite"),
    (Method::POST, "/invite"),
    (Method::POST, "/mcp"),
    (Method::GET, "/mcp"),
    (Method::DELETE, "/mcp"),
    (Method::GET, "/oauth/authorize"),
    (Method::POST, "/oauth/authorize"),
    (Method::POST, "/oauth/sign-in"),
    (Method::POST, "/oauth/sign-out"),
    (Method::POST, "/oauth/token"),
    (Method::POST, "/oauth/register"),
    (Method::POST, "/oauth/revoke"),
    (Method::GET, "/.well-known/oauth-protected-resource"),
    (Method::GET, "/.well-known/oauth-authorization-server"),
    (Method::GET, "/healthz"),
    (Method::GET, "/readyz"),
    (Method::GET, "/docs/guides"),
    (Method::GET, "/docs/guides/searching/"),
    (Method::GET, "/"),
];

/// Parts of paths behind which an address is asked that the input names.
const ASKS_ADDRESSES: &[&str] =
    &["/sources", "/webhooks", "v1.SourceService/", "v1.LiveService/", "v1.WebhookService/"];
/// What would end the workspace that all inputs have.
const ENDS_ALL: &[(Method, &str)] =
    &[(Method::POST, "/w/{id}/settings/delete"), (Method::DELETE, "/api/workspaces/{id}")];

/// What is open beside the contracts: health and reflection, in both versions that are spoken.
const FURTHER_METHODS: &[&str] = &[
    "/grpc.health.v1.Health/Check",
    "/grpc.health.v1.Health/List",
    "/grpc.health.v1.Health/Watch",
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
];

/// All doors, and what opens them.
#[derive(Debug)]
pub struct Doors {
    runtime: Runtime,
    http: Router,
    grpc: Vec<Served>,
    /// With the parameters of paths in braces.
    operations: Vec<(Method, String)>,
    methods: Vec<String>,
    account: Account,
    /// An OAuth client.
    client: String,
    known: Mutex<Known>,
    _folder: TempDir,
}

/// What somebody inside has at hand: it is made anew again and again, since inputs delete it.
#[derive(Debug, Default)]
struct Known {
    uses: usize,
    /// The signed identity of the token.
    identity: String,
    /// The cookie of a session.
    cookie: String,
    /// Ids, by what stands before them in paths.
    ids: Vec<(&'static str, String)>,
}

const EXCHANGE: &str = "/cairn.auth.v1.TokenService/Exchange";
/// After so many inputs everything is made anew.
const MAX_USES: usize = 256;

/// The doors of this process.
pub static DOORS: LazyLock<Doors> = LazyLock::new(|| {
    let runtime = Runtime::new().expect("a runtime");
    let folder = TempDir::new().expect("a folder");
    let (http, grpc, account) = runtime.block_on(open(&folder, None));
    let documents = DOCUMENTS.map(|path| runtime.block_on(answer(&http, Request::get(path))));
    let documents = documents.map(|text| serde_json::from_slice(&text).expect("an OpenAPI document"));
    let operations = operations(&documents);
    let (client, known) = (runtime.block_on(register(&http)), Mutex::default());
    Doors { runtime, http, grpc, operations, methods: methods(), account, client, known, _folder: folder }
});

/// Every operation of the OpenAPI documents, and those that they do not name: pages, MCP, OAuth.
fn operations(documents: &[Value]) -> Vec<(Method, String)> {
    let mut operations: Vec<(Method, String)> =
        FURTHER.iter().map(|(method, path)| (method.clone(), (*path).to_owned())).collect();
    for (path, item) in documents.iter().flat_map(|document| document["paths"].as_object().expect("paths")) {
        for method in item.as_object().expect("operations").keys() {
            if let Ok(method) = method.to_uppercase().parse() {
                operations.push((method, path.clone()));
            }
        }
    }
    let mut routes: Vec<(Method, String)> = Vec::new();
    for (method, path) in cairn_gateway::paths() {
        let methods = method.map_or_else(|| vec![Method::GET, Method::POST], |method| vec![method]);
        routes.extend(methods.into_iter().map(|method| (method, path.clone())));
    }
    routes.retain(|route| !operations.contains(route));
    // Last, since numbers of inputs count the others.
    routes.sort_by(|one, other| (&one.1, one.0.as_str()).cmp(&(&other.1, other.0.as_str())));
    operations.extend(routes);
    operations
}

/// Every RPC of every contract, whether it is served here or not, and those beside them.
fn methods() -> Vec<String> {
    let set = prost_types::FileDescriptorSet::decode(cairn_proto::DESCRIPTORS).expect("the contracts");
    let mut methods: Vec<String> = FURTHER_METHODS.iter().map(ToString::to_string).collect();
    for file in &set.file {
        for service in &file.service {
            for method in &service.method {
                methods.push(format!("/{}.{}/{}", file.package(), service.name(), method.name()));
            }
        }
    }
    methods
}

async fn answer(router: &Router, request: http::request::Builder) -> Vec<u8> {
    let response = router.clone().oneshot(request.body(Body::empty()).expect("a request")).await;
    response.expect("an answer").into_body().collect().await.expect("a body").to_bytes().to_vec()
}

/// Registers an OAuth client, which tells its id.
async fn register(router: &Router) -> String {
    let client = json!({
        "client_name": "Fuzz",
        "redirect_uris": ["http://127.0.0.1:3000/callback"],
        "token_endpoint_auth_method": "none",
    });
    let request = Request::post("/oauth/register")
        .header(header::HOST, HOST)
        .header(header::CONTENT_TYPE, "application/json")
        .header("x-forwarded-for", address())
        .extension(ConnectInfo(PEER));
    let request = request.body(Body::from(client.to_string())).expect("a request");
    let response = router.clone().oneshot(request).await.expect("an answer");
    assert_eq!(response.status(), StatusCode::CREATED, "a client");
    let body = response.into_body().collect().await.expect("a body").to_bytes();
    let made: Value = serde_json::from_slice(&body).expect("JSON");
    made["client_id"].as_str().expect("an id").to_owned()
}

/// The number of the door that an input names or counts, among so many, and what is behind that.
fn door(
    kind: u8,
    rest: &[u8],
    count: usize,
    is_called: impl Fn(usize, &[u8]) -> bool,
) -> Option<(usize, &[u8])> {
    if kind & NAMED == 0 {
        let [high, low, rest @ ..] = rest else { return None };
        return Some((usize::from(u16::from_be_bytes([*high, *low])) % count, rest));
    }
    let (name, rest) = first_line(rest);
    (0..count).find(|number| is_called(*number, name)).map(|number| (number, rest))
}

fn first_line(input: &[u8]) -> (&[u8], &[u8]) {
    let end = input.iter().position(|byte| *byte == b'\n').unwrap_or(input.len());
    (&input[..end], input.get(end + 1..).unwrap_or_default())
}

/// Whether a line is `POST /api/v1/files`, for that operation.
fn is_operation(line: &[u8], (method, path): &(Method, String)) -> bool {
    let behind = line.strip_prefix(method.as_str().as_bytes());
    behind.and_then(|behind| behind.strip_prefix(b" ")) == Some(path.as_bytes())
}

fn asks_addresses(path: &str) -> bool {
    ASKS_ADDRESSES.iter().any(|part| path.contains(part))
}

impl Doors {
    /// Sends an input through the door that its first bytes name, with a credential of its own or none.
    pub fn knock(&self, input: &[u8]) {
        self.send(input, &Known::default(), false);
    }

    /// The same as somebody inside: without a credential of its own it has the token or its identity, or the cookie of a session;
    /// `{…}` in paths are ids of what there is, and so is `$file` in queries and bodies, as `$folder`, `$database`, `$record`, `$memory` and `$client`.
    pub fn enter(&self, input: &[u8]) {
        let mut known = self.known();
        if known.uses % MAX_USES == 0 {
            let number = known.uses / MAX_USES;
            let made = async { (self.identity().await, self.sign_in().await, self.fill(number).await) };
            let (identity, cookie, ids) = self.runtime.block_on(made);
            (known.identity, known.cookie, known.ids) = (identity, cookie, ids);
        }
        known.uses += 1;
        self.send(input, &known, true);
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, input: &[u8], known: &Known, is_inside: bool) {
        let [kind, rest @ ..] = input else { return };
        if kind & OVER_GRPC != 0 {
            return self.call(*kind, rest, known);
        }
        let count = self.operations.len();
        let is_called = |number: usize, line: &[u8]| is_operation(line, &self.operations[number]);
        let Some((number, rest)) = door(*kind, rest, count, is_called) else { return };
        let (method, path) = &self.operations[number];
        let ends_all = ENDS_ALL.iter().any(|(ends, at)| ends == method && at == path);
        if is_inside && (asks_addresses(path) || ends_all) {
            return;
        }
        let caller = match (is_inside, kind & OTHERWISE) {
            (false, _) => Caller::Nobody,
            (true, 0) => Caller::Agent(&self.account.token),
            (true, _) => Caller::Person(&known.cookie),
        };
        if let Some(request) = over_http(method, &filled(path, &known.ids), rest, caller, &known.ids) {
            self.runtime.block_on(check_http(self.http.clone(), request));
        }
    }

    fn call(&self, kind: u8, rest: &[u8], known: &Known) {
        let is_called = |number: usize, line: &[u8]| line == self.methods[number].as_bytes();
        let Some((number, rest)) = door(kind, rest, self.methods.len(), is_called) else { return };
        let method = &self.methods[number];
        if asks_addresses(method) {
            return;
        }
        let (own, rest) = if kind & OWN_CREDENTIAL == 0 { (&b""[..], rest) } else { first_line(rest) };
        let usual = Some(known.identity.as_str()).filter(|identity| !identity.is_empty());
        let usual = usual.map(|identity| format!("Bearer {identity}")).unwrap_or_default();
        let credential = if own.is_empty() { usual.as_bytes() } else { own };
        let request = over_grpc(method, kind & OTHERWISE == 0, rest, credential);
        self.runtime.block_on(check_grpc(self.service(method), request));
    }

    /// The service that a method is of; the first for what all of them have.
    fn service(&self, method: &str) -> Routes {
        let service = method.trim_start_matches('/').split('/').next().unwrap_or_default();
        let found = self.grpc.iter().find(|served| served.names.contains(&service));
        found.or(self.grpc.first()).expect("services").routes.clone()
    }

    /// The cookie of a new session.
    async fn sign_in(&self) -> String {
        let body = json!({ "email": self.account.email, "password": self.account.password });
        let request = Request::post("/api/session")
            .header(header::CONTENT_TYPE, "application/json")
            .header("x-forwarded-for", address())
            .extension(ConnectInfo(PEER));
        let request = request.body(Body::from(body.to_string())).expect("a request");
        let response = self.http.clone().oneshot(request).await.expect("an answer");
        assert_eq!(response.status(), StatusCode::OK, "a sign-in");
        let cookie = response.headers()[header::SET_COOKIE].to_str().expect("a cookie");
        cookie.split(';').next().unwrap_or_default().to_owned()
    }

    /// What the token is exchanged for.
    async fn identity(&self) -> String {
        let message = ExchangeRequest { api_token: self.account.token.clone() }.encode_to_vec();
        let request = over_grpc(EXCHANGE, true, &message, b"");
        let routes = self.service(EXCHANGE).into_axum_router();
        let response = routes.oneshot(request.map(Body::new)).await.expect("an answer");
        let body = response.into_body().collect().await.expect("a body").to_bytes();
        // The flag and the length stand before the message.
        let exchanged = ExchangeResponse::decode(body.slice(5..)).expect("an identity");
        exchanged.identity
    }

    /// Makes one of each, for the time of that number; tells their ids.
    async fn fill(&self, number: usize) -> Vec<(&'static str, String)> {
        let folder = self.make("/api/v1/folders", &json!({ "name": format!("Folder {number}") })).await;
        let file =
            json!({ "name": "a.md", "content": "# A\n\ntext\n", "fileType": "markdown", "folderId": folder });
        let file = self.make("/api/v1/files", &file).await;
        let database = self.make("/api/v1/databases", &json!({ "name": "Table", "folderId": folder })).await;
        let records = format!("/api/v1/databases/{database}/records");
        let record = self.make(&records, &json!({ "values": {} })).await;
        let memory = self.make("/api/v1/memories", &json!({ "name": format!("Memory {number}") })).await;
        let workspace = &self.account.workspace;
        vec![
            ("folders", folder),
            // Before a page of a file there stands `file`.
            ("file", file.clone()),
            ("files", file),
            ("databases", database),
            ("records", record),
            ("memories", memory),
            ("versions", "1".to_owned()),
            ("clients", self.client.clone()),
            ("workspaces", workspace.clone()),
            // As before the pages of a workspace.
            ("w", workspace.clone()),
        ]
    }

    async fn make(&self, path: &str, body: &Value) -> String {
        let request = Request::post(path)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::AUTHORIZATION, format!("Bearer {}", self.account.token))
            .extension(ConnectInfo(PEER));
        let request = request.body(Body::from(body.to_string())).expect("a request");
        let response = self.http.clone().oneshot(request).await.expect("an answer");
        assert_eq!(response.status(), StatusCode::CREATED, "{path}");
        let body = response.into_body().collect().await.expect("a body").to_bytes();
        let made: Value = serde_json::from_slice(&body).expect("JSON");
        made["id"].as_str().unwrap_or_else(|| panic!("{path} answers {made}")).to_owned()
    }
}

async fn check_http(router: Router, request: Request<Body>) {
    let asked = format!("{} {}", request.method(), request.uri());
    let Ok(response) = tokio::time::timeout(BEGINNING_LIMIT, router.oneshot(request)).await else { return };
    let response = response.expect("an answer");
    let status = response.status();
    assert_ne!(status, StatusCode::INTERNAL_SERVER_ERROR, "{asked}");
    let reading = Limited::new(response.into_body(), MAX_ANSWER_BYTES).collect();
    let Ok(body) = tokio::time::timeout(READING_LIMIT, reading).await else { return };
    let body = body.unwrap_or_else(|error| panic!("{asked}: {error}")).to_bytes();
    if status.is_client_error() && asked.contains("/api/") {
        let error: Value = serde_json::from_slice(&body).unwrap_or_default();
        assert!(error["error"].is_string() || body.is_empty(), "{asked}: {status} without the error's body");
    }
}

async fn check_grpc(routes: Routes, request: Request<tonic::body::Body>) {
    let asked = request.uri().path().to_owned();
    let answered = routes.into_axum_router().oneshot(request.map(Body::new));
    let Ok(response) = tokio::time::timeout(BEGINNING_LIMIT, answered).await else { return };
    let response: Response<tonic::body::Body> = response.expect("an answer").map(tonic::body::Body::new);
    let (head, body) = response.into_parts();
    check_size(&asked, &head.headers);
    let reading = Limited::new(body, MAX_ANSWER_BYTES).collect();
    let Ok(answer) = tokio::time::timeout(READING_LIMIT, reading).await else { return };
    let answer = answer.unwrap_or_else(|error| panic!("{asked}: {error}"));
    let trailers = answer.trailers().cloned().unwrap_or_default();
    check_size(&asked, &trailers);
    let statuses = [&head.headers, &trailers].into_iter().filter(|fields| fields.contains_key("grpc-status"));
    assert_eq!(statuses.count(), 1, "{asked}: {:?} and {trailers:?}", head.headers);
}

fn check_size(asked: &str, fields: &HeaderMap) {
    let size: usize = fields.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    assert!(size <= MAX_HEADER_BYTES, "{asked}: {size} bytes of headers or trailers");
}
