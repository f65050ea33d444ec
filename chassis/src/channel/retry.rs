//! The retry policy: a call that was never sent is retried a few times, an idempotent one once.

use std::error::Error;
use std::time::Duration;

use http::{HeaderMap, HeaderValue};
use tonic::TimeoutExpired;
use tower::retry::budget::{Budget as _, TpsBudget};

use super::cause;
use super::connect::Unreachable;
use crate::contracts::Contracts;
use crate::deadline;

/// The window of calls that the retry budget is computed from.
const BUDGET_WINDOW: Duration = Duration::from_secs(10);
/// The share of calls that may be retried: when more fail, retries add load and make it worse.
const BUDGET_SHARE: f32 = 0.1;
/// Retries that are allowed each second regardless of the number of calls.
const MIN_RETRIES_PER_SECOND: u32 = 10;
/// With less time than this left, a call is not retried.
const MIN_TIMEOUT: Duration = Duration::from_millis(5);
/// The backoff before each retry. They cover the restart of a process, and that of a second one which begins before the first
/// is known to be back.
pub(super) const BACKOFFS: [Duration; 4] =
    [Duration::ZERO, Duration::from_millis(50), Duration::from_millis(100), Duration::from_millis(200)];
const REASON_UNSENT: &str = "unsent";
const REASON_BROKEN: &str = "broken";
const GRPC_TIMEOUT: &str = "grpc-timeout";

/// The retry budget of one client of one service.
#[derive(Debug)]
pub(super) struct Budget(TpsBudget);

impl Budget {
    pub(super) fn new() -> Self {
        Self(TpsBudget::new(BUDGET_WINDOW, MIN_RETRIES_PER_SECOND, BUDGET_SHARE))
    }

    #[cfg(test)]
    fn without_reserve() -> Self {
        Self(TpsBudget::new(BUDGET_WINDOW, 0, BUDGET_SHARE))
    }

    /// Counts a call.
    pub(super) fn deposit(&self) {
        self.0.deposit();
    }

    /// Takes a retry from the budget, if one is left.
    pub(super) fn withdraw(&self) -> bool {
        self.0.withdraw()
    }
}

/// Why a call with that failure may be retried, as a metric label; `None` when it may not. Only failures of the transport get
/// here: an error status of the service is a response.
pub(super) fn reason(error: &(dyn Error + 'static), path: &str) -> Option<&'static str> {
    if cause::<TimeoutExpired>(error).is_some() {
        return None;
    }
    if was_never_sent(error) {
        return Some(REASON_UNSENT);
    }
    let is_idempotent = Contracts::get().method(path).is_some_and(|(_, method)| method.is_idempotent);
    is_idempotent.then_some(REASON_BROKEN)
}

/// The backoff after that many failures; `None` when no retry is left. A call whose connection broke is retried only once,
/// since the server may have done its work each time.
pub(super) fn backoff(failures: usize, why: &str) -> Option<Duration> {
    let max_retries = if why == REASON_UNSENT { BACKOFFS.len() } else { 1 };
    BACKOFFS.iter().take(max_retries).nth(failures.checked_sub(1)?).copied()
}

/// Whether the server has not begun to handle the call: no connection was opened; it waited for one that ended; or the server
/// refused the stream (`GOAWAY` before it, `REFUSED_STREAM`).
fn was_never_sent(error: &(dyn Error + 'static)) -> bool {
    let is_refused = |error: &h2::Error| {
        error.is_remote() && (error.is_go_away() || error.reason() == Some(h2::Reason::REFUSED_STREAM))
    };
    cause::<Unreachable>(error).is_some()
        || cause::<hyper::Error>(error).is_some_and(hyper::Error::is_canceled)
        || cause::<h2::Error>(error).is_some_and(is_refused)
}

/// Reduces `grpc-timeout` by the time that the last attempt took; whether enough is left for another one.
pub(super) fn reduce_timeout(headers: &mut HeaderMap, took: Duration) -> bool {
    let Some(timeout) = deadline::budget(headers) else { return true };
    let left = timeout.saturating_sub(took);
    if left < MIN_TIMEOUT {
        return false;
    }
    if let Ok(value) = HeaderValue::try_from(format!("{}u", left.as_micros())) {
        headers.insert(GRPC_TIMEOUT, value);
    }
    true
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    const READ: &str = "/cairn.content.v1.FileService/GetFile";
    const WRITE: &str = "/cairn.content.v1.FileService/CreateFile";

    /// Wraps an error as tonic does.
    #[derive(Debug, thiserror::Error)]
    #[error("transport error")]
    struct Wrapped(#[source] Box<dyn Error + Send + Sync>);

    fn why(happened: impl Into<Box<dyn Error + Send + Sync>>, path: &str) -> Option<&'static str> {
        reason(&Wrapped(happened.into()), path)
    }

    #[test]
    fn what_changes_nothing_is_made_again_and_what_may_have_been_done_is_not() {
        let broken = || io::Error::from(io::ErrorKind::BrokenPipe);
        assert_eq!(why(broken(), READ), Some("broken"));
        assert_eq!(why(broken(), WRITE), None);
        assert_eq!(why(broken(), "/cairn.content.v1.FileService/Nothing"), None);
        // The server reset a stream that it had begun to handle.
        assert_eq!(why(h2::Error::from(h2::Reason::INTERNAL_ERROR), WRITE), None);
    }

    #[test]
    fn a_call_whose_time_is_over_is_not_made_again() {
        let mut headers = HeaderMap::new();
        let took = Duration::from_secs(2);
        assert!(reduce_timeout(&mut headers, took), "it has all the time");
        headers.insert(GRPC_TIMEOUT, HeaderValue::from_static("20S"));
        for left in [18, 16] {
            assert!(reduce_timeout(&mut headers, took));
            assert_eq!(deadline::budget(&headers), Some(Duration::from_secs(left)));
        }
        headers.insert(GRPC_TIMEOUT, HeaderValue::from_static("2S"));
        assert!(!reduce_timeout(&mut headers, took));
    }

    #[test]
    fn what_was_never_sent_is_tried_for_a_moment_and_what_broke_once() {
        let backoffs = |why| (1..).map_while(|failures| backoff(failures, why)).collect::<Vec<_>>();
        assert_eq!(backoffs(REASON_UNSENT), BACKOFFS);
        assert_eq!(backoffs(REASON_BROKEN), [Duration::ZERO]);
        assert_eq!(backoff(0, REASON_UNSENT), None);
    }

    #[tokio::test]
    async fn a_tenth_of_the_calls_may_be_made_again() {
        let budget = Budget::without_reserve();
        assert!(!budget.withdraw());
        for _ in 0..100 {
            budget.deposit();
        }
        let granted = (0..100).filter(|_| budget.withdraw()).count();
        assert_eq!(granted, 10);
        let quiet = Budget::new();
        assert!(quiet.withdraw(), "few calls may be made again too");
        let granted = (0..1_000).filter(|_| quiet.withdraw()).count();
        assert_eq!(granted, 99);
    }
}
