//! Closes a connection properly whose request was answered before its body was read.
//!
//! On HTTP/1 such a connection cannot be reused: the rest of the body is still in the way. hyper closes it silently,
//! and a client that has already sent its next request on it loses that request. So the response announces
//! `Connection: close` (RFC 9112, section 9.6).

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::response::Response;
use futures::FutureExt as _;
use http::{HeaderValue, Version, header};
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt as _;

/// How much of a rejected body is drained.
const MAX_DISCARDED: usize = 64 * 1024;

/// Tracks whether a request's body was read to its end.
pub(crate) struct Unread {
    /// `None` if there was no body.
    was_read: Option<Arc<AtomicBool>>,
    version: Version,
}

/// Wraps the body of a request to track it.
pub(crate) fn watch(request: Request) -> (Request, Unread) {
    let version = request.version();
    if request.body().is_end_stream() {
        return (request, Unread { was_read: None, version });
    }
    let was_read = Arc::new(AtomicBool::new(false));
    let watched = request.map(|inner| Body::new(Watched { inner, was_read: Arc::clone(&was_read) }));
    (watched, Unread { was_read: Some(was_read), version })
}

/// Drains what has already arrived of a rejected body, without waiting. A small one is complete by now, and its
/// connection can be reused: rejected callers must not have to reconnect each time.
pub(crate) fn discard(mut body: Body) {
    let mut left = MAX_DISCARDED;
    while let Some(Some(Ok(frame))) = body.frame().now_or_never() {
        let length = frame.data_ref().map_or(0, Bytes::len);
        let Some(rest) = left.checked_sub(length) else { return };
        left = rest;
    }
}

impl Unread {
    /// Sets `Connection: close` if the body was not read to its end.
    pub(crate) fn mark(&self, response: &mut Response) {
        let was_read = self.was_read.as_ref().is_none_or(|was_read| was_read.load(Ordering::Acquire));
        if self.version <= Version::HTTP_11 && !was_read {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
    }
}

struct Watched {
    inner: Body,
    was_read: Arc<AtomicBool>,
}

impl HttpBody for Watched {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.inner).poll_frame(context);
        if matches!(polled, Poll::Ready(None)) || self.inner.is_end_stream() {
            self.was_read.store(true, Ordering::Release);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use futures::{StreamExt as _, stream};

    use super::*;

    async fn connection_after(version: Version, body: &'static str, is_read: bool) -> Option<HeaderValue> {
        let mut request = Request::new(Body::from(body));
        *request.version_mut() = version;
        let (request, unread) = watch(request);
        if is_read {
            axum::body::to_bytes(request.into_body(), usize::MAX).await.unwrap();
        }
        let mut response = Response::default();
        unread.mark(&mut response);
        response.headers().get(header::CONNECTION).cloned()
    }

    #[tokio::test]
    async fn a_body_that_is_here_is_taken_and_no_other_is_waited_for() {
        let connection = |body: Body| {
            let (request, unread) = watch(Request::new(body));
            discard(request.into_body());
            let mut response = Response::default();
            unread.mark(&mut response);
            response.headers().get(header::CONNECTION).cloned()
        };
        assert_eq!(connection(Body::from("x")), None);
        assert_eq!(connection(Body::from(vec![0; MAX_DISCARDED])), None);
        let parts = |count: usize| stream::iter((0..count).map(|_| Ok::<_, std::io::Error>(vec![0; 1_024])));
        assert_eq!(connection(Body::from_stream(parts(64))), None);
        assert_eq!(connection(Body::from_stream(parts(66))).unwrap(), "close");
        let slow = parts(1).chain(stream::pending());
        assert_eq!(connection(Body::from_stream(slow)).unwrap(), "close");
    }

    #[tokio::test]
    async fn only_an_unread_body_ends_a_connection_and_only_where_it_is_in_the_way() {
        assert_eq!(connection_after(Version::HTTP_11, "x", false).await.unwrap(), "close");
        assert_eq!(connection_after(Version::HTTP_11, "x", true).await, None);
        assert_eq!(connection_after(Version::HTTP_11, "", false).await, None);
        assert_eq!(connection_after(Version::HTTP_2, "x", false).await, None);
    }
}
