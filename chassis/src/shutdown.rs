//! Graceful shutdown: the first signal drains the process, a second one ends it at once.

use std::future::Future;
use std::io;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// The exit status after a second signal: 128 + SIGINT.
const INTERRUPTED: i32 = 130;

/// The two phases of a graceful shutdown.
#[derive(Debug, Clone, Default)]
pub struct Shutdown {
    /// Readiness and health fail, so that load balancers send no more traffic; requests are still served.
    pub leaving: CancellationToken,
    /// Listeners are closed, and requests in flight are drained.
    pub closing: CancellationToken,
}

impl Shutdown {
    /// Cancels `leaving`, and `closing` after that delay.
    pub async fn begin(&self, delay: Duration) {
        self.leaving.cancel();
        tokio::time::sleep(delay).await;
        self.closing.cancel();
    }

    /// Waits for the drain, for at most that long after `closing`; returns whether it completed.
    pub async fn drained(&self, draining: impl Future<Output = ()>, limit: Duration) -> bool {
        let timeout = async {
            self.closing.cancelled().await;
            tokio::time::sleep(limit).await;
        };
        tokio::select! {
            () = draining => true,
            () = timeout => false,
        }
    }
}

/// A token that SIGINT or SIGTERM cancels.
///
/// # Errors
/// When the signal handlers cannot be installed.
pub fn on_signal() -> io::Result<CancellationToken> {
    Ok(graceful(Duration::ZERO)?.closing)
}

/// A shutdown that SIGINT or SIGTERM begins, with that delay between its phases.
///
/// # Errors
/// When the signal handlers cannot be installed.
pub fn graceful(delay: Duration) -> io::Result<Shutdown> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let shutdown = Shutdown::default();
    let signalled = shutdown.clone();
    tokio::spawn(async move {
        either(&mut interrupt, &mut terminate).await;
        tracing::info!(delay_s = delay.as_secs(), "shutting down; a second signal ends at once");
        tokio::spawn(async move { signalled.begin(delay).await });
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
