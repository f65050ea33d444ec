//! gRPC services that only services of the mesh may call, checked before a message is read.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::{HeaderValue, Request, Response, header};
use tonic::Status;
use tonic::body::Body;
use tonic::metadata::MetadataMap;
use tonic::server::NamedService;
use tower::Service;

use crate::identity::{SERVICE_IDENTITY, Verifier};

/// Wraps a generated server in the check. The check is part of the service itself, so it applies in this process and over TCP
/// alike.
#[derive(Debug, Clone)]
pub struct ServicesOnly<S> {
    server: S,
    verifier: Verifier,
}

impl<S> ServicesOnly<S> {
    /// Restricts a server to callers whose service identity the verifier accepts.
    pub const fn new(server: S, verifier: Verifier) -> Self {
        Self { server, verifier }
    }
}

impl<S: NamedService> NamedService for ServicesOnly<S> {
    const NAME: &'static str = S::NAME;
}

impl<S> Service<Request<Body>> for ServicesOnly<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.server.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        // `poll_ready` was called on this instance and not on its clone, so this one has to handle the call.
        let clone = self.server.clone();
        let mut server = std::mem::replace(&mut self.server, clone);
        let verifier = self.verifier.clone();
        Box::pin(async move {
            match verifier.authenticate_service(&credentials(&request)).await {
                Ok(_) => server.call(request).await,
                Err(problem) => Ok(Status::from(problem).into_http()),
            }
        })
    }
}

/// A copy of the headers that the check reads: a reference to the request could not be held across an await, since its body is
/// not `Sync`.
fn credentials(request: &Request<Body>) -> MetadataMap {
    let mut credentials = http::HeaderMap::with_capacity(2);
    for name in [SERVICE_IDENTITY, header::AUTHORIZATION.as_str()] {
        for value in request.headers().get_all(name) {
            let name = http::HeaderName::from_static(name);
            credentials.append(name, HeaderValue::clone(value));
        }
    }
    MetadataMap::from_headers(credentials)
}
