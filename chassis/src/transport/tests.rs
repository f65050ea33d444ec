//! What stands still ends, and what only waits for something to say does not.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};

use axum::routing::{get, post};
use bytes::Bytes;
use futures::stream;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;

const SHORT: Duration = Duration::from_millis(100);
/// What a test does not wait for.
const NEVER: Duration = Duration::from_secs(600);
const NO_TIMEOUTS: Timeouts =
    Timeouts { head: NEVER, idle: NEVER, io: NEVER, stream_write: None, max_age: None };
const REQUEST: &[u8] = b"GET /hello HTTP/1.1\r\nhost: x\r\n\r\n";

struct Served {
    address: SocketAddr,
    /// Whether the endless answer was let go.
    let_go: Arc<AtomicBool>,
    shutdown: CancellationToken,
}

struct LetGo(Arc<AtomicBool>);

impl Drop for LetGo {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

async fn served(timeouts: Timeouts, bounds: Bounds) -> Served {
    let settings = Settings::http(&Connections::new(bounds));
    served_so(Settings { timeouts, ..settings }).await
}

async fn served_so(settings: Settings) -> Served {
    let let_go = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&let_go);
    let endless = move || {
        let held = LetGo(Arc::clone(&seen));
        let parts = stream::repeat_with(move || {
            let _ = &held;
            Ok::<_, Infallible>(Bytes::from(vec![b'x'; 64 * 1024]))
        });
        std::future::ready(Body::from_stream(parts))
    };
    // Says something after all the times that a test sets short.
    let events = || {
        let later = stream::once(async {
            tokio::time::sleep(SHORT * 5).await;
            Ok::<_, Infallible>(Bytes::from_static(b"event"))
        });
        std::future::ready(Body::from_stream(later))
    };
    let read = |body: Body| async move {
        match axum::body::to_bytes(body, usize::MAX).await {
            Ok(_) => "whole",
            Err(_) => "cut short",
        }
    };
    let router = Router::new()
        .route(
            "/hello",
            get(|ConnectInfo(peer): ConnectInfo<SocketAddr>| async move { peer.ip().to_string() }),
        )
        .route("/endless", get(endless))
        .route("/events", get(events))
        .route("/read", post(read));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let shutdown = CancellationToken::new();
    tokio::spawn(serve(listener, router, settings, shutdown.clone()));
    Served { address, let_go, shutdown }
}

impl Served {
    async fn send(&self, bytes: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        stream
    }
}

/// What comes until the connection ends.
async fn rest(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    // A connection that is cut off may end with an error.
    let _ = stream.read_to_end(&mut bytes).await;
    String::from_utf8_lossy(&bytes).into_owned()
}

async fn part(stream: &mut TcpStream) -> String {
    let mut bytes = vec![0; 4_096];
    let length = stream.read(&mut bytes).await.unwrap();
    String::from_utf8_lossy(&bytes[..length]).into_owned()
}

#[tokio::test]
async fn a_head_that_does_not_end_is_closed_and_nobody_else_is() {
    let served = served(Timeouts { head: SHORT, ..NO_TIMEOUTS }, Bounds::default()).await;
    let mut kept = served.send(REQUEST).await;
    assert!(part(&mut kept).await.ends_with("127.0.0.1"));
    for half in [&b"GET /hello HTTP/1.1\r\nhost"[..], b"", b"G", b"P"] {
        assert_eq!(rest(&mut served.send(half).await).await, "", "{half:?}");
    }
    // Between two requests there is no head that could be late; the next one may be.
    kept.write_all(REQUEST).await.unwrap();
    assert!(part(&mut kept).await.ends_with("127.0.0.1"));
    kept.write_all(b"GET /hel").await.unwrap();
    assert_eq!(rest(&mut kept).await, "");
}

#[tokio::test]
async fn a_connection_that_rests_is_closed_and_one_that_waits_for_events_is_not() {
    let served = served(Timeouts { idle: SHORT, io: SHORT, ..NO_TIMEOUTS }, Bounds::default()).await;
    let mut resting = served.send(REQUEST).await;
    assert!(rest(&mut resting).await.ends_with("127.0.0.1"));
    let mut waiting = served.send(b"GET /events HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await;
    assert!(rest(&mut waiting).await.contains("event"));
    // HTTP/2 too: its preface, its settings, and then nothing.
    let preface = [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &[0, 0, 0, 4, 0, 0, 0, 0, 0]].concat();
    rest(&mut served.send(&preface).await).await;
}

#[tokio::test]
async fn a_body_that_does_not_come_is_not_awaited() {
    let served = served(Timeouts { io: SHORT, ..NO_TIMEOUTS }, Bounds::default()).await;
    let mut slow = served.send(b"POST /read HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nhalf").await;
    assert!(rest(&mut slow).await.ends_with("cut short"));
}

#[tokio::test]
async fn an_answer_that_nobody_takes_is_let_go() {
    let served = served(Timeouts { io: SHORT, ..NO_TIMEOUTS }, Bounds::default()).await;
    let _unread = served.send(b"GET /endless HTTP/1.1\r\nhost: x\r\n\r\n").await;
    while !served.let_go.load(Ordering::Acquire) {
        tokio::time::sleep(SHORT / 10).await;
    }
}

/// A frame of HTTP/2 on the first stream, or on none.
fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let length = u8::try_from(payload.len()).unwrap();
    [&[0, 0, length, kind, flags, 0, 0, 0, stream][..], payload].concat()
}

#[tokio::test]
async fn an_answer_that_nobody_takes_over_http_2_is_let_go() {
    let served = served(Timeouts { stream_write: Some(SHORT), ..NO_TIMEOUTS }, Bounds::default()).await;
    for window in [0_u32, 1_000] {
        served.let_go.store(false, Ordering::Release);
        let settings = [&[0, 4][..], &window.to_be_bytes()[..]].concat();
        let head = [&[0x82, 0x86, 0x04, 8][..], b"/endless", &[0x01, 1], b"x"].concat();
        let asked =
            [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), frame(4, 0, 0, &settings), frame(1, 5, 1, &head)];
        let mut stream = served.send(&asked.concat()).await;
        // All that comes is read, but the stream is given no more room.
        rest(&mut stream).await;
        while !served.let_go.load(Ordering::Acquire) {
            tokio::time::sleep(SHORT / 10).await;
        }
    }
}

#[tokio::test]
async fn an_address_that_has_too_many_connections_gets_no_more() {
    let served = served(NO_TIMEOUTS, Bounds { per_address: 2, ..Bounds::default() }).await;
    let mut first = served.send(REQUEST).await;
    assert!(part(&mut first).await.ends_with("127.0.0.1"));
    let mut second = served.send(REQUEST).await;
    assert!(part(&mut second).await.ends_with("127.0.0.1"));
    let mut third = TcpStream::connect(served.address).await.unwrap();
    assert_eq!(rest(&mut third).await, "");
    drop(first);
    loop {
        let mut again = TcpStream::connect(served.address).await.unwrap();
        if again.write_all(REQUEST).await.is_ok() {
            let mut bytes = [0; 64];
            if again.read(&mut bytes).await.is_ok_and(|length| length > 0) {
                return;
            }
        }
    }
}

#[tokio::test]
async fn a_connection_that_is_old_is_told_to_end_and_its_request_is_answered() {
    let served = served(Timeouts { max_age: Some(SHORT), ..NO_TIMEOUTS }, Bounds::default()).await;
    let mut busy = served.send(b"GET /events HTTP/1.1\r\nhost: x\r\n\r\n").await;
    assert!(rest(&mut busy).await.contains("event"));
    let mut resting = served.send(REQUEST).await;
    assert!(rest(&mut resting).await.ends_with("127.0.0.1"));
    let mut another = served.send(REQUEST).await;
    assert!(part(&mut another).await.ends_with("127.0.0.1"), "who comes again is served");
}

#[tokio::test]
async fn who_is_about_to_go_serves_on_and_says_so() {
    let leaving = CancellationToken::new();
    let settings = Settings::http(&Connections::default()).leaving(leaving.clone());
    let served = served_so(Settings { timeouts: NO_TIMEOUTS, ..settings }).await;
    let mut kept = served.send(REQUEST).await;
    assert!(!part(&mut kept).await.contains("connection: close"));
    leaving.cancel();
    kept.write_all(REQUEST).await.unwrap();
    let last = rest(&mut kept).await;
    assert!(last.contains("connection: close") && last.ends_with("127.0.0.1"), "{last}");
    let mut new = served.send(REQUEST).await;
    assert!(rest(&mut new).await.ends_with("127.0.0.1"), "new callers are served too");
}

#[tokio::test]
async fn a_connection_that_was_just_made_is_served_once_more() {
    let served = served(NO_TIMEOUTS, Bounds::default()).await;
    let mut new = TcpStream::connect(served.address).await.unwrap();
    served.shutdown.cancel();
    new.write_all(REQUEST).await.unwrap();
    assert!(rest(&mut new).await.ends_with("127.0.0.1"));
    assert!(TcpStream::connect(served.address).await.is_err());
}

#[tokio::test]
async fn a_shutdown_lets_requests_finish_and_ends_what_rests() {
    let served = served(NO_TIMEOUTS, Bounds::default()).await;
    let mut resting = served.send(REQUEST).await;
    assert!(part(&mut resting).await.ends_with("127.0.0.1"));
    let mut waiting = served.send(b"GET /events HTTP/1.1\r\nhost: x\r\n\r\n").await;
    assert!(part(&mut waiting).await.starts_with("HTTP/1.1 200"));
    served.shutdown.cancel();
    assert_eq!(rest(&mut resting).await, "");
    assert!(rest(&mut waiting).await.contains("event"));
    assert!(TcpStream::connect(served.address).await.is_err());
}
