//! The body of a request, with a read timeout.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use super::timeout::Timeout;

/// Fails when a handler waits for the next frame for longer than the timeout.
#[derive(Debug)]
pub(super) struct RequestBody {
    inner: Incoming,
    timeout: Timeout,
}

impl RequestBody {
    pub(super) const fn new(inner: Incoming, timeout: Duration) -> Self {
        Self { inner, timeout: Timeout::new(timeout) }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        match Pin::new(&mut self.inner).poll_frame(context) {
            Poll::Ready(frame) => {
                self.timeout.stop();
                Poll::Ready(frame.map(|frame| frame.map_err(axum::Error::new)))
            }
            Poll::Pending => {
                self.timeout.start();
                let elapsed = self.timeout.poll(context, "the body of the request did not come in time");
                elapsed.map(|error| Some(Err(axum::Error::new(error))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
