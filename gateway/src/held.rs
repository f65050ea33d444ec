//! Permits that a request releases while it is suspended: while it waits for the rest of its body, or for an event.
//! Otherwise a few slow senders would exhaust the limits.

use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use http::Extensions;
use http_body::{Frame, SizeHint};

/// A permit that can be released while its request is suspended.
pub(crate) trait Held: Send + Sync + 'static {
    /// Releases the permit (`true`) or takes it back (`false`). A resumed request takes it back without queueing
    /// again, even above the limit: it was admitted before, and the work done so far is not thrown away.
    fn set_waiting(&self, waits: bool);
}

/// All permits of a request, kept in its extensions. References are weak: a handler may keep the request head for as
/// long as a stream lasts.
#[derive(Clone, Default)]
pub(crate) struct Holdings(Vec<Weak<dyn Held>>);

impl Holdings {
    /// Adds a permit to the request.
    pub(crate) fn note<H: Held>(request: &mut Extensions, held: &Arc<H>) {
        let held: Weak<H> = Arc::downgrade(held);
        request.get_or_insert_default::<Self>().0.push(held);
    }

    /// Releases the request's permits until the returned guard is dropped.
    pub(crate) fn let_go(request: &Extensions) -> Away {
        let away = Away(request.get::<Self>().cloned().unwrap_or_default());
        away.set_waiting(true);
        away
    }
}

/// Guard of a suspended request.
#[must_use = "dropping this takes the permits back"]
pub(crate) struct Away(Holdings);

impl Away {
    fn set_waiting(&self, waits: bool) {
        self.0.0.iter().filter_map(Weak::upgrade).for_each(|held| held.set_waiting(waits));
    }
}

impl Drop for Away {
    fn drop(&mut self) {
        self.set_waiting(false);
    }
}

/// Wraps a body so that the permit is released while the next frame is pending.
pub(crate) fn counted<H: Held>(held: &Arc<H>, body: Body) -> Body {
    if body.is_end_stream() { body } else { Body::new(Counted { body, held: Arc::downgrade(held) }) }
}

/// A body that reports whether its request waits for it.
struct Counted<H: Held> {
    body: Body,
    held: Weak<H>,
}

impl<H: Held> Counted<H> {
    fn set_waiting(&self, waits: bool) {
        if let Some(held) = self.held.upgrade() {
            held.set_waiting(waits);
        }
    }
}

impl<H: Held> HttpBody for Counted<H> {
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

impl<H: Held> Drop for Counted<H> {
    fn drop(&mut self) {
        self.set_waiting(false);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[derive(Default)]
    struct Place(AtomicBool);

    impl Held for Place {
        fn set_waiting(&self, waits: bool) {
            self.0.store(waits, Ordering::Release);
        }
    }

    #[test]
    fn what_a_handler_lets_go_it_holds_again() {
        let (place, mut request) = (Arc::new(Place::default()), Extensions::new());
        Holdings::note(&mut request, &place);
        let away = Holdings::let_go(&request);
        assert!(place.0.load(Ordering::Acquire));
        drop(away);
        assert!(!place.0.load(Ordering::Acquire));
        let kept = request.clone();
        assert!(Arc::try_unwrap(place).is_ok(), "a head that is kept keeps no place");
        drop(Holdings::let_go(&kept));
        drop(Holdings::let_go(&Extensions::new()));
    }
}
