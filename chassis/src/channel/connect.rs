//! Connections to one address: made with the TLS files of that moment, and not tried again and again.

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

/// How long the other side may take to take a connection, and to shake hands over it.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// After a failure nobody tries for so long: calls that waited for the same connection fail with it instead of each
/// waiting for an attempt of its own. Shorter than what comes before a third attempt of a call.
const PAUSE: Duration = Duration::from_millis(40);
/// How long calls go elsewhere after a first failure; twice as long after each further one.
const LEFT_ALONE: Duration = Duration::from_secs(1);
const LONGEST_LEFT_ALONE: Duration = Duration::from_secs(30);
/// What is spoken inside of TLS.
const HTTP_2: &[u8] = b"h2";

/// An address that no connection could be made to: nothing of a call was sent there.
#[derive(Debug, thiserror::Error)]
#[error("{address} cannot be reached: {source}")]
pub(super) struct Unreachable {
    address: SocketAddr,
    source: io::Error,
}

/// What is known of an address from the attempts to connect to it.
#[derive(Debug, Default)]
pub(super) struct Standing(Mutex<Option<Failures>>);

#[derive(Debug, Clone, Copy)]
struct Failures {
    in_a_row: u32,
    last: Instant,
}

impl Standing {
    fn failures(&self) -> Option<Failures> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether calls should rather go elsewhere.
    pub(super) fn is_left_alone(&self, now: Instant) -> bool {
        self.failures().is_some_and(|failures| {
            let doubled = LEFT_ALONE * 2_u32.saturating_pow(failures.in_a_row.saturating_sub(1).min(8));
            now < failures.last + doubled.min(LONGEST_LEFT_ALONE)
        })
    }

    fn has_just_failed(&self, now: Instant) -> bool {
        self.failures().is_some_and(|failures| now < failures.last + PAUSE)
    }

    pub(super) fn failed(&self, now: Instant) {
        let mut failures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let in_a_row = failures.map_or(0, |failures| failures.in_a_row).saturating_add(1);
        *failures = Some(Failures { in_a_row, last: now });
    }

    fn worked(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// How to speak TLS with a service: whom it must prove to be, and with which files.
#[derive(Debug, Clone)]
pub(super) struct Secured {
    pub(super) name: ServerName<'static>,
    pub(super) files: tls::Client,
}

/// Makes connections to one address.
#[derive(Debug)]
pub(super) struct Connector {
    pub(super) address: SocketAddr,
    pub(super) tls: Option<Secured>,
    pub(super) standing: Arc<Standing>,
}

/// A connection, with TLS or without.
pub(super) trait Link: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Link for T {}

impl Connector {
    pub(super) async fn connect(&self) -> Result<TokioIo<Box<dyn Link>>, Unreachable> {
        let unreachable = |source| Unreachable { address: self.address, source };
        if self.standing.has_just_failed(Instant::now()) {
            return Err(unreachable(io::Error::other("it could not be reached a moment ago")));
        }
        match self.link().await {
            Ok(link) => {
                self.standing.worked();
                Ok(TokioIo::new(link))
            }
            Err(error) => {
                self.standing.failed(Instant::now());
                // An outage ends by itself, a wrong certificate does not.
                if let Some(distrust) = cause::<rustls::Error>(&error) {
                    tracing::warn!(address = %self.address, error = %distrust, "a service of the mesh cannot be reached over TLS");
                }
                Err(unreachable(error))
            }
        }
    }

    async fn link(&self) -> io::Result<Box<dyn Link>> {
        let stream = within(CONNECT_TIMEOUT, TcpStream::connect(self.address)).await?;
        // Without it, small calls wait for the delayed acknowledgement of the other side (40 ms).
        stream.set_nodelay(true)?;
        let Some(tls) = &self.tls else { return Ok(Box::new(stream)) };
        let shaking = TlsConnector::from(tls.files.config()).connect(tls.name.clone(), stream);
        let secured = within(HANDSHAKE_TIMEOUT, shaking).await?;
        if secured.get_ref().1.alpn_protocol() != Some(HTTP_2) {
            return Err(io::Error::other("what answers there does not speak HTTP/2"));
        }
        Ok(Box::new(secured))
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
        let (standing, start) = (Standing::default(), Instant::now());
        assert!(!standing.is_left_alone(start));
        let mut seconds = Vec::new();
        for _ in 0..8 {
            standing.failed(start);
            let is_over = |second: &u64| !standing.is_left_alone(start + Duration::from_secs(*second));
            seconds.push((0..100).find(is_over).unwrap());
        }
        assert_eq!(seconds, [1, 2, 4, 8, 16, 30, 30, 30]);
        standing.worked();
        assert!(!standing.is_left_alone(start));
    }

    #[tokio::test]
    async fn who_waited_for_the_same_connection_fails_with_it() {
        let standing = Arc::new(Standing::default());
        standing.failed(Instant::now());
        // Nobody listens there, and nobody is asked.
        let address = SocketAddr::from(([127, 0, 0, 1], 1));
        let connector = Connector { address, tls: None, standing };
        let Err(refused) = connector.connect().await else { panic!("nobody listens there") };
        assert!(refused.to_string().contains("a moment ago"), "{refused}");
    }
}
