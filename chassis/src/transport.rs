//! Servers: connection limits, timeouts and graceful shutdown.
//!
//! Every resource that a slow client can hold has a timeout: an incomplete request head, an idle connection, a body that
//! does not arrive, a response that is not read. A response that has no data yet, such as a stream of events, is not timed
//! out.

mod activity;
mod connections;
mod io_timeout;
mod request_body;
mod timeout;

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

use self::activity::{Activity, ResponseBody};
pub use self::connections::{Bounds, Connections};
use self::io_timeout::TimeoutStream;
use self::request_body::RequestBody;
use crate::{deadline, tls};

/// The backoff after a failed accept, such as with too many open files.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(500);
/// How long a connection may drain after a graceful close.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the backlog of the listener is drained after the shutdown began.
const BACKLOG_DRAIN: Duration = Duration::from_millis(10);
/// How long a connection without a request so far is kept open after the listener has closed.
const FIRST_REQUEST: Duration = Duration::from_millis(200);
/// The limit of a request head.
const MAX_HEAD_BYTES: usize = 64 * 1024;
/// The same for HTTP/2, and for gRPC metadata.
const MAX_HEADER_BYTES: u32 = 16 * 1024;
/// Concurrent streams of an HTTP/2 connection; the client queues further requests.
const MAX_STREAMS: u32 = 200;
/// The size of a frame handed to HTTP/2, which buffers it until the client's flow control window has room.
const MAX_HANDED_OVER: usize = 16 * 1024;
/// A quiet HTTP/2 connection is pinged at this interval.
const PING_INTERVAL: Duration = Duration::from_secs(20);
const PING_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum age of a connection between services, and the drain timeout then: no call takes longer than that, and the
/// endless watch stream of a feed reconnects.
const MAX_AGE: Duration = Duration::from_secs(10 * 60);
const MAX_AGE_DRAIN_TIMEOUT: Duration = deadline::MAX_TIMEOUT;

/// The timeouts of a connection.
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// From the first to the last byte of an HTTP/1 request head; for the first request, from the accept on.
    pub head: Duration,
    /// Without a request in flight.
    pub idle: Duration,
    /// For reading the next part of a request body, and for writing the next part of a response.
    pub io: Duration,
    /// For writing the next part of one HTTP/2 response among several; the whole connection is closed then. Absent where a
    /// connection carries the calls of many clients, such as from a gateway.
    pub stream_write: Option<Duration>,
    /// The age at which it is gracefully closed, so that its client reconnects and may reach another process; connections
    /// differ by up to a fifth. Absent: no limit.
    pub max_age: Option<Duration>,
}

impl Default for Timeouts {
    fn default() -> Self {
        let io = Duration::from_secs(30);
        Self {
            head: Duration::from_secs(10),
            idle: Duration::from_secs(75),
            io,
            stream_write: Some(io),
            max_age: None,
        }
    }
}

/// The protocol of a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1 and HTTP/2.
    Http,
    /// HTTP/2 only. Request bodies have no read timeout: the deadline of the call limits them.
    Grpc,
}

/// The settings of a listener.
#[derive(Debug)]
pub struct Settings {
    /// The protocol.
    pub protocol: Protocol,
    /// The TLS configuration, if the listener uses TLS.
    pub tls: Option<tls::Server>,
    /// The connection limits.
    pub connections: Connections,
    /// The timeouts of each connection.
    pub timeouts: Timeouts,
    /// Cancelled when this process is about to shut down: clients learn with each response (`Connection: close`, HTTP/1) or
    /// from gRPC health to go elsewhere, while every request is still served.
    pub leaving: CancellationToken,
}

impl Settings {
    /// Plain HTTP with the default timeouts.
    pub fn http(connections: &Connections) -> Self {
        let (connections, timeouts) = (connections.clone(), Timeouts::default());
        let leaving = CancellationToken::new();
        Self { protocol: Protocol::Http, tls: None, connections, timeouts, leaving }
    }

    /// Plain gRPC for API clients.
    pub fn grpc(connections: &Connections) -> Self {
        let timeouts = Timeouts { idle: Duration::from_secs(10 * 60), ..Timeouts::default() };
        Self { protocol: Protocol::Grpc, timeouts, ..Self::http(connections) }
    }

    /// Plain gRPC for other services of the mesh.
    pub fn mesh(connections: &Connections) -> Self {
        let grpc = Self::grpc(connections);
        Self { timeouts: Timeouts { stream_write: None, max_age: Some(MAX_AGE), ..grpc.timeouts }, ..grpc }
    }

    /// The same with a token that is cancelled when this process is about to shut down.
    #[must_use]
    pub fn leaving(mut self, leaving: CancellationToken) -> Self {
        self.leaving = leaving;
        self
    }

    /// The same over TLS, if that is configured.
    #[must_use]
    pub fn over(mut self, tls: Option<tls::Server>) -> Self {
        self.tls = tls;
        self
    }
}

/// Serves until the shutdown, then drains the requests in flight.
///
/// Handlers get the peer address as axum's `ConnectInfo<SocketAddr>`.
pub async fn serve(listener: TcpListener, router: Router, settings: Settings, shutdown: CancellationToken) {
    let connections = settings.connections.clone();
    let closed = CancellationToken::new();
    let server = Arc::new(Server::new(router, settings, closed.clone()));
    let tasks = TaskTracker::new();
    let spawn = |stream: TcpStream, peer: SocketAddr| {
        // Without a permit, dropping the stream closes the connection.
        if let Some(permit) = connections.admit(peer.ip()) {
            let server = Arc::clone(&server);
            tasks.spawn(async move {
                server.connection(stream, peer, permit.is_proxied()).await;
                drop(permit);
            });
        }
    };
    loop {
        let accepted = tokio::select! {
            () = shutdown.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => spawn(stream, peer),
            Err(error) => {
                tracing::warn!(%error, "a connection cannot be accepted");
                tokio::time::sleep(ACCEPT_BACKOFF).await;
            }
        }
    }
    // Connections in the backlog would be reset when the listener closes, perhaps with a request in flight.
    let end = Instant::now() + BACKLOG_DRAIN;
    while Instant::now() < end {
        if let Ok(Ok((stream, peer))) = timeout_at(end, listener.accept()).await {
            spawn(stream, peer);
        }
    }
    drop(listener);
    // After the listener is closed: clients reconnect at once, and must be refused then.
    closed.cancel();
    tasks.close();
    tasks.wait().await;
}

/// The state that all connections of a listener share.
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
        // Heads have a timeout of our own: hyper's would also close connections that are idle between requests.
        builder.http1().header_read_timeout(None::<Duration>).max_buf_size(MAX_HEAD_BYTES);
        builder
            .http2()
            .timer(TokioTimer::new())
            .keep_alive_interval(PING_INTERVAL)
            .keep_alive_timeout(PING_TIMEOUT)
            .max_concurrent_streams(MAX_STREAMS)
            .max_header_list_size(MAX_HEADER_BYTES);
        let builder = if protocol == Protocol::Grpc { builder.http2_only() } else { builder };
        Self { router, protocol, tls, timeouts, builder, leaving, shutdown }
    }

    async fn connection(&self, stream: TcpStream, peer: SocketAddr, is_proxied: bool) {
        // Otherwise small responses wait for the client's delayed acknowledgement (40 ms).
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "TCP_NODELAY cannot be set");
        }
        // One slow client behind a proxy must not close the connection of all.
        let stream_write = self.timeouts.stream_write.filter(|_| !is_proxied);
        match &self.tls {
            None => self.serve(stream, peer, stream_write).await,
            Some(tls) => {
                if let Some(stream) = tls.shake_hands(stream, peer).await {
                    self.serve(stream, peer, stream_write).await;
                }
            }
        }
    }

    async fn serve(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        peer: SocketAddr,
        stream_write: Option<Duration>,
    ) {
        let activity = Arc::new(Activity::new());
        let stream = TokioIo::new(TimeoutStream::new(stream, Arc::clone(&activity), self.timeouts));
        let service = service_fn(|request: Request<Incoming>| {
            let in_flight = activity.begin();
            let is_http_2 = request.version() == Version::HTTP_2;
            let is_timed = stream_write.is_some() && is_http_2;
            // A client that keeps the connection alive would lose a request that it sends while the connection closes.
            let is_last = !is_http_2 && self.leaving.is_cancelled();
            let max_frame = is_timed.then_some(MAX_HANDED_OVER);
            let response = self.router.clone().oneshot(self.prepare(request, peer));
            async move {
                let mut response = response.await?;
                if is_last {
                    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
                }
                Ok::<_, Infallible>(response.map(|body| ResponseBody::new(body, in_flight, max_frame)))
            }
        });
        let mut connection = pin!(self.builder.serve_connection(stream, service));
        let drain_timeout = tokio::select! {
            ended = connection.as_mut() => return report(ended.err(), peer),
            () = self.closing(&activity) => None,
            () = activity.stalled_for(stream_write) => {
                return tracing::debug!(%peer, "a caller did not take its answer in time");
            }
            () = activity.idle_for(self.timeouts.idle) => Some(DRAIN_TIMEOUT),
            () = reaches_max_age(self.timeouts.max_age, peer) => Some(MAX_AGE_DRAIN_TIMEOUT),
        };
        connection.as_mut().graceful_shutdown();
        match drain_timeout {
            None => report(connection.await.err(), peer),
            // Dropping the connection closes it.
            Some(limit) => {
                let _ = tokio::time::timeout(limit, connection).await;
            }
        }
    }

    /// Resolves when the connection is to be closed for shutdown. A new connection gets a moment for its first request, which
    /// may be in flight: it would be lost without a response.
    async fn closing(&self, activity: &Activity) {
        self.shutdown.cancelled().await;
        let end = Instant::now() + FIRST_REQUEST;
        while activity.started() == 0 && Instant::now() < end {
            tokio::time::sleep(FIRST_REQUEST / 20).await;
        }
    }

    fn prepare(&self, request: Request<Incoming>, peer: SocketAddr) -> Request<Body> {
        let mut request = match self.protocol {
            Protocol::Http if request.body().is_end_stream() => request.map(Body::new),
            Protocol::Http => request.map(|body| Body::new(RequestBody::new(body, self.timeouts.io))),
            Protocol::Grpc => request.map(Body::new),
        };
        request.extensions_mut().insert(ConnectInfo(peer));
        request
    }
}

/// Resolves when the connection has reached its maximum age, with a jitter of up to a fifth that is derived from the port, so
/// that connections of the same age do not close at the same time.
async fn reaches_max_age(max_age: Option<Duration>, peer: SocketAddr) {
    let Some(max_age) = max_age else { return std::future::pending().await };
    let jitter = max_age / 500 * u32::from(peer.port() % 100);
    tokio::time::sleep(max_age.saturating_sub(jitter)).await;
}

/// Logs a connection that ended with an error, at debug level: clients cause most of these.
fn report(error: Option<Box<dyn std::error::Error + Send + Sync>>, peer: SocketAddr) {
    if let Some(error) = error {
        tracing::debug!(%peer, %error, "a connection ended early");
    }
}

#[cfg(test)]
mod tests;
