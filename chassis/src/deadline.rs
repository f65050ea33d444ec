//! The deadline of a call, enforced on local and remote channels alike.
//!
//! tonic enforces `grpc-timeout` only in its transport, so a local channel would ignore it; this layer wraps the routes
//! themselves.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use http::{HeaderMap, Request, Response};
use tonic::Status;
use tonic::body::Body;
use tower::{Layer, Service};

use crate::status::{Problem, Reason};

/// The timeout of a call without `grpc-timeout`: every call has a deadline.
pub const DEFAULT: Duration = Duration::from_secs(30);

/// The maximum timeout; a longer `grpc-timeout` is clamped to it.
pub const MAX_TIMEOUT: Duration = Duration::from_secs(60);

const HEADER: &str = "grpc-timeout";
const MAX_DIGITS: usize = 8;

tokio::task_local! {
    static DEADLINE: Instant;
}

/// The deadline of the call that this task handles.
pub fn current() -> Option<Instant> {
    DEADLINE.try_with(|deadline| *deadline).ok()
}

/// Runs a call with that deadline, which it can read with [`current`].
pub async fn within<F: Future>(deadline: Instant, call: F) -> F::Output {
    DEADLINE.scope(deadline, call).await
}

/// The timeout in `grpc-timeout` (gRPC over HTTP/2, "Timeout"), at most [`MAX_TIMEOUT`]; `None` when the header is absent or
/// malformed.
pub fn budget(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(HEADER)?.to_str().ok()?;
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let well_formed =
        (1..=MAX_DIGITS).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    if !well_formed {
        return None;
    }
    let amount: u64 = digits.parse().ok()?;
    let timeout = match unit {
        "H" => Some(Duration::from_secs(amount * 3_600)),
        "M" => Some(Duration::from_secs(amount * 60)),
        "S" => Some(Duration::from_secs(amount)),
        "m" => Some(Duration::from_millis(amount)),
        "u" => Some(Duration::from_micros(amount)),
        "n" => Some(Duration::from_nanos(amount)),
        _ => None,
    };
    timeout.map(|timeout| timeout.min(MAX_TIMEOUT))
}

/// Wraps a service in [`Deadline`].
#[derive(Debug, Clone, Copy, Default)]
pub struct DeadlineLayer;

impl<S> Layer<S> for DeadlineLayer {
    type Service = Deadline<S>;

    fn layer(&self, inner: S) -> Deadline<S> {
        Deadline { inner }
    }
}

/// Responds with DEADLINE_EXCEEDED when the inner service takes longer than the timeout of the call.
#[derive(Debug, Clone)]
pub struct Deadline<S> {
    inner: S,
}

type BoxedFuture<T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send>>;

impl<S, B> Service<Request<B>> for Deadline<S>
where
    S: Service<Request<B>, Response = Response<axum::body::Body>>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
{
    type Response = Response<axum::body::Body>;
    type Error = S::Error;
    type Future = BoxedFuture<Self::Response, S::Error>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let deadline = Instant::now() + budget(request.headers()).unwrap_or(DEFAULT);
        let response = self.inner.call(request);
        Box::pin(async move {
            match tokio::time::timeout_at(deadline.into(), within(deadline, response)).await {
                Ok(response) => response,
                Err(_elapsed) => Ok(exceeded()),
            }
        })
    }
}

fn exceeded() -> Response<axum::body::Body> {
    let status =
        Status::from(Problem::new(Reason::DeadlineExceeded, "the time for this call ran out; try again"));
    status.into_http::<Body>().map(axum::body::Body::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_of_the_grpc_timeout_is_read() {
        let read = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(HEADER, text.parse().unwrap());
            budget(&headers)
        };
        assert_eq!(read("1M"), Some(Duration::from_secs(60)));
        assert_eq!(read("4S"), Some(Duration::from_secs(4)));
        assert_eq!(read("5m"), Some(Duration::from_millis(5)));
        assert_eq!(read("6u"), Some(Duration::from_micros(6)));
        assert_eq!(read("99999999n"), Some(Duration::from_nanos(99_999_999)));
        for long in ["1H", "99999999H", "2M", "61S", "60001m"] {
            assert_eq!(read(long), Some(MAX_TIMEOUT), "{long}");
        }
        for odd in ["", "S", "100000000S", "-1S", "1", "1x", "1é"] {
            assert_eq!(read(odd), None, "{odd}");
        }
    }
}
