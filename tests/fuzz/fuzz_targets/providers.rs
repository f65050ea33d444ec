//! Answers the requests of every provider with any bytes: feeds, sitemaps, pages, listings of buckets, JSON of services, events of MCP
//! servers, packets and packs of git. And connects each with any settings.
//!
//! A server on loopback answers, so that nothing of a provider is stepped over; what it costs is speed. To run it:
//! `tests/fuzz/run.sh providers`.
#![no_main]

use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use cairn_chassis::clock::{Clock, ManualClock, Timestamp};
use cairn_chassis::outbound::Guard;
use cairn_chassis::status::Violation;
use cairn_fuzz::{pack, parts};
use cairn_providers::testing::MemoryLedger;
use cairn_providers::{
    Call, Entry, ExternalId, Fault, Fetched, Item, Ledger, MAX_BODY_BYTES, Page, Position, Provider,
    ProviderKind, Reach, Then, connect,
};
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::time::Instant;

const NOW: Timestamp = Timestamp::from_seconds(1_795_435_200);
/// A provider that asks more often than that for one page has no end.
const MAX_REQUESTS: u32 = 60;
const MAX_PAGES: usize = 4;
const MAX_TIME: Duration = Duration::from_secs(5);
/// What stands for the server's own address in an input.
const BASE: &str = "http://base.test";
const MAX_TITLE_CHARS: usize = 500;

struct Stage {
    runtime: Runtime,
    base: String,
    guard: Guard,
    reach: Reach,
}

/// What is answered now, one after the other and from the beginning again.
#[derive(Default)]
struct Script {
    answers: Vec<Vec<u8>>,
    next: usize,
    git: Option<pack::Repository>,
}

static SCRIPT: LazyLock<Mutex<Script>> = LazyLock::new(Mutex::default);

static STAGE: LazyLock<Stage> = LazyLock::new(|| {
    let runtime = Runtime::new().expect("a runtime");
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a port");
    let base = format!("http://{}", listener.local_addr().expect("an address"));
    let own = base.clone();
    let router: Router = Router::new().fallback(move |request: Request| answer(own.clone(), request));
    runtime.spawn(async move { axum::serve(listener, router).await });
    let guard = Guard::new(&["127.0.0.0/8".parse().expect("a network")]).expect("a guard");
    Stage { runtime, base, guard: guard.clone(), reach: Reach::new(guard, &[]) }
});

fn script() -> MutexGuard<'static, Script> {
    SCRIPT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How many are connected below.
const CONNECTIONS: usize = 15;
/// The number of the connection that has a repository made of an input.
const PACKED: u8 = 13;
/// The number of the inputs that are settings, behind those of all connections.
const SETTINGS: u8 = 15;

/// What can be connected, with settings that lead to the server.
fn connection(number: usize, base: &str) -> (ProviderKind, Value, Value) {
    let token = json!({ "token": "t" });
    let person = json!({ "email": "ada@acme.example", "token": "t" });
    let web = |kind: &str| json!({ "kind": kind, "url": format!("{base}/a") });
    match number % CONNECTIONS {
        0 => (ProviderKind::Web, web("feed"), Value::Null),
        1 => (ProviderKind::Web, web("sitemap"), Value::Null),
        2 => (ProviderKind::Web, web("page"), Value::Null),
        3 => (ProviderKind::Web, web("crawl"), Value::Null),
        4 => {
            let keys = json!({ "accessKeyId": "k", "secretAccessKey": "s" });
            (ProviderKind::S3, json!({ "bucket": "bucket", "endpoint": base }), keys)
        }
        5 => (ProviderKind::Jira, json!({ "site": base }), person),
        6 => (ProviderKind::Confluence, json!({ "site": base }), person),
        7 => (ProviderKind::Mcp, json!({ "url": base, "searchTool": "find" }), Value::Null),
        8 => {
            let settings = json!({ "owner": "a", "repo": "b", "content": ["issues", "pulls", "files"], "baseUrl": base });
            (ProviderKind::Github, settings, token)
        }
        9 => (ProviderKind::Notion, json!({ "baseUrl": base }), token),
        10 => (ProviderKind::Linear, json!({ "baseUrl": base }), token),
        11 => (ProviderKind::GoogleDrive, json!({ "baseUrl": base }), json!({ "accessToken": "t" })),
        12 => (ProviderKind::Slack, json!({ "baseUrl": base }), token),
        // Its answers are those of the input, as they are.
        14 => (ProviderKind::Git, json!({ "url": format!("{base}/raw") }), Value::Null),
        _ => (ProviderKind::Git, json!({ "url": format!("{base}/r.git") }), Value::Null),
    }
}

fuzz_target!(|input: &[u8]| {
    let [number, rest @ ..] = input else { return };
    let stage: &Stage = &STAGE;
    let number = number % (SETTINGS + 1);
    if number == SETTINGS {
        return settle(rest, &stage.reach);
    }
    let (kind, settings, credentials) = connection(usize::from(number), &stage.base);
    let git = (number == PACKED).then(|| pack::repository(rest));
    *script() = Script { answers: parts::divided(rest).map(<[u8]>::to_vec).collect(), next: 0, git };
    let made = connect(kind, &settings, Some(&credentials), None, &stage.reach);
    let provider = made.unwrap_or_else(|violations| panic!("{kind:?}: {violations:?}"));
    stage.runtime.block_on(ask(provider.as_ref(), &stage.guard));
});

/// Connects a provider, which the first byte chooses, with any settings and credentials, JSON both: what is wrong is told, with where.
/// Nothing is asked.
fn settle(input: &[u8], reach: &Reach) {
    let [kind, rest @ ..] = input else { return };
    let kind = ProviderKind::ALL[usize::from(*kind) % ProviderKind::ALL.len()];
    let mut sent = parts::divided(rest).map(|part| serde_json::from_slice::<Value>(part).ok());
    let (Some(Some(settings)), credentials) = (sent.next(), sent.next().flatten()) else { return };
    let Err(violations) = connect(kind, &settings, credentials.as_ref(), None, reach) else { return };
    assert!(!violations.is_empty());
    for violation in violations {
        let Violation { path, code, message } = violation;
        assert!(
            !path.is_empty() && !code.is_empty() && !message.is_empty() && message.len() < 4096,
            "{path}"
        );
    }
}

async fn ask(provider: &dyn Provider, guard: &Guard) {
    let call = || {
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::new(NOW));
        let ledger: Arc<dyn Ledger> = Arc::new(MemoryLedger::new(Arc::clone(&clock), MAX_REQUESTS));
        Call::new(guard.clone(), ledger, clock).with_deadline(Instant::now() + MAX_TIME)
    };
    if let Err(fault) = provider.check(&call()).await {
        told(&fault);
    }
    let (mut from, mut first, mut end): (Option<Position>, Option<ExternalId>, Option<Position>) =
        (None, None, None);
    for _ in 0..MAX_PAGES {
        match provider.list(&call(), from.as_ref()).await {
            Err(fault) => {
                told(&fault);
                break;
            }
            Ok(page) => {
                let found = listed(page);
                first = first.or(found.first);
                from = found.more;
                end = found.end;
            }
        }
        if from.is_none() {
            break;
        }
    }
    if let Some(end) = end {
        match provider.changes(&call(), &end).await {
            Ok(page) => drop(listed(page)),
            Err(fault) => told(&fault),
        }
    }
    let id = first.unwrap_or_else(|| ExternalId::new("a").expect("an id"));
    match provider.fetch(&call(), &id, None).await {
        Ok(Fetched::Body(body)) => assert!(body.bytes.len() <= MAX_BODY_BYTES),
        Ok(Fetched::Unreadable(reason)) => assert!(!reason.is_empty()),
        Ok(Fetched::Same | Fetched::Gone | Fetched::TooLarge(_) | Fetched::Unsupported(_)) => {}
        Err(fault) => told(&fault),
    }
    match provider.search(&call(), "what", 5).await {
        Ok(entries) => {
            assert!(entries.len() <= 5, "{} matches", entries.len());
            entries.iter().for_each(check);
        }
        Err(fault) => told(&fault),
    }
}

struct Found {
    first: Option<ExternalId>,
    more: Option<Position>,
    end: Option<Position>,
}

/// Documents have a title on one line, faults a sentence, and a position can be kept.
fn listed(page: Page) -> Found {
    let mut first = None;
    for item in &page.items {
        if let Item::Present(entry) = item {
            check(entry);
            first = first.or_else(|| Some(entry.id.clone()));
        }
    }
    for fault in &page.faults {
        assert!(!fault.reason.is_empty() && fault.reason.len() < 500, "{fault:?}");
    }
    let kept = |position: Position| {
        let again = Position::try_from(position.as_str().to_owned()).expect("a position that can be kept");
        assert_eq!(again, position);
        position
    };
    match page.then {
        Then::More(position) => Found { first, more: Some(kept(position)), end: None },
        Then::End { next, partial } => {
            assert!(partial.iter().all(|partial| !partial.reason.is_empty()));
            Found { first, more: None, end: Some(kept(next)) }
        }
    }
}

fn check(entry: &Entry) {
    let is_line = !entry.title.is_empty() && !entry.title.contains(char::is_control);
    assert!(is_line && entry.title.chars().count() <= MAX_TITLE_CHARS, "{:?}", entry.title);
    assert!(ExternalId::new(entry.id.as_str()).is_ok());
}

/// A fault is told in words of ours: they are few.
fn told(fault: &Fault) {
    let words = fault.to_string();
    assert!(!words.is_empty() && words.len() < 400, "{words}");
}

async fn answer(base: String, request: Request) -> Response<Body> {
    let path = request.uri().path().to_owned();
    let body = to_bytes(request.into_body(), 1 << 20).await.unwrap_or_default();
    let mut script = script();
    if let Some(git) = script.git.as_ref().filter(|_| path.contains("r.git")) {
        let (kind, bytes) = git.answer(&path, &body);
        return response(StatusCode::OK, kind, Vec::new(), bytes);
    }
    let count = script.answers.len().max(1);
    let text = script.answers.get(script.next % count).cloned().unwrap_or_default();
    script.next += 1;
    scripted(&text, &base)
}

/// The first line of an answer is its status and type, with further headers behind `|`; the rest is the body.
fn scripted(text: &[u8], base: &str) -> Response<Body> {
    let (line, body) = text.split_at(text.iter().position(|byte| *byte == b'\n').unwrap_or(text.len()));
    let body = body.get(1..).unwrap_or_default();
    let line = String::from_utf8_lossy(line).replace(BASE, base);
    let mut fields = line.split('|');
    let (status, kind) = fields.next().unwrap_or_default().split_once(' ').unwrap_or(("200", ""));
    let status =
        status.parse().ok().and_then(|status| StatusCode::from_u16(status).ok()).unwrap_or(StatusCode::OK);
    // An answer that only announces another one is none, and a server cannot send it.
    let status = if status.is_informational() { StatusCode::OK } else { status };
    let headers = fields.filter_map(|field| field.split_once(':'));
    let headers = headers.map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned())).collect();
    let body = match std::str::from_utf8(body) {
        Ok(body) => body.replace(BASE, base).into_bytes(),
        Err(_) => body.to_vec(),
    };
    response(status, kind, headers, body)
}

fn response(status: StatusCode, kind: &str, headers: Vec<(String, String)>, body: Vec<u8>) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    if let Ok(kind) = HeaderValue::from_str(kind.trim()) {
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
    }
    // What frames an answer is the server's own.
    let framing = [header::CONTENT_LENGTH, header::TRANSFER_ENCODING, header::CONNECTION, header::UPGRADE];
    for (name, value) in headers {
        let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(&value))
        else {
            continue;
        };
        if !framing.contains(&name) {
            response.headers_mut().append(name, value);
        }
    }
    response
}
