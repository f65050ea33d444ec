//! Waits for a condition: bounded, so that a test ends, and generous, so that it does not judge speed.

use std::time::Duration;

use tokio::time::Instant;

/// Long enough on a busy machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(20);

/// Polls until the probe returns a value; `what` names the condition in the failure.
pub(crate) async fn eventually<T>(what: &str, mut probe: impl AsyncFnMut() -> Option<T>) -> T {
    let end = Instant::now() + LIMIT;
    loop {
        if let Some(answer) = probe().await {
            return answer;
        }
        assert!(Instant::now() < end, "waited {LIMIT:?} in vain until {what}");
        tokio::time::sleep(PAUSE).await;
    }
}
