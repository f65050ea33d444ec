//! Which requests a connection has under way.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::time::Instant;

/// How many requests have begun, how many are under way, and when the last one ended.
#[derive(Debug)]
pub(super) struct Activity {
    start: Instant,
    begun: AtomicUsize,
    under_way: AtomicUsize,
    /// Milliseconds since the start.
    rests_since: AtomicU64,
}

impl Activity {
    pub(super) fn new() -> Self {
        Self {
            start: Instant::now(),
            begun: AtomicUsize::new(0),
            under_way: AtomicUsize::new(0),
            rests_since: AtomicU64::new(0),
        }
    }

    /// A request begins; it is under way until what is answered is dropped.
    pub(super) fn begin(self: &Arc<Self>) -> UnderWay {
        self.begun.fetch_add(1, Ordering::Relaxed);
        self.under_way.fetch_add(1, Ordering::AcqRel);
        UnderWay(Arc::clone(self))
    }

    pub(super) fn begun(&self) -> usize {
        self.begun.load(Ordering::Relaxed)
    }

    pub(super) fn is_resting(&self) -> bool {
        self.under_way.load(Ordering::Acquire) == 0
    }

    /// Ends when no request has been under way for so long.
    pub(super) async fn rests_for(&self, patience: Duration) {
        loop {
            let since = self.start + Duration::from_millis(self.rests_since.load(Ordering::Acquire));
            let (end, now) = (since + patience, Instant::now());
            if !self.is_resting() {
                tokio::time::sleep(patience).await;
            } else if end <= now {
                return;
            } else {
                tokio::time::sleep_until(end).await;
            }
        }
    }
}

/// A request that is under way.
#[derive(Debug)]
pub(super) struct UnderWay(Arc<Activity>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        let now = u64::try_from(self.0.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.0.rests_since.fetch_max(now, Ordering::AcqRel);
        self.0.under_way.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The body of an answer; its request is under way while it is.
#[derive(Debug)]
pub(super) struct Counted {
    inner: Body,
    _under_way: UnderWay,
}

impl Counted {
    pub(super) fn new(inner: Body, under_way: UnderWay) -> Self {
        Self { inner, _under_way: under_way }
    }
}

impl http_body::Body for Counted {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        http_body::Body::poll_frame(Pin::new(&mut self.inner), context)
    }

    fn is_end_stream(&self) -> bool {
        http_body::Body::is_end_stream(&self.inner)
    }

    fn size_hint(&self) -> SizeHint {
        http_body::Body::size_hint(&self.inner)
    }
}
