//! The body of a call, held to what the call may be: how many messages, how long, of how many elements.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use axum::body::Body;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::Status;

use super::scanner::{Scanner, Unfit};
use super::{BUSY, CROWDED};
use crate::contracts::MessageId;
use crate::status::{Problem, Reason, Violation};

/// In front of each message: whether it is compressed, and its length.
const HEADER_BYTES: usize = 5;
/// What every call may weigh without asking, and the size of the shares of which it asks for more.
pub(super) const SHARE_BYTES: usize = 64 * 1024;

/// Who may make a call, and what its messages may be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Allowed {
    /// Anybody may make it, without an identity.
    pub(super) is_open: bool,
    pub(super) message: Option<MessageId>,
    pub(super) bytes: usize,
    pub(super) elements: usize,
    pub(super) is_stream: bool,
}

/// The memory that the bodies of all calls share, and what one call has of it.
#[derive(Debug, Clone)]
pub(super) struct Share {
    pool: Arc<Semaphore>,
    held: Arc<Mutex<Option<OwnedSemaphorePermit>>>,
}

impl Share {
    pub(super) fn of(pool: &Arc<Semaphore>) -> Self {
        Self { pool: Arc::clone(pool), held: Arc::default() }
    }

    /// Takes another share, until the last clone of this is gone.
    fn grow(&self) -> Result<(), Problem> {
        let more =
            Arc::clone(&self.pool).try_acquire_owned().map_err(|_| Problem::unavailable(CROWDED, BUSY))?;
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        match held.as_mut() {
            Some(held) => held.merge(more),
            None => *held = Some(more),
        }
        Ok(())
    }
}

/// A body that ends with an error where it becomes what the call may not be.
#[derive(Debug)]
pub(super) struct Bounded {
    inner: Body,
    allowed: Allowed,
    share: Share,
    /// Bytes of the message that is being read, and how many of them the share covers.
    read: usize,
    covered: usize,
    messages: usize,
    at: At,
    is_over: bool,
}

#[derive(Debug)]
enum At {
    Header([u8; HEADER_BYTES], usize),
    Message { left: usize, scanner: Option<Scanner> },
}

impl At {
    const START: Self = Self::Header([0; HEADER_BYTES], 0);
}

impl Bounded {
    pub(super) fn new(inner: Body, allowed: Allowed, share: Share) -> Self {
        Self {
            inner,
            allowed,
            share,
            read: 0,
            covered: SHARE_BYTES,
            messages: 0,
            at: At::START,
            is_over: false,
        }
    }

    fn check(&mut self, mut bytes: &[u8]) -> Result<(), Problem> {
        while !bytes.is_empty() {
            bytes = match &mut self.at {
                At::Header(header, filled) => {
                    let (read, rest) = bytes.split_at(bytes.len().min(HEADER_BYTES - *filled));
                    for (place, byte) in header.iter_mut().skip(*filled).zip(read) {
                        *place = *byte;
                    }
                    *filled += read.len();
                    if *filled == HEADER_BYTES {
                        let header = *header;
                        self.begin(header)?;
                    }
                    rest
                }
                At::Message { left, scanner } => {
                    let (read, rest) = bytes.split_at(bytes.len().min(*left));
                    if let Some(scanner) = scanner {
                        scanner.feed(read).map_err(|unfit| refused(unfit, self.allowed.elements))?;
                    }
                    *left -= read.len();
                    let has_ended = *left == 0;
                    self.cover(read.len())?;
                    if has_ended {
                        self.at = At::START;
                    }
                    rest
                }
            };
        }
        Ok(())
    }

    fn begin(&mut self, [flag, length @ ..]: [u8; HEADER_BYTES]) -> Result<(), Problem> {
        let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
        if flag != 0 {
            return Err(Problem::unimplemented("messages are not compressed here: send them as they are"));
        }
        self.messages += 1;
        if self.messages > 1 && !self.allowed.is_stream {
            return Err(Problem::validation(vec![Violation::new(
                "body",
                "too_many",
                "this call takes one message",
            )]));
        }
        if length > self.allowed.bytes {
            return Err(Problem::new(
                Reason::PayloadTooLarge,
                format!("the message has {length} bytes; this call takes at most {}", self.allowed.bytes),
            ));
        }
        // Messages of a stream are decoded one after the other: the share covers the longest.
        self.read = 0;
        let scanner =
            self.allowed.message.map(|message| Scanner::new(message, length, self.allowed.elements));
        self.at = if length == 0 { At::START } else { At::Message { left: length, scanner } };
        Ok(())
    }

    /// Takes memory for what has arrived, not for what is announced.
    fn cover(&mut self, bytes: usize) -> Result<(), Problem> {
        self.read += bytes;
        while self.read > self.covered {
            self.share.grow()?;
            self.covered += SHARE_BYTES;
        }
        Ok(())
    }
}

fn refused(unfit: Unfit, most: usize) -> Problem {
    match unfit {
        Unfit::TooMany => Problem::new(
            Reason::PayloadTooLarge,
            format!("the message has more than {most} fields and entries: send fewer in each call"),
        ),
        Unfit::Malformed => Problem::validation(vec![Violation::new(
            "body",
            "invalid",
            "is not an encoded message of this method",
        )]),
    }
}

impl http_body::Body for Bounded {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        let frame = match ready!(http_body::Body::poll_frame(Pin::new(&mut self.inner), context)) {
            None => return Poll::Ready(None),
            Some(Err(error)) => return Poll::Ready(Some(Err(Status::from_error(error.into_inner())))),
            Some(Ok(frame)) => frame,
        };
        let checked = frame.data_ref().map_or(Ok(()), |data| self.check(data));
        Poll::Ready(Some(match checked {
            Ok(()) => Ok(frame),
            Err(problem) => {
                self.is_over = true;
                self.inner = Body::empty();
                Err(problem.into())
            }
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.is_over || http_body::Body::is_end_stream(&self.inner)
    }

    fn size_hint(&self) -> SizeHint {
        http_body::Body::size_hint(&self.inner)
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    fn bounded(pool: &Arc<Semaphore>, bytes: usize) -> (Bounded, Share) {
        let allowed =
            Allowed { is_open: false, message: None, bytes: usize::MAX, elements: 0, is_stream: true };
        let mut message = vec![0];
        message.extend(u32::try_from(bytes).unwrap().to_be_bytes());
        message.resize(HEADER_BYTES + bytes, b'x');
        let share = Share::of(pool);
        (Bounded::new(Body::from(message), allowed, share.clone()), share)
    }

    #[tokio::test]
    async fn what_calls_weigh_together_is_bounded() {
        let pool = Arc::new(Semaphore::new(3));
        let (small, _) = bounded(&pool, SHARE_BYTES);
        small.collect().await.unwrap();
        assert_eq!(pool.available_permits(), 3, "small calls take no share");

        let (large, kept) = bounded(&pool, 3 * SHARE_BYTES);
        large.collect().await.unwrap();
        assert_eq!(pool.available_permits(), 1, "the share is held until the call is answered");
        let (another, refused) = bounded(&pool, 3 * SHARE_BYTES);
        let status = another.collect().await.unwrap_err();
        assert_eq!(Problem::from_status(&status).reason, Reason::Unavailable);
        drop((kept, refused));
        assert_eq!(pool.available_permits(), 3);
    }
}
