//! Opens connections to one address, with the current TLS files and with backoff after failures.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;

use super::cause;
use crate::tls;

/// The timeouts of the TCP connect and of the TLS handshake.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// After a failure no connection is attempted for this long: calls that waited for the same connection fail with it, instead
/// of each waiting for an attempt of its own. Shorter than the backoff before the third attempt of a call.
const CONNECT_PAUSE: Duration = Duration::from_millis(40);
/// How long the balancer avoids an address after a first failure; twice as long after each further one.
const BACKOFF: Duration = Duration::from_secs(1);
const MAX_BACKOFF: Duration = Duration::from_secs(30);
/// The ALPN protocol.
const HTTP_2: &[u8] = b"h2";

/// No connection could be opened: nothing of the call was sent.
#[derive(Debug, thiserror::Error)]
#[error("{address} cannot be reached: {source}")]
pub(super) struct Unreachable {
    address: SocketAddr,
    source: io::Error,
}

/// The recent connect failures of an address.
#[derive(Debug, Default)]
pub(super) struct ConnectHealth(Mutex<Option<Failures>>);

#[derive(Debug, Clone, Copy)]
struct Failures {
    consecutive: u32,
    last: Instant,
}

impl ConnectHealth {
    fn failures(&self) -> Option<Failures> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the balancer should prefer other addresses.
    pub(super) fn is_backing_off(&self, now: Instant) -> bool {
        self.failures().is_some_and(|failures| {
            let backoff = BACKOFF * 2_u32.saturating_pow(failures.consecutive.saturating_sub(1).min(8));
            now < failures.last + backoff.min(MAX_BACKOFF)
        })
    }

    fn has_just_failed(&self, now: Instant) -> bool {
        self.failures().is_some_and(|failures| now < failures.last + CONNECT_PAUSE)
    }

    pub(super) fn failed(&self, now: Instant) {
        let mut failures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let consecutive = failures.map_or(0, |failures| failures.consecutive).saturating_add(1);
        *failures = Some(Failures { consecutive, last: now });
    }

    fn succeeded(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// The TLS settings of a service: the name that its certificate must have, and the client's files.
#[derive(Debug, Clone)]
pub(super) struct TlsTarget {
    pub(super) name: ServerName<'static>,
    pub(super) files: tls::Client,
}

/// Opens connections to one address.
#[derive(Debug)]
pub(super) struct Connector {
    pub(super) address: SocketAddr,
    pub(super) tls: Option<TlsTarget>,
    pub(super) health: Arc<ConnectHealth>,
}

/// A connection, with TLS or without.
pub(super) trait Io: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

impl Connector {
    pub(super) async fn connect(&self) -> Result<TokioIo<Box<dyn Io>>, Unreachable> {
        let unreachable = |source| Unreachable { address: self.address, source };
        if self.health.has_just_failed(Instant::now()) {
            return Err(unreachable(io::Error::other("it could not be reached a moment ago")));
        }
        match self.open().await {
            Ok(io) => {
                self.health.succeeded();
                Ok(TokioIo::new(io))
            }
            Err(error) => {
                self.health.failed(Instant::now());
                // A warning, because an outage ends by itself and a wrong certificate does not.
                if let Some(tls_error) = cause::<rustls::Error>(&error) {
                    tracing::warn!(address = %self.address, error = %tls_error, "a service of the mesh cannot be reached over TLS");
                }
                Err(unreachable(error))
            }
        }
    }

    async fn open(&self) -> io::Result<Box<dyn Io>> {
        let stream = within(CONNECT_TIMEOUT, TcpStream::connect(self.address)).await?;
        // Otherwise small calls wait for the delayed acknowledgement of the server (40 ms).
        stream.set_nodelay(true)?;
        let Some(tls) = &self.tls else { return Ok(Box::new(stream)) };
        let handshake = TlsConnector::from(tls.files.config()).connect(tls.name.clone(), stream);
        let tls_stream = within(HANDSHAKE_TIMEOUT, handshake).await?;
        if tls_stream.get_ref().1.alpn_protocol() != Some(HTTP_2) {
            return Err(io::Error::other("what answers there does not speak HTTP/2"));
        }
        Ok(Box::new(tls_stream))
    }
}

async fn within<T>(limit: Duration, attempt: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    match tokio::time::timeout(limit, attempt).await {
        Ok(ended) => ended,
        Err(_elapsed) => Err(io::Error::new(io::ErrorKind::TimedOut, "it took too long")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_again_is_left_alone_for_longer() {
        let (health, start) = (ConnectHealth::default(), Instant::now());
        assert!(!health.is_backing_off(start));
        let mut seconds = Vec::new();
        for _ in 0..8 {
            health.failed(start);
            let is_over = |second: &u64| !health.is_backing_off(start + Duration::from_secs(*second));
            seconds.push((0..100).find(is_over).unwrap());
        }
        assert_eq!(seconds, [1, 2, 4, 8, 16, 30, 30, 30]);
        health.succeeded();
        assert!(!health.is_backing_off(start));
    }

    #[tokio::test]
    async fn who_waited_for_the_same_connection_fails_with_it() {
        let health = Arc::new(ConnectHealth::default());
        health.failed(Instant::now());
        // Nothing listens there, and no further attempt is made.
        let address = SocketAddr::from(([127, 0, 0, 1], 1));
        let connector = Connector { address, tls: None, health };
        let Err(refused) = connector.connect().await else { panic!("nobody listens there") };
        assert!(refused.to_string().contains("a moment ago"), "{refused}");
    }
}
