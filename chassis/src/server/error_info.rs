//! ErrorInfo on every error, also on those that tonic makes itself (an unknown method, a message that does not decode).

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use http::{HeaderMap, HeaderValue, Request, Response};
use tonic::{Code, Status};
use tower::{Layer, Service};

use crate::status::{MOST_ERROR_BYTES, Problem};

const DETAILS: &str = "grpc-status-details-bin";
const MESSAGE: &str = "grpc-message";

/// Puts [`ErrorInfo`] around a service.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ErrorInfoLayer;

impl<S> Layer<S> for ErrorInfoLayer {
    type Service = ErrorInfo<S>;

    fn layer(&self, inner: S) -> ErrorInfo<S> {
        ErrorInfo { inner }
    }
}

/// Completes an error without details by those that its code implies.
#[derive(Debug, Clone)]
pub(super) struct ErrorInfo<S> {
    inner: S,
}

type BoxedFuture<T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send>>;

impl<S, B> Service<Request<B>> for ErrorInfo<S>
where
    S: Service<Request<B>, Response = Response<Body>>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = BoxedFuture<Self::Response, S::Error>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let answer = self.inner.call(request);
        Box::pin(async move { answer.await.map(complete) })
    }
}

/// Whether it has details, and no more than a caller's transport takes.
fn is_complete(headers: &HeaderMap) -> bool {
    let length = |name| headers.get(name).map_or(0, HeaderValue::len);
    headers.contains_key(DETAILS) && length(DETAILS) + length(MESSAGE) <= MOST_ERROR_BYTES
}

fn complete(response: Response<Body>) -> Response<Body> {
    // A failed call carries its status in its headers.
    let Some(status) = Status::from_header_map(response.headers()) else { return response };
    if status.code() == Code::Ok || is_complete(response.headers()) {
        return response;
    }
    let mut problem = Problem::from_status(&status);
    if problem.message.is_empty() {
        problem.message = status.code().description().to_owned();
    }
    let mut completed = Status::from(problem);
    *completed.metadata_mut() = status.metadata().clone();
    completed.into_http::<Body>()
}
