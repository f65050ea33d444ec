//! Calls to a remote service: load balanced over its addresses, and retried where that is safe.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, Uri, header};
use rustls::pki_types::ServerName;
use tonic::body::Body;
use tonic::{Code, Status, TimeoutExpired};
use tower::Service as _;

use super::balance::{Balancer, InFlightGuard, Peer, Target};
use super::body::{CallBody, full};
use super::connect::{TlsTarget, Unreachable};
use super::names::Name;
use super::retry::{self, Budget};
use super::{AddressError, Error, RETRY_AFTER, cause};
use crate::status::Problem;
use crate::tls;

/// The health check that tests whether a peer responds, with an empty message.
const CHECK: &str = "/grpc.health.v1.Health/Check";
const EMPTY_MESSAGE: &[u8] = &[0; 5];
const RETRIES: &str = "cairn_calls_retried_total";

/// A remote service; cheap to clone.
#[derive(Debug, Clone)]
pub struct Remote(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    balancer: Balancer,
    budget: Budget,
}

/// Why an attempt failed.
type Failure = tonic::transport::Error;

impl Remote {
    /// A service at these URLs, separated by commas.
    pub(super) fn at(urls: &str, tls: Option<&tls::Client>) -> Result<Self, AddressError> {
        let targets: Vec<_> = urls.split(',').map(|url| target(url.trim(), tls)).collect::<Result<_, _>>()?;
        Ok(Self(Arc::new(Inner { balancer: Balancer::new(targets), budget: Budget::new() })))
    }

    pub(super) async fn call(self, request: Request<Body>) -> Result<Response<Body>, Error> {
        let (parts, body) = request.into_parts();
        match CallBody::of(body)? {
            CallBody::Buffered(bytes) => self.0.call(Request::from_parts(parts, bytes)).await,
            CallBody::Streamed(body) => {
                let peer = self.0.healthy_peer().await?;
                let request = Request::from_parts(parts, Body::new(body));
                self.0.attempt(&peer, request).await.map_err(from_transport)
            }
        }
    }
}

impl Inner {
    /// Makes a call with a buffered message, with retries.
    async fn call(&self, mut request: Request<Bytes>) -> Result<Response<Body>, Error> {
        // Started before a peer is found, since that counts towards the deadline of the call, too.
        let mut started_at = Instant::now();
        self.budget.deposit();
        let mut peer = self.peer(None).await?;
        let mut failures = 0;
        loop {
            let attempt = request.clone().map(|bytes| full(&bytes));
            let failure = match self.attempt(&peer, attempt).await {
                Ok(response) => return Ok(response),
                Err(failure) => failure,
            };
            failures += 1;
            let Some((why, backoff)) = retryable(&failure, request.uri().path(), failures) else {
                return Err(from_transport(failure));
            };
            tokio::time::sleep(backoff).await;
            let has_time = retry::reduce_timeout(request.headers_mut(), started_at.elapsed());
            if !has_time || !self.budget.withdraw() {
                return Err(from_transport(failure));
            }
            started_at = Instant::now();
            metrics::counter!(RETRIES, "why" => why).increment(1);
            tracing::debug!(error = %failure, why, "a call is made again");
            peer = self.peer(Some(&peer)).await?;
        }
    }

    /// A peer that has just passed a health check, for a call that cannot be retried. If none does, the last one, on which the
    /// call itself then fails.
    async fn healthy_peer(&self) -> Result<Arc<Peer>, Error> {
        let mut peer = self.peer(None).await?;
        for backoff in retry::BACKOFFS {
            match self.attempt(&peer, check()).await {
                Ok(_) => break,
                Err(failure) => {
                    tracing::debug!(error = %failure, "a call goes to another address");
                    tokio::time::sleep(backoff).await;
                    peer = self.peer(Some(&peer)).await?;
                }
            }
        }
        Ok(peer)
    }

    async fn peer(&self, failed: Option<&Arc<Peer>>) -> Result<Arc<Peer>, Error> {
        self.balancer.peer(failed).await.ok_or_else(|| unreachable().into())
    }

    async fn attempt(&self, peer: &Arc<Peer>, request: Request<Body>) -> Result<Response<Body>, Failure> {
        let _in_flight = InFlightGuard::at(peer);
        let mut channel = peer.channel.clone();
        let sending = async {
            poll_fn(|context| channel.poll_ready(context)).await?;
            channel.call(request).await
        };
        let result = sending.await;
        if result.is_err() {
            self.balancer.resolve_soon();
        }
        result
    }
}

/// Why a call may be retried after that many failures, and after which backoff.
fn retryable(failure: &Failure, path: &str, failures: usize) -> Option<(&'static str, Duration)> {
    let why = retry::reason(failure, path)?;
    Some((why, retry::backoff(failures, why)?))
}

fn check() -> Request<Body> {
    let mut request = Request::new(full(&Bytes::from_static(EMPTY_MESSAGE)));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = Uri::from_static(CHECK);
    let headers = request.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    headers.insert(header::TE, HeaderValue::from_static("trailers"));
    headers.insert("grpc-timeout", HeaderValue::from_static("5S"));
    request
}

/// Parses a URL such as `https://content:8712`.
fn target(url: &str, tls: Option<&tls::Client>) -> Result<Target, AddressError> {
    let unusable = |why: String| AddressError::Unusable(format!("'{url}': {why}"));
    let origin: Uri = url.parse().map_err(|error: http::uri::InvalidUri| unusable(error.to_string()))?;
    let is_secure = match origin.scheme_str() {
        Some("http") => false,
        Some("https") => true,
        Some(_) | None => return Err(unusable("it begins with neither http:// nor https://".to_owned())),
    };
    let host = origin.host().filter(|host| !host.is_empty());
    let host = host.ok_or_else(|| unusable("it names no host".to_owned()))?;
    let host = host.trim_matches(['[', ']']).to_owned();
    let tls = if is_secure {
        let files = tls.ok_or(AddressError::NothingTrusted)?.clone();
        let name = ServerName::try_from(host.clone()).map_err(|error| unusable(error.to_string()))?;
        Some(TlsTarget { name, files })
    } else {
        None
    };
    let port = origin.port_u16().unwrap_or(if is_secure { 443 } else { 80 });
    Ok(Target { name: Name { host, port }, origin, tls })
}

fn unreachable() -> Status {
    Status::from(Problem::unavailable("a service of the mesh cannot be reached", RETRY_AFTER))
}

/// Maps every failure of a connection to UNAVAILABLE: tonic maps the many ways in which a connection can end to several other
/// codes. Distinct failures such as a timeout keep their code.
fn from_transport(error: Failure) -> Error {
    // With TLS 1.3 a certificate may be refused after the handshake. Failures of the handshake itself are logged by the
    // connector.
    let is_logged = cause::<Unreachable>(&error).is_some();
    if let Some(tls_error) = cause::<rustls::Error>(&error).filter(|_| !is_logged) {
        tracing::warn!(error = %tls_error, "a service of the mesh cannot be reached over TLS");
    }
    let has_timed_out = cause::<TimeoutExpired>(&error).is_some();
    let status = Status::from_error(Box::new(error));
    match status.code() {
        // CANCELLED without a timeout means that the connection ended during the call, as a refused certificate ends it.
        Code::Cancelled if has_timed_out => status.into(),
        Code::Cancelled | Code::Unknown | Code::Internal | Code::Unavailable => {
            tracing::debug!(%status, "a service cannot be reached");
            unreachable().into()
        }
        Code::Ok
        | Code::InvalidArgument
        | Code::DeadlineExceeded
        | Code::NotFound
        | Code::AlreadyExists
        | Code::PermissionDenied
        | Code::ResourceExhausted
        | Code::FailedPrecondition
        | Code::Aborted
        | Code::OutOfRange
        | Code::Unimplemented
        | Code::DataLoss
        | Code::Unauthenticated => status.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_a_host_and_what_is_spoken_there() {
        for (url, host, port) in [
            ("http://content:8712", "content", 8712),
            ("http://content", "content", 80),
            ("http://127.0.0.1:8712", "127.0.0.1", 8712),
            ("http://[::1]:8712", "::1", 8712),
        ] {
            let target = target(url, None).unwrap();
            assert_eq!((target.name.host.as_str(), target.name.port), (host, port), "{url}");
            assert!(target.tls.is_none());
        }
        for odd in ["", "content:8712", "ftp://content", "http://", "http://con tent", "/path"] {
            assert!(matches!(target(odd, None), Err(AddressError::Unusable(_))), "{odd}");
        }
        assert!(matches!(target("https://content:8712", None), Err(AddressError::NothingTrusted)));
    }

    #[test]
    fn several_urls_stand_with_commas_between() {
        assert!(Remote::at("http://127.0.0.1:1, http://127.0.0.1:2", None).is_ok());
        assert!(Remote::at("http://127.0.0.1:1,", None).is_err());
    }
}
