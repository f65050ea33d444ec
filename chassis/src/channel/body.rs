//! The body of a call that may be sent twice.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use futures::task::noop_waker_ref;
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::Full;
use tonic::Status;
use tonic::body::Body;

use super::MAX_MESSAGE_BYTES;

/// What is kept of a body, in order to send it again.
const MOST_KEPT: usize = MAX_MESSAGE_BYTES + 64 * 1024;

/// The body of a call, as far as it is there at once. A generated client has all of a message at hand; what arrives bit by
/// bit, as an upload does, is not waited for.
#[derive(Debug)]
pub(super) enum Sendable {
    /// All of it.
    Whole(Bytes),
    /// Its beginning, and what is to come.
    Begun(Begun),
}

/// A body whose beginning has been taken.
#[derive(Debug)]
pub(super) struct Begun {
    taken: VecDeque<Frame<Bytes>>,
    rest: Body,
}

impl Sendable {
    /// # Errors
    /// When whoever makes the body cannot.
    pub(super) fn of(mut body: Body) -> Result<Self, Status> {
        let mut taken = VecDeque::new();
        let mut length = 0_usize;
        let mut context = Context::from_waker(noop_waker_ref());
        while length <= MOST_KEPT {
            match Pin::new(&mut body).poll_frame(&mut context) {
                Poll::Ready(Some(Ok(frame))) => {
                    length = length.saturating_add(frame.data_ref().map_or(0, Bytes::len));
                    let is_data = frame.is_data();
                    taken.push_back(frame);
                    if !is_data {
                        break;
                    }
                }
                Poll::Ready(Some(Err(error))) => return Err(error),
                Poll::Ready(None) => return Ok(Self::Whole(joined(taken, length))),
                Poll::Pending => break,
            }
        }
        Ok(Self::Begun(Begun { taken, rest: body }))
    }
}

/// The same bytes, as a body.
pub(super) fn whole(bytes: &Bytes) -> Body {
    Body::new(Full::new(bytes.clone()))
}

fn joined(frames: VecDeque<Frame<Bytes>>, length: usize) -> Bytes {
    let mut parts: VecDeque<Bytes> = frames.into_iter().filter_map(|frame| frame.into_data().ok()).collect();
    if parts.len() <= 1 {
        return parts.pop_front().unwrap_or_default();
    }
    let mut all = BytesMut::with_capacity(length);
    for part in parts {
        all.extend_from_slice(&part);
    }
    all.freeze()
}

impl http_body::Body for Begun {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        match self.taken.pop_front() {
            Some(frame) => Poll::Ready(Some(Ok(frame))),
            None => Pin::new(&mut self.rest).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.taken.is_empty() && self.rest.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        if self.taken.is_empty() { self.rest.size_hint() } else { SizeHint::default() }
    }
}

#[cfg(test)]
mod tests {
    use futures::{StreamExt as _, stream};
    use http_body_util::{BodyExt as _, StreamBody};

    use super::*;

    fn data(text: &'static str) -> Result<Frame<Bytes>, Status> {
        Ok(Frame::data(Bytes::from_static(text.as_bytes())))
    }

    #[tokio::test]
    async fn what_is_at_hand_may_be_sent_twice() {
        for (frames, all) in [(vec![], ""), (vec!["one"], "one"), (vec!["one", " two"], "one two")] {
            let body = Body::new(StreamBody::new(stream::iter(frames.into_iter().map(data))));
            let Sendable::Whole(bytes) = Sendable::of(body).unwrap() else { panic!("all of it is there") };
            assert_eq!(bytes, all);
            for _ in 0..2 {
                assert_eq!(whole(&bytes).collect().await.unwrap().to_bytes(), all);
            }
        }
    }

    #[tokio::test]
    async fn what_comes_later_is_sent_as_it_comes() {
        let later = stream::once(async {
            tokio::task::yield_now().await;
            data(" later")
        });
        let body = Body::new(StreamBody::new(stream::iter([data("now")]).chain(later)));
        let Sendable::Begun(begun) = Sendable::of(body).unwrap() else { panic!("not all of it is there") };
        assert!(!begun.is_end_stream());
        assert_eq!(Body::new(begun).collect().await.unwrap().to_bytes(), "now later");
    }

    #[test]
    fn a_body_that_cannot_be_made_is_not_sent() {
        let failing = stream::iter([data("half"), Err(Status::internal("it cannot be encoded"))]);
        let refused = Sendable::of(Body::new(StreamBody::new(failing))).unwrap_err();
        assert_eq!(refused.message(), "it cannot be encoded");
    }
}
