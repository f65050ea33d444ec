//! What a request holds while it is worked on, and gives back for as long as it waits: for the rest of its body, or for
//! something to happen. Otherwise a few callers who send slowly would keep everybody out.

use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use http::Extensions;
use http_body::{Frame, SizeHint};

/// Something that counts while its request is worked on.
pub(crate) trait Held: Send + Sync + 'static {
    /// Whether the request waits now. Whoever waited goes on without being asked again: it was let in before, and what has
    /// been read is not thrown away.
    fn set_waiting(&self, waits: bool);
}

/// All that a request holds, for its handler; in the request's extensions. It keeps nothing alive: a handler may keep the
/// head of its request for as long as a stream lasts.
#[derive(Clone, Default)]
pub(crate) struct Holdings(Vec<Weak<dyn Held>>);

impl Holdings {
    /// Notes what a request holds from now on.
    pub(crate) fn note<H: Held>(request: &mut Extensions, held: &Arc<H>) {
        let held: Weak<H> = Arc::downgrade(held);
        request.get_or_insert_default::<Self>().0.push(held);
    }

    /// Gives back what a request holds, until the answer is dropped.
    pub(crate) fn let_go(request: &Extensions) -> Away {
        let away = Away(request.get::<Self>().cloned().unwrap_or_default());
        away.set_waiting(true);
        away
    }
}

/// A request that waits for something to happen.
#[must_use = "the request holds everything again when this is dropped"]
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

/// The body of a request that holds this, and does not while more of the body is awaited.
pub(crate) fn counted<H: Held>(held: &Arc<H>, body: Body) -> Body {
    if body.is_end_stream() { body } else { Body::new(Counted { body, held: Arc::downgrade(held) }) }
}

/// A body that tells whether its request waits for it.
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
