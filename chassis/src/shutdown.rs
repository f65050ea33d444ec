//! The end of a process: one signal drains, a second one ends at once.

use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// The exit status after a second signal: 128 + SIGINT.
const INTERRUPTED: i32 = 130;

/// A token that SIGINT or SIGTERM cancels.
///
/// # Errors
/// When the system lets no signal be listened for.
pub fn on_signal() -> io::Result<CancellationToken> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let token = CancellationToken::new();
    let cancelled = token.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        tracing::info!("shutting down; a second signal ends at once");
        cancelled.cancel();
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        std::process::exit(INTERRUPTED);
    });
    Ok(token)
}
