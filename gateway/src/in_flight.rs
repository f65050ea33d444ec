//! Concurrency limit of this process. A request above the limit is rejected before any work begins: queueing would
//! answer all of them late. Probes and metrics are exempt, and a request does not count while it is suspended
//! ([`crate::held`]).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use cairn_chassis::status::Problem;
use metrics::Gauge;

use crate::held::Held;

/// `Retry-After` of a rejected request.
const BUSY: Duration = Duration::from_secs(1);
const IN_FLIGHT: &str = "cairn_requests_in_flight";
/// Requests rejected with 503, by the bound they hit; [`crate::admission`] counts the rest.
pub(crate) const REFUSED: &str = "cairn_requests_refused_total";

/// The requests in flight.
#[derive(Debug)]
pub(crate) struct InFlight {
    most: usize,
    under_way: AtomicUsize,
    /// Gauge of the same number.
    shown: Gauge,
}

/// A permit of the concurrency limit; it counts until dropped, except while its request is suspended.
#[derive(Debug)]
pub(crate) struct Taken {
    in_flight: Arc<InFlight>,
    waits: AtomicBool,
}

impl InFlight {
    pub(crate) fn new(most: usize) -> Self {
        Self { most, under_way: AtomicUsize::new(0), shown: metrics::gauge!(IN_FLIGHT) }
    }

    /// Acquires a permit.
    ///
    /// # Errors
    /// When the limit is reached.
    pub(crate) fn take(self: &Arc<Self>) -> Result<Arc<Taken>, Problem> {
        if self.begin() >= self.most {
            self.end();
            metrics::counter!(REFUSED, "bound" => "requests").increment(1);
            return Err(Problem::unavailable("too many requests are under way here; try again", BUSY));
        }
        Ok(Arc::new(Taken { in_flight: Arc::clone(self), waits: AtomicBool::new(false) }))
    }

    /// Increments the count and returns the previous one.
    fn begin(&self) -> usize {
        self.shown.increment(1.0);
        self.under_way.fetch_add(1, Ordering::AcqRel)
    }

    fn end(&self) {
        self.shown.decrement(1.0);
        self.under_way.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Held for Taken {
    fn set_waiting(&self, waits: bool) {
        match (self.waits.swap(waits, Ordering::AcqRel), waits) {
            (false, true) => self.in_flight.end(),
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

#[cfg(test)]
mod tests {
    use axum::body::{Body, Bytes};
    use cairn_chassis::status::Reason;
    use futures::{StreamExt as _, stream};
    use http_body_util::BodyExt as _;

    use super::*;
    use crate::held;

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
        let mut body = held::counted(&slow, Body::from_stream(parts.map(Ok::<_, std::io::Error>)));
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
