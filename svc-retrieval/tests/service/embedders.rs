//! Embedders that come and go: an endpoint that the test plays, and what searches answer meanwhile.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use cairn_chassis::channel::ServiceChannel;
use cairn_embed::{self as embed, Choice, DEFAULT_PAUSE, EndpointConfig, Spending, StaticRows};
use cairn_proto::retrieval::v1::{SearchContextResponse, Strategy};
use cairn_retrieval::{Config, Service};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;

use crate::owner::{Bench, config, serve, try_open};

/// An endpoint whose vectors are those of the built-in rows.
struct Endpoint {
    base_url: String,
    rows: StaticRows,
    is_down: AtomicBool,
    /// How many calls may be answered; the others wait.
    allowed: watch::Sender<usize>,
    calls: Mutex<usize>,
    /// How often each text was embedded.
    texts: Mutex<HashMap<String, usize>>,
}

impl Endpoint {
    async fn start() -> Arc<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = Arc::new(Self {
            base_url: format!("http://{}/v1", listener.local_addr().unwrap()),
            rows: StaticRows::open().unwrap(),
            is_down: AtomicBool::new(false),
            allowed: watch::Sender::new(usize::MAX),
            calls: Mutex::default(),
            texts: Mutex::default(),
        });
        let router = Router::new().route("/v1/embeddings", post(answer)).with_state(Arc::clone(&endpoint));
        tokio::spawn(async move { axum::serve(listener, router).await });
        endpoint
    }

    fn config(&self, bench: &Bench) -> Config {
        let endpoint = EndpointConfig {
            base_url: self.base_url.clone(),
            model: "tiny".to_owned(),
            key: None,
            dimensions: None,
            batch: 8,
            timeout: Duration::from_secs(60),
            pause: Duration::from_millis(50).min(DEFAULT_PAUSE),
            spending: Spending::default(),
            spent_file: None,
        };
        let embedding = embed::Config {
            choice: Choice::Endpoint(endpoint),
            // So long that a loaded machine does not make it the reason.
            query_limit: Duration::from_secs(20),
        };
        Config { embedding, ..config(&bench.folder) }
    }

    fn embedded(&self, text: &str) -> usize {
        self.texts.lock().unwrap().get(text).copied().unwrap_or(0)
    }
}

async fn answer(State(endpoint): State<Arc<Endpoint>>, body: axum::Json<serde_json::Value>) -> Response {
    if endpoint.is_down.load(Ordering::SeqCst) {
        return http::StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let call = {
        let mut calls = endpoint.calls.lock().unwrap();
        *calls += 1;
        *calls
    };
    let mut allowed = endpoint.allowed.subscribe();
    allowed.wait_for(|allowed| *allowed >= call).await.unwrap();
    let texts: Vec<String> = serde_json::from_value(body["input"].clone()).unwrap();
    let embed = |(index, text): (usize, &String)| {
        *endpoint.texts.lock().unwrap().entry(text.clone()).or_default() += 1;
        serde_json::json!({"index": index, "embedding": endpoint.rows.embed_text(text)})
    };
    let data: Vec<_> = texts.iter().enumerate().map(embed).collect();
    axum::Json(serde_json::json!({"data": data})).into_response()
}

/// A service that follows its owner.
struct Running {
    shutdown: CancellationToken,
    task: JoinHandle<()>,
}

impl Running {
    async fn start(config: Config, bench: &mut Bench) -> Self {
        let service = open(config, bench).await;
        let shutdown = CancellationToken::new();
        let until = shutdown.clone();
        let task = tokio::spawn(async move { service.run(until).await });
        Self { shutdown, task }
    }

    /// Ends it as a restart does.
    async fn stop(self) {
        self.shutdown.cancel();
        self.task.await.unwrap();
    }
}

/// Opens a service in the place of the one before, which may still be closing its files.
async fn open(config: Config, bench: &mut Bench) -> Service {
    bench.channel = ServiceChannel::local(Routes::default());
    let opened = eventually("the index is free", async || try_open(&bench.owner, config.clone()).await.ok());
    let service = opened.await;
    bench.channel = serve(&service).await;
    service
}

pub(super) async fn eventually<T>(what: &str, mut probe: impl AsyncFnMut() -> Option<T>) -> T {
    let waiting = async {
        loop {
            if let Some(found) = probe().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let found = tokio::time::timeout(Duration::from_secs(60), waiting).await;
    assert!(found.is_ok(), "{what}: not in a minute");
    found.unwrap()
}

fn codes(answer: &SearchContextResponse) -> Vec<&str> {
    answer.coverage.iter().map(|note| note.code.as_str()).collect()
}

/// Waits until searches are answered with the endpoint's vectors, and nothing is missing.
async fn taken_over(bench: &Bench, endpoint: &Endpoint, query: &str, position: u64) -> SearchContextResponse {
    eventually("the endpoint's vectors answer", async || {
        let answer = bench.search(query, Strategy::Semantic, position).await;
        (endpoint.embedded(query) > 0 && answer.coverage.is_empty()).then_some(answer)
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn words_do_not_wait_for_an_embedder_that_is_down() {
    let mut bench = Bench::new().await;
    let endpoint = Endpoint::start().await;
    let position = bench.owner.write(1, "one.md", "Bees make honey from nectar.\n", None);
    let running = Running::start(endpoint.config(&bench), &mut bench).await;
    taken_over(&bench, &endpoint, "what do bees make", position).await;

    endpoint.is_down.store(true, Ordering::SeqCst);
    let position = bench.owner.write(2, "two.md", "The heron waits for the trout.\n", None);
    for strategy in [Strategy::Keyword, Strategy::Semantic, Strategy::Hybrid] {
        let answer = bench.search("heron trout", strategy, position).await;
        assert_eq!(answer.results.len(), 1, "{strategy:?}");
        let expected: &[&str] = if strategy == Strategy::Keyword { &[] } else { &["provider_unavailable"] };
        assert_eq!(codes(&answer), expected, "{strategy:?}");
    }
    // The text that it has embedded before is remembered, and the new document has no vector yet.
    let answer = bench.search("what do bees make", Strategy::Semantic, position).await;
    assert_eq!(codes(&answer), ["index_behind"]);
    running.stop().await;

    // A restart forgets nothing, and waits for nothing.
    let running = Running::start(endpoint.config(&bench), &mut bench).await;
    let answer = bench.search("heron trout", Strategy::Hybrid, position).await;
    assert_eq!((answer.results.len(), codes(&answer)), (1, vec!["provider_unavailable"]));
    endpoint.is_down.store(false, Ordering::SeqCst);
    let answer = taken_over(&bench, &endpoint, "which bird catches fish", position).await;
    assert!(answer.results[0].content.contains("heron"), "{answer:?}");
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_embedder_takes_over_while_the_old_one_answers() {
    let mut bench = Bench::new().await;
    let endpoint = Endpoint::start().await;
    for number in 1..=40 {
        bench.owner.write(number, "note.md", &format!("Otter {number} swims in the river.\n"), None);
    }
    let position = bench.owner.write(41, "two.md", "The heron waits for the trout.\n", None);
    let built_in = config(&bench.folder);
    let running = Running::start(built_in, &mut bench).await;
    assert_eq!(bench.search("heron", Strategy::Hybrid, position).await.results.len(), 10);
    running.stop().await;

    // The probe and two calls pass; then it takes for ever.
    endpoint.allowed.send_replace(3);
    let running = Running::start(endpoint.config(&bench), &mut bench).await;
    eventually("it waits for a fourth call", async || (*endpoint.calls.lock().unwrap() >= 4).then_some(()))
        .await;
    let answer = bench.search("heron", Strategy::Hybrid, position).await;
    assert!(answer.results[0].content.contains("heron") && answer.coverage.is_empty(), "{answer:?}");
    assert_eq!(endpoint.embedded("heron"), 0);
    // It follows the feed meanwhile.
    let position = bench.owner.write(42, "three.md", "A kingfisher dives.\n", None);
    let answer = bench.search("kingfisher", Strategy::Hybrid, position).await;
    assert!(answer.results[0].content.contains("kingfisher"), "{answer:?}");
    // It ends in the middle and goes on where it was.
    running.stop().await;
    endpoint.allowed.send_replace(usize::MAX);
    let running = Running::start(endpoint.config(&bench), &mut bench).await;
    let answer = taken_over(&bench, &endpoint, "kingfisher", position).await;
    assert!(answer.results[0].content.contains("kingfisher"), "{answer:?}");
    let generations = || {
        let entries = std::fs::read_dir(bench.folder.path().join("index")).unwrap();
        entries.filter(|entry| entry.as_ref().unwrap().path().is_dir()).count()
    };
    eventually("the old index is removed", async || (generations() == 1).then_some(())).await;
    running.stop().await;
    let embedded_twice = endpoint.texts.lock().unwrap().values().filter(|times| **times > 1).count();
    assert!(embedded_twice <= 16 + 1, "{embedded_twice} texts were embedded again after the restart");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_whose_embedder_is_gone_answers_by_words_until_it_is_replaced() {
    let mut bench = Bench::new().await;
    let endpoint = Endpoint::start().await;
    let position = bench.owner.write(1, "one.md", "The heron waits for the trout.\n", None);
    let running = Running::start(endpoint.config(&bench), &mut bench).await;
    taken_over(&bench, &endpoint, "which bird catches fish", position).await;
    running.stop().await;

    // Before anything is rebuilt: the service is open, and does not run yet.
    let service = open(config(&bench.folder), &mut bench).await;
    let answer = bench.search("heron", Strategy::Semantic, position).await;
    assert_eq!((answer.results.len(), codes(&answer)), (1, vec!["provider_unavailable"]));
    let shutdown = CancellationToken::new();
    let until = shutdown.clone();
    let task = tokio::spawn(async move { service.run(until).await });
    eventually("the built-in embedder takes over", async || {
        bench.search("heron", Strategy::Semantic, position).await.coverage.is_empty().then_some(())
    })
    .await;
    shutdown.cancel();
    task.await.unwrap();
}
