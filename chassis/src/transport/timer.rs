//! How long something may take, told to whoever polls it.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

/// A time that runs from a start to a stop. Most are stopped before anybody waits, and cost nothing then.
#[derive(Debug)]
pub(super) struct Timer {
    patience: Duration,
    end: Option<Instant>,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Timer {
    pub(super) const fn new(patience: Duration) -> Self {
        Self { patience, end: None, sleep: None }
    }

    /// One that runs goes on.
    pub(super) fn start(&mut self) {
        self.end.get_or_insert_with(|| Instant::now() + self.patience);
    }

    pub(super) fn stop(&mut self) {
        self.end = None;
    }

    /// An error when its time is over; otherwise the task is woken then.
    pub(super) fn poll(&mut self, context: &mut Context<'_>, what: &'static str) -> Poll<io::Error> {
        let Some(end) = self.end else { return Poll::Pending };
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(end)));
        if sleep.deadline() != end {
            sleep.as_mut().reset(end);
        }
        sleep.as_mut().poll(context).map(|()| io::Error::new(io::ErrorKind::TimedOut, what))
    }
}
