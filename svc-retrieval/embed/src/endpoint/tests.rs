//! Against a real server that answers well, late, wrongly or not at all.

use std::collections::VecDeque;
use std::sync::Mutex;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use cairn_chassis::clock::{ManualClock, Timestamp};
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::*;
use crate::{Embedder as _, StaticRows, contract};

/// What the server does with one call; without anything left to do it embeds.
enum Reply {
    Status(u16),
    /// Asks to come back after so many seconds.
    Later(u16, u64),
    Json(Value),
    Text(&'static str),
    Never,
}

#[derive(Default)]
struct Server {
    replies: Mutex<VecDeque<Reply>>,
    /// The texts of each call.
    calls: Mutex<Vec<Vec<String>>>,
    keys: Mutex<Vec<Option<String>>>,
    /// Longer texts are refused, with all that came with them.
    longest: Mutex<Option<usize>>,
}

impl Server {
    fn script(&self, replies: impl IntoIterator<Item = Reply>) {
        self.replies.lock().unwrap().extend(replies);
    }

    fn calls(&self) -> Vec<Vec<String>> {
        self.calls.lock().unwrap().clone()
    }
}

async fn answer(State(server): State<Arc<Server>>, headers: HeaderMap, body: Bytes) -> Response {
    let asked: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(asked["model"], "tiny");
    let texts: Vec<String> = serde_json::from_value(asked["input"].clone()).unwrap();
    server.calls.lock().unwrap().push(texts.clone());
    let key = headers.get("authorization").map(|value| value.to_str().unwrap().to_owned());
    server.keys.lock().unwrap().push(key);
    let reply = server.replies.lock().unwrap().pop_front();
    match reply {
        Some(Reply::Status(status)) => StatusCode::from_u16(status).unwrap().into_response(),
        Some(Reply::Later(status, seconds)) => {
            (StatusCode::from_u16(status).unwrap(), [("retry-after", seconds.to_string())]).into_response()
        }
        Some(Reply::Json(value)) => axum::Json(value).into_response(),
        Some(Reply::Text(text)) => text.into_response(),
        Some(Reply::Never) => std::future::pending().await,
        None if texts
            .iter()
            .any(|text| server.longest.lock().unwrap().is_some_and(|most| text.len() > most)) =>
        {
            (StatusCode::PAYLOAD_TOO_LARGE, "too long").into_response()
        }
        None => axum::Json(embedded(&texts)).into_response(),
    }
}

fn embedded(texts: &[String]) -> Value {
    let rows = StaticRows::open().unwrap();
    let data: Vec<Value> = texts
        .iter()
        .enumerate()
        // Backwards and not normalised: the places count, not the order.
        .map(|(index, text)| {
            let vector: Vec<f32> = rows.embed_text(text).iter().map(|value| value * 3.0).collect();
            json!({"object": "embedding", "index": index, "embedding": vector})
        })
        .rev()
        .collect();
    json!({"object": "list", "data": data, "usage": {"prompt_tokens": 7, "total_tokens": 7}})
}

struct Setup {
    server: Arc<Server>,
    clock: Arc<ManualClock>,
    connection: Connection,
}

impl Setup {
    async fn new(change: impl FnOnce(&mut EndpointConfig)) -> Self {
        let server = Arc::new(Server::default());
        let router = Router::new().route("/v1/embeddings", post(answer)).with_state(Arc::clone(&server));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base_url = format!("http://{}/v1/", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        let mut config = EndpointConfig {
            base_url,
            model: "tiny".to_owned(),
            key: Some("s3cret".to_owned()),
            dimensions: None,
            batch: 4,
            timeout: Duration::from_secs(20),
            pause: DEFAULT_PAUSE,
            spending: Spending::default(),
            spent_file: None,
        };
        change(&mut config);
        let clock = Arc::new(ManualClock::new(Timestamp::from_seconds(1_000_000)));
        let connection = Connection::new(config, &(Arc::clone(&clock) as Arc<dyn Clock>)).unwrap();
        Self { server, clock, connection }
    }

    /// Of the vectors' length, so that nothing is asked for it.
    fn endpoint(&self) -> Endpoint {
        self.connection.model("tiny".to_owned(), StaticRows::open().unwrap().dimensions())
    }
}

#[tokio::test]
async fn meets_the_contract() {
    let setup = Setup::new(|_| {}).await;
    let endpoint = setup.connection.embedder().await.unwrap();
    assert_eq!(endpoint.dimensions(), StaticRows::open().unwrap().dimensions());
    contract::check(&endpoint).await;
    assert!(setup.server.calls().iter().all(|texts| texts.len() <= 4), "a batch is too large");
    assert!(setup.server.calls().iter().flatten().all(|text| !text.trim().is_empty()));
    assert!(setup.server.keys.lock().unwrap().iter().all(|key| key.as_deref() == Some("Bearer s3cret")));
}

#[tokio::test]
async fn what_passes_is_tried_again() {
    let setup = Setup::new(|_| {}).await;
    setup.server.script([Reply::Status(500), Reply::Later(429, 1), Reply::Text("no json")]);
    let vectors = setup.endpoint().embed(TextKind::Passage, &["a heron"]).await.unwrap();
    assert!(vectors[0].iter().any(|value| *value != 0.0));
    assert_eq!(setup.server.calls().len(), 4);
}

#[tokio::test]
async fn what_does_not_pass_is_not_tried_again() {
    for status in [401, 403, 404] {
        let setup = Setup::new(|_| {}).await;
        setup.server.script([Reply::Status(status)]);
        let error = setup.endpoint().embed(TextKind::Passage, &["a heron"]).await.unwrap_err();
        assert!(matches!(error, Error::Refused { .. }), "{error:?}");
        assert_eq!(setup.server.calls().len(), 1, "{status}");
    }
}

#[tokio::test]
async fn a_wait_that_is_too_long_is_left_to_the_breaker() {
    let setup = Setup::new(|_| {}).await;
    setup.server.script([Reply::Later(429, 3_600)]);
    let error = setup.endpoint().embed(TextKind::Passage, &["a heron"]).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
    assert_eq!(setup.server.calls().len(), 1);
}

#[tokio::test]
async fn an_endpoint_that_is_down_is_left_alone_and_tried_again_after_a_while() {
    let setup = Setup::new(|_| {}).await;
    let endpoint = setup.endpoint();
    setup.server.script((0..5).map(|_| Reply::Status(503)));
    let error = endpoint.embed(TextKind::Passage, &["a heron"]).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
    assert_eq!(setup.server.calls().len(), 5);
    let error = endpoint.embed(TextKind::Passage, &["a heron"]).await.unwrap_err();
    assert!(matches!(error, Error::Paused), "{error:?}");
    assert_eq!(setup.server.calls().len(), 5, "it was not left alone");
    setup.clock.advance(DEFAULT_PAUSE);
    endpoint.embed(TextKind::Passage, &["a heron"]).await.unwrap();
    endpoint.embed(TextKind::Passage, &["a heron"]).await.unwrap();
}

#[tokio::test]
async fn a_call_that_takes_too_long_counts_as_none() {
    let setup = Setup::new(|config| config.timeout = Duration::from_millis(50)).await;
    setup.server.script((0..5).map(|_| Reply::Never));
    let error = setup.endpoint().embed(TextKind::Passage, &["a heron"]).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
}

#[tokio::test]
async fn answers_that_are_no_vectors_of_these_texts_are_refused() {
    let row = |index: u32, vector: Value| json!({"index": index, "embedding": vector});
    let whole = vec![0.5; StaticRows::open().unwrap().dimensions()];
    for data in [
        json!([]),
        json!([row(0, json!(whole)), row(1, json!(whole))]),
        json!([row(1, json!(whole))]),
        json!([row(0, json!([0.1, 0.2]))]),
        json!([row(0, json!([]))]),
        json!([row(0, json!([1e39]))]),
    ] {
        let setup = Setup::new(|_| {}).await;
        setup.server.script([Reply::Json(json!({"data": data}))]);
        let error = setup.endpoint().embed(TextKind::Passage, &["a heron"]).await.unwrap_err();
        assert!(matches!(error, Error::Refused { .. }), "{data}: {error:?}");
    }
}

#[tokio::test]
async fn an_endless_answer_is_not_read_to_its_end() {
    let endless = async || {
        Body::from_stream(futures::stream::repeat_with(|| Ok::<_, std::io::Error>("x".repeat(65_536))))
    };
    let router = Router::new().route("/v1/embeddings", post(endless));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    let setup = Setup::new(|config| config.base_url = base_url).await;
    let error = setup.endpoint().embed(TextKind::Passage, &["a heron"]).await.unwrap_err();
    assert!(matches!(error, Error::Refused { .. }), "{error:?}");
}

#[tokio::test]
async fn a_text_that_is_refused_is_cut_and_holds_up_no_other() {
    let setup = Setup::new(|_| {}).await;
    *setup.server.longest.lock().unwrap() = Some(100);
    let long = "the heron stands still ".repeat(20);
    let hopeless = "stone ".repeat(2_000);
    let vectors = setup.endpoint().embed(TextKind::Passage, &["a bear", &long, &hopeless]).await.unwrap();
    assert!(vectors[..2].iter().all(|vector| vector.iter().any(|value| *value != 0.0)));
    assert!(vectors[2].iter().all(|value| *value == 0.0), "a text that is never taken has no vector");
    // Where everything is refused, it is not the text.
    *setup.server.longest.lock().unwrap() = Some(0);
    let error = setup.endpoint().embed(TextKind::Passage, &["a bear"]).await.unwrap_err();
    assert!(matches!(error, Error::Refused { .. }), "{error:?}");
}

#[tokio::test]
async fn spending_ends_at_its_limit_and_goes_on_in_the_next_minute() {
    let setup = Setup::new(|config| config.spending.tokens_a_minute = Some(20)).await;
    let endpoint = setup.endpoint();
    // The server counts seven tokens for each call.
    for _ in 0..2 {
        endpoint.embed(TextKind::Passage, &["a heron stands"]).await.unwrap();
    }
    let error = endpoint.embed(TextKind::Passage, &["a heron stands in the river"]).await.unwrap_err();
    assert!(matches!(error, Error::Spent { window: "minute", .. }), "{error:?}");
    assert_eq!(setup.server.calls().len(), 2, "a refused call was made all the same");
    setup.clock.advance(Duration::from_secs(60));
    endpoint.embed(TextKind::Passage, &["a heron stands in the river"]).await.unwrap();
}

#[tokio::test]
async fn a_length_of_vectors_that_is_not_given_is_an_error() {
    let setup = Setup::new(|config| config.dimensions = Some(8)).await;
    assert!(matches!(setup.connection.embedder().await.unwrap_err(), Error::Refused { .. }));
}

#[tokio::test]
async fn a_key_is_never_shown() {
    let setup = Setup::new(|_| {}).await;
    let shown = format!("{:?} {:?}", setup.connection, setup.endpoint());
    assert!(!shown.contains("s3cret"), "{shown}");
}

#[test]
fn what_can_never_be_asked_is_an_error_at_once() {
    let clock: Arc<dyn Clock> = Arc::new(ManualClock::new(Timestamp::from_seconds(0)));
    let config = |base_url: &str, key: &str| EndpointConfig {
        base_url: base_url.to_owned(),
        model: "tiny".to_owned(),
        key: Some(key.to_owned()),
        dimensions: None,
        batch: DEFAULT_BATCH,
        timeout: DEFAULT_TIMEOUT,
        pause: DEFAULT_PAUSE,
        spending: Spending::default(),
        spent_file: None,
    };
    assert!(Connection::new(config("http://127.0.0.1:11434/v1", "key"), &clock).is_ok());
    assert!(Connection::new(config("https://api.example/v1/", "key"), &clock).is_ok());
    for (base_url, key) in [
        ("https://user:s3cret@api.example/v1", "key"),
        ("ftp://host/v1", "key"),
        ("http://host/v1", "s3cret\n"),
    ] {
        let error = Connection::new(config(base_url, key), &clock).unwrap_err().to_string();
        assert!(!error.contains("s3cret"), "{error}");
    }
}
