//! A tracing span and metrics for each call to a service.

use std::future::Future;
use std::pin::Pin;
use std::sync::OnceLock;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use http::{Request, Response};
use metrics::{Counter, Gauge, Histogram};
use tower::{Layer, Service};
use tracing::{Instrument as _, field};

use crate::call::REQUEST_ID;
use crate::contracts::Contracts;
use crate::telemetry::{self, InFlight};

const CALLS: &str = "cairn_grpc_server_requests_total";
const DURATION: &str = "cairn_grpc_server_duration_seconds";
const IN_FLIGHT: &str = "cairn_grpc_server_requests_in_flight";
/// The gRPC code of a success.
const OK: &str = "0";
/// The label of all methods that are not in the contracts: otherwise a caller could create a time series with each call.
const UNKNOWN: &str = "unknown";

/// Wraps a service in [`Observe`].
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
        let methods = Methods::get();
        let (method, metrics) = methods.of(request.uri().path());
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
        let response = self.inner.call(request);
        let in_flight = InFlight::begin(&methods.in_flight);
        let observed = async move {
            let response = response.await;
            drop(in_flight);
            let code = response.as_ref().map_or("error", grpc_code);
            recorded.record("code", code);
            count(method, metrics, code, started.elapsed());
            response
        };
        Box::pin(observed.instrument(span))
    }
}

/// The gRPC code as a number; a failed call has it in the headers, a successful one in the trailers.
fn grpc_code<R>(response: &Response<R>) -> &str {
    response.headers().get("grpc-status").and_then(|value| value.to_str().ok()).unwrap_or(OK)
}

fn count(method: &'static str, metrics: &OnceLock<MethodMetrics>, code: &str, took: Duration) {
    let metrics = metrics.get_or_init(|| MethodMetrics::of(method));
    metrics.duration.record(took);
    if code == OK {
        metrics.succeeded.increment(1);
    } else {
        metrics::counter!(CALLS, "method" => method, "code" => code.to_owned()).increment(1);
    }
}

/// The metric handles of a method, cached because their registry lookup is a notable part of a call's cost.
struct MethodMetrics {
    succeeded: Counter,
    duration: Histogram,
}

impl MethodMetrics {
    fn of(method: &'static str) -> Self {
        Self {
            succeeded: metrics::counter!(CALLS, "method" => method, "code" => OK),
            duration: metrics::histogram!(DURATION, "method" => method),
        }
    }
}

/// The metrics of all methods; those of a method are registered at its first call.
struct Methods {
    known: foldhash::HashMap<&'static str, OnceLock<MethodMetrics>>,
    unknown: OnceLock<MethodMetrics>,
    in_flight: Gauge,
}

impl Methods {
    /// The methods of the contracts. Telemetry is initialized before a process serves.
    fn get() -> &'static Self {
        static METHODS: OnceLock<Methods> = OnceLock::new();
        METHODS.get_or_init(|| Self {
            known: Contracts::get().paths().map(|path| (path, OnceLock::new())).collect(),
            unknown: OnceLock::new(),
            in_flight: metrics::gauge!(IN_FLIGHT),
        })
    }

    /// The label and the metrics of the method at a path.
    fn of(&'static self, path: &str) -> (&'static str, &'static OnceLock<MethodMetrics>) {
        let known = self.known.get_key_value(path).map(|(method, metrics)| (*method, metrics));
        known.unwrap_or((UNKNOWN, &self.unknown))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_methods_of_the_contracts_are_told_apart() {
        for known in ["/cairn.content.v1.FileService/GetFile", "/grpc.health.v1.Health/Check"] {
            assert_eq!(Methods::get().of(known).0, known);
        }
        assert_eq!(Methods::get().of("/cairn.content.v1.FileService/Made-up").0, "unknown");
    }
}
