//! The requests in flight on a connection, for its timeouts.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::time::Instant;

/// How many requests have started, how many are in flight, and when the last one ended.
#[derive(Debug)]
pub(super) struct Activity {
    created_at: Instant,
    started: AtomicUsize,
    in_flight: AtomicUsize,
    /// Milliseconds after `created_at`.
    idle_since: AtomicU64,
    /// Responses with data that the client has not taken yet, by request id, and since when it is available.
    available_since: Mutex<foldhash::HashMap<usize, Instant>>,
}

impl Activity {
    pub(super) fn new() -> Self {
        Self {
            created_at: Instant::now(),
            started: AtomicUsize::new(0),
            in_flight: AtomicUsize::new(0),
            idle_since: AtomicU64::new(0),
            available_since: Mutex::default(),
        }
    }

    /// Registers a request, which is in flight until the guard is dropped with the response body.
    pub(super) fn begin(self: &Arc<Self>) -> InFlightGuard {
        let id = self.started.fetch_add(1, Ordering::Relaxed);
        self.in_flight.fetch_add(1, Ordering::AcqRel);
        InFlightGuard { activity: Arc::clone(self), id, is_available: false }
    }

    fn available_since(&self) -> MutexGuard<'_, foldhash::HashMap<usize, Instant>> {
        self.available_since.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Resolves when the client has taken no data of a response for that long. A response without data does not count.
    pub(super) async fn stalled_for(&self, timeout: Option<Duration>) {
        let Some(timeout) = timeout else { return std::future::pending().await };
        loop {
            let oldest = self.available_since().values().min().copied();
            let now = Instant::now();
            let end = oldest.unwrap_or(now) + timeout;
            if end <= now {
                return;
            }
            tokio::time::sleep_until(end).await;
        }
    }

    /// How many requests have started so far.
    pub(super) fn started(&self) -> usize {
        self.started.load(Ordering::Relaxed)
    }

    pub(super) fn is_idle(&self) -> bool {
        self.in_flight.load(Ordering::Acquire) == 0
    }

    /// Resolves when no request has been in flight for that long.
    pub(super) async fn idle_for(&self, timeout: Duration) {
        loop {
            let since = self.created_at + Duration::from_millis(self.idle_since.load(Ordering::Acquire));
            let (end, now) = (since + timeout, Instant::now());
            if !self.is_idle() {
                tokio::time::sleep(timeout).await;
            } else if end <= now {
                return;
            } else {
                tokio::time::sleep_until(end).await;
            }
        }
    }
}

/// A request in flight.
#[derive(Debug)]
pub(super) struct InFlightGuard {
    activity: Arc<Activity>,
    id: usize,
    is_available: bool,
}

impl InFlightGuard {
    /// The response has data to be sent.
    fn set_available(&mut self) {
        self.is_available = true;
        self.activity.available_since().insert(self.id, Instant::now());
    }

    /// The client has taken data.
    fn clear_available(&mut self) {
        if std::mem::take(&mut self.is_available) {
            self.activity.available_since().remove(&self.id);
        }
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.clear_available();
        let now = u64::try_from(self.activity.created_at.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.activity.idle_since.fetch_max(now, Ordering::AcqRel);
        self.activity.in_flight.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The body of a response. Its request is in flight until it is dropped.
#[derive(Debug)]
pub(super) struct ResponseBody {
    inner: Body,
    in_flight: InFlightGuard,
    /// With the stream write timeout of HTTP/2: the maximum size of a frame. hyper buffers a frame until the client's flow
    /// control window has room for it, so a large one would hide whether the client takes data. HTTP/1 has one response at a
    /// time, and its writes have a timeout of their own.
    max_frame: Option<usize>,
    rest: Option<Bytes>,
}

impl ResponseBody {
    pub(super) fn new(inner: Body, in_flight: InFlightGuard, max_frame: Option<usize>) -> Self {
        let mut body = Self { inner, in_flight, max_frame, rest: None };
        body.update_available();
        body
    }

    fn update_available(&mut self) {
        if self.max_frame.is_some() && !http_body::Body::is_end_stream(self) {
            self.in_flight.set_available();
        }
    }

    /// Splits a frame that is too large, and keeps the rest for the next poll.
    fn split(&mut self, frame: Frame<Bytes>) -> Frame<Bytes> {
        let Some(max) = self.max_frame else { return frame };
        match frame.into_data() {
            Ok(mut data) if data.len() > max => {
                let part = data.split_to(max);
                self.rest = Some(data);
                Frame::data(part)
            }
            Ok(data) => Frame::data(data),
            Err(trailers) => trailers,
        }
    }
}

impl http_body::Body for ResponseBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.in_flight.clear_available();
        let frame = match self.rest.take() {
            Some(rest) => Frame::data(rest),
            None => match ready!(http_body::Body::poll_frame(Pin::new(&mut self.inner), context)) {
                Some(Ok(frame)) => frame,
                ended => return Poll::Ready(ended),
            },
        };
        let frame = self.split(frame);
        self.update_available();
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_none() && http_body::Body::is_end_stream(&self.inner)
    }

    fn size_hint(&self) -> SizeHint {
        let mut hint = http_body::Body::size_hint(&self.inner);
        let rest = self.rest.as_ref().map_or(0, |rest| u64::try_from(rest.len()).unwrap_or(u64::MAX));
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper.saturating_add(rest));
        }
        hint.set_lower(hint.lower().saturating_add(rest));
        hint
    }
}
