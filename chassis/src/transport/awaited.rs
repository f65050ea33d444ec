//! The body of a request, which is awaited for so long.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use super::timer::Timer;

/// Fails when nothing of it comes for too long while it is awaited.
#[derive(Debug)]
pub(super) struct Awaited {
    inner: Incoming,
    timer: Timer,
}

impl Awaited {
    pub(super) const fn new(inner: Incoming, patience: Duration) -> Self {
        Self { inner, timer: Timer::new(patience) }
    }
}

impl Body for Awaited {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        match Pin::new(&mut self.inner).poll_frame(context) {
            Poll::Ready(frame) => {
                self.timer.stop();
                Poll::Ready(frame.map(|frame| frame.map_err(axum::Error::new)))
            }
            Poll::Pending => {
                self.timer.start();
                let late = self.timer.poll(context, "the body of the request did not come in time");
                late.map(|error| Some(Err(axum::Error::new(error))))
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
