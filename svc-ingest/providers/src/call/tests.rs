use std::collections::HashMap;
use std::sync::Mutex;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request as Asked, State};
use cairn_chassis::clock::ManualClock;
use http::HeaderMap;
use tokio::net::TcpListener;

use super::*;
use crate::testing::MemoryLedger;

/// 2026-11-23T12:00:00Z.
const NOW: Timestamp = Timestamp::from_seconds(1_795_435_200);
const MAX_BYTES: usize = 1_000;

type Answers = HashMap<&'static str, (u16, Vec<(&'static str, String)>, String)>;

#[derive(Clone, Default)]
struct Script {
    answers: Arc<Mutex<Answers>>,
    asked: Arc<Mutex<Vec<(String, HeaderMap, Bytes)>>>,
}

impl Script {
    fn on(&self, path: &'static str, status: u16, headers: &[(&'static str, &str)], body: &str) {
        let headers = headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        self.answers.lock().unwrap().insert(path, (status, headers, body.to_owned()));
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().iter().map(|(line, ..)| line.clone()).collect()
    }

    fn header(&self, request: usize, name: &str) -> Option<String> {
        let asked = self.asked.lock().unwrap();
        asked[request].1.get(name).map(|value| value.to_str().unwrap().to_owned())
    }

    async fn serve(&self) -> Url {
        let router = Router::new().fallback(answer).with_state(self.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move { axum::serve(listener, router).await });
        Url::parse(&format!("http://127.0.0.1:{port}/")).unwrap()
    }
}

async fn answer(State(script): State<Script>, asked: Asked) -> Response<Body> {
    let (head, body) = asked.into_parts();
    let body = axum::body::to_bytes(body, MAX_BYTES).await.unwrap();
    let line = format!("{} {}", head.method, head.uri.path());
    script.asked.lock().unwrap().push((line, head.headers, body));
    if head.uri.path() == "/silent" {
        std::future::pending::<()>().await;
    }
    let (status, headers, text) = script.answers.lock().unwrap().get(head.uri.path()).cloned().unwrap_or((
        404,
        Vec::new(),
        String::new(),
    ));
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(name, value);
    }
    response.body(Body::from(text)).unwrap()
}

struct World {
    script: Script,
    base: Url,
    ledger: Arc<MemoryLedger>,
    clock: Arc<ManualClock>,
    call: Call,
}

async fn world() -> World {
    world_with(100).await
}

async fn world_with(left: u32) -> World {
    let script = Script::default();
    let base = script.serve().await;
    let clock = Arc::new(ManualClock::new(NOW));
    let ledger = Arc::new(MemoryLedger::new(Arc::clone(&clock) as Arc<dyn Clock>, left));
    let guard = Guard::new(&["127.0.0.1/32".parse().unwrap()]).unwrap();
    let call = Call::new(guard, Arc::clone(&ledger) as Arc<dyn Ledger>, Arc::clone(&clock) as Arc<dyn Clock>);
    World { script, base, ledger, clock, call }
}

impl World {
    fn get(&self, path: &str) -> Request<Bytes> {
        let url = self.base.join(path).unwrap();
        let authorization = crate::Secret::new("hunter2").bearer().unwrap();
        let request =
            Request::get(url.as_str()).header("authorization", authorization).header("accept", "a/b");
        request.header("x-key", "hunter2").body(Bytes::new()).unwrap()
    }

    fn post(&self, path: &str) -> Request<Bytes> {
        let (head, _) = self.get(path).into_parts();
        let mut request = Request::from_parts(head, Bytes::from_static(b"posted"));
        *request.method_mut() = http::Method::POST;
        request
    }

    async fn send(&self, path: &str) -> Result<Response<Bytes>, Fault> {
        self.call.send(self.get(path), MAX_BYTES).await
    }
}

#[tokio::test]
async fn a_request_is_counted_and_answered() {
    let world = world().await;
    world.script.on("/a", 200, &[], "{\"n\": 7}");
    let response = world.send("/a").await.unwrap();
    assert_eq!(response.body(), "{\"n\": 7}");
    assert_eq!(response.extensions().get(), Some(&FinalUrl(world.base.join("/a").unwrap())));
    assert_eq!(world.call.json::<HashMap<String, u8>>(world.get("/a"), MAX_BYTES).await.unwrap()["n"], 7);
    assert_eq!((world.call.clone().sent(), world.ledger.reserved()), (2, 2));
    assert_eq!(world.script.header(0, "accept-encoding").as_deref(), Some("identity"));
    assert_eq!(world.script.header(0, "authorization").as_deref(), Some("Bearer hunter2"));
}

#[tokio::test]
async fn a_status_is_judged() {
    let world = world().await;
    let cases = [
        (401, Fault::Credentials),
        (403, Fault::Forbidden),
        (404, Fault::Gone),
        (410, Fault::Gone),
        (400, Fault::Refused),
        (422, Fault::Refused),
        (408, Fault::Unavailable),
        (500, Fault::Unavailable),
        (503, Fault::Unavailable),
    ];
    for (status, fault) in cases {
        world.script.on("/a", status, &[], "hunter2");
        assert_eq!(world.send("/a").await.unwrap_err(), fault, "{status}");
        let any = world.call.exchange(world.get("/a"), MAX_BYTES).await.unwrap();
        assert_eq!(any.status().as_u16(), status);
    }
    for status in [200, 204, 304] {
        world.script.on("/a", status, &[], "");
        assert_eq!(world.send("/a").await.unwrap().status().as_u16(), status);
    }
    world.script.on("/a", 300, &[], "");
    assert!(matches!(world.send("/a").await, Err(Fault::Broken(_))));
}

#[tokio::test]
async fn who_is_asked_to_wait_waits_on_every_call_of_the_connection() {
    let world = world().await;
    world.script.on("/a", 429, &[("retry-after", "7")], "");
    world.script.on("/b", 200, &[], "");
    let until = NOW.plus(Duration::from_secs(7));
    assert_eq!(world.send("/a").await.unwrap_err(), Fault::Waiting { until });
    assert_eq!(world.ledger.not_before(), Some(until));
    assert_eq!(world.send("/b").await.unwrap_err(), Fault::Waiting { until });
    assert_eq!(world.script.asked(), ["GET /a"], "nothing is sent meanwhile");
    assert_eq!(world.call.sent(), 1);
    world.clock.advance(Duration::from_secs(7));
    assert!(world.send("/b").await.is_ok());
}

#[tokio::test]
async fn a_provider_that_says_it_in_its_own_way_is_held_within_bounds() {
    let world = world().await;
    let fault = world.call.hold_for(Duration::from_secs(1_000_000)).await;
    assert_eq!(fault, Fault::Waiting { until: NOW.plus(Duration::from_secs(3_600)) });
    let fault = world.call.hold_for(Duration::ZERO).await;
    assert_eq!(fault, Fault::Waiting { until: NOW.plus(Duration::from_secs(1)) });
}

#[tokio::test]
async fn nothing_is_sent_beyond_the_budget() {
    let world = world_with(2).await;
    world.script.on("/a", 302, &[("location", "/b")], "");
    world.script.on("/b", 200, &[], "");
    assert!(world.send("/a").await.is_ok(), "two requests");
    assert_eq!(world.send("/b").await.unwrap_err(), Fault::Budget);
    assert_eq!(world.script.asked(), ["GET /a", "GET /b"]);
}

#[tokio::test]
async fn redirects_are_followed_and_counted_each() {
    let world = world().await;
    world.script.on("/1", 301, &[("location", "/2#part")], "");
    world.script.on("/2", 307, &[("location", "3")], "");
    world.script.on("/3", 200, &[], "here");
    let response = world.send("/1").await.unwrap();
    assert_eq!(response.body(), "here");
    assert_eq!(response.extensions().get(), Some(&FinalUrl(world.base.join("/3").unwrap())));
    assert_eq!((world.call.sent(), world.ledger.reserved()), (3, 3));
    assert_eq!(world.script.header(2, "authorization").as_deref(), Some("Bearer hunter2"), "the same origin");
}

#[tokio::test]
async fn credentials_stay_at_the_first_origin() {
    let (world, other) = (world().await, Script::default());
    let away = other.serve().await;
    world.script.on("/a", 302, &[("location", away.join("/b").unwrap().as_str())], "");
    other.on("/b", 302, &[("location", world.base.join("/c").unwrap().as_str())], "");
    world.script.on("/c", 200, &[], "");
    assert!(world.send("/a").await.is_ok());
    for secret in ["authorization", "x-key"] {
        assert!(world.script.header(0, secret).is_some());
        assert_eq!(other.header(0, secret), None);
        assert_eq!(world.script.header(1, secret), None, "they do not come back");
    }
    assert_eq!(other.header(0, "accept").as_deref(), Some("a/b"));
}

#[tokio::test]
async fn what_is_posted_goes_to_one_origin_only() {
    let (world, other) = (world().await, Script::default());
    let away = other.serve().await;
    world.script.on("/kept", 308, &[("location", "/c")], "");
    world.script.on("/turned", 302, &[("location", away.join("/b").unwrap().as_str())], "");
    world.script.on("/away", 307, &[("location", away.join("/b").unwrap().as_str())], "");
    world.script.on("/c", 200, &[], "");
    other.on("/b", 200, &[], "");
    assert!(world.call.send(world.post("/kept"), MAX_BYTES).await.is_ok());
    assert_eq!(world.script.asked(), ["POST /kept", "POST /c"]);
    assert_eq!(world.script.asked.lock().unwrap()[1].2, "posted");
    assert!(world.call.send(world.post("/turned"), MAX_BYTES).await.is_ok());
    assert_eq!(other.asked(), ["GET /b"]);
    assert_eq!(other.asked.lock().unwrap()[0].2, "");
    assert!(matches!(world.call.send(world.post("/away"), MAX_BYTES).await, Err(Fault::Broken(_))));
    assert_eq!(other.asked().len(), 1);
}

#[tokio::test]
async fn redirects_end() {
    let world = world().await;
    world.script.on("/a", 302, &[("location", "/b")], "");
    world.script.on("/b", 302, &[("location", "/a")], "");
    assert_eq!(world.send("/a").await.unwrap_err(), Fault::broken("the provider redirects in a circle"));
    assert_eq!(world.call.sent(), 2);
    for (from, to) in [("/1", "/2"), ("/2", "/3"), ("/3", "/4"), ("/4", "/5"), ("/5", "/6"), ("/6", "/7")] {
        world.script.on(from, 302, &[("location", to)], "");
    }
    world.script.on("/7", 200, &[], "");
    assert!(matches!(world.send("/1").await, Err(Fault::Broken(_))), "six redirects");
    assert!(world.send("/2").await.is_ok(), "five redirects");
    world.script.on("/a", 302, &[], "");
    assert!(matches!(world.send("/a").await, Err(Fault::Broken(_))), "to nowhere");
}

#[tokio::test]
async fn a_redirect_leads_only_where_we_go() {
    let world = world().await;
    for inside in [
        "http://127.0.0.2:1/",
        "http://169.254.169.254/latest/",
        "file:///etc/passwd",
        "https://me@x.example/",
    ] {
        world.script.on("/a", 302, &[("location", inside)], "");
        assert_eq!(world.send("/a").await.unwrap_err(), Fault::Address, "{inside}");
    }
    assert_eq!((world.call.sent(), world.ledger.reserved()), (4, 4), "what is not sent is not counted");
}

#[tokio::test]
async fn answers_are_bounded() {
    let world = world().await;
    world.script.on("/a", 200, &[], &"x".repeat(1_001));
    assert_eq!(world.send("/a").await.unwrap_err(), Fault::TooLarge(1_000));
    world.script.on("/a", 200, &[], "<html>hunter2");
    let broken = world.call.json::<u8>(world.get("/a"), MAX_BYTES).await.unwrap_err();
    assert!(matches!(broken, Fault::Broken(_)));
    assert!(!format!("{broken} {broken:?}").contains("hunter2"));
}

#[tokio::test]
async fn a_deadline_ends_a_request() {
    let world = world().await;
    let soon = world.call.with_deadline(Instant::now() + Duration::from_millis(50));
    assert_eq!(soon.send(world.get("/silent"), MAX_BYTES).await.unwrap_err(), Fault::Unavailable);
    let later = soon.with_deadline(Instant::now() + Duration::from_secs(60));
    assert_eq!(
        later.send(world.get("/silent"), MAX_BYTES).await.unwrap_err(),
        Fault::Unavailable,
        "the sooner one holds"
    );
}

#[tokio::test]
async fn a_host_that_is_not_there_is_unavailable() {
    let world = world().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let request = Request::get(format!("http://127.0.0.1:{port}/")).body(Bytes::new()).unwrap();
    assert_eq!(world.call.send(request, MAX_BYTES).await.unwrap_err(), Fault::Unavailable);
}

#[tokio::test]
async fn nothing_secret_is_shown() {
    let world = world().await;
    assert!(format!("{:?}", world.call).starts_with("Call { sent: 0"));
    assert!(!format!("{:?}", world.get("/a").headers().get("authorization")).contains("hunter2"));
}
