//! A fake S3 server in memory, on its own port, with the requests that the engine uses. It checks that requests are
//! signed with the right key, but not the signatures.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;

pub(super) const BUCKET: &str = "assets";
pub(super) const ACCESS_KEY: &str = "AKIDTEST";
pub(super) const SECRET_KEY: &str = "never-shown";
/// Small enough that a list has several pages.
const PAGE: usize = 2;
/// The minimum size that S3 accepts for a part other than the last.
const MIN_PART_BYTES: usize = 5 * 1024 * 1024;
const WRITTEN_AT: (&str, &str) = ("2026-01-02T03:04:05.000Z", "Fri, 02 Jan 2026 03:04:05 GMT");

type Asked = HashMap<String, String>;

/// The contents of the bucket, and counters of the requests.
#[derive(Debug, Default)]
struct Contents {
    objects: BTreeMap<String, Bytes>,
    /// The parts of incomplete uploads.
    uploads: HashMap<String, (String, BTreeMap<u32, Bytes>)>,
    uploads_begun: usize,
    parts_in_flight: usize,
    max_parts_in_flight: usize,
    largest_body: usize,
}

/// The server; it ends with the runtime of its test.
#[derive(Debug, Clone)]
pub(super) struct S3Server {
    pub(super) address: std::net::SocketAddr,
    contents: Arc<Mutex<Contents>>,
}

impl S3Server {
    pub(super) async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self { address: listener.local_addr().unwrap(), contents: Arc::default() };
        let routes = Router::new()
            .route("/{bucket}", any(on_bucket))
            .route("/{bucket}/{*key}", any(on_object))
            .layer(axum::extract::DefaultBodyLimit::disable())
            .with_state(server.clone());
        tokio::spawn(async move { axum::serve(listener, routes).await });
        server
    }

    /// The keys of all objects, and the remains of incomplete uploads.
    pub(super) fn entries(&self) -> Vec<String> {
        let contents = self.contents();
        let uploads = contents.uploads.keys().map(|id| format!("upload {id}"));
        contents.objects.keys().cloned().chain(uploads).collect()
    }

    pub(super) fn uploads_begun(&self) -> usize {
        self.contents().uploads_begun
    }

    pub(super) fn max_parts_in_flight(&self) -> usize {
        self.contents().max_parts_in_flight
    }

    pub(super) fn largest_body(&self) -> usize {
        self.contents().largest_body
    }

    fn contents(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap()
    }
}

async fn on_bucket(
    State(server): State<S3Server>,
    Path(bucket): Path<String>,
    Query(asked): Query<Asked>,
    headers: HeaderMap,
) -> Response {
    if let Some(refusal) = refuse(&bucket, &headers) {
        return refusal;
    }
    assert_eq!(asked.get("list-type").map(String::as_str), Some("2"), "{asked:?}");
    let prefix = asked.get("prefix").map_or("", String::as_str);
    let after = asked.get("continuation-token").map_or("", String::as_str);
    let contents = server.contents();
    let found = contents.objects.iter().filter(|(key, _)| key.starts_with(prefix) && key.as_str() > after);
    let mut found: Vec<(&String, &Bytes)> = found.take(PAGE + 1).collect();
    let has_more = found.len() > PAGE;
    found.truncate(PAGE);
    let mut page = String::from("<ListBucketResult>");
    for (key, bytes) in &found {
        let size = bytes.len();
        write!(
            page,
            "<Contents><Key>{key}</Key><Size>{size}</Size><LastModified>{}</LastModified></Contents>",
            WRITTEN_AT.0
        )
        .unwrap();
    }
    if let Some((last, _)) = found.last().filter(|_| has_more) {
        write!(page, "<NextContinuationToken>{last}</NextContinuationToken>").unwrap();
    }
    page.push_str("</ListBucketResult>");
    page.into_response()
}

async fn on_object(
    State(server): State<S3Server>,
    Path((bucket, key)): Path<(String, String)>,
    Query(asked): Query<Asked>,
    method: Method,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    if let Some(refusal) = refuse(&bucket, &headers) {
        return refusal;
    }
    let upload = asked.get("uploadId");
    let part: Option<u32> = asked.get("partNumber").map(|number| number.parse().unwrap());
    match (method.as_str(), upload, part) {
        ("PUT", Some(upload), Some(part)) => put_part(&server, upload, part, body).await,
        ("PUT", None, None) => {
            let mut contents = server.contents();
            contents.largest_body = contents.largest_body.max(body.len());
            contents.objects.insert(key, body);
            [(header::ETAG, "\"whole\"")].into_response()
        }
        ("POST", None, None) if asked.contains_key("uploads") => begin(&server, key),
        ("POST", Some(upload), None) => complete(&server, upload),
        ("DELETE", Some(upload), None) => {
            let removed = server.contents().uploads.remove(upload);
            if removed.is_some() { StatusCode::NO_CONTENT } else { StatusCode::NOT_FOUND }.into_response()
        }
        ("DELETE", None, None) => {
            server.contents().objects.remove(&key);
            StatusCode::NO_CONTENT.into_response()
        }
        ("GET" | "HEAD", None, None) => get(&server, &key, &headers),
        _ => StatusCode::NOT_IMPLEMENTED.into_response(),
    }
}

fn refuse(bucket: &str, headers: &HeaderMap) -> Option<Response> {
    let signed = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if !signed.starts_with(&format!("AWS4-HMAC-SHA256 Credential={ACCESS_KEY}/")) {
        return Some((StatusCode::FORBIDDEN, "<Error><Code>AccessDenied</Code></Error>").into_response());
    }
    let missing = (StatusCode::NOT_FOUND, "<Error><Code>NoSuchBucket</Code></Error>");
    (bucket != BUCKET).then(|| missing.into_response())
}

fn begin(server: &S3Server, key: String) -> Response {
    let mut contents = server.contents();
    contents.uploads_begun += 1;
    let id = format!("u{}", contents.uploads_begun);
    contents.uploads.insert(id.clone(), (key, BTreeMap::new()));
    let answer = "InitiateMultipartUploadResult";
    format!("<{answer}><UploadId>{id}</UploadId></{answer}>").into_response()
}

async fn put_part(server: &S3Server, upload: &str, part: u32, body: Bytes) -> Response {
    {
        let mut contents = server.contents();
        contents.parts_in_flight += 1;
        contents.max_parts_in_flight = contents.max_parts_in_flight.max(contents.parts_in_flight);
        contents.largest_body = contents.largest_body.max(body.len());
    }
    // Long enough for a concurrent part to arrive.
    tokio::time::sleep(Duration::from_millis(20)).await;
    let mut contents = server.contents();
    contents.parts_in_flight -= 1;
    let Some((_, parts)) = contents.uploads.get_mut(upload) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    parts.insert(part, body);
    [(header::ETAG, format!("\"part-{part}\""))].into_response()
}

fn complete(server: &S3Server, upload: &str) -> Response {
    let mut contents = server.contents();
    let Some((key, parts)) = contents.uploads.remove(upload) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let last = parts.keys().next_back().copied();
    if parts.iter().any(|(number, bytes)| Some(*number) != last && bytes.len() < MIN_PART_BYTES) {
        return (StatusCode::BAD_REQUEST, "<Error><Code>EntityTooSmall</Code></Error>").into_response();
    }
    contents.objects.insert(key, parts.into_values().flatten().collect());
    let answer = "CompleteMultipartUploadResult";
    format!("<{answer}><ETag>\"whole\"</ETag></{answer}>").into_response()
}

fn get(server: &S3Server, key: &str, headers: &HeaderMap) -> Response {
    let Some(bytes) = server.contents().objects.get(key).cloned() else {
        return (StatusCode::NOT_FOUND, "<Error><Code>NoSuchKey</Code></Error>").into_response();
    };
    let known = [(header::ETAG, "\"whole\""), (header::LAST_MODIFIED, WRITTEN_AT.1)];
    let Some(range) = headers.get(header::RANGE) else { return (known, bytes).into_response() };
    let (from, to) = range.to_str().unwrap().strip_prefix("bytes=").unwrap().split_once('-').unwrap();
    let (from, to): (usize, usize) = (from.parse().unwrap(), to.parse().unwrap());
    if from >= bytes.len() {
        return StatusCode::RANGE_NOT_SATISFIABLE.into_response();
    }
    let to = to.min(bytes.len() - 1);
    let place = [(header::CONTENT_RANGE, format!("bytes {from}-{to}/{}", bytes.len()))];
    (StatusCode::PARTIAL_CONTENT, known, place, bytes.slice(from..=to)).into_response()
}

/// The modification time of all objects.
pub(super) fn written_at() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_323_045)
}
