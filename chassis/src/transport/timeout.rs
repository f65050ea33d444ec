//! A restartable timeout for poll functions.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

/// A timeout that runs between [`start`](Self::start) and [`stop`](Self::stop). It registers a timer with the runtime only
/// when it is polled, which most are never.
#[derive(Debug)]
pub(super) struct Timeout {
    duration: Duration,
    deadline: Option<Instant>,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Timeout {
    pub(super) const fn new(duration: Duration) -> Self {
        Self { duration, deadline: None, sleep: None }
    }

    /// Starts it, unless it runs already.
    pub(super) fn start(&mut self) {
        self.deadline.get_or_insert_with(|| Instant::now() + self.duration);
    }

    pub(super) fn stop(&mut self) {
        self.deadline = None;
    }

    /// Yields an error once it has elapsed; until then the task is registered to be woken.
    pub(super) fn poll(&mut self, context: &mut Context<'_>, message: &'static str) -> Poll<io::Error> {
        let Some(deadline) = self.deadline else { return Poll::Pending };
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
        if sleep.deadline() != deadline {
            sleep.as_mut().reset(deadline);
        }
        sleep.as_mut().poll(context).map(|()| io::Error::new(io::ErrorKind::TimedOut, message))
    }
}
