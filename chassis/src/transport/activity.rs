//! Which requests a connection has under way.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
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
    /// Answers of which more could be sent, by our own numbers, and since when nobody has taken it.
    offers: Mutex<foldhash::HashMap<usize, Instant>>,
}

impl Activity {
    pub(super) fn new() -> Self {
        Self {
            start: Instant::now(),
            begun: AtomicUsize::new(0),
            under_way: AtomicUsize::new(0),
            rests_since: AtomicU64::new(0),
            offers: Mutex::default(),
        }
    }

    /// A request begins; it is under way until what is answered is dropped.
    pub(super) fn begin(self: &Arc<Self>) -> UnderWay {
        let id = self.begun.fetch_add(1, Ordering::Relaxed);
        self.under_way.fetch_add(1, Ordering::AcqRel);
        UnderWay { activity: Arc::clone(self), id, is_offered: false }
    }

    fn offers(&self) -> MutexGuard<'_, foldhash::HashMap<usize, Instant>> {
        self.offers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends when the caller has taken nothing of an answer for so long. An answer that has nothing to say is not offered.
    pub(super) async fn stalls_for(&self, patience: Option<Duration>) {
        let Some(patience) = patience else { return std::future::pending().await };
        loop {
            let oldest = self.offers().values().min().copied();
            let now = Instant::now();
            let end = oldest.unwrap_or(now) + patience;
            if end <= now {
                return;
            }
            tokio::time::sleep_until(end).await;
        }
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
pub(super) struct UnderWay {
    activity: Arc<Activity>,
    id: usize,
    is_offered: bool,
}

impl UnderWay {
    /// There is something to send.
    fn offered(&mut self) {
        self.is_offered = true;
        self.activity.offers().insert(self.id, Instant::now());
    }

    /// What was offered has been taken.
    fn taken(&mut self) {
        if std::mem::take(&mut self.is_offered) {
            self.activity.offers().remove(&self.id);
        }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.taken();
        let now = u64::try_from(self.activity.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.activity.rests_since.fetch_max(now, Ordering::AcqRel);
        self.activity.under_way.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The body of an answer; its request is under way while it is.
#[derive(Debug)]
pub(super) struct Counted {
    inner: Body,
    under_way: UnderWay,
    /// Over HTTP/2, where that is watched: how much is handed over at once. What is handed over waits out of sight until
    /// the caller has room; what is not, is offered. HTTP/1 has one answer at a time, whose bytes are watched instead.
    part: Option<usize>,
    rest: Option<Bytes>,
}

impl Counted {
    pub(super) fn new(inner: Body, under_way: UnderWay, part: Option<usize>) -> Self {
        let mut body = Self { inner, under_way, part, rest: None };
        body.offer();
        body
    }

    fn offer(&mut self) {
        if self.part.is_some() && !http_body::Body::is_end_stream(self) {
            self.under_way.offered();
        }
    }

    /// The first part of what comes; the rest is kept for later.
    fn cut(&mut self, frame: Frame<Bytes>) -> Frame<Bytes> {
        let Some(most) = self.part else { return frame };
        match frame.into_data() {
            Ok(mut data) if data.len() > most => {
                let part = data.split_to(most);
                self.rest = Some(data);
                Frame::data(part)
            }
            Ok(data) => Frame::data(data),
            Err(trailers) => trailers,
        }
    }
}

impl http_body::Body for Counted {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.under_way.taken();
        let frame = match self.rest.take() {
            Some(rest) => Frame::data(rest),
            None => match ready!(http_body::Body::poll_frame(Pin::new(&mut self.inner), context)) {
                Some(Ok(frame)) => frame,
                ended => return Poll::Ready(ended),
            },
        };
        let frame = self.cut(frame);
        self.offer();
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
