//! Sends any bytes through every door that stands open without an identity: each operation over HTTP, each RPC.
//!
//! Auth, content and the gateway run in this process; the other services are out of reach, and what they check stands
//! behind an identity. A panic ends the run, also one that the services catch. With cargo-fuzz:
//! `cargo +nightly fuzz run doors --fuzz-dir tests/fuzz`.
#![no_main]

use std::net::SocketAddr;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use cairn_chassis::channel::ServiceChannel;
use cairn_chassis::clock::SystemClock;
use cairn_chassis::entropy::OsEntropy;
use cairn_chassis::identity::ServiceIdentitySource;
use cairn_chassis::{server, sql};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Limited};
use libfuzzer_sys::fuzz_target;
use prost::Message as _;
use serde_json::Value;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tonic::service::Routes;
use tower::ServiceExt as _;

const MESH_SECRET: &str = "a secret of this run alone";
/// Nothing listens there.
const NOWHERE: &str = "http://127.0.0.1:9";
/// An answer that has not ended by then waits for news (`Health/Watch`, an event stream).
const READING_LIMIT: Duration = Duration::from_millis(50);
/// More than any answer to somebody without an identity: the OpenAPI document is the longest.
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

struct Doors {
    runtime: Runtime,
    http: Router,
    grpc: Routes,
    operations: Vec<(Method, String)>,
    methods: Vec<String>,
    _folder: TempDir,
}

static DOORS: LazyLock<Doors> = LazyLock::new(|| {
    let runtime = Runtime::new().expect("a runtime");
    let folder = TempDir::new().expect("a folder");
    let (http, grpc) = runtime.block_on(open(&folder));
    let documents = DOCUMENTS.map(|path| runtime.block_on(answer(&http, Request::get(path))));
    let documents = documents.map(|text| serde_json::from_slice(&text).expect("an OpenAPI document"));
    let operations = operations(&documents);
    Doors { runtime, http, grpc, operations, methods: methods(), _folder: folder }
});

async fn open(folder: &TempDir) -> (Router, Routes) {
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
    (gateway.connect(upstreams, ambient).router(), routes)
}

/// Every operation of the OpenAPI documents, and those that they do not name.
fn operations(documents: &[Value]) -> Vec<(Method, String)> {
    let mut operations: Vec<(Method, String)> =
        FURTHER.iter().map(|(method, path)| (method.clone(), (*path).to_owned())).collect();
    for (path, item) in documents.iter().flat_map(|document| document["paths"].as_object().expect("paths")) {
        for method in item.as_object().expect("operations").keys() {
            if let Ok(method) = method.to_uppercase().parse() {
                let path = path.replace(['{', '}'], "");
                operations.push((method, path));
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

fuzz_target!(|input: &[u8]| {
    let [kind, high, low, rest @ ..] = input else { return };
    let number = usize::from(u16::from_be_bytes([*high, *low]));
    let doors: &Doors = &DOORS;
    if kind % 2 == 0 {
        let (method, path) = &doors.operations[number % doors.operations.len()];
        if let Some(request) = over_http(method, path, rest) {
            doors.runtime.block_on(check_http(doors.http.clone(), request));
        }
        return;
    }
    let method = &doors.methods[number % doors.methods.len()];
    doors.runtime.block_on(check_grpc(doors.grpc.clone(), over_grpc(method, kind % 4 == 1, rest)));
});

/// The first line goes behind the path, the second one is the type of the body, the third a credential.
fn over_http(method: &Method, path: &str, rest: &[u8]) -> Option<Request<Body>> {
    let mut parts = rest.splitn(4, |byte| *byte == b'\n');
    let behind = parts.next().unwrap_or_default();
    let uri = Uri::try_from([path.as_bytes(), behind].concat()).ok()?;
    let mut request = Request::builder().method(method).uri(uri);
    for name in [header::CONTENT_TYPE, header::AUTHORIZATION] {
        let sent = parts.next().unwrap_or_default();
        if let Some(value) = HeaderValue::from_bytes(sent).ok().filter(|_| !sent.is_empty()) {
            request = request.header(name, value);
        }
    }
    let peer: SocketAddr = ([127, 0, 0, 1], 4711).into();
    let body = parts.next().unwrap_or_default().to_vec();
    let request = request.header("x-forwarded-for", address()).extension(ConnectInfo(peer));
    request.body(Body::from(body)).ok()
}

fn over_grpc(method: &str, is_framed: bool, rest: &[u8]) -> Request<tonic::body::Body> {
    let mut body = Vec::new();
    if is_framed {
        body.push(0);
        body.extend(u32::try_from(rest.len()).unwrap_or(u32::MAX).to_be_bytes());
    }
    body.extend(rest);
    let request = Request::post(method).header(header::CONTENT_TYPE, "application/grpc");
    request.body(tonic::body::Body::new(http_body_util::Full::from(body))).expect("a request")
}

async fn check_http(router: Router, request: Request<Body>) {
    let asked = format!("{} {}", request.method(), request.uri());
    let response = router.oneshot(request).await.expect("an answer");
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
    let response: Response<tonic::body::Body> = routes.into_axum_router().oneshot(request.map(Body::new)).await
        .map(|response| response.map(tonic::body::Body::new)).expect("an answer");
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
