//! gRPC services that only services of the mesh may call, decided before anything of a message is read.

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

/// A generated server behind the check; it goes where the server would go. The check stands on the service itself, so
/// it is the same in this process and over TCP.
#[derive(Debug, Clone)]
pub struct ServicesOnly<S> {
    server: S,
    verifier: Verifier,
}

impl<S> ServicesOnly<S> {
    /// The server, for callers whose service identity that verifier accepts.
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
        // The clone is not ready, the server that was asked is.
        let next = self.server.clone();
        let mut server = std::mem::replace(&mut self.server, next);
        let verifier = self.verifier.clone();
        Box::pin(async move {
            match verifier.authenticate_service(&proof(&request)).await {
                Ok(_) => server.call(request).await,
                Err(problem) => Ok(Status::from(problem).into_http()),
            }
        })
    }
}

/// What the check looks at: a request's body may not be shared between threads.
fn proof(request: &Request<Body>) -> MetadataMap {
    let mut proof = http::HeaderMap::with_capacity(2);
    for name in [SERVICE_IDENTITY, header::AUTHORIZATION.as_str()] {
        for value in request.headers().get_all(name) {
            let name = http::HeaderName::from_static(name);
            proof.append(name, HeaderValue::clone(value));
        }
    }
    MetadataMap::from_headers(proof)
}
