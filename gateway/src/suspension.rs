//! Permits that a request releases while it is suspended: while it waits for the rest of its body, or for an event.
//! Otherwise a few slow senders would exhaust the limits.

use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use http::Extensions;
use http_body::{Frame, SizeHint};

/// A permit that can be released while its request is suspended.
pub(crate) trait Suspendable: Send + Sync + 'static {
    /// Releases the permit (`true`) or takes it back (`false`). A resumed request takes it back without queueing
    /// again, even above the limit: it was admitted before, and the work done so far is not thrown away.
    fn set_suspended(&self, suspended: bool);
}

/// All permits of a request, kept in its extensions. References are weak: a handler may keep the request head for as
/// long as a stream lasts.
#[derive(Clone, Default)]
pub(crate) struct Permits(Vec<Weak<dyn Suspendable>>);

impl Permits {
    /// Adds a permit to the request.
    pub(crate) fn add<H: Suspendable>(request: &mut Extensions, permit: &Arc<H>) {
        let permit: Weak<H> = Arc::downgrade(permit);
        request.get_or_insert_default::<Self>().0.push(permit);
    }

    /// Releases the request's permits until the returned guard is dropped.
    pub(crate) fn suspend(request: &Extensions) -> Suspended {
        let suspended = Suspended(request.get::<Self>().cloned().unwrap_or_default());
        suspended.set_suspended(true);
        suspended
    }
}

/// Guard of a suspended request.
#[must_use = "dropping this takes the permits back"]
pub(crate) struct Suspended(Permits);

impl Suspended {
    fn set_suspended(&self, suspended: bool) {
        self.0.0.iter().filter_map(Weak::upgrade).for_each(|permit| permit.set_suspended(suspended));
    }
}

impl Drop for Suspended {
    fn drop(&mut self) {
        self.set_suspended(false);
    }
}

/// Wraps a body so that the permit is released while the next frame is pending.
pub(crate) fn track_body<H: Suspendable>(permit: &Arc<H>, body: Body) -> Body {
    if body.is_end_stream() { body } else { Body::new(TrackedBody { body, permit: Arc::downgrade(permit) }) }
}

/// A body that reports whether its request waits for it.
struct TrackedBody<H: Suspendable> {
    body: Body,
    permit: Weak<H>,
}

impl<H: Suspendable> TrackedBody<H> {
    fn set_suspended(&self, suspended: bool) {
        if let Some(permit) = self.permit.upgrade() {
            permit.set_suspended(suspended);
        }
    }
}

impl<H: Suspendable> HttpBody for TrackedBody<H> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        self.set_suspended(frame.is_pending());
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<H: Suspendable> Drop for TrackedBody<H> {
    fn drop(&mut self) {
        self.set_suspended(false);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[derive(Default)]
    struct TestPermit(AtomicBool);

    impl Suspendable for TestPermit {
        fn set_suspended(&self, suspended: bool) {
            self.0.store(suspended, Ordering::Release);
        }
    }

    #[test]
    fn what_a_handler_lets_go_it_holds_again() {
        let (place, mut request) = (Arc::new(TestPermit::default()), Extensions::new());
        Permits::add(&mut request, &place);
        let suspended = Permits::suspend(&request);
        assert!(place.0.load(Ordering::Acquire));
        drop(suspended);
        assert!(!place.0.load(Ordering::Acquire));
        let kept = request.clone();
        assert!(Arc::try_unwrap(place).is_ok(), "a head that is kept keeps no place");
        drop(Permits::suspend(&kept));
        drop(Permits::suspend(&Extensions::new()));
    }
}
