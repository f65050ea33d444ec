use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes as Body;
use axum::extract::State;
use axum::routing::post;
use serde_json::Value;
use tokio::net::TcpListener;

use super::*;
use crate::search::rerank::contract;

/// What a server was sent: its authorization and its body.
type Sent = Arc<Mutex<Vec<(Option<String>, Value)>>>;

/// A server that counts the words of the query in each text, best first as real ones answer.
async fn judge(State(sent): State<Sent>, headers: http::HeaderMap, body: Body) -> String {
    let asked: Value = serde_json::from_slice(&body).unwrap();
    let query: Vec<String> = asked["query"].as_str().unwrap().split(' ').map(str::to_owned).collect();
    let mut results: Vec<Value> = Vec::new();
    for (index, text) in asked["documents"].as_array().unwrap().iter().enumerate() {
        let text = text.as_str().unwrap();
        let held = query.iter().filter(|word| text.contains(word.as_str())).count();
        results.push(json!({"index": index, "relevance_score": held as f64 / query.len() as f64}));
    }
    results.sort_by(|one, other| {
        other["relevance_score"].as_f64().unwrap().total_cmp(&one["relevance_score"].as_f64().unwrap())
    });
    let authorization = headers.get(AUTHORIZATION).map(|value| value.to_str().unwrap().to_owned());
    sent.lock().unwrap().push((authorization, asked));
    json!({"id": "x", "results": results, "meta": {}}).to_string()
}

async fn serve(router: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}/v1/rerank")
}

fn guard() -> Guard {
    Guard::new(&["127.0.0.1/32".parse().unwrap()]).unwrap()
}

fn endpoint(url: &str) -> Endpoint {
    let config =
        EndpointConfig { url: url.to_owned(), model: Some("m-1".to_owned()), key: Some("s3cret".to_owned()) };
    Endpoint::new(guard(), config).unwrap()
}

#[tokio::test]
async fn keeps_the_contract() {
    let sent = Sent::default();
    let url = serve(Router::new().route("/v1/rerank", post(judge)).with_state(Arc::clone(&sent))).await;
    contract::check(&endpoint(&url)).await;
    let sent = sent.lock().unwrap();
    assert_eq!(sent[0].0.as_deref(), Some("Bearer s3cret"));
    assert_eq!(sent[0].1["model"], "m-1");
    assert_eq!(sent[0].1["documents"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn what_goes_wrong_is_an_error_that_names_no_key() {
    let failing = Router::new().route("/v1/rerank", post(async || (StatusCode::PAYMENT_REQUIRED, "no")));
    let asked = endpoint(&serve(failing).await);
    assert!(matches!(asked.rerank("q", &["t"]).await, Err(Error::Status(402))));
    let odd = Router::new().route("/v1/rerank", post(async || "<html>"));
    assert!(matches!(endpoint(&serve(odd).await).rerank("q", &["t"]).await, Err(Error::Answer(_))));
    let gone = endpoint("http://127.0.0.1:1/v1/rerank");
    assert!(matches!(gone.rerank("q", &["t"]).await, Err(Error::Unreachable(_))));
    assert!(!format!("{asked:?} {:?}", asked.config).contains("s3cret"));
}

#[test]
fn addresses_and_keys_that_cannot_be_used_are_refused_at_once() {
    let config =
        |url: &str, key: &str| EndpointConfig { url: url.to_owned(), model: None, key: Some(key.to_owned()) };
    assert!(matches!(Endpoint::new(guard(), config("ftp://x/", "k")), Err(EndpointError::Refused(_))));
    assert!(matches!(
        Endpoint::new(guard(), config("http://10.0.0.1/rerank", "k")),
        Err(EndpointError::Refused(_))
    ));
    assert!(matches!(
        Endpoint::new(guard(), config("http://127.0.0.1/rerank", "a\nb")),
        Err(EndpointError::Key)
    ));
}

#[test]
fn answers_of_other_servers_are_read_too() {
    let read =
        |body: Value, texts| read(body.to_string().as_bytes(), texts).map_err(|error| error.to_string());
    let voyage =
        json!({"data": [{"index": 1, "relevance_score": 0.5}, {"index": 0, "relevance_score": 0.25}]});
    assert_eq!(read(voyage, 2), Ok(vec![0.25, 0.5]));
    let raw =
        json!({"results": [{"index": 0, "relevance_score": -8.0}, {"index": 1, "relevance_score": 0.0}]});
    let squeezed = read(raw, 2).unwrap();
    assert!(squeezed[0] < 0.001 && (squeezed[1] - 0.5).abs() < 1e-6, "{squeezed:?}");
    for broken in [
        json!({"results": []}),
        json!({"results": [{"index": 7, "relevance_score": 0.5}]}),
        json!({"results": [{"index": 0, "relevance_score": 1e300}]}),
        json!({"answer": 1}),
        json!([]),
    ] {
        assert!(read(broken.clone(), 1).is_err(), "{broken}");
    }
}
