//! How many requests this process works on at once. One that is too many is refused before any work begins: a queue would
//! answer all of them late. Probes, metrics and what is only still being sent are not counted.

use std::sync::Arc;
use std::time::Duration;

use cairn_chassis::status::Problem;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// When a caller may come again that was one too many.
const BUSY: Duration = Duration::from_secs(1);
const IN_FLIGHT: &str = "cairn_requests_in_flight";
const REFUSED: &str = "cairn_requests_refused_total";

/// The requests under way.
#[derive(Debug)]
pub(crate) struct InFlight(Arc<Semaphore>);

/// A request that was taken in; it counts until this is dropped.
#[derive(Debug)]
pub(crate) struct Taken {
    _place: OwnedSemaphorePermit,
}

impl InFlight {
    pub(crate) fn new(most: usize) -> Self {
        Self(Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS))))
    }

    /// Takes a request in.
    ///
    /// # Errors
    /// When too many are under way.
    pub(crate) fn take(&self) -> Result<Taken, Problem> {
        let Ok(place) = Arc::clone(&self.0).try_acquire_owned() else {
            metrics::counter!(REFUSED).increment(1);
            return Err(Problem::unavailable("too many requests are under way here; try again", BUSY));
        };
        metrics::gauge!(IN_FLIGHT).increment(1.0);
        Ok(Taken { _place: place })
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        metrics::gauge!(IN_FLIGHT).decrement(1.0);
    }
}

#[cfg(test)]
mod tests {
    use cairn_chassis::status::Reason;

    use super::*;

    #[test]
    fn one_too_many_is_refused_until_another_ends() {
        let in_flight = InFlight::new(2);
        let (first, _second) = (in_flight.take().unwrap(), in_flight.take().unwrap());
        let refused = in_flight.take().unwrap_err();
        assert_eq!((refused.reason, refused.retry_after), (Reason::Unavailable, Some(BUSY)));
        drop(first);
        in_flight.take().unwrap();
    }
}
