//! Calls to a service elsewhere: spread over its addresses, and made again when that does no harm.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, Uri, header};
use rustls::pki_types::ServerName;
use tonic::body::Body;
use tonic::{Code, Status, TimeoutExpired};
use tower::Service as _;

use super::balance::{Balance, Peer, Target, UnderWay};
use super::body::{Sendable, whole};
use super::connect::{Secured, Unreachable};
use super::names::Name;
use super::retry::{self, Budget};
use super::{AddressError, Error, RETRY_AFTER, cause};
use crate::status::Problem;
use crate::tls;

/// Asks whether somebody answers at all: a message of no bytes.
const CHECK: &str = "/grpc.health.v1.Health/Check";
const EMPTY_MESSAGE: &[u8] = &[0; 5];
const RETRIES: &str = "cairn_calls_retried_total";

/// A service elsewhere; cheap to clone.
#[derive(Debug, Clone)]
pub struct Remote(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    balance: Balance,
    budget: Budget,
}

/// Why an attempt came to nothing.
type Failure = tonic::transport::Error;

impl Remote {
    /// A service at these URLs, with commas between several.
    pub(super) fn at(urls: &str, tls: Option<&tls::Client>) -> Result<Self, AddressError> {
        let targets: Vec<_> = urls.split(',').map(|url| target(url.trim(), tls)).collect::<Result<_, _>>()?;
        Ok(Self(Arc::new(Inner { balance: Balance::over(targets), budget: Budget::new() })))
    }

    pub(super) async fn call(self, request: Request<Body>) -> Result<Response<Body>, Error> {
        let (parts, body) = request.into_parts();
        match Sendable::of(body)? {
            Sendable::Whole(bytes) => self.0.call(Request::from_parts(parts, bytes)).await,
            Sendable::Begun(body) => {
                let peer = self.0.answering().await?;
                let request = Request::from_parts(parts, Body::new(body));
                self.0.attempt(&peer, request).await.map_err(from_transport)
            }
        }
    }
}

impl Inner {
    /// A call whose message is at hand.
    async fn call(&self, mut request: Request<Bytes>) -> Result<Response<Body>, Error> {
        // Looking for a peer takes of the call's time, too.
        let mut began = Instant::now();
        self.budget.deposit();
        let mut peer = self.peer(None).await?;
        let mut failures = 0;
        loop {
            let sent = request.clone().map(|bytes| whole(&bytes));
            let failure = match self.attempt(&peer, sent).await {
                Ok(response) => return Ok(response),
                Err(failure) => failure,
            };
            failures += 1;
            let Some((why, pause)) = again(&failure, request.uri().path(), failures) else {
                return Err(from_transport(failure));
            };
            tokio::time::sleep(pause).await;
            if !retry::leave_the_rest(request.headers_mut(), began.elapsed()) || !self.budget.withdraw() {
                return Err(from_transport(failure));
            }
            began = Instant::now();
            metrics::counter!(RETRIES, "why" => why).increment(1);
            tracing::debug!(error = %failure, why, "a call is made again");
            peer = self.peer(Some(&peer)).await?;
        }
    }

    /// A peer that has answered just now, for a call that cannot be made again; or the last one that was asked, which the
    /// call itself will find out about.
    async fn answering(&self) -> Result<Arc<Peer>, Error> {
        let mut peer = self.peer(None).await?;
        for pause in retry::PAUSES {
            match self.attempt(&peer, check()).await {
                Ok(_) => break,
                Err(failure) => {
                    tracing::debug!(error = %failure, "a call goes to another address");
                    tokio::time::sleep(pause).await;
                    peer = self.peer(Some(&peer)).await?;
                }
            }
        }
        Ok(peer)
    }

    async fn peer(&self, failed: Option<&Arc<Peer>>) -> Result<Arc<Peer>, Error> {
        self.balance.peer(failed).await.ok_or_else(|| unreachable().into())
    }

    async fn attempt(&self, peer: &Arc<Peer>, request: Request<Body>) -> Result<Response<Body>, Failure> {
        let _under_way = UnderWay::at(peer);
        let mut channel = peer.channel.clone();
        let sending = async {
            poll_fn(|context| channel.poll_ready(context)).await?;
            channel.call(request).await
        };
        let answered = sending.await;
        if answered.is_err() {
            self.balance.doubt();
        }
        answered
    }
}

/// Why a call that has failed so often may be made again, and after which pause.
fn again(failure: &Failure, path: &str, failures: usize) -> Option<(&'static str, Duration)> {
    let why = retry::reason(failure, path)?;
    Some((why, retry::pause(failures, why)?))
}

fn check() -> Request<Body> {
    let mut request = Request::new(whole(&Bytes::from_static(EMPTY_MESSAGE)));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = Uri::from_static(CHECK);
    let headers = request.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    headers.insert(header::TE, HeaderValue::from_static("trailers"));
    headers.insert("grpc-timeout", HeaderValue::from_static("5S"));
    request
}

/// What a URL such as `https://content:8712` says.
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
        Some(Secured { name, files })
    } else {
        None
    };
    let port = origin.port_u16().unwrap_or(if is_secure { 443 } else { 80 });
    Ok(Target { name: Name { host, port }, origin, tls })
}

fn unreachable() -> Status {
    Status::from(Problem::unavailable("a service of the mesh cannot be reached", RETRY_AFTER))
}

/// What the transport could not do is a service that is not there, whatever tonic makes of the many ways in which a
/// connection ends. What it can tell apart, such as a timeout, stays.
fn from_transport(error: Failure) -> Error {
    // A certificate that is refused after the handshake, as TLS 1.3 does; what fails within it is told where it is made.
    let is_told = cause::<Unreachable>(&error).is_some();
    if let Some(distrust) = cause::<rustls::Error>(&error).filter(|_| !is_told) {
        tracing::warn!(error = %distrust, "a service of the mesh cannot be reached over TLS");
    }
    let is_late = cause::<TimeoutExpired>(&error).is_some();
    let status = Status::from_error(Box::new(error));
    match status.code() {
        // Cancelled without a timeout is a connection that ended under the call, as a refused certificate ends it.
        Code::Cancelled if is_late => status.into(),
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
