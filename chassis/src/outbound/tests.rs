use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use tokio::net::TcpListener;

use super::*;

const LIMITS: Limits = Limits { time: Duration::from_secs(20), bytes: 64 };
const JSON: &[&str] = &["application/json"];

fn loopback() -> Guard {
    Guard::new(&["127.0.0.1/32".parse().unwrap()]).unwrap()
}

/// A server on loopback, its port, and how often it was asked.
async fn server() -> (u16, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let json = async || ([("content-type", "application/json; charset=utf-8")], "{}");
    let router = Router::new()
        .route("/json", get(json))
        .route("/problem", get(async || ([("content-type", "application/problem+json")], "{}")))
        .route("/html", get(async || ([("content-type", "text/html")], "{}")))
        .route("/large", get(async || ([("content-type", "application/json")], "x".repeat(65))))
        .route(
            "/endless",
            get(async || {
                let chunks = futures::stream::repeat_with(|| Ok::<_, std::io::Error>("x".repeat(10)));
                ([("content-type", "application/json")], Body::from_stream(chunks))
            }),
        )
        .route("/silent", get(async || std::future::pending::<()>().await))
        .route("/moved", get(async || (StatusCode::FOUND, [("location", "/json")])))
        .route("/away", get(async || (StatusCode::FOUND, [("location", "http://127.0.0.2:1/json")])))
        .route("/around", get(async || (StatusCode::FOUND, [("location", "/around")])))
        .route("/nowhere", get(async || StatusCode::FOUND))
        .layer(axum::middleware::map_request(move |request: axum::extract::Request| {
            counted.fetch_add(1, Ordering::SeqCst);
            std::future::ready(request)
        }));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move { axum::serve(listener, router).await });
    (port, asked)
}

#[test]
fn an_address_is_judged_before_anybody_goes_there() {
    let guard = Guard::new(&[]).unwrap();
    assert!(guard.check("https://cairn.example/client.json?a=b").is_ok());
    assert!(guard.check("https://1.1.1.1/").is_ok());
    for odd in [
        "",
        "cairn.example",
        "ftp://cairn.example/",
        "file:///etc/passwd",
        "https://",
        "https://user@cairn.example/",
        "https://:secret@cairn.example/",
        "https://cairn.example/#part",
        "javascript:alert(1)",
    ] {
        assert_eq!(guard.check(odd), Err(Refused::Url), "{odd}");
    }
    for private in [
        "https://127.0.0.1/",
        "https://2130706433/",
        "https://0x7f.1/",
        "https://017700000001/",
        "https://0/",
        "https://169.254.169.254/latest/meta-data",
        "https://[::1]/",
        "https://[::ffff:127.0.0.1]/",
        "https://[fd00:ec2::254]/",
        "http://cairn.example/",
        "http://1.1.1.1/",
    ] {
        assert_eq!(guard.check(private), Err(Refused::NotPublic), "{private}");
    }
}

#[test]
fn a_listed_network_may_be_reached_without_tls_and_no_other() {
    let guard = loopback();
    assert!(guard.check("http://127.0.0.1:1/").is_ok());
    assert!(guard.check("https://127.0.0.1:1/").is_ok());
    assert!(guard.check("http://[::ffff:127.0.0.1]/").is_ok(), "the same address in another form");
    assert_eq!(guard.check("http://127.0.0.2/"), Err(Refused::NotPublic));
    assert_eq!(guard.check("http://1.1.1.1/"), Err(Refused::NotPublic));
}

#[tokio::test]
async fn a_name_that_leads_inside_is_not_connected_to() {
    let (port, asked) = server().await;
    let closed = Guard::new(&[]).unwrap();
    let refused = closed.get(&format!("https://localhost:{port}/json"), JSON, LIMITS).await;
    assert_eq!(refused.unwrap_err(), Refused::NotPublic);
    // The listed network is another one.
    let elsewhere = Guard::new(&["192.0.2.0/24".parse().unwrap()]).unwrap();
    let refused = elsewhere.get(&format!("http://localhost:{port}/json"), JSON, LIMITS).await;
    assert_eq!(refused.unwrap_err(), Refused::NotPublic);
    assert_eq!(asked.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn an_answer_is_taken_within_its_limits_only() {
    let (port, _) = server().await;
    let guard = loopback();
    let get =
        async |path: &str, limits| guard.get(&format!("http://127.0.0.1:{port}/{path}"), JSON, limits).await;
    assert_eq!(get("json", LIMITS).await.unwrap().body(), "{}");
    assert_eq!(get("problem", LIMITS).await.unwrap().body(), "{}");
    assert_eq!(get("html", LIMITS).await.unwrap_err(), Refused::ContentType);
    assert_eq!(get("large", LIMITS).await.unwrap_err(), Refused::TooLarge(64));
    assert_eq!(get("endless", LIMITS).await.unwrap_err(), Refused::TooLarge(64));
    assert_eq!(get("moved", LIMITS).await.unwrap_err(), Refused::Status(302));
    assert_eq!(get("missing", LIMITS).await.unwrap_err(), Refused::Status(404));
    let hurried = Limits { time: Duration::from_millis(50), ..LIMITS };
    assert_eq!(get("silent", hurried).await.unwrap_err(), Refused::TimedOut);
}

#[tokio::test]
async fn a_host_that_is_down_says_nothing_about_itself() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let refused = loopback().get(&format!("http://127.0.0.1:{port}/"), JSON, LIMITS).await.unwrap_err();
    assert_eq!(refused, Refused::Unreachable);
    assert!(!refused.to_string().contains("127.0.0.1"));
}

async fn downloaded(guard: &Guard, address: &str) -> Result<String, DownloadError> {
    let mut kept = Vec::new();
    let keep = |part: &[u8], _whole| {
        kept.extend_from_slice(part);
        Ok(())
    };
    guard.download(address, LIMITS, keep).await?;
    Ok(String::from_utf8(kept).unwrap())
}

#[tokio::test]
async fn a_download_follows_redirects_and_checks_each_address() {
    let (port, asked) = server().await;
    let at = |path: &str| format!("http://127.0.0.1:{port}/{path}");
    assert_eq!(downloaded(&loopback(), &at("json")).await.unwrap(), "{}");
    assert_eq!(downloaded(&loopback(), &at("moved")).await.unwrap(), "{}");
    for (path, expected) in [
        ("away", Refused::NotPublic),
        ("around", Refused::Status(508)),
        ("nowhere", Refused::Status(302)),
        ("missing", Refused::Status(404)),
        ("large", Refused::TooLarge(LIMITS.bytes)),
        ("endless", Refused::TooLarge(LIMITS.bytes)),
    ] {
        let refused = downloaded(&loopback(), &at(path)).await.unwrap_err();
        assert!(
            matches!(&refused, DownloadError::Refused(reason) if *reason == expected),
            "{path}: {refused}"
        );
    }
    let before = asked.load(Ordering::SeqCst);
    assert!(downloaded(&Guard::new(&[]).unwrap(), &at("json")).await.is_err());
    assert_eq!(asked.load(Ordering::SeqCst), before, "a private address was asked");
}

#[tokio::test]
async fn a_download_that_cannot_be_kept_says_so() {
    let (port, _) = server().await;
    let address = format!("http://127.0.0.1:{port}/json");
    let full = |_: &[u8], _| Err(std::io::Error::from(std::io::ErrorKind::StorageFull));
    let refused = loopback().download(&address, LIMITS, full).await.unwrap_err();
    assert!(matches!(refused, DownloadError::Keep(_)), "{refused}");
}
