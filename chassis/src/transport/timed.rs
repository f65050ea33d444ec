//! A connection that ends when a head does not, or when the caller takes nothing of what it is sent.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::Timeouts;
use super::activity::Activity;
use super::timer::Timer;

/// How HTTP/2 begins, and no method of HTTP/1 does.
const PREFACE: &[u8] = b"PRI";

/// Watches what is read and written.
#[derive(Debug)]
pub(super) struct Timed<S> {
    inner: S,
    activity: Arc<Activity>,
    head: Timer,
    /// The requests that had begun when the head did.
    begun: usize,
    opening: Opening,
    write: Timer,
}

/// What the first bytes say is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Opening {
    /// So many bytes of the preface were there.
    Read(usize),
    Http1,
    /// Its frames come at any time and make no heads; whether it lives is asked by pings.
    Http2,
}

impl<S> Timed<S> {
    pub(super) fn new(inner: S, activity: Arc<Activity>, timeouts: Timeouts) -> Self {
        let mut head = Timer::new(timeouts.head);
        head.start();
        let write = Timer::new(timeouts.still);
        Self { inner, activity, head, begun: 0, opening: Opening::Read(0), write }
    }

    fn received(&mut self, bytes: &[u8]) {
        if let Opening::Read(length) = self.opening {
            self.opening = opening(length, bytes);
        }
        match self.opening {
            Opening::Http2 => self.head.stop(),
            Opening::Read(_) => {}
            Opening::Http1 => {
                self.stop_after_head();
                if !bytes.is_empty() && self.activity.is_resting() {
                    self.head.start();
                }
            }
        }
    }

    fn stop_after_head(&mut self) {
        let begun = self.activity.begun();
        if begun != self.begun {
            self.begun = begun;
            self.head.stop();
        }
    }

    /// Nothing could be read now.
    fn poll_head(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stop_after_head();
        self.head.poll(context, "the request's head did not end in time").map(Err)
    }

    /// What was written, unless nothing could be for too long.
    fn watch<T>(&mut self, context: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.write.stop();
            return written;
        }
        self.write.start();
        self.write.poll(context, "the caller did not take its answer in time").map(Err)
    }
}

fn opening(length: usize, bytes: &[u8]) -> Opening {
    let rest = PREFACE.get(length..).unwrap_or_default();
    let common = rest.len().min(bytes.len());
    if rest.get(..common) != bytes.get(..common) {
        Opening::Http1
    } else if common == rest.len() {
        Opening::Http2
    } else {
        Opening::Read(length + common)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Timed<S> {
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

impl<S: AsyncWrite + Unpin> AsyncWrite for Timed<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.inner).poll_write(context, bytes);
        this.watch(context, written)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let flushed = Pin::new(&mut this.inner).poll_flush(context);
        this.watch(context, flushed)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let shut = Pin::new(&mut this.inner).poll_shutdown(context);
        this.watch(context, shut)
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
        this.watch(context, written)
    }
}
