//! The body of a call that may be retried.

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

/// The limit of a buffered body.
const MAX_BUFFERED: usize = MAX_MESSAGE_BYTES + 64 * 1024;

/// The body of a call, read as far as it is available without waiting. A generated client has encoded a unary message
/// completely; a streamed upload is not buffered.
#[derive(Debug)]
pub(super) enum CallBody {
    /// The complete body, which can be sent again.
    Buffered(Bytes),
    /// A body that is not complete yet.
    Streamed(StreamedBody),
}

/// A body of which some frames have been read already.
#[derive(Debug)]
pub(super) struct StreamedBody {
    read: VecDeque<Frame<Bytes>>,
    rest: Body,
}

impl CallBody {
    /// # Errors
    /// When the message cannot be encoded.
    pub(super) fn of(mut body: Body) -> Result<Self, Status> {
        let mut read = VecDeque::new();
        let mut length = 0_usize;
        let mut context = Context::from_waker(noop_waker_ref());
        while length <= MAX_BUFFERED {
            match Pin::new(&mut body).poll_frame(&mut context) {
                Poll::Ready(Some(Ok(frame))) => {
                    length = length.saturating_add(frame.data_ref().map_or(0, Bytes::len));
                    let is_data = frame.is_data();
                    read.push_back(frame);
                    if !is_data {
                        break;
                    }
                }
                Poll::Ready(Some(Err(error))) => return Err(error),
                Poll::Ready(None) => return Ok(Self::Buffered(concat(read, length))),
                Poll::Pending => break,
            }
        }
        Ok(Self::Streamed(StreamedBody { read, rest: body }))
    }
}

/// A body of these bytes.
pub(super) fn full(bytes: &Bytes) -> Body {
    Body::new(Full::new(bytes.clone()))
}

fn concat(frames: VecDeque<Frame<Bytes>>, length: usize) -> Bytes {
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

impl http_body::Body for StreamedBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        match self.read.pop_front() {
            Some(frame) => Poll::Ready(Some(Ok(frame))),
            None => Pin::new(&mut self.rest).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.read.is_empty() && self.rest.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        if self.read.is_empty() { self.rest.size_hint() } else { SizeHint::default() }
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
            let CallBody::Buffered(bytes) = CallBody::of(body).unwrap() else { panic!("it is complete") };
            assert_eq!(bytes, all);
            for _ in 0..2 {
                assert_eq!(full(&bytes).collect().await.unwrap().to_bytes(), all);
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
        let CallBody::Streamed(streamed) = CallBody::of(body).unwrap() else { panic!("it is not complete") };
        assert!(!streamed.is_end_stream());
        assert_eq!(Body::new(streamed).collect().await.unwrap().to_bytes(), "now later");
    }

    #[test]
    fn a_body_that_cannot_be_made_is_not_sent() {
        let failing = stream::iter([data("half"), Err(Status::internal("it cannot be encoded"))]);
        let refused = CallBody::of(Body::new(StreamBody::new(failing))).unwrap_err();
        assert_eq!(refused.message(), "it cannot be encoded");
    }
}
