//! Event streams as a browser reads them, over a gateway with fake services.

use std::time::Duration;

use axum::body::Body;
use futures::StreamExt as _;
use http::Request;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::MAX_OF_PERSON;
use crate::testing::{Bench, FILE, PASSWORD, WORKSPACE, bench};

/// Longer than anything here takes, also on a busy machine.
const LIMIT: Duration = Duration::from_secs(30);

/// A received event.
#[derive(Debug, PartialEq, Eq)]
struct Arrived {
    name: String,
    id: Option<String>,
    data: Value,
}

/// An open stream.
struct Open {
    body: axum::body::BodyDataStream,
    text: String,
}

impl Open {
    /// The next event of that name, skipping others and comments. `None` when the stream has ended.
    async fn next(&mut self, name: &str) -> Option<Arrived> {
        loop {
            while let Some((event, rest)) = self.text.split_once("\n\n") {
                let arrived = read(event);
                self.text = rest.to_owned();
                if let Some(arrived) = arrived.filter(|arrived| arrived.name == name) {
                    return Some(arrived);
                }
            }
            let bytes = tokio::time::timeout(LIMIT, self.body.next()).await.expect("nothing came")?;
            self.text.push_str(&String::from_utf8_lossy(&bytes.unwrap()));
        }
    }
}

fn read(event: &str) -> Option<Arrived> {
    let field = |name: &str| {
        let begin = format!("{name}: ");
        event.lines().find_map(|line| line.strip_prefix(begin.as_str())).map(ToOwned::to_owned)
    };
    let data = serde_json::from_str(&field("data")?).unwrap();
    Some(Arrived { name: field("event")?, id: field("id"), data })
}

async fn cookie(bench: &Bench) -> String {
    let form = json!({"email": "a@b.example", "password": PASSWORD}).to_string();
    let opened = bench.post("/api/session", form).await;
    opened.headers["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned()
}

async fn ask(bench: &Bench, path: &str, cookie: &str, last: Option<&str>) -> http::Response<Body> {
    let mut request = Request::get(path).header("cookie", cookie).header("accept", "text/event-stream");
    if let Some(last) = last {
        request = request.header("last-event-id", last);
    }
    bench.router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap()
}

async fn open(bench: &Bench, cookie: &str, last: Option<&str>) -> Open {
    let response = ask(bench, &format!("/w/{WORKSPACE}/events"), cookie, last).await;
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    assert_eq!(response.headers()["cache-control"], "no-store");
    Open { body: response.into_body().into_data_stream(), text: String::new() }
}

#[tokio::test]
async fn what_changes_is_told_and_what_was_missed_is_told_after_the_last_event() {
    let bench = bench().await;
    let cookie = cookie(&bench).await;
    bench.feed.moves(7);
    let mut stream = open(&bench, &cookie, None).await;
    let ready = stream.next("ready").await.unwrap();
    assert_eq!((ready.id.as_deref(), ready.data), (Some("c1-7.i1-0"), json!({})), "nothing of before");
    bench.feed.moves(1);
    let change = stream.next("change").await.unwrap();
    let told = json!({"feed": "content", "position": 8, "kind": "file", "id": FILE, "op": "upsert"});
    assert_eq!((change.id.as_deref(), &change.data), (Some("c1-8.i1-0"), &told));
    drop(stream);

    bench.feed.moves(2);
    let mut again = open(&bench, &cookie, change.id.as_deref()).await;
    for position in [9, 10] {
        assert_eq!(again.next("change").await.unwrap().data["position"], position);
    }
    assert_eq!(again.next("ready").await.unwrap().id.as_deref(), Some("c1-a.i1-0"));
    drop(again);
    bench.feed.moves(5_000);
    let mut much = open(&bench, &cookie, Some("c1-a.i1-0")).await;
    assert_eq!(much.next("changes").await.unwrap().data, json!({"feed": "content", "position": 5_010}));
    for odd in ["nonsense", "c1-zzzzzzz.i1-zzz", ""] {
        let mut stream = open(&bench, &cookie, Some(odd)).await;
        assert!(stream.next("ready").await.is_some(), "{odd}");
    }
}

#[tokio::test]
async fn a_stream_ends_with_its_session() {
    let bench = bench().await;
    let cookie = cookie(&bench).await;
    let mut stream = open(&bench, &cookie, None).await;
    stream.next("ready").await.unwrap();
    let out = Request::delete("/api/session").header("cookie", &cookie).body(Body::empty()).unwrap();
    assert_eq!(bench.send_as_is(out).await.status, 204);
    bench.feed.moves(1);
    assert_eq!(stream.next("change").await, None, "nothing more is told");
    let refused = ask(&bench, &format!("/api/workspaces/{WORKSPACE}/events"), &cookie, None).await;
    assert_eq!(refused.status(), 401);
}

#[tokio::test]
async fn a_stream_ends_when_the_server_drains() {
    let bench = bench().await;
    let cookie = cookie(&bench).await;
    let mut stream = open(&bench, &cookie, None).await;
    stream.next("ready").await.unwrap();
    bench.gateway.close();
    assert_eq!(stream.next("change").await, None);
    assert_eq!(ask(&bench, &format!("/w/{WORKSPACE}/events"), &cookie, None).await.status(), 503);
}

#[tokio::test]
async fn a_person_has_so_many_streams_and_a_place_is_given_back() {
    let bench = bench().await;
    let cookie = cookie(&bench).await;
    let mut streams = Vec::new();
    for _ in 0..MAX_OF_PERSON {
        streams.push(open(&bench, &cookie, None).await);
    }
    let refused = ask(&bench, &format!("/api/workspaces/{WORKSPACE}/events"), &cookie, None).await;
    assert_eq!(refused.status(), 429);
    assert!(refused.headers().contains_key("retry-after"));
    streams.pop();
    let mut stream = open(&bench, &cookie, None).await;
    assert!(stream.next("ready").await.is_some());
}

#[tokio::test]
async fn a_call_is_told_without_what_was_asked() {
    let bench = bench().await;
    let cookie = cookie(&bench).await;
    let mut stream = open(&bench, &cookie, None).await;
    stream.next("ready").await.unwrap();
    assert_eq!(bench.get(&format!("/api/v1/files/{FILE}?x=secret-question")).await.status, 200);
    let call = stream.next("call").await.unwrap();
    assert_eq!(call.data["tool"], "GET /api/v1/files/{id}");
    assert_eq!((&call.data["channel"], &call.data["failed"]), (&json!("rest"), &json!(false)));
    assert!(call.data.get("principalName").is_none() && !call.data.to_string().contains("secret-question"));
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "list_files"}});
    bench.post("/mcp", call.to_string()).await;
    let call = stream.next("call").await.unwrap();
    assert_eq!((&call.data["tool"], &call.data["channel"]), (&json!("list_files"), &json!("mcp")));
    let page = Request::get(format!("/w/{WORKSPACE}")).header("cookie", &cookie).body(Body::empty()).unwrap();
    let page = bench.send_as_is(page).await;
    assert!(page.text.contains("list_files") && page.text.contains("data-events=\"/w/"), "{}", page.text);
}
