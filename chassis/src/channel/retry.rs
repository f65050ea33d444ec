//! When a call is made again: what was never sent may be a few times, what changes nothing once.

use std::error::Error;
use std::time::Duration;

use http::{HeaderMap, HeaderValue};
use tonic::TimeoutExpired;
use tower::retry::budget::{Budget as _, TpsBudget};

use super::cause;
use super::connect::Unreachable;
use crate::contracts::Contracts;
use crate::deadline;

/// Calls of this long count towards what may be repeated.
const WINDOW: Duration = Duration::from_secs(10);
/// How much of the calls may be repeated: when more fails, repeating it makes it worse.
const SHARE: f32 = 0.1;
/// What may be repeated each second although few calls are made.
const ALWAYS: u32 = 10;
/// With less than this nobody begins again.
const LEAST_TIME: Duration = Duration::from_millis(5);
/// What comes before a second attempt and those after it. A process is replaced by another in a moment; while one of two is, the
/// other one may be replaced as well before anybody has found out that the first is there again.
pub(super) const PAUSES: [Duration; 4] =
    [Duration::ZERO, Duration::from_millis(50), Duration::from_millis(100), Duration::from_millis(200)];
const REASON_UNSENT: &str = "unsent";
const REASON_BROKEN: &str = "broken";
const GRPC_TIMEOUT: &str = "grpc-timeout";

/// How many calls of one caller to one service may be made again.
#[derive(Debug)]
pub(super) struct Budget(TpsBudget);

impl Budget {
    pub(super) fn new() -> Self {
        Self(TpsBudget::new(WINDOW, ALWAYS, SHARE))
    }

    #[cfg(test)]
    fn without_reserve() -> Self {
        Self(TpsBudget::new(WINDOW, 0, SHARE))
    }

    /// A call is made.
    pub(super) fn deposit(&self) {
        self.0.deposit();
    }

    /// Whether one more may be made again; it counts then.
    pub(super) fn withdraw(&self) -> bool {
        self.0.withdraw()
    }
}

/// Why a call that failed so may be made again, for the metrics; `None` when it may not. A service's own refusal is an answer,
/// not a failure, and never comes here.
pub(super) fn reason(error: &(dyn Error + 'static), path: &str) -> Option<&'static str> {
    if cause::<TimeoutExpired>(error).is_some() {
        return None;
    }
    if was_never_sent(error) {
        return Some(REASON_UNSENT);
    }
    let may_be_repeated = Contracts::get().method(path).is_some_and(|(_, method)| method.may_be_repeated);
    may_be_repeated.then_some(REASON_BROKEN)
}

/// What comes before another attempt of a call that has failed so often; `None` when it has been made often enough. One that
/// broke may have cost the other side its work each time.
pub(super) fn pause(failures: usize, why: &str) -> Option<Duration> {
    let most = if why == REASON_UNSENT { PAUSES.len() } else { 1 };
    PAUSES.iter().take(most).nth(failures.checked_sub(1)?).copied()
}

/// Whether nobody has begun to serve the call: no connection was made; it waited for one that ended; or the other side
/// said that it would not take it (`GOAWAY` before the stream, `REFUSED_STREAM`).
fn was_never_sent(error: &(dyn Error + 'static)) -> bool {
    let is_refused = |error: &h2::Error| {
        error.is_remote() && (error.is_go_away() || error.reason() == Some(h2::Reason::REFUSED_STREAM))
    };
    cause::<Unreachable>(error).is_some()
        || cause::<hyper::Error>(error).is_some_and(hyper::Error::is_canceled)
        || cause::<h2::Error>(error).is_some_and(is_refused)
}

/// Leaves to another attempt what is left of the call's time after the last one took so long; whether anything is.
pub(super) fn leave_the_rest(headers: &mut HeaderMap, took: Duration) -> bool {
    let Some(budget) = deadline::budget(headers) else { return true };
    let left = budget.saturating_sub(took);
    if left < LEAST_TIME {
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

    /// What tonic wraps around what happened.
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
        // What the other side did to a stream that it had begun to serve.
        assert_eq!(why(h2::Error::from(h2::Reason::INTERNAL_ERROR), WRITE), None);
    }

    #[test]
    fn a_call_whose_time_is_over_is_not_made_again() {
        let mut headers = HeaderMap::new();
        let took = Duration::from_secs(2);
        assert!(leave_the_rest(&mut headers, took), "it has all the time");
        headers.insert(GRPC_TIMEOUT, HeaderValue::from_static("20S"));
        for left in [18, 16] {
            assert!(leave_the_rest(&mut headers, took));
            assert_eq!(deadline::budget(&headers), Some(Duration::from_secs(left)));
        }
        headers.insert(GRPC_TIMEOUT, HeaderValue::from_static("2S"));
        assert!(!leave_the_rest(&mut headers, took));
    }

    #[test]
    fn what_was_never_sent_is_tried_for_a_moment_and_what_broke_once() {
        let pauses = |why| (1..).map_while(|failures| pause(failures, why)).collect::<Vec<_>>();
        assert_eq!(pauses(REASON_UNSENT), PAUSES);
        assert_eq!(pauses(REASON_BROKEN), [Duration::ZERO]);
        assert_eq!(pause(0, REASON_UNSENT), None);
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
