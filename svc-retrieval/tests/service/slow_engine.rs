//! Searches against a Qdrant that takes its time: they wait for it, and hold no core meanwhile.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::response::Response;
use cairn_embed::{Embedder as _, StaticRows};
use cairn_index::qdrant::Config as QdrantConfig;
use cairn_proto::retrieval::v1::Strategy;
use cairn_retrieval::Config;
use futures::future::join_all;
use futures::stream;
use http::{HeaderMap, HeaderValue};
use http_body::Frame;
use http_body_util::StreamBody;
use prost::Message as _;
use qdrant_client::qdrant::vectors_config::Config as VectorsKind;
use qdrant_client::qdrant::{
    BatchResult, CollectionConfig, CollectionExists, CollectionExistsResponse, CollectionInfo,
    CollectionParams, GetCollectionInfoResponse, GetPoints, GetResponse, HealthCheckReply, QueryBatchPoints,
    QueryBatchResponse, RetrievedPoint, ScoredPoint, Value, VectorParams, VectorParamsMap, VectorsConfig,
};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::owner::{Bench, config, request, serve, try_open};

/// What tells the collection from a later one.
const MARK: &str = "01890a5d-ac96-774b-bcce-b302099a8057";

/// When a search is answered.
enum Pace {
    After(Duration),
    /// When so many wait.
    Together(usize),
}

/// An empty Qdrant, as far as searches go.
struct Qdrant {
    dimensions: u64,
    pace: Pace,
    waiting: AtomicUsize,
    most_waiting: AtomicUsize,
    released: Semaphore,
    asked: Mutex<Vec<String>>,
}

impl Qdrant {
    async fn start(pace: Pace) -> (Arc<Self>, SocketAddr) {
        let qdrant = Arc::new(Self {
            dimensions: StaticRows::open().unwrap().dimensions() as u64,
            pace,
            waiting: AtomicUsize::new(0),
            most_waiting: AtomicUsize::new(0),
            released: Semaphore::new(0),
            asked: Mutex::default(),
        });
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().fallback(answer).with_state(Arc::clone(&qdrant));
        tokio::spawn(async move { axum::serve(listener, router).await });
        (qdrant, address)
    }

    async fn search(&self) {
        let waiting = self.waiting.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_waiting.fetch_max(waiting, Ordering::SeqCst);
        match self.pace {
            Pace::After(time) => tokio::time::sleep(time).await,
            Pace::Together(count) => {
                if waiting == count {
                    self.released.add_permits(Semaphore::MAX_PERMITS / 2);
                }
                self.released.acquire().await.unwrap().forget();
            }
        }
        self.waiting.fetch_sub(1, Ordering::SeqCst);
    }

    fn info(&self) -> GetCollectionInfoResponse {
        let meaning = VectorParams { size: self.dimensions, ..VectorParams::default() };
        let map = VectorParamsMap { map: [("meaning".to_owned(), meaning)].into() };
        let vectors_config = Some(VectorsConfig { config: Some(VectorsKind::ParamsMap(map)) });
        let params = CollectionParams { vectors_config, ..CollectionParams::default() };
        let config = Some(CollectionConfig { params: Some(params), ..CollectionConfig::default() });
        let result = Some(CollectionInfo { config, ..CollectionInfo::default() });
        GetCollectionInfoResponse { result, ..GetCollectionInfoResponse::default() }
    }

    /// How often a method was asked.
    fn asked(&self, method: &str) -> usize {
        self.asked.lock().unwrap().iter().filter(|asked| asked.ends_with(method)).count()
    }
}

/// One call of gRPC: a message behind five bytes, and the status in trailers. What is not listed has an empty answer.
async fn answer(State(qdrant): State<Arc<Qdrant>>, request: Request) -> Response {
    let method = request.uri().path().to_owned();
    let asked = axum::body::to_bytes(request.into_body(), usize::MAX).await.unwrap();
    qdrant.asked.lock().unwrap().push(method.clone());
    let message = match method.as_str() {
        "/qdrant.Qdrant/HealthCheck" => {
            HealthCheckReply { version: "1.19.0".to_owned(), ..HealthCheckReply::default() }.encode_to_vec()
        }
        "/qdrant.Collections/CollectionExists" => {
            let result = Some(CollectionExists { exists: true });
            CollectionExistsResponse { result, ..CollectionExistsResponse::default() }.encode_to_vec()
        }
        "/qdrant.Collections/Get" => qdrant.info().encode_to_vec(),
        "/qdrant.Points/Query" => {
            qdrant.search().await;
            Vec::new()
        }
        "/qdrant.Points/QueryBatch" => {
            qdrant.search().await;
            let queries = QueryBatchPoints::decode(&asked[5..]).unwrap().query_points.len();
            let mut result = vec![BatchResult::default(); queries];
            // The last one asks for the mark.
            let mark = ScoredPoint { payload: marked(), ..ScoredPoint::default() };
            result.last_mut().unwrap().result.push(mark);
            QueryBatchResponse { result, ..QueryBatchResponse::default() }.encode_to_vec()
        }
        "/qdrant.Points/Get" if asked.windows(4).any(|bytes| bytes == b"mark") => {
            // The last one that is asked for.
            let id = GetPoints::decode(&asked[5..]).unwrap().ids.pop();
            let result = vec![RetrievedPoint { id, payload: marked(), ..RetrievedPoint::default() }];
            GetResponse { result, ..GetResponse::default() }.encode_to_vec()
        }
        _ => Vec::new(),
    };
    let mut framed = vec![0];
    framed.extend(u32::try_from(message.len()).unwrap().to_be_bytes());
    framed.extend(message);
    let trailers = HeaderMap::from_iter([("grpc-status".parse().unwrap(), HeaderValue::from_static("0"))]);
    let frames = [Frame::data(Bytes::from(framed)), Frame::trailers(trailers)].map(Ok::<_, Infallible>);
    let body = Body::new(StreamBody::new(stream::iter(frames)));
    Response::builder().header("content-type", "application/grpc").body(body).unwrap()
}

fn marked() -> HashMap<String, Value> {
    [("mark".to_owned(), Value::from(MARK))].into()
}

async fn bench(qdrant: SocketAddr) -> Bench {
    let mut bench = Bench::new().await;
    // The folder is one service's at a time.
    bench.folder = tempfile::tempdir().unwrap();
    let qdrant =
        QdrantConfig { url: format!("http://{qdrant}"), ca: None, api_key: None, prefix: "slow".to_owned() };
    let settings = Config { qdrant: Some(qdrant), ..config(&bench.folder) };
    bench.channel = serve(&try_open(&bench.owner, settings).await.unwrap()).await;
    bench
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

#[tokio::test(flavor = "multi_thread")]
async fn more_searches_than_cores_wait_at_once_and_each_is_one_round_trip() {
    let searches = cores() * 8;
    let (qdrant, address) = Qdrant::start(Pace::Together(searches)).await;
    let bench = bench(address).await;
    let token = bench.token();
    let search = || bench.search_as(&token, request("slow but sure", Strategy::Hybrid, 0));
    for answer in join_all((0..searches).map(|_| search())).await {
        assert!(answer.unwrap().results.is_empty());
    }
    assert_eq!(qdrant.most_waiting.load(Ordering::SeqCst), searches);
    assert_eq!((qdrant.asked("/QueryBatch"), qdrant.asked("/Query")), (searches, 0));
}

/// Figures, not a test: `cargo test -p cairn-retrieval --test service -- --ignored --nocapture searches_a_second`.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "it prints what a slow engine costs"]
async fn searches_a_second_against_a_slow_engine() {
    const SEARCHES: usize = 400;
    const AT_ONCE: usize = 64;
    let (qdrant, address) = Qdrant::start(Pace::After(Duration::from_millis(50))).await;
    let bench = bench(address).await;
    let token = bench.token();
    let started = Instant::now();
    for _ in 0..SEARCHES.div_ceil(AT_ONCE) {
        let search = || bench.search_as(&token, request("slow but sure", Strategy::Hybrid, 0));
        for answer in join_all((0..AT_ONCE).map(|_| search())).await {
            answer.unwrap();
        }
    }
    let searches = SEARCHES.div_ceil(AT_ONCE) * AT_ONCE;
    let seconds = started.elapsed().as_secs_f64();
    println!(
        "{} cores, {AT_ONCE} searches at once, 50 ms a call: {} calls in flight at most, {:.1} calls and {:.1} \
         searches a second, {:.1} calls a search",
        cores(),
        qdrant.most_waiting.load(Ordering::SeqCst),
        (qdrant.asked("/QueryBatch") + qdrant.asked("/Query")) as f64 / seconds,
        searches as f64 / seconds,
        (qdrant.asked("/QueryBatch") + qdrant.asked("/Query")) as f64 / searches as f64,
    );
}
