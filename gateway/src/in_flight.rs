//! How many requests this process works on at once. One that is too many is refused before any work begins: a queue would
//! answer all of them late. Probes and metrics are not counted, and a request is not while its body is awaited: otherwise a
//! few callers who send slowly would keep everybody out.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use cairn_chassis::status::Problem;
use http_body::{Frame, SizeHint};

/// When a caller may come again that was one too many.
const BUSY: Duration = Duration::from_secs(1);
const IN_FLIGHT: &str = "cairn_requests_in_flight";
const REFUSED: &str = "cairn_requests_refused_total";

/// The requests under way.
#[derive(Debug)]
pub(crate) struct InFlight {
    most: usize,
    under_way: AtomicUsize,
}

/// A request that was taken in; it counts until this is dropped, but for when it waits.
#[derive(Debug)]
pub(crate) struct Taken {
    in_flight: Arc<InFlight>,
    waits: AtomicBool,
}

impl InFlight {
    pub(crate) fn new(most: usize) -> Self {
        Self { most, under_way: AtomicUsize::new(0) }
    }

    /// Takes a request in.
    ///
    /// # Errors
    /// When too many are under way.
    pub(crate) fn take(self: &Arc<Self>) -> Result<Arc<Taken>, Problem> {
        if self.begin() >= self.most {
            self.end();
            metrics::counter!(REFUSED).increment(1);
            return Err(Problem::unavailable("too many requests are under way here; try again", BUSY));
        }
        Ok(Arc::new(Taken { in_flight: Arc::clone(self), waits: AtomicBool::new(false) }))
    }

    /// One more; answers how many there were before.
    fn begin(&self) -> usize {
        metrics::gauge!(IN_FLIGHT).increment(1.0);
        self.under_way.fetch_add(1, Ordering::AcqRel)
    }

    fn end(&self) {
        metrics::gauge!(IN_FLIGHT).decrement(1.0);
        self.under_way.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Taken {
    /// The body of this request, which does not count while more of it is awaited.
    pub(crate) fn counted(self: &Arc<Self>, body: Body) -> Body {
        if body.is_end_stream() { body } else { Body::new(Counted { body, taken: Arc::downgrade(self) }) }
    }

    fn set_waiting(&self, waits: bool) {
        match (self.waits.swap(waits, Ordering::AcqRel), waits) {
            (false, true) => self.in_flight.end(),
            // It was let in before: what has been read is not thrown away.
            (true, false) => {
                self.in_flight.begin();
            }
            (true, true) | (false, false) => {}
        }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.set_waiting(true);
    }
}

/// A body that tells whether its request waits for it.
#[derive(Debug)]
struct Counted {
    body: Body,
    taken: Weak<Taken>,
}

impl Counted {
    fn set_waiting(&self, waits: bool) {
        if let Some(taken) = self.taken.upgrade() {
            taken.set_waiting(waits);
        }
    }
}

impl HttpBody for Counted {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        self.set_waiting(frame.is_pending());
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.set_waiting(false);
    }
}

#[cfg(test)]
mod tests {
    use cairn_chassis::status::Reason;
    use futures::{StreamExt as _, stream};
    use http_body_util::BodyExt as _;

    use super::*;

    #[test]
    fn one_too_many_is_refused_until_another_ends() {
        let in_flight = Arc::new(InFlight::new(2));
        let (first, _second) = (in_flight.take().unwrap(), in_flight.take().unwrap());
        let refused = in_flight.take().unwrap_err();
        assert_eq!((refused.reason, refused.retry_after), (Reason::Unavailable, Some(BUSY)));
        drop(first);
        in_flight.take().unwrap();
    }

    #[tokio::test]
    async fn who_sends_slowly_keeps_nobody_out() {
        let in_flight = Arc::new(InFlight::new(1));
        let slow = in_flight.take().unwrap();
        let (sender, parts) = tokio::sync::mpsc::channel::<Bytes>(1);
        let parts = stream::unfold(parts, |mut parts| async move { Some((parts.recv().await?, parts)) });
        let mut body = slow.counted(Body::from_stream(parts.map(Ok::<_, std::io::Error>)));
        assert!(in_flight.take().is_err(), "it works");
        assert!(futures::poll!(body.frame()).is_pending());
        let other = in_flight.take().unwrap();
        sender.send(Bytes::from_static(b"all")).await.unwrap();
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "all");
        drop(other);
        assert!(in_flight.take().is_err(), "it works again");
        drop(sender);
        assert!(body.frame().await.is_none());
        drop((slow, body));
        in_flight.take().unwrap();
        assert_eq!(in_flight.under_way.load(Ordering::Acquire), 0);
    }
}
