//! A span and the metrics of each call that a service answers.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use http::{Request, Response};
use tower::{Layer, Service};
use tracing::{Instrument as _, field};

use crate::call::REQUEST_ID;
use crate::contracts::Contracts;
use crate::telemetry::{self, InFlight};

/// Puts [`Observe`] around a service.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ObserveLayer;

impl<S> Layer<S> for ObserveLayer {
    type Service = Observe<S>;

    fn layer(&self, inner: S) -> Observe<S> {
        Observe { inner }
    }
}

/// Opens a span that continues the caller's trace, and counts and times the call.
#[derive(Debug, Clone)]
pub(super) struct Observe<S> {
    inner: S,
}

type BoxedFuture<T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send>>;

impl<S, B, R> Service<Request<B>> for Observe<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxedFuture<Self::Response, S::Error>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let started = Instant::now();
        let method = known_method(request.uri().path());
        let request_id = request.headers().get(REQUEST_ID).and_then(|value| value.to_str().ok());
        let span = tracing::info_span!(
            "grpc",
            rpc.method = method,
            request_id,
            otel.kind = "server",
            code = field::Empty
        );
        telemetry::continue_trace(&span, request.headers());
        let recorded = span.clone();
        let answer = self.inner.call(request);
        let in_flight = InFlight::begin("cairn_grpc_server_requests_in_flight");
        let observed = async move {
            let answered = answer.await;
            drop(in_flight);
            let code = answered.as_ref().map_or("error", grpc_code);
            recorded.record("code", code);
            metrics::counter!("cairn_grpc_server_requests_total", "method" => method, "code" => code.to_owned())
                .increment(1);
            metrics::histogram!("cairn_grpc_server_duration_seconds", "method" => method)
                .record(started.elapsed());
            answered
        };
        Box::pin(observed.instrument(span))
    }
}

/// The gRPC code as a number; a failed call carries it in its headers, a good one in its trailers.
fn grpc_code<R>(response: &Response<R>) -> &str {
    response.headers().get("grpc-status").and_then(|value| value.to_str().ok()).unwrap_or("0")
}

/// The path as the contracts spell it; what they do not have counts as one, or anybody could make a series of metrics
/// with each call.
fn known_method(path: &str) -> &'static str {
    Contracts::get().method(path).map_or("unknown", |(known, _)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_methods_of_the_contracts_are_told_apart() {
        for known in ["/cairn.content.v1.FileService/GetFile", "/grpc.health.v1.Health/Check"] {
            assert_eq!(known_method(known), known);
        }
        assert_eq!(known_method("/cairn.content.v1.FileService/Made-up"), "unknown");
    }
}
