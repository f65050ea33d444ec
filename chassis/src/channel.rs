//! The channel to another service, in this process or over TCP, with the same behaviour for the caller.
//!
//! `Local` passes the request to the generated server directly: encode and decode, no socket, no HTTP/2. Five things would
//! differ from `Remote`; each is handled here or in [`crate::server`], and tested there:
//!
//! 1. `grpc-timeout` is enforced only by tonic's transport: [`crate::deadline`] wraps the routes.
//! 2. `http::Extensions` are passed on locally and not remotely: they are cleared, and identity travels as metadata.
//! 3. Layers of `Server::builder()` do not run locally: ours wrap the routes ([`crate::server::compose`]).
//! 4. The default message limit of 4 MiB is too small for 5 MiB bodies: decoders set [`MAX_MESSAGE_BYTES`]. Encoders set no
//!    limit: over TCP, a limit error of the client's encoder would surface as a broken stream.
//! 5. A panic would unwind into the caller: it is caught on the routes.
//!
//! `Remote` balances its calls over the addresses of the service (`balance`), which it resolves again and again (`names`), and
//! retries a call that was never sent or that is idempotent (`retry`).

mod balance;
mod body;
mod connect;
mod names;
mod remote;
mod retry;

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{HeaderValue, Request, Response};
use tonic::Status;
use tonic::body::Body;
use tonic::service::Routes;
use tower::Service;

pub use self::remote::Remote;
use crate::identity::{SERVICE_IDENTITY, ServiceIdentitySource};
use crate::{telemetry, tls};

/// The message limit, to be set with `max_decoding_message_size` on each server and client: room for a batch of 5 MiB bodies.
pub const MAX_MESSAGE_BYTES: usize = 32 * 1024 * 1024;

/// The retry-after of an unreachable service: an orchestrator takes seconds to replace it.
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// The error of a channel, as generated clients expect it.
pub type Error = Box<dyn std::error::Error + Send + Sync>;

/// An address for which no channel can be created.
#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    /// It is not a valid URL of a service.
    #[error("it is not an address such as http://host:port: {0}")]
    Unusable(String),
    /// It begins with `https://`, and no certificate authority is configured.
    #[error(
        "it begins with https://, and nobody's certificates are trusted: name the authority's (CAIRN_TLS_CA)"
    )]
    NothingTrusted,
}

/// A channel to a service; cheap to clone. Generated clients use it: `FileServiceClient::new(channel.clone())`.
#[derive(Debug, Clone)]
pub enum ServiceChannel {
    /// The service runs in this process: its composed routes.
    Local(Routes),
    /// The service runs elsewhere.
    Remote(Remote),
    /// One of the others, with a service identity added to each call.
    Presenting(Box<Presenting>),
}

/// A channel that adds a service identity to each call.
#[derive(Debug, Clone)]
pub struct Presenting {
    inner: ServiceChannel,
    identity: ServiceIdentitySource,
}

impl ServiceChannel {
    /// A channel to a service in this process.
    pub fn local(routes: Routes) -> Self {
        Self::Local(routes.prepare())
    }

    /// A channel to a service at a URL such as `http://content:8703`, or at several, separated by commas. A host name stands for
    /// all of its addresses. Connections are opened on demand, and reopened after a failure.
    ///
    /// # Errors
    /// When the address is not a URL, or begins with `https://`.
    pub fn remote(address: &str) -> Result<Self, AddressError> {
        Self::remote_over(address, None)
    }

    /// As [`Self::remote`], with TLS to addresses that begin with `https://`.
    ///
    /// # Errors
    /// When the address is not a URL, or is an `https://` one and `tls` is absent.
    pub fn remote_over(address: &str, tls: Option<&tls::Client>) -> Result<Self, AddressError> {
        Remote::at(address, tls).map(Self::Remote)
    }

    /// The same channel, which adds the identity of a service to that of the user in each call.
    #[must_use]
    pub fn presenting(self, identity: ServiceIdentitySource) -> Self {
        Self::Presenting(Box::new(Presenting { inner: self, identity }))
    }
}

impl Presenting {
    fn call(&self, mut request: Request<Body>) -> BoxedFuture<Response<Body>> {
        let Self { mut inner, identity } = self.clone();
        Box::pin(async move {
            let signed = identity.identity().await.map_err(Status::from)?;
            let mut value = HeaderValue::try_from(signed)?;
            value.set_sensitive(true);
            request.headers_mut().insert(SERVICE_IDENTITY, value);
            poll_fn(|context| inner.poll_ready(context)).await?;
            inner.call(request).await
        })
    }
}

type BoxedFuture<T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send>>;

impl Service<Request<Body>> for ServiceChannel {
    type Response = Response<Body>;
    type Error = Error;
    type Future = BoxedFuture<Response<Body>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        // Routes are always ready; over TCP each call waits for a connection itself.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        telemetry::inject_context(request.headers_mut());
        match self {
            Self::Presenting(presenting) => presenting.call(request),
            Self::Local(routes) => {
                request.extensions_mut().clear();
                let response = routes.call(request);
                Box::pin(async move {
                    let mut response = response.await.unwrap_or_else(|never: Infallible| match never {});
                    response.extensions_mut().clear();
                    Ok(response)
                })
            }
            Self::Remote(remote) => Box::pin(remote.clone().call(request)),
        }
    }
}

/// The first error of that type in the chain of causes.
fn cause<'a, T: std::error::Error + 'static>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a T> {
    let mut next = Some(error);
    while let Some(cause) = next {
        let inner = cause.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        let found = inner.and_then(|inner| inner.downcast_ref()).or_else(|| cause.downcast_ref());
        if found.is_some() {
            return found;
        }
        next = cause.source();
    }
    None
}
