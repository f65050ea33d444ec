//! Middleware around every request: request id, deadline, span, metrics and the one error body, also for panics;
//! rate limits run inside it.

mod failure_log;
mod request_metrics;

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{FromRef, MatchedPath, Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use cairn_chassis::ambient::Ambient;
use cairn_chassis::call::Call;
use cairn_chassis::clock::Clock;
use cairn_chassis::ids::IdSource;
use cairn_chassis::status::{Problem, Reason};
use cairn_chassis::telemetry;
use futures::FutureExt as _;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use http_body::Body as _;
use tower::ServiceBuilder;
use tracing::{Instrument as _, Span, field};
use uuid::Uuid;

use self::failure_log::FailureLog;
use self::request_metrics::{MethodLabel, RequestMetrics, UNMATCHED};
use crate::app::App;
use crate::error::Error;
use crate::guard::{self, Guard};
use crate::health;
use crate::in_flight::InFlight;
use crate::intake::BodyPermits;
use crate::json_body::JsonBody;
use crate::origin::Origins;
use crate::pages::PageRequest;
use crate::routes::{Classes, Routes};
use crate::suspension::{self, Permits};
use crate::upstreams::Upstreams;
use crate::{compression, security_headers, unread_body};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const MAX_REQUEST_ID_LENGTH: usize = 128;

/// The whole public router: routes, the two fallbacks, and the edge middleware around all of them.
pub(crate) fn around(routes: Routes, app: App) -> Router {
    let (router, classes) = routes.into_parts();
    let ambient = Ambient::from_ref(&app);
    let edge = Arc::new(Edge {
        ids: ambient.ids,
        clock: ambient.clock,
        failure_log: FailureLog::default(),
        request_metrics: RequestMetrics::on(classes.paths()),
        origins: FromRef::from_ref(&app),
        guard: Guard::of(&app),
        in_flight: FromRef::from_ref(&app),
        classes,
        upstreams: FromRef::from_ref(&app),
    });
    router
        .fallback(async || Error::unknown_route())
        .method_not_allowed_fallback(async || Error::method_not_allowed())
        // A single stack: the router boxes every layer and clones each box per request.
        .layer(
            ServiceBuilder::new()
                .layer(compression::layer())
                .layer(middleware::from_fn_with_state(edge, serve)),
        )
        .with_state(app)
}

struct Edge {
    ids: IdSource,
    clock: Arc<dyn Clock>,
    failure_log: FailureLog,
    request_metrics: RequestMetrics,
    origins: Arc<Origins>,
    guard: Guard,
    in_flight: Arc<InFlight>,
    classes: Classes,
    upstreams: Arc<Upstreams>,
}

async fn serve(State(edge): State<Arc<Edge>>, request: Request, next: Next) -> Response {
    let started = Instant::now();
    let (mut request, unread) = unread_body::watch(request);
    // Only a request with a body needs body permits; most have none.
    let body_permits = (!request.body().is_end_stream()).then(BodyPermits::default);
    let id = request_id(request.headers(), &edge.ids);
    let method = MethodLabel::of(request.method());
    let matched = request.extensions().get::<MatchedPath>().cloned();
    let matched = matched.as_ref().map(MatchedPath::as_str);
    let class = edge.classes.of(matched, request.method(), request.uri().path());
    let route = matched.unwrap_or(UNMATCHED);
    let call = Call::within(class.budget).with_request_id(&id).with_channel(class.surface.channel());
    let client = request.headers().get(header::USER_AGENT).and_then(|name| name.to_str().ok());
    let call = call.with_client(client.unwrap_or_default());
    request.extensions_mut().insert(call);
    request.extensions_mut().insert(class);
    if let Some(body_permits) = &body_permits {
        request.extensions_mut().insert(body_permits.clone());
    }
    let page_request = PageRequest::read(class, &mut request);

    let span =
        tracing::info_span!("http", method = method.as_str(), route, request_id = id, status = field::Empty);
    telemetry::continue_trace(&span, request.headers());
    // Probes bypass the limit: an overloaded process must not look dead to its orchestrator.
    let is_probe = health::PROBES.contains(&route);
    let permit = if is_probe { Ok(None) } else { edge.in_flight.acquire().map(Some) };
    let answered = match permit {
        Err(problem) => Error::from(problem).into_response(),
        Ok(permit) => {
            if let Some(permit) = &permit {
                Permits::add(request.extensions_mut(), permit);
                request = request.map(|body| suspension::track_body(permit, body));
            }
            let answered = {
                // Pinned here because the future is large and passing it by value would copy it.
                let serving = pin!(guard::serve(&edge.guard, class, request, next));
                answer(serving, class.budget).instrument(span.clone()).await
            };
            drop(permit);
            answered
        }
    };
    drop(body_permits);
    let mut response = with_body(answered, page_request.as_ref(), &id, &edge.upstreams).await;
    unread.mark(&mut response);
    if class.has_secrets {
        compression::forbid(&mut response);
    }
    security_headers::complete(response.headers_mut(), edge.origins.is_https());
    edge.measure(&response, method, route, started.elapsed(), &span);
    response
}

/// Bounds the handler by the deadline and turns a panic into a 500, so the connection survives.
async fn answer(handler: impl Future<Output = Response>, budget: Duration) -> Response {
    match tokio::time::timeout(budget, AssertUnwindSafe(handler).catch_unwind()).await {
        Ok(Ok(response)) => response,
        Ok(Err(_panic)) => Error::from(Problem::internal("a handler panicked")).into_response(),
        Err(_elapsed) => {
            let message = "the time for this request ran out; try again, or ask for less at once";
            Error::from(Problem::new(Reason::DeadlineExceeded, message)).into_response()
        }
    }
}

/// Renders the error body that a handler left to the edge: a page for a browser, JSON for everybody else.
async fn with_body(
    mut response: Response,
    page_request: Option<&PageRequest>,
    id: &str,
    upstreams: &Upstreams,
) -> Response {
    if let Some(error) = response.extensions_mut().remove::<Error>() {
        let (mut head, _) = response.into_parts();
        head.headers.remove(header::CONTENT_LENGTH);
        response = match page_request {
            Some(page_request) => {
                let mut page = page_request.answer(&error, id, upstreams).await;
                for (name, value) in &head.headers {
                    page.headers_mut().entry(name).or_insert_with(|| value.clone());
                }
                page
            }
            None => {
                let mut written = JsonBody(error.body(id)).into_response();
                *written.status_mut() = head.status;
                written.headers_mut().extend(head.headers);
                written
            }
        };
    }
    if let Ok(value) = HeaderValue::from_str(id) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    response
}

impl Edge {
    fn measure(&self, response: &Response, method: MethodLabel, route: &str, took: Duration, span: &Span) {
        let status = response.status().as_u16();
        span.record("status", status);
        let duration_ms = took.as_secs_f64() * 1e3;
        if !response.status().is_server_error() {
            tracing::debug!(parent: span, status, duration_ms, "request served");
        } else if let Some(left_out) = self.failure_log.admit(self.clock.now()) {
            tracing::warn!(parent: span, status, duration_ms, left_out, "request failed");
        }
        self.request_metrics.record(method, route, response.status(), took);
    }
}

/// The caller's id if it is well formed, so that callers can find their request in the log; else a new one.
pub(crate) fn request_id(headers: &HeaderMap, ids: &IdSource) -> String {
    headers
        .get(REQUEST_ID)
        .and_then(|value| value.to_str().ok())
        .filter(|text| is_request_id(text))
        .map_or_else(|| ids.next::<Uuid>().to_string(), ToOwned::to_owned)
}

fn is_request_id(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    (1..=MAX_REQUEST_ID_LENGTH).contains(&text.len()) && text.bytes().all(allowed)
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use futures::{StreamExt as _, stream};

    use super::*;
    use crate::intake::Intake;

    #[test]
    fn a_request_id_has_one_shape() {
        for good in ["a", "A-b_c.9", &"x".repeat(128)] {
            assert!(is_request_id(good));
        }
        for odd in ["", "a b", "a\n", "é", "a/b", &"x".repeat(129)] {
            assert!(!is_request_id(odd), "{odd}");
        }
    }

    #[tokio::test]
    async fn a_panic_is_an_internal_error() {
        let response = answer(async { panic!("secret detail") }, Duration::from_secs(15)).await;
        assert_eq!(response.status().as_u16(), 500);
        let error = response.extensions().get::<Error>().unwrap();
        assert!(!error.message.contains("secret"));
    }

    #[tokio::test]
    async fn a_body_that_never_ends_is_given_up() {
        let part = stream::once(async { Ok::<_, std::io::Error>("{") });
        let body = Body::from_stream(part.chain(stream::pending()));
        let intake = Intake::new(usize::MAX);
        let request = http::Extensions::new();
        let reading = async {
            intake
                .receive(body, 1024, &request, None)
                .await
                .map_or_else(Error::into_response, |bytes| Response::new(Body::from(bytes)))
        };
        let response = answer(reading, Duration::from_millis(5)).await;
        assert_eq!(response.status().as_u16(), 504);
    }

    #[tokio::test]
    async fn a_request_ends_with_its_budget() {
        let response = answer(std::future::pending(), Duration::from_millis(5)).await;
        assert_eq!(response.status().as_u16(), 504);
    }
}
