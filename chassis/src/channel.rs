//! The way to another service: in this process or over TCP, the same to whoever calls.
//!
//! `Local` hands the request to the generated server directly: encode and decode, no socket, no HTTP/2. Five things
//! would differ from `Remote` if nothing were done; each is done here or in [`crate::server`], and tested there:
//!
//! 1. `grpc-timeout` is enforced by tonic's transport only: [`crate::deadline`] stands on the routes.
//! 2. `http::Extensions` cross locally and not remotely: they are cleared, identity travels as metadata.
//! 3. Layers of `Server::builder()` do not run locally: ours are on the routes ([`crate::server::compose`]).
//! 4. The default message limit of 4 MiB is too small for 5 MiB bodies: whoever decodes sets [`MAX_MESSAGE_BYTES`].
//!    Whoever encodes sets no limit: over TCP a client's own refusal would arrive as a broken stream.
//! 5. A panic would unwind into the caller: it is caught on the routes.
//!
//! `Remote` spreads its calls over every address of the service (`balance`), follows the names in its URLs (`names`), and
//! makes a call again that was never sent or that changes nothing (`retry`).

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

/// What a message may weigh, to be set with `max_decoding_message_size` on each server and client: a body of 5 MiB with room for batches of them.
pub const MAX_MESSAGE_BYTES: usize = 32 * 1024 * 1024;

/// When a caller may try a service again that could not be reached: an orchestrator needs seconds to replace it.
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// The error of a channel, as generated clients take it.
pub type Error = Box<dyn std::error::Error + Send + Sync>;

/// An address that no channel can be made to.
#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    /// It is not a URL, or what it needs cannot be set up.
    #[error("it is not an address such as http://host:port: {0}")]
    Unusable(String),
    /// It begins with `https://`, and nothing says whose certificates to trust.
    #[error(
        "it begins with https://, and nobody's certificates are trusted: name the authority's (CAIRN_TLS_CA)"
    )]
    NothingTrusted,
}

/// A way to a service; cheap to clone. Generated clients take it: `FileServiceClient::new(channel.clone())`.
#[derive(Debug, Clone)]
pub enum ServiceChannel {
    /// The service runs in this process: its composed routes.
    Local(Routes),
    /// The service runs elsewhere.
    Remote(Remote),
    /// One of the others, to which each call proves that a service of the mesh makes it.
    Presenting(Box<Presenting>),
}

/// A way, and the identity that is presented on it.
#[derive(Debug, Clone)]
pub struct Presenting {
    way: ServiceChannel,
    identity: ServiceIdentitySource,
}

impl ServiceChannel {
    /// A way to a service in this process.
    pub fn local(routes: Routes) -> Self {
        Self::Local(routes.prepare())
    }

    /// A way to a service at an address such as `http://content:8703`, or at several with commas between. A name stands
    /// for all of its addresses. Connections are made when calls need them, and again after a failure.
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

    /// The same way, on which each call carries a service's identity beside that of whoever it is made for.
    #[must_use]
    pub fn presenting(self, identity: ServiceIdentitySource) -> Self {
        Self::Presenting(Box::new(Presenting { way: self, identity }))
    }
}

impl Presenting {
    fn call(&self, mut request: Request<Body>) -> BoxedFuture<Response<Body>> {
        let Self { mut way, identity } = self.clone();
        Box::pin(async move {
            let signed = identity.identity().await.map_err(Status::from)?;
            let mut value = HeaderValue::try_from(signed)?;
            value.set_sensitive(true);
            request.headers_mut().insert(SERVICE_IDENTITY, value);
            poll_fn(|context| way.poll_ready(context)).await?;
            way.call(request).await
        })
    }
}

type BoxedFuture<T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send>>;

impl Service<Request<Body>> for ServiceChannel {
    type Response = Response<Body>;
    type Error = Error;
    type Future = BoxedFuture<Response<Body>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        // Routes are always ready; elsewhere each call waits for a connection by itself.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        telemetry::inject_context(request.headers_mut());
        match self {
            Self::Presenting(presenting) => presenting.call(request),
            Self::Local(routes) => {
                request.extensions_mut().clear();
                let answer = routes.call(request);
                Box::pin(async move {
                    let mut response = answer.await.unwrap_or_else(|never: Infallible| match never {});
                    response.extensions_mut().clear();
                    Ok(response)
                })
            }
            Self::Remote(remote) => Box::pin(remote.clone().call(request)),
        }
    }
}

/// The error of that kind among the causes of an error.
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
