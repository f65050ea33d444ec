//! HTTP request metrics by method, route and status. Looking a handle up in the registry costs more than
//! incrementing it, so the handles of the common case (200) are cached.

use std::collections::HashMap;
use std::sync::OnceLock;
use std::time::Duration;

use http::{Method, StatusCode};
use metrics::{Counter, Histogram};

const DURATION: &str = "cairn_http_request_duration_seconds";
const REQUESTS: &str = "cairn_http_requests_total";
/// The route label of requests that match no route.
pub(super) const UNMATCHED: &str = "unmatched";
/// Methods are an open set: as a label, arbitrary ones would let a caller create unbounded time series.
const METHODS: [&str; 8] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "OTHER"];

/// The method label, as an index into [`METHODS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MethodLabel(usize);

impl MethodLabel {
    pub(super) fn of(method: &Method) -> Self {
        let known = METHODS.iter().position(|known| *known == method.as_str());
        Self(known.unwrap_or(METHODS.len() - 1))
    }

    pub(super) fn as_str(self) -> &'static str {
        METHODS.get(self.0).copied().unwrap_or_default()
    }
}

/// Cached metric handles per route and method, created at the first request.
#[derive(Debug)]
pub(super) struct RequestMetrics {
    routes: HashMap<String, [OnceLock<Box<MethodMetrics>>; METHODS.len()]>,
}

#[derive(Debug)]
struct MethodMetrics {
    duration: Histogram,
    /// Responses with 200.
    ok: Counter,
}

impl RequestMetrics {
    /// Creates the table for these routes.
    pub(super) fn on<'a>(routes: impl Iterator<Item = &'a str>) -> Self {
        let routes = routes.chain([UNMATCHED]).map(|route| (route.to_owned(), Default::default()));
        Self { routes: routes.collect() }
    }

    /// Records a response.
    pub(super) fn record(&self, method: MethodLabel, route: &str, status: StatusCode, took: Duration) {
        let Some(handles) = self.routes.get(route).and_then(|methods| methods.get(method.0)) else {
            duration_of(method, route).record(took);
            return answers_of(method, route, status).increment(1);
        };
        let handles = handles.get_or_init(|| Box::new(MethodMetrics::of(method, route)));
        handles.duration.record(took);
        if status == StatusCode::OK {
            handles.ok.increment(1);
        } else {
            answers_of(method, route, status).increment(1);
        }
    }
}

impl MethodMetrics {
    fn of(method: MethodLabel, route: &str) -> Self {
        Self { duration: duration_of(method, route), ok: answers_of(method, route, StatusCode::OK) }
    }
}

fn duration_of(method: MethodLabel, route: &str) -> Histogram {
    metrics::histogram!(DURATION, "method" => method.as_str(), "route" => route.to_owned())
}

fn answers_of(method: MethodLabel, route: &str, status: StatusCode) -> Counter {
    let (route, status) = (route.to_owned(), status.as_str().to_owned());
    metrics::counter!(REQUESTS, "method" => method.as_str(), "route" => route, "status" => status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_method_that_nobody_knows_is_another_one() {
        for method in [Method::GET, Method::OPTIONS, Method::DELETE] {
            assert_eq!(MethodLabel::of(&method).as_str(), method.as_str());
        }
        let made_up = Method::from_bytes(b"MADE-UP").unwrap();
        assert_eq!(MethodLabel::of(&made_up).as_str(), "OTHER");
    }

    #[test]
    fn what_was_found_once_is_kept() {
        let served = RequestMetrics::on(["/a"].into_iter());
        let get = MethodLabel::of(&Method::GET);
        for route in ["/a", UNMATCHED, "/nowhere"] {
            served.record(get, route, StatusCode::OK, Duration::from_millis(1));
            served.record(get, route, StatusCode::NOT_FOUND, Duration::from_millis(1));
        }
        let handles =
            |route: &str| served.routes[route].iter().filter(|method| method.get().is_some()).count();
        assert_eq!((handles("/a"), handles(UNMATCHED)), (1, 1));
        assert_eq!(served.routes.len(), 2);
    }
}
