use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body as Sent;
use axum::extract::{Query, Request as Asked, State};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::*;
use crate::contract::{self, SECRET, World, counted, guard, listed};
use crate::{ProviderKind, Reach, connect};

/// An object store that answers as S3 does, and checks no signature.
#[derive(Clone, Default)]
struct Store(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    base: String,
    objects: BTreeMap<String, (String, String)>,
    /// Answers once, or for ever when it is no limit.
    instead: Option<(u16, &'static str)>,
    /// Whole documents that a listing answers.
    listing: Option<String>,
}

impl Store {
    async fn new() -> Self {
        let store = Self::default();
        let router = Router::new().fallback(serve).with_state(store.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        store.0.lock().unwrap().base = format!("http://127.0.0.1:{}", listener.local_addr().unwrap().port());
        tokio::spawn(async move { axum::serve(listener, router).await });
        store
    }

    fn write(&self, key: &str, text: &str) {
        let mut inner = self.0.lock().unwrap();
        let etag = format!("\"{}\"", &blake3::hash(text.as_bytes()).to_hex()[..32]);
        inner.objects.insert(key.to_owned(), (text.to_owned(), etag));
    }

    fn with(&self, more: &Value) -> Box<dyn Provider> {
        let mut settings = more.clone();
        settings["bucket"] = "papers".into();
        settings["endpoint"] = self.0.lock().unwrap().base.as_str().into();
        let reach = Reach::new(guard(), &[]);
        connect(ProviderKind::S3, &settings, Some(&credentials()), None, &reach).unwrap()
    }

    fn answer_instead(&self, status: u16, code: &'static str) {
        self.0.lock().unwrap().instead = Some((status, code));
    }
}

fn credentials() -> Value {
    json!({ "accessKeyId": "AKIAEXAMPLE", "secretAccessKey": SECRET, "sessionToken": SECRET })
}

async fn serve(
    State(store): State<Store>,
    Query(query): Query<HashMap<String, String>>,
    asked: Asked,
) -> Response<Sent> {
    let answer =
        |status: u16, text: String| Response::builder().status(status).body(Sent::from(text)).unwrap();
    let mut inner = store.0.lock().unwrap();
    assert!(
        asked.headers()["authorization"].to_str().unwrap().contains("/s3/aws4_request,SignedHeaders=host;")
    );
    if let Some((status, code)) = inner.instead {
        if status == 503 {
            inner.instead = None;
        }
        let mut answer = answer(status, format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code></Error>"));
        if status == 503 {
            answer.headers_mut().insert("retry-after", "7".parse().unwrap());
        }
        return answer;
    }
    if asked.uri().path() == "/papers" {
        return answer(200, inner.listing.clone().unwrap_or_else(|| page(&inner.objects, &query)));
    }
    let key = asked.uri().path().strip_prefix("/papers/").unwrap();
    let key = percent_encoding::percent_decode_str(key).decode_utf8().unwrap();
    let Some((text, etag)) = inner.objects.get(key.as_ref()) else {
        return answer(404, "<Error><Code>NoSuchKey</Code></Error>".to_owned());
    };
    if asked.headers().get("if-none-match").is_some_and(|known| known == etag.as_str()) {
        return answer(304, String::new());
    }
    let mut answer = answer(200, text.clone());
    answer.headers_mut().insert("etag", etag.parse().unwrap());
    answer
}

fn page(objects: &BTreeMap<String, (String, String)>, query: &HashMap<String, String>) -> String {
    let most: usize = query["max-keys"].parse::<usize>().unwrap().min(10);
    let prefix = query.get("prefix").map_or("", String::as_str);
    let after = query.get("start-after").map_or("", String::as_str);
    let mut found = objects.iter().filter(|(key, _)| key.starts_with(prefix) && key.as_str() > after);
    let mut page =
        String::from("<?xml version=\"1.0\"?><ListBucketResult xmlns=\"x\"><EncodingType>url</EncodingType>");
    for (key, (text, etag)) in found.by_ref().take(most) {
        let (key, etag, size) = (encoded(key, true), etag.replace('"', "&quot;"), text.len());
        let class = if text == "archived" { "GLACIER" } else { "STANDARD" };
        let _ = write!(
            page,
            "<Contents><Key>{key}</Key><LastModified>2026-11-23T10:00:00.000Z</LastModified><ETag>{etag}</ETag>\
             <Size>{size}</Size><StorageClass>{class}</StorageClass></Contents>"
        );
    }
    let _ = write!(page, "<IsTruncated>{}</IsTruncated></ListBucketResult>", found.next().is_some());
    page
}

#[async_trait]
impl World for Store {
    fn provider(&self) -> Box<dyn Provider> {
        self.with(&json!({}))
    }

    async fn put(&self, name: &str, text: &str) {
        self.write(name, text);
    }

    async fn remove(&self, name: &str) {
        self.0.lock().unwrap().objects.remove(name);
    }

    async fn id(&self, name: &str) -> ExternalId {
        ExternalId::new(name).unwrap()
    }

    async fn limit(&self) -> bool {
        self.answer_instead(503, "SlowDown");
        true
    }

    async fn refuse(&self) -> bool {
        self.answer_instead(403, "InvalidAccessKeyId");
        true
    }
}

#[tokio::test]
async fn a_bucket_keeps_the_contract() {
    contract::holds(&Store::new().await).await;
}

#[tokio::test]
async fn keys_are_taken_as_they_are() {
    let store = Store::new().await;
    let odd = ["/leading", "a//b", "a b+c%20d", "é&<>\"'.md", "\u{1}control", "a/b?x=1#y", "tab\there"];
    for key in odd {
        store.write(key, &format!("text of {key}"));
    }
    for (key, text) in [("folder/", ""), ("a/../b", "x"), ("./c", "x"), ("cold.md", "archived")] {
        store.write(key, text);
    }
    let (provider, call) = (store.provider(), counted(100).call);
    let read = listed(provider.as_ref(), &call).await;
    let mut wanted = odd.to_vec();
    wanted.sort_unstable();
    assert_eq!(read.entries.keys().map(ExternalId::as_str).collect::<Vec<_>>(), wanted);
    assert_eq!(read.faults.len(), 3);
    for key in odd {
        let id = ExternalId::new(key).unwrap();
        assert_eq!(
            contract::text(&call, provider.as_ref(), id.as_str()).await.unwrap(),
            format!("text of {key}")
        );
    }
    let url = read.entries[&ExternalId::new("a b+c%20d").unwrap()].url.clone().unwrap();
    assert!(url.ends_with("/papers/a%20b%2Bc%2520d"), "{url}");
}

#[tokio::test]
async fn a_prefix_is_all_that_is_seen() {
    let store = Store::new().await;
    store.write("team/a.md", "a");
    store.write("other/b.md", "b");
    let (provider, call) = (store.with(&json!({ "prefix": "team/" })), counted(100).call);
    let read = listed(provider.as_ref(), &call).await;
    assert_eq!(read.entries.len(), 1);
    assert_eq!(provider.fetch(&call, &ExternalId::new("other/b.md").unwrap(), None).await, Ok(Fetched::Gone));
}

#[tokio::test]
async fn an_unchanged_object_is_not_sent_again() {
    let store = Store::new().await;
    store.write("a.md", "a");
    let (provider, call) = (store.provider(), counted(100).call);
    let read = listed(provider.as_ref(), &call).await;
    let (id, entry) = read.entries.first_key_value().unwrap();
    assert_eq!(provider.fetch(&call, id, Some(&entry.version)).await, Ok(Fetched::Same));
}

#[tokio::test]
async fn errors_mean_what_their_codes_say() {
    let store = Store::new().await;
    let call = counted(100).call;
    let cases = [
        (403, "AccessDenied", Fault::Forbidden),
        (403, "SignatureDoesNotMatch", Fault::Credentials),
        (400, "ExpiredToken", Fault::Credentials),
        (404, "NoSuchBucket", Fault::broken("there is no such bucket")),
        (500, "InternalError", Fault::Unavailable),
    ];
    for (status, code, fault) in cases {
        store.answer_instead(status, code);
        assert_eq!(store.provider().check(&call).await, Err(fault), "{code}");
    }
    store.answer_instead(301, "PermanentRedirect");
    assert!(matches!(store.provider().check(&call).await, Err(Fault::Broken(_))));
}

#[tokio::test]
async fn a_listing_that_is_none_removes_nothing() {
    let store = Store::new().await;
    store.write("a.md", "a");
    let call = counted(100).call;
    let whole =
        page(&store.0.lock().unwrap().objects, &HashMap::from([("max-keys".to_owned(), "9".to_owned())]));
    let endless = whole.replace("<IsTruncated>false", "<IsTruncated>true");
    let odd = [
        "<html><body>sign in</body></html>",
        "",
        "{}",
        &whole[..whole.len() / 2],
        "<ListBucketResult><Contents><Size>x</Size></Contents></ListBucketResult>",
        "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
        "<!DOCTYPE x><ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>",
    ];
    for listing in odd {
        store.0.lock().unwrap().listing = Some(listing.to_owned());
        let page = store.provider().list(&call, None).await;
        assert!(matches!(page, Err(Fault::Broken(_))), "{listing}: {page:?}");
    }
    store.0.lock().unwrap().listing = Some(endless);
    let provider = store.provider();
    let Then::More(next) = provider.list(&call, None).await.unwrap().then else { panic!("it goes on") };
    assert!(matches!(provider.list(&call, Some(&next)).await, Err(Fault::Broken(_))), "the same page again");
}

#[test]
fn settings_are_checked() {
    let reach = Reach::new(guard(), &[]);
    let problems = |settings: Value| {
        let made = connect(ProviderKind::S3, &settings, Some(&credentials()), None, &reach);
        made.map(drop).map_err(|all| all.into_iter().map(|one| one.path).collect::<Vec<_>>())
    };
    assert_eq!(problems(json!({ "bucket": "papers", "region": "eu-central-1" })), Ok(()));
    assert_eq!(problems(json!({})), Err(vec!["settings.bucket".to_owned()]));
    for odd in ["a/b", "..", "x", "a..b", "bu cket"] {
        assert_eq!(problems(json!({ "bucket": odd })), Err(vec!["settings.bucket".to_owned()]), "{odd}");
    }
    let inside = json!({ "bucket": "papers", "endpoint": "http://169.254.169.254/" });
    assert_eq!(problems(inside), Err(vec!["settings.endpoint".to_owned()]));
    assert_eq!(
        problems(json!({ "bucket": "papers", "region": "x.evil.example/" })),
        Err(vec!["settings.region".to_owned()])
    );
    let without = connect(ProviderKind::S3, &json!({ "bucket": "papers" }), None, None, &reach).unwrap_err();
    assert_eq!(without.len(), 2);
}

/// Against another implementation: `CAIRN_TEST_S3=http://127.0.0.1:5000` of a running `moto_server`.
#[tokio::test]
async fn moto_is_read_as_well() {
    let Ok(endpoint) = std::env::var("CAIRN_TEST_S3") else {
        eprintln!("skipped: CAIRN_TEST_S3 names no server");
        return;
    };
    let call = counted(10_000).call;
    let put = async |path: &str, text: &'static str| {
        let request =
            Request::put(format!("{endpoint}{path}")).body(Bytes::from_static(text.as_bytes())).unwrap();
        call.send(request, 100_000).await.unwrap();
    };
    let bucket = format!("cairn-{}", std::process::id());
    put(&format!("/{bucket}"), "").await;
    for number in 0..1_100 {
        put(&format!("/{bucket}/part/{number}%20%2B%C3%A9.md"), "text").await;
    }
    let reach = Reach::new(guard(), &[]);
    let settings = json!({ "bucket": bucket, "endpoint": endpoint });
    let provider = connect(ProviderKind::S3, &settings, Some(&credentials()), None, &reach).unwrap();
    let read = listed(provider.as_ref(), &call).await;
    assert_eq!((read.entries.len(), read.pages, read.faults.len()), (1_100, 2, 0));
    let (id, entry) = read.entries.first_key_value().unwrap();
    assert_eq!(contract::text(&call, provider.as_ref(), id.as_str()).await.unwrap(), "text");
    assert_eq!(provider.fetch(&call, id, Some(&entry.version)).await, Ok(Fetched::Same));
    let missing = ExternalId::new("missing").unwrap();
    assert_eq!(provider.fetch(&call, &missing, None).await, Ok(Fetched::Gone));
}
