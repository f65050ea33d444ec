//! A stream with a timeout for request heads and one for writes.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::Timeouts;
use super::activity::Activity;
use super::timeout::Timeout;

/// The first bytes of HTTP/2, which are no method of HTTP/1.
const PREFACE: &[u8] = b"PRI";

/// Fails reads and writes that time out.
#[derive(Debug)]
pub(super) struct TimeoutStream<S> {
    inner: S,
    activity: Arc<Activity>,
    head: Timeout,
    /// The number of requests that had started when the head timeout was last checked.
    started: usize,
    detected: Detected,
    write: Timeout,
}

/// The protocol version, detected from the first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Detected {
    /// That many bytes of the HTTP/2 preface were read.
    Partial(usize),
    Http1,
    /// Frames arrive at any time, so heads have no timeout; keep-alive pings detect a dead peer.
    Http2,
}

impl<S> TimeoutStream<S> {
    pub(super) fn new(inner: S, activity: Arc<Activity>, timeouts: Timeouts) -> Self {
        let mut head = Timeout::new(timeouts.head);
        head.start();
        let write = Timeout::new(timeouts.io);
        Self { inner, activity, head, started: 0, detected: Detected::Partial(0), write }
    }

    fn received(&mut self, bytes: &[u8]) {
        if let Detected::Partial(length) = self.detected {
            self.detected = detect(length, bytes);
        }
        match self.detected {
            Detected::Http2 => self.head.stop(),
            Detected::Partial(_) => {}
            Detected::Http1 => {
                self.stop_after_head();
                if !bytes.is_empty() && self.activity.is_idle() {
                    self.head.start();
                }
            }
        }
    }

    fn stop_after_head(&mut self) {
        let started = self.activity.started();
        if started != self.started {
            self.started = started;
            self.head.stop();
        }
    }

    /// Checks the head timeout, when no bytes are available.
    fn poll_head(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stop_after_head();
        self.head.poll(context, "the request's head did not end in time").map(Err)
    }

    /// The result of a write, or an error once writes have been pending for too long.
    fn check_write<T>(
        &mut self,
        context: &mut Context<'_>,
        result: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if result.is_ready() {
            self.write.stop();
            return result;
        }
        self.write.start();
        self.write.poll(context, "the caller did not take its answer in time").map(Err)
    }
}

fn detect(length: usize, bytes: &[u8]) -> Detected {
    let rest = PREFACE.get(length..).unwrap_or_default();
    let common = rest.len().min(bytes.len());
    if rest.get(..common) != bytes.get(..common) {
        Detected::Http1
    } else if common == rest.len() {
        Detected::Http2
    } else {
        Detected::Partial(length + common)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TimeoutStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        match Pin::new(&mut this.inner).poll_read(context, buffer) {
            Poll::Ready(read) => {
                this.received(buffer.filled().get(before..).unwrap_or_default());
                Poll::Ready(read)
            }
            Poll::Pending => this.poll_head(context),
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TimeoutStream<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.inner).poll_write(context, bytes);
        this.check_write(context, written)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let flushed = Pin::new(&mut this.inner).poll_flush(context);
        this.check_write(context, flushed)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let shut = Pin::new(&mut this.inner).poll_shutdown(context);
        this.check_write(context, shut)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.inner).poll_write_vectored(context, slices);
        this.check_write(context, written)
    }
}
