//! A span and the metrics of each call that a service answers.

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
const UNDER_WAY: &str = "cairn_grpc_server_requests_in_flight";
/// What gRPC calls a success.
const OK: &str = "0";
/// What the contracts do not have counts as one method, or anybody could make a series of metrics with each call.
const UNKNOWN: &str = "unknown";

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
        let methods = Methods::get();
        let (method, served) = methods.of(request.uri().path());
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
        let in_flight = InFlight::begin(&methods.under_way);
        let observed = async move {
            let answered = answer.await;
            drop(in_flight);
            let code = answered.as_ref().map_or("error", grpc_code);
            recorded.record("code", code);
            count(method, served, code, started.elapsed());
            answered
        };
        Box::pin(observed.instrument(span))
    }
}

/// The gRPC code as a number; a failed call carries it in its headers, a good one in its trailers.
fn grpc_code<R>(response: &Response<R>) -> &str {
    response.headers().get("grpc-status").and_then(|value| value.to_str().ok()).unwrap_or(OK)
}

fn count(method: &'static str, served: &OnceLock<Served>, code: &str, took: Duration) {
    let served = served.get_or_init(|| Served::of(method));
    served.duration.record(took);
    if code == OK {
        served.succeeded.increment(1);
    } else {
        metrics::counter!(CALLS, "method" => method, "code" => code.to_owned()).increment(1);
    }
}

/// The metrics of a method. To find them among all costs as much as several other things that are done with a call.
struct Served {
    succeeded: Counter,
    duration: Histogram,
}

impl Served {
    fn of(method: &'static str) -> Self {
        Self {
            succeeded: metrics::counter!(CALLS, "method" => method, "code" => OK),
            duration: metrics::histogram!(DURATION, "method" => method),
        }
    }
}

/// What is counted: nothing of a method before its first call.
struct Methods {
    known: foldhash::HashMap<&'static str, OnceLock<Served>>,
    unknown: OnceLock<Served>,
    under_way: Gauge,
}

impl Methods {
    /// Those of this build. Telemetry is set up before a process serves.
    fn get() -> &'static Self {
        static METHODS: OnceLock<Methods> = OnceLock::new();
        METHODS.get_or_init(|| Self {
            known: Contracts::get().paths().map(|path| (path, OnceLock::new())).collect(),
            unknown: OnceLock::new(),
            under_way: metrics::gauge!(UNDER_WAY),
        })
    }

    /// The method at a path, by its name in the contracts.
    fn of(&'static self, path: &str) -> (&'static str, &'static OnceLock<Served>) {
        let known = self.known.get_key_value(path).map(|(method, served)| (*method, served));
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
