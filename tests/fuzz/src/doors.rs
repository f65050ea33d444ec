//! Every operation over HTTP and every RPC, in this process: auth, content and the gateway run here, the other services are out
//! of reach. A panic ends a run, also one that the services catch.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use cairn_chassis::channel::ServiceChannel;
use cairn_chassis::clock::SystemClock;
use cairn_chassis::entropy::OsEntropy;
use cairn_chassis::identity::ServiceIdentitySource;
use cairn_chassis::{server, sql};
use cairn_proto::auth::v1::{ExchangeRequest, ExchangeResponse};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Limited};
use prost::Message as _;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tonic::service::Routes;
use tower::ServiceExt as _;

const MESH_SECRET: &str = "a secret of this run alone";
/// Nothing listens there.
const NOWHERE: &str = "http://127.0.0.1:9";
/// An answer that has not ended by then waits for news (`Health/Watch`, an event stream).
const READING_LIMIT: Duration = Duration::from_millis(50);
/// An answer that has not begun by then waits for news, or for a service that is out of reach.
const BEGINNING_LIMIT: Duration = Duration::from_secs(2);
/// More than any answer here: the OpenAPI document is the longest.
const LONGEST_ANSWER: usize = 4 << 20;
/// What an error over gRPC may carry (docs/SECURITY.md), and the usual headers.
const LONGEST_HEADERS: usize = 16 << 10;

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
    grpc: Routes,
    /// With the parameters of paths in braces.
    operations: Vec<(Method, String)>,
    methods: Vec<String>,
    /// An API token with every permission.
    token: String,
    known: Mutex<Known>,
    _folder: TempDir,
}

/// What somebody inside has at hand: it is made anew again and again, since inputs delete it.
#[derive(Debug, Default)]
struct Known {
    uses: usize,
    /// The signed identity of the token.
    identity: String,
    /// Ids, by what stands before them in paths.
    ids: Vec<(&'static str, String)>,
}

/// After so many inputs everything is made anew.
const MOST_USES: usize = 256;

/// The doors of this process.
pub static DOORS: LazyLock<Doors> = LazyLock::new(|| {
    let runtime = Runtime::new().expect("a runtime");
    let folder = TempDir::new().expect("a folder");
    let (http, grpc, token) = runtime.block_on(open(&folder));
    let documents = DOCUMENTS.map(|path| runtime.block_on(answer(&http, Request::get(path))));
    let documents = documents.map(|text| serde_json::from_slice(&text).expect("an OpenAPI document"));
    let operations = operations(&documents);
    let known = Mutex::default();
    Doors { runtime, http, grpc, operations, methods: methods(), token, known, _folder: folder }
});

async fn open(folder: &TempDir) -> (Router, Routes, String) {
    let database = |name: &str| sql::Config::sqlite(folder.path().join(name));
    let (clock, entropy) = (std::sync::Arc::new(SystemClock), std::sync::Arc::new(OsEntropy));
    let auth = cairn_auth::Config {
        storage: database("auth.db"),
        mesh_secret: MESH_SECRET.to_owned(),
        default_plan: "selfhosted".to_owned(),
        plan_changes: cairn_auth::PlanChanges::default(),
        workspaces_per_person: 50,
        base_url: None,
        workspace_grace: Duration::from_secs(60),
        outbound_allowed: Vec::new(),
        mail: None,
        oidc: None,
        oauth_clients: 100,
        sealing: None,
        key_rotation: cairn_auth::Rotation::default(),
    };
    let auth = cairn_auth::Service::open(auth, clock.clone(), entropy).await.expect("auth");
    let ambient = auth.ambient();
    let content = cairn_content::Config {
        storage: database("content.db"),
        trash_retention: None,
        assets: cairn_content::AssetLocation::Memory,
        limits: cairn_chassis::limits::PlanLimits::default(),
        columns_bytes: 16 << 20,
        names_bytes: 16 << 20,
    };
    let content = cairn_content::Service::open(content, ambient.clone()).await.expect("content");

    let names = [cairn_auth::SERVICE_NAMES, cairn_content::SERVICE_NAMES].concat();
    let access = [cairn_auth::ACCESS, cairn_content::ACCESS];
    let routes = auth.routes().into_axum_router().reset_fallback().merge(content.routes().into_axum_router());
    let composed = server::compose(Routes::from(routes), &names, &access, &ambient.verifier).await;
    let routes = composed.expect("the contracts' descriptors").routes;
    let here = ServiceChannel::local(routes.clone());
    auth.connect(here.clone());
    let wanted =
        cairn_auth::Bootstrap { workspace_name: "Fuzz".to_owned(), ..cairn_auth::Bootstrap::default() };
    let made = auth.bootstrap(wanted, |_| Ok(())).await.expect("an account").expect("the first account");

    let nowhere = || ServiceChannel::remote_over(NOWHERE, None).expect("an address");
    let identity = ServiceIdentitySource::new("gateway", MESH_SECRET.to_owned(), here.clone(), clock);
    let upstreams = cairn_gateway::Upstreams {
        auth: here.clone().presenting(identity.clone()),
        content_feed: here.clone().presenting(identity),
        ingest_feed: nowhere(),
        content: here,
        ingest: nowhere(),
        retrieval: nowhere(),
        sync: nowhere(),
    };
    // Every input comes from an address of its own, so that none is turned away for what others did.
    let config = cairn_gateway::Config {
        trusted_proxies: vec!["127.0.0.1".to_owned()],
        ..cairn_gateway::Config::default()
    };
    let gateway = cairn_gateway::Gateway::build(&config).expect("a configuration");
    (gateway.connect(upstreams, ambient).router(), routes, made.token)
}

/// Every operation of the OpenAPI documents, and those that they do not name.
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

static COUNT: AtomicU32 = AtomicU32::new(0);

fn address() -> HeaderValue {
    let [a, b, c, d] = COUNT.fetch_add(1, Ordering::Relaxed).to_be_bytes();
    HeaderValue::try_from(format!("2001:db8:{a:x}:{b:x}:{c:x}:{d:x}::1")).expect("an address")
}

impl Doors {
    /// Sends an input through the door that its first bytes name, with a credential of its own or none.
    pub fn knock(&self, input: &[u8]) {
        self.send(input, &Known::default(), None);
    }

    /// The same as somebody inside: without a credential of its own it has the token or its identity, `{…}` in paths are ids of what
    /// there is, and so is `$file` in bodies, as `$folder`, `$database`, `$record` and `$memory`.
    pub fn enter(&self, input: &[u8]) {
        let mut known = self.known();
        if known.uses % MOST_USES == 0 {
            let number = known.uses / MOST_USES;
            let made = async { (self.identity().await, self.fill(number).await) };
            let (identity, ids) = self.runtime.block_on(made);
            (known.identity, known.ids) = (identity, ids);
        }
        known.uses += 1;
        self.send(input, &known, Some(&self.token));
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, input: &[u8], known: &Known, token: Option<&str>) {
        let [kind, high, low, rest @ ..] = input else { return };
        let number = usize::from(u16::from_be_bytes([*high, *low]));
        if kind % 2 == 0 {
            let (method, path) = &self.operations[number % self.operations.len()];
            if let Some(request) = over_http(method, &filled(path, &known.ids), rest, token, &known.ids) {
                self.runtime.block_on(check_http(self.http.clone(), request));
            }
            return;
        }
        let method = &self.methods[number % self.methods.len()];
        let identity = Some(known.identity.as_str()).filter(|identity| !identity.is_empty());
        let request = over_grpc(method, kind % 4 == 1, rest, identity);
        self.runtime.block_on(check_grpc(self.grpc.clone(), request));
    }

    /// What the token is exchanged for.
    async fn identity(&self) -> String {
        let message = ExchangeRequest { api_token: self.token.clone() }.encode_to_vec();
        let request = over_grpc("/cairn.auth.v1.TokenService/Exchange", true, &message, None);
        let response =
            self.grpc.clone().into_axum_router().oneshot(request.map(Body::new)).await.expect("an answer");
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
        [
            ("folders", folder),
            ("files", file),
            ("databases", database),
            ("records", record),
            ("memories", memory),
        ]
        .into_iter()
        .chain([("versions", "1".to_owned())])
        .collect()
    }

    async fn make(&self, path: &str, body: &Value) -> String {
        let request = Request::post(path)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::AUTHORIZATION, format!("Bearer {}", self.token))
            .extension(ConnectInfo(PEER));
        let request = request.body(Body::from(body.to_string())).expect("a request");
        let response = self.http.clone().oneshot(request).await.expect("an answer");
        assert_eq!(response.status(), StatusCode::CREATED, "{path}");
        let body = response.into_body().collect().await.expect("a body").to_bytes();
        let made: Value = serde_json::from_slice(&body).expect("JSON");
        made["id"].as_str().unwrap_or_else(|| panic!("{path} answers {made}")).to_owned()
    }
}

const PEER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 4711);

/// A path with the ids of what there is in the place of its parameters, else with their names.
fn filled(path: &str, ids: &[(&'static str, String)]) -> String {
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        let before = segments.last().copied().unwrap_or_default();
        let id = ids.iter().find(|(kind, _)| *kind == before).map(|(_, id)| id.as_str());
        let name = segment.strip_prefix('{').and_then(|name| name.strip_suffix('}'));
        segments.push(name.map_or(segment, |name| id.unwrap_or(name)));
    }
    segments.join("/")
}

/// The first line goes behind the path, the second one is the type of the body, the third a credential.
fn over_http(
    method: &Method,
    path: &str,
    rest: &[u8],
    token: Option<&str>,
    ids: &[(&'static str, String)],
) -> Option<Request<Body>> {
    let mut parts = rest.splitn(4, |byte| *byte == b'\n');
    let behind = parts.next().unwrap_or_default();
    let uri = Uri::try_from([path.as_bytes(), behind].concat()).ok()?;
    let mut request = Request::builder().method(method).uri(uri);
    let bearer = token.map(|token| format!("Bearer {token}")).unwrap_or_default();
    for (name, usual) in [(header::CONTENT_TYPE, ""), (header::AUTHORIZATION, bearer.as_str())] {
        let sent = Some(parts.next().unwrap_or_default()).filter(|sent| !sent.is_empty());
        let sent = sent.unwrap_or(usual.as_bytes());
        if let Some(value) = HeaderValue::from_bytes(sent).ok().filter(|_| !sent.is_empty()) {
            request = request.header(name, value);
        }
    }
    let mut body = parts.next().unwrap_or_default().to_vec();
    if let Some(text) = std::str::from_utf8(&body).ok().filter(|text| text.contains('$')) {
        let named = |text: String, (kind, id): &(&'static str, String)| {
            let singular = kind.strip_suffix("ies").map(|stem| format!("{stem}y"));
            let singular = singular.unwrap_or_else(|| kind.trim_end_matches('s').to_owned());
            text.replace(&format!("${singular}"), id)
        };
        body = ids.iter().fold(text.to_owned(), named).into_bytes();
    }
    let request = request.header("x-forwarded-for", address()).extension(ConnectInfo(PEER));
    request.body(Body::from(body)).ok()
}

fn over_grpc(
    method: &str,
    is_framed: bool,
    rest: &[u8],
    identity: Option<&str>,
) -> Request<tonic::body::Body> {
    let mut body = Vec::new();
    if is_framed {
        body.push(0);
        body.extend(u32::try_from(rest.len()).unwrap_or(u32::MAX).to_be_bytes());
    }
    body.extend(rest);
    let mut request = Request::post(method).header(header::CONTENT_TYPE, "application/grpc");
    if let Some(identity) = identity {
        request = request.header(header::AUTHORIZATION, format!("Bearer {identity}"));
    }
    request.body(tonic::body::Body::new(http_body_util::Full::from(body))).expect("a request")
}

async fn check_http(router: Router, request: Request<Body>) {
    let asked = format!("{} {}", request.method(), request.uri());
    let Ok(response) = tokio::time::timeout(BEGINNING_LIMIT, router.oneshot(request)).await else { return };
    let response = response.expect("an answer");
    let status = response.status();
    assert_ne!(status, StatusCode::INTERNAL_SERVER_ERROR, "{asked}");
    let reading = Limited::new(response.into_body(), LONGEST_ANSWER).collect();
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
    let reading = Limited::new(body, LONGEST_ANSWER).collect();
    let Ok(answer) = tokio::time::timeout(READING_LIMIT, reading).await else { return };
    let answer = answer.unwrap_or_else(|error| panic!("{asked}: {error}"));
    let trailers = answer.trailers().cloned().unwrap_or_default();
    check_size(&asked, &trailers);
    let statuses = [&head.headers, &trailers].into_iter().filter(|fields| fields.contains_key("grpc-status"));
    assert_eq!(statuses.count(), 1, "{asked}: {:?} and {trailers:?}", head.headers);
}

fn check_size(asked: &str, fields: &HeaderMap) {
    let size: usize = fields.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    assert!(size <= LONGEST_HEADERS, "{asked}: {size} bytes of headers or trailers");
}
