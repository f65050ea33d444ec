//! The end of a process: one signal ends it in order, a second one at once.

use std::future::Future;
use std::io;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// The exit status after a second signal: 128 + SIGINT.
const INTERRUPTED: i32 = 130;

/// The two moments of an end in order.
#[derive(Debug, Clone, Default)]
pub struct Shutdown {
    /// Readiness and health say no, so that nobody is sent here any more; whoever comes is served as before.
    pub leaving: CancellationToken,
    /// Nothing is accepted any more, and what is under way finishes.
    pub closing: CancellationToken,
}

impl Shutdown {
    /// Leaves, and closes after that time.
    pub async fn begin(&self, delay: Duration) {
        self.leaving.cancel();
        tokio::time::sleep(delay).await;
        self.closing.cancel();
    }

    /// Ends when what was to be drained has been, or that long after the closing began, and says which.
    pub async fn drained(&self, draining: impl Future<Output = ()>, limit: Duration) -> bool {
        let over = async {
            self.closing.cancelled().await;
            tokio::time::sleep(limit).await;
        };
        tokio::select! {
            () = draining => true,
            () = over => false,
        }
    }
}

/// A token that SIGINT or SIGTERM cancels.
///
/// # Errors
/// When the system lets no signal be listened for.
pub fn on_signal() -> io::Result<CancellationToken> {
    Ok(in_order(Duration::ZERO)?.closing)
}

/// An end that SIGINT or SIGTERM begins; it closes that long after it has begun to leave.
///
/// # Errors
/// When the system lets no signal be listened for.
pub fn in_order(delay: Duration) -> io::Result<Shutdown> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let shutdown = Shutdown::default();
    let begun = shutdown.clone();
    tokio::spawn(async move {
        either(&mut interrupt, &mut terminate).await;
        tracing::info!(delay_s = delay.as_secs(), "shutting down; a second signal ends at once");
        tokio::spawn(async move { begun.begin(delay).await });
        either(&mut interrupt, &mut terminate).await;
        std::process::exit(INTERRUPTED);
    });
    Ok(shutdown)
}

async fn either(interrupt: &mut Signal, terminate: &mut Signal) {
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_leaves_before_it_closes() {
        let shutdown = Shutdown::default();
        let beginning = tokio::spawn({
            let shutdown = shutdown.clone();
            async move { shutdown.begin(Duration::from_millis(50)).await }
        });
        shutdown.leaving.cancelled().await;
        assert!(!shutdown.closing.is_cancelled(), "it serves on");
        shutdown.closing.cancelled().await;
        beginning.await.unwrap();
    }

    #[tokio::test]
    async fn draining_is_bounded_from_the_closing_on() {
        let shutdown = Shutdown::default();
        let limit = Duration::from_millis(20);
        assert!(shutdown.drained(tokio::time::sleep(limit * 3), limit).await, "nothing has begun to close");
        shutdown.closing.cancel();
        assert!(shutdown.drained(std::future::ready(()), limit).await);
        assert!(!shutdown.drained(std::future::pending(), limit).await);
    }
}
