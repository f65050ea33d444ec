//! Listening: connections are accepted within bounds, and end when they stand still.
//!
//! What a caller can hold by doing nothing is bounded in time: a head that does not end, a connection without a
//! request, a body that does not come, an answer that is not read. An answer that has nothing to say yet, as a stream of
//! events, is none of these and lives on.

mod activity;
mod awaited;
mod connections;
mod timed;
mod timer;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use http::{HeaderValue, Request, Version, header};
use http_body::Body as _;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;

use self::activity::{Activity, Counted};
use self::awaited::Awaited;
pub use self::connections::{Bounds, Connections};
use self::timed::Timed;
use crate::{deadline, tls};

/// What follows a failure to accept, such as too many open files.
const PAUSE: Duration = Duration::from_millis(500);
/// How long a connection that was told to end may take over it.
const PARTING: Duration = Duration::from_secs(10);
/// How long the system may take to tell of who had connected when the shutdown began.
const LAST_CALL: Duration = Duration::from_millis(10);
/// How long a connection without any request so far is waited for when the listener has closed.
const FIRST_REQUEST: Duration = Duration::from_millis(200);
/// What the head of a request may weigh.
const MOST_HEAD_BYTES: usize = 64 * 1024;
/// The same of HTTP/2, and of gRPC's metadata.
const MOST_HEADER_BYTES: u32 = 16 * 1024;
/// How many requests a connection of HTTP/2 may have under way; more of them wait at the caller.
const MOST_STREAMS: u32 = 200;
/// How much of an answer is handed over to HTTP/2 at once, where it waits until the caller has room for it.
const MOST_HANDED_OVER: usize = 16 * 1024;
/// A connection of HTTP/2 that says nothing for so long is asked whether it lives.
const PING_INTERVAL: Duration = Duration::from_secs(20);
const PING_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a connection between services lives, and the calls that it has then: no call lasts longer, and a stream of
/// the feed, which has no end, begins anew.
const AGE: Duration = Duration::from_secs(10 * 60);
const AGED_PARTING: Duration = deadline::LONGEST;

/// How long a connection may stand still.
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// From the first byte of a head of HTTP/1 to its last; a new connection begins with a head.
    pub head: Duration,
    /// Without a request under way.
    pub idle: Duration,
    /// Without a byte of a body that is awaited, and without the caller taking a byte of an answer.
    pub still: Duration,
    /// Without the caller taking a byte of one answer among several (HTTP/2), which ends them all; absent where a
    /// connection carries the calls of many, as from a gateway.
    pub untaken: Option<Duration>,
    /// How long it lives before it is told to end, more or less, so that its caller comes again and may be led elsewhere;
    /// absent: as long as the caller wishes.
    pub age: Option<Duration>,
}

impl Default for Timeouts {
    fn default() -> Self {
        let still = Duration::from_secs(30);
        Self {
            head: Duration::from_secs(10),
            idle: Duration::from_secs(75),
            still,
            untaken: Some(still),
            age: None,
        }
    }
}

/// What is spoken at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1 and HTTP/2.
    Http,
    /// HTTP/2 only. Bodies may be awaited for as long as their call has time.
    Grpc,
}

/// How an address is served.
#[derive(Debug)]
pub struct Settings {
    /// What is spoken.
    pub protocol: Protocol,
    /// Inside of TLS, when that is given.
    pub tls: Option<tls::Server>,
    /// How many connections there may be.
    pub connections: Connections,
    /// How long they may stand still.
    pub timeouts: Timeouts,
    /// Cancelled when this process is about to go: callers are told with each answer (HTTP/1), or asked (gRPC health), to
    /// go elsewhere, and everything is still served.
    pub leaving: CancellationToken,
}

impl Settings {
    /// Plain HTTP with the usual bounds.
    pub fn http(connections: &Connections) -> Self {
        let (connections, timeouts) = (connections.clone(), Timeouts::default());
        let leaving = CancellationToken::new();
        Self { protocol: Protocol::Http, tls: None, connections, timeouts, leaving }
    }

    /// Plain gRPC with the usual bounds, for programs.
    pub fn grpc(connections: &Connections) -> Self {
        let timeouts = Timeouts { idle: Duration::from_secs(10 * 60), ..Timeouts::default() };
        Self { protocol: Protocol::Grpc, timeouts, ..Self::http(connections) }
    }

    /// Plain gRPC for other services of the mesh.
    pub fn mesh(connections: &Connections) -> Self {
        let grpc = Self::grpc(connections);
        Self { timeouts: Timeouts { untaken: None, age: Some(AGE), ..grpc.timeouts }, ..grpc }
    }

    /// The same, told by that token that this process is about to go.
    #[must_use]
    pub fn leaving(mut self, leaving: CancellationToken) -> Self {
        self.leaving = leaving;
        self
    }

    /// The same inside of TLS, when that is given.
    #[must_use]
    pub fn over(mut self, tls: Option<tls::Server>) -> Self {
        self.tls = tls;
        self
    }
}

/// Serves until the shutdown, then lets requests under way finish.
///
/// Handlers find the caller's address as axum's `ConnectInfo<SocketAddr>`.
pub async fn serve(listener: TcpListener, router: Router, settings: Settings, shutdown: CancellationToken) {
    let connections = settings.connections.clone();
    let closed = CancellationToken::new();
    let server = Arc::new(Server::new(router, settings, closed.clone()));
    let tasks = TaskTracker::new();
    let take = |stream: TcpStream, peer: SocketAddr| {
        // Without a place, the connection is closed here.
        if let Some(place) = connections.admit(peer.ip()) {
            let server = Arc::clone(&server);
            tasks.spawn(async move {
                server.connection(stream, peer, place.is_proxied()).await;
                drop(place);
            });
        }
    };
    loop {
        let accepted = tokio::select! {
            () = shutdown.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => take(stream, peer),
            Err(error) => {
                tracing::warn!(%error, "a connection cannot be accepted");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
    // Whoever has connected by now would see its connection break with a call on it.
    let end = Instant::now() + LAST_CALL;
    while Instant::now() < end {
        if let Ok(Ok((stream, peer))) = timeout_at(end, listener.accept()).await {
            take(stream, peer);
        }
    }
    drop(listener);
    // Only now: who is told to go comes again at once, and must be refused then.
    closed.cancel();
    tasks.close();
    tasks.wait().await;
}

/// What all connections of an address share.
struct Server {
    router: Router,
    protocol: Protocol,
    tls: Option<tls::Server>,
    timeouts: Timeouts,
    builder: Builder<TokioExecutor>,
    leaving: CancellationToken,
    shutdown: CancellationToken,
}

impl Server {
    fn new(router: Router, settings: Settings, shutdown: CancellationToken) -> Self {
        let Settings { protocol, tls, timeouts, leaving, connections: _ } = settings;
        let mut builder = Builder::new(TokioExecutor::new());
        // Heads have a timer of ours: hyper's would also end connections that rest between requests.
        builder.http1().header_read_timeout(None::<Duration>).max_buf_size(MOST_HEAD_BYTES);
        builder
            .http2()
            .timer(TokioTimer::new())
            .keep_alive_interval(PING_INTERVAL)
            .keep_alive_timeout(PING_TIMEOUT)
            .max_concurrent_streams(MOST_STREAMS)
            .max_header_list_size(MOST_HEADER_BYTES);
        let builder = if protocol == Protocol::Grpc { builder.http2_only() } else { builder };
        Self { router, protocol, tls, timeouts, builder, leaving, shutdown }
    }

    async fn connection(&self, stream: TcpStream, peer: SocketAddr, is_proxied: bool) {
        // Without it, small answers wait for the caller's delayed acknowledgement (40 ms).
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "TCP_NODELAY cannot be set");
        }
        // One caller behind a proxy must not end the connection of all.
        let untaken = self.timeouts.untaken.filter(|_| !is_proxied);
        match &self.tls {
            None => self.serve(stream, peer, untaken).await,
            Some(tls) => {
                if let Some(stream) = tls.shake_hands(stream, peer).await {
                    self.serve(stream, peer, untaken).await;
                }
            }
        }
    }

    async fn serve(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        peer: SocketAddr,
        untaken: Option<Duration>,
    ) {
        let activity = Arc::new(Activity::new());
        let stream = TokioIo::new(Timed::new(stream, Arc::clone(&activity), self.timeouts));
        let service = service_fn(|request: Request<Incoming>| {
            let under_way = activity.begin();
            let is_http_2 = request.version() == Version::HTTP_2;
            let is_watched = untaken.is_some() && is_http_2;
            // Whoever keeps the connection would be cut off when it closes, perhaps with a request on its way.
            let is_last = !is_http_2 && self.leaving.is_cancelled();
            let part = is_watched.then_some(MOST_HANDED_OVER);
            let answered = self.router.clone().oneshot(self.received(request, peer));
            async move {
                let mut response = answered.await?;
                if is_last {
                    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
                }
                Ok::<_, Infallible>(response.map(|body| Counted::new(body, under_way, part)))
            }
        });
        let mut connection = pin!(self.builder.serve_connection(stream, service));
        let limit = tokio::select! {
            ended = connection.as_mut() => return report(ended.err(), peer),
            () = self.told_to_end(&activity) => None,
            () = activity.stalls_for(untaken) => {
                return tracing::debug!(%peer, "a caller did not take its answer in time");
            }
            () = activity.rests_for(self.timeouts.idle) => Some(PARTING),
            () = lives_for(self.timeouts.age, peer) => Some(AGED_PARTING),
        };
        connection.as_mut().graceful_shutdown();
        match limit {
            None => report(connection.await.err(), peer),
            // What does not part is cut off.
            Some(limit) => {
                let _ = tokio::time::timeout(limit, connection).await;
            }
        }
    }

    /// Ends when connections are told to end. One that has just been made has a moment for its first request, which may be
    /// on its way: it would be lost, and not refused.
    async fn told_to_end(&self, activity: &Activity) {
        self.shutdown.cancelled().await;
        let end = Instant::now() + FIRST_REQUEST;
        while activity.begun() == 0 && Instant::now() < end {
            tokio::time::sleep(FIRST_REQUEST / 20).await;
        }
    }

    fn received(&self, request: Request<Incoming>, peer: SocketAddr) -> Request<Body> {
        let mut request = match self.protocol {
            Protocol::Http if request.body().is_end_stream() => request.map(Body::new),
            Protocol::Http => request.map(|body| Body::new(Awaited::new(body, self.timeouts.still))),
            Protocol::Grpc => request.map(Body::new),
        };
        request.extensions_mut().insert(ConnectInfo(peer));
        request
    }
}

/// Ends when a connection is old enough. They differ by up to a fifth, as their ports do, so that those of one start do
/// not end together.
async fn lives_for(age: Option<Duration>, peer: SocketAddr) {
    let Some(age) = age else { return std::future::pending().await };
    let shorter = age / 500 * u32::from(peer.port() % 100);
    tokio::time::sleep(age.saturating_sub(shorter)).await;
}

/// How a connection ended is nobody's business but the caller's.
fn report(error: Option<Box<dyn std::error::Error + Send + Sync>>, peer: SocketAddr) {
    if let Some(error) = error {
        tracing::debug!(%peer, %error, "a connection ended early");
    }
}

#[cfg(test)]
mod tests;
