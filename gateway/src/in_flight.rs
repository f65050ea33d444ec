//! Concurrency limit of this process. A request above the limit is rejected before any work begins: queueing would
//! answer all of them late. Probes and metrics are exempt, and a request does not count while it is suspended
//! ([`crate::suspension`]).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use cairn_chassis::status::Problem;
use metrics::Gauge;

use crate::suspension::Suspendable;

/// `Retry-After` of a rejected request.
const BUSY: Duration = Duration::from_secs(1);
const IN_FLIGHT: &str = "cairn_requests_in_flight";
/// Requests rejected with 503, by the bound they hit; [`crate::admission`] counts the rest.
pub(crate) const REFUSED: &str = "cairn_requests_refused_total";

/// The requests in flight.
#[derive(Debug)]
pub(crate) struct InFlight {
    limit: usize,
    count: AtomicUsize,
    /// Gauge of the same number.
    gauge: Gauge,
}

/// A permit of the concurrency limit; it counts until dropped, except while its request is suspended.
#[derive(Debug)]
pub(crate) struct Permit {
    in_flight: Arc<InFlight>,
    suspended: AtomicBool,
}

impl InFlight {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, count: AtomicUsize::new(0), gauge: metrics::gauge!(IN_FLIGHT) }
    }

    /// Acquires a permit.
    ///
    /// # Errors
    /// When the limit is reached.
    pub(crate) fn acquire(self: &Arc<Self>) -> Result<Arc<Permit>, Problem> {
        if self.begin() >= self.limit {
            self.end();
            metrics::counter!(REFUSED, "bound" => "requests").increment(1);
            return Err(Problem::unavailable("too many requests are under way here; try again", BUSY));
        }
        Ok(Arc::new(Permit { in_flight: Arc::clone(self), suspended: AtomicBool::new(false) }))
    }

    /// Increments the count and returns the previous one.
    fn begin(&self) -> usize {
        self.gauge.increment(1.0);
        self.count.fetch_add(1, Ordering::AcqRel)
    }

    fn end(&self) {
        self.gauge.decrement(1.0);
        self.count.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Suspendable for Permit {
    fn set_suspended(&self, suspended: bool) {
        match (self.suspended.swap(suspended, Ordering::AcqRel), suspended) {
            (false, true) => self.in_flight.end(),
            (true, false) => {
                self.in_flight.begin();
            }
            (true, true) | (false, false) => {}
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.set_suspended(true);
    }
}

#[cfg(test)]
mod tests {
    use axum::body::{Body, Bytes};
    use cairn_chassis::status::Reason;
    use futures::{StreamExt as _, stream};
    use http_body_util::BodyExt as _;

    use super::*;
    use crate::suspension;

    #[test]
    fn one_too_many_is_refused_until_another_ends() {
        let in_flight = Arc::new(InFlight::new(2));
        let (first, _second) = (in_flight.acquire().unwrap(), in_flight.acquire().unwrap());
        let refused = in_flight.acquire().unwrap_err();
        assert_eq!((refused.reason, refused.retry_after), (Reason::Unavailable, Some(BUSY)));
        drop(first);
        in_flight.acquire().unwrap();
    }

    #[tokio::test]
    async fn who_sends_slowly_keeps_nobody_out() {
        let in_flight = Arc::new(InFlight::new(1));
        let slow = in_flight.acquire().unwrap();
        let (sender, parts) = tokio::sync::mpsc::channel::<Bytes>(1);
        let parts = stream::unfold(parts, |mut parts| async move { Some((parts.recv().await?, parts)) });
        let mut body = suspension::track_body(&slow, Body::from_stream(parts.map(Ok::<_, std::io::Error>)));
        assert!(in_flight.acquire().is_err(), "it works");
        assert!(futures::poll!(body.frame()).is_pending());
        let other = in_flight.acquire().unwrap();
        sender.send(Bytes::from_static(b"all")).await.unwrap();
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "all");
        drop(other);
        assert!(in_flight.acquire().is_err(), "it works again");
        drop(sender);
        assert!(body.frame().await.is_none());
        drop((slow, body));
        in_flight.acquire().unwrap();
        assert_eq!(in_flight.count.load(Ordering::Acquire), 0);
    }
}
