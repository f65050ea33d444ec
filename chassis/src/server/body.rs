//! Enforces the limits of a method on the body of a call: the number of messages, their length and their elements.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use axum::body::Body;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::Status;

use super::scanner::{ScanError, Scanner};
use super::{OVERLOADED, RETRY_AFTER};
use crate::contracts::MessageId;
use crate::status::{Problem, Reason, Violation};

/// The gRPC message prefix: the compressed flag and the length.
const HEADER_BYTES: usize = 5;
/// The memory that a call may use without a permit, and that each further permit stands for.
pub(super) const SHARE_BYTES: usize = 64 * 1024;

/// The limits of a method.
#[derive(Debug, Clone, Copy)]
pub(super) struct MethodLimits {
    /// It requires no identity.
    pub(super) is_open: bool,
    pub(super) message: Option<MessageId>,
    pub(super) bytes: usize,
    pub(super) elements: usize,
    pub(super) is_stream: bool,
}

/// The part of the memory of all bodies that one call has acquired.
#[derive(Debug, Clone)]
pub(super) struct MemoryShare {
    pool: Arc<Semaphore>,
    permits: Arc<Mutex<Option<OwnedSemaphorePermit>>>,
}

impl MemoryShare {
    pub(super) fn of(pool: &Arc<Semaphore>) -> Self {
        Self { pool: Arc::clone(pool), permits: Arc::default() }
    }

    /// Acquires another permit, held until the last clone is dropped.
    fn grow(&self) -> Result<(), Problem> {
        let permit = Arc::clone(&self.pool)
            .try_acquire_owned()
            .map_err(|_| Problem::unavailable(OVERLOADED, RETRY_AFTER))?;
        let mut permits = self.permits.lock().unwrap_or_else(PoisonError::into_inner);
        match permits.as_mut() {
            Some(permits) => permits.merge(permit),
            None => *permits = Some(permit),
        }
        Ok(())
    }
}

/// A body that ends with an error where it exceeds a limit.
#[derive(Debug)]
pub(super) struct LimitedBody {
    inner: Body,
    limits: MethodLimits,
    share: MemoryShare,
    /// Bytes of the current message so far.
    read: usize,
    /// Bytes that the share has memory for.
    reserved: usize,
    messages: usize,
    state: State,
    has_failed: bool,
}

#[derive(Debug)]
enum State {
    Header([u8; HEADER_BYTES], usize),
    Message { left: usize, scanner: Option<Scanner> },
}

impl State {
    const START: Self = Self::Header([0; HEADER_BYTES], 0);
}

impl LimitedBody {
    pub(super) fn new(inner: Body, limits: MethodLimits, share: MemoryShare) -> Self {
        Self {
            inner,
            limits,
            share,
            read: 0,
            reserved: SHARE_BYTES,
            messages: 0,
            state: State::START,
            has_failed: false,
        }
    }

    fn check(&mut self, mut bytes: &[u8]) -> Result<(), Problem> {
        while !bytes.is_empty() {
            bytes = match &mut self.state {
                State::Header(header, filled) => {
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
                State::Message { left, scanner } => {
                    let (read, rest) = bytes.split_at(bytes.len().min(*left));
                    if let Some(scanner) = scanner {
                        scanner.feed(read).map_err(|error| scan_problem(error, self.limits.elements))?;
                    }
                    *left -= read.len();
                    let is_complete = *left == 0;
                    self.reserve(read.len())?;
                    if is_complete {
                        self.state = State::START;
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
        if self.messages > 1 && !self.limits.is_stream {
            return Err(Problem::validation(vec![Violation::new(
                "body",
                "too_many",
                "this call takes one message",
            )]));
        }
        if length > self.limits.bytes {
            return Err(Problem::new(
                Reason::PayloadTooLarge,
                format!("the message has {length} bytes; this call takes at most {}", self.limits.bytes),
            ));
        }
        // Messages of a stream are decoded one at a time, so the longest one determines the memory.
        self.read = 0;
        let scanner = self.limits.message.map(|message| Scanner::new(message, length, self.limits.elements));
        self.state = if length == 0 { State::START } else { State::Message { left: length, scanner } };
        Ok(())
    }

    /// Reserves memory for bytes that have arrived; the announced length alone reserves nothing.
    fn reserve(&mut self, bytes: usize) -> Result<(), Problem> {
        self.read += bytes;
        while self.read > self.reserved {
            self.share.grow()?;
            self.reserved += SHARE_BYTES;
        }
        Ok(())
    }
}

fn scan_problem(error: ScanError, max_elements: usize) -> Problem {
    match error {
        ScanError::TooManyElements => Problem::new(
            Reason::PayloadTooLarge,
            format!("the message has more than {max_elements} fields and entries: send fewer in each call"),
        ),
        ScanError::Malformed => Problem::validation(vec![Violation::new(
            "body",
            "invalid",
            "is not an encoded message of this method",
        )]),
    }
}

impl http_body::Body for LimitedBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if self.has_failed {
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
                self.has_failed = true;
                self.inner = Body::empty();
                Err(problem.into())
            }
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.has_failed || http_body::Body::is_end_stream(&self.inner)
    }

    fn size_hint(&self) -> SizeHint {
        http_body::Body::size_hint(&self.inner)
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    fn limited(pool: &Arc<Semaphore>, bytes: usize) -> (LimitedBody, MemoryShare) {
        let limits =
            MethodLimits { is_open: false, message: None, bytes: usize::MAX, elements: 0, is_stream: true };
        let mut message = vec![0];
        message.extend(u32::try_from(bytes).unwrap().to_be_bytes());
        message.resize(HEADER_BYTES + bytes, b'x');
        let share = MemoryShare::of(pool);
        (LimitedBody::new(Body::from(message), limits, share.clone()), share)
    }

    #[tokio::test]
    async fn what_calls_weigh_together_is_bounded() {
        let pool = Arc::new(Semaphore::new(3));
        let (small, _) = limited(&pool, SHARE_BYTES);
        small.collect().await.unwrap();
        assert_eq!(pool.available_permits(), 3, "small calls take no share");

        let (large, kept) = limited(&pool, 3 * SHARE_BYTES);
        large.collect().await.unwrap();
        assert_eq!(pool.available_permits(), 1, "the share is held until the call is answered");
        let (another, refused) = limited(&pool, 3 * SHARE_BYTES);
        let status = another.collect().await.unwrap_err();
        assert_eq!(Problem::from_status(&status).reason, Reason::Unavailable);
        drop((kept, refused));
        assert_eq!(pool.available_permits(), 3);
    }
}
