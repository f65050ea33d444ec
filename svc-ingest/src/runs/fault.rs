//! Decides whether a run that hits a fault waits, retries or fails.

use std::time::Duration;

use cairn_chassis::clock::Timestamp;
use cairn_providers::Fault;

use super::next;

/// Backoff of a request that may succeed later; after the last retry, the run fails.
const RETRY_DELAYS: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(4), Duration::from_secs(15)];
/// The longest wait that a provider can impose on a run.
const MAX_WAITING: Duration = Duration::from_secs(60 * 60);
/// Consecutive documents that could not be read: beyond it, the provider and not the document is the problem.
const MAX_IN_A_ROW: u32 = 10;
/// Consecutive pages without a new document: filtered folders and long change feeds have some.
const MAX_IDLE_PAGES: u32 = 1_000;
/// From this many documents on, a failure rate above the limit stops the run.
const MIN_SAMPLE: u64 = 100;
const MAX_FAILED_PERCENT: u64 = 10;

/// Why a run stops.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stop {
    /// It resumes at that time.
    Waiting(Timestamp),
    /// It retries at that time, which counts as a try.
    TryAgain(Timestamp),
    /// It has failed.
    Failed(Failure),
}

/// Why a run has failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// No run before the credentials are changed.
    Credentials,
    /// A full run follows.
    PositionLost,
    /// The plan has no room for all documents: the next run is a full one. The message is for people.
    NoRoom(String),
    /// The next run comes at its usual time. The message is for people.
    Other(String),
}

impl Failure {
    /// The message for people.
    pub(crate) fn message(&self) -> String {
        match self {
            Self::Credentials => {
                "the provider does not accept the credentials: give new ones, then the source goes on"
                    .to_owned()
            }
            Self::PositionLost => {
                "the provider no longer knows where the last run stopped: a full run follows".to_owned()
            }
            Self::NoRoom(message) | Self::Other(message) => message.clone(),
        }
    }

    /// The label of the failure in metrics.
    pub(crate) const fn label(&self) -> &'static str {
        match self {
            Self::Credentials => "credentials",
            Self::PositionLost => "position_lost",
            Self::NoRoom(_) => "no_room",
            Self::Other(_) => "other",
        }
    }
}

/// The consequence of a fault of a page, or of the whole source.
pub(crate) fn of_page(fault: &Fault, tries: u32, now: Timestamp) -> Stop {
    match fault {
        Fault::Waiting { until } => Stop::Waiting(bounded(*until, now)),
        Fault::Budget => Stop::Waiting(next::tomorrow(now)),
        Fault::Credentials => Stop::Failed(Failure::Credentials),
        Fault::PositionLost => Stop::Failed(Failure::PositionLost),
        Fault::Unavailable => {
            let pause = usize::try_from(tries).ok().and_then(|tries| RETRY_DELAYS.get(tries));
            match pause {
                Some(pause) => Stop::TryAgain(now.plus(*pause)),
                None => Stop::Failed(Failure::Other(fault.to_string())),
            }
        }
        Fault::Forbidden
        | Fault::Gone
        | Fault::Refused
        | Fault::Address
        | Fault::TooLarge(_)
        | Fault::Broken(_) => Stop::Failed(Failure::Other(fault.to_string())),
    }
}

/// Whether the fault of one document concerns the whole source.
pub(crate) const fn is_of_source(fault: &Fault) -> bool {
    matches!(fault, Fault::Waiting { .. } | Fault::Budget | Fault::Credentials)
}

/// Clamped to at most an hour, and at least a second: a provider's clock may be behind.
fn bounded(until: Timestamp, now: Timestamp) -> Timestamp {
    until.clamp(now.plus(Duration::from_secs(1)), now.plus(MAX_WAITING))
}

/// Failure statistics of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Health {
    tried: u64,
    failed: u64,
    in_a_row: u32,
    /// Consecutive pages without a new document.
    idle_pages: u32,
}

impl Health {
    /// Counts a page that is not the last: whether it had a new document, and whether the next position is the same again. Returns a message
    /// when the listing is stuck.
    pub(crate) fn turned(&mut self, has_new: bool, is_same: bool) -> Option<String> {
        self.idle_pages = if has_new { 0 } else { self.idle_pages + 1 };
        let is_stuck = self.idle_pages > MAX_IDLE_PAGES || (is_same && !has_new);
        is_stuck.then(|| "the provider's list does not go on: it tells the same again and again".to_owned())
    }

    /// Counts a document that was read, or has a lasting fault.
    pub(crate) fn answered(&mut self) {
        self.tried += 1;
        self.in_a_row = 0;
    }

    /// Counts a temporary failure of a document; returns a message when there are too many.
    pub(crate) fn failed(&mut self) -> Option<String> {
        self.tried += 1;
        self.failed += 1;
        self.in_a_row += 1;
        if self.in_a_row > MAX_IN_A_ROW {
            return Some(format!("{} documents in a row could not be read", self.in_a_row));
        }
        let is_too_much = self.tried >= MIN_SAMPLE && self.failed * 100 > self.tried * MAX_FAILED_PERCENT;
        is_too_much.then(|| format!("{} of {} documents could not be read", self.failed, self.tried))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_seconds(1_800_000_000);

    #[test]
    fn waiting_is_bounded_and_a_budget_is_of_its_day() {
        let far = Fault::Waiting { until: NOW.plus(Duration::from_secs(9_999_999)) };
        assert_eq!(of_page(&far, 0, NOW), Stop::Waiting(NOW.plus(MAX_WAITING)));
        let past = Fault::Waiting { until: Timestamp::from_seconds(0) };
        assert_eq!(of_page(&past, 0, NOW), Stop::Waiting(NOW.plus(Duration::from_secs(1))));
        assert_eq!(of_page(&Fault::Budget, 0, NOW), Stop::Waiting(next::tomorrow(NOW)));
    }

    #[test]
    fn a_provider_that_does_not_answer_is_asked_again_a_few_times() {
        for (tries, pause) in RETRY_DELAYS.iter().enumerate() {
            let tries = u32::try_from(tries).unwrap();
            assert_eq!(of_page(&Fault::Unavailable, tries, NOW), Stop::TryAgain(NOW.plus(*pause)));
        }
        assert!(matches!(of_page(&Fault::Unavailable, 3, NOW), Stop::Failed(Failure::Other(_))));
        assert_eq!(of_page(&Fault::Credentials, 0, NOW), Stop::Failed(Failure::Credentials));
    }

    #[test]
    fn a_list_that_tells_nothing_new_ends() {
        let mut health = Health::default();
        for _ in 0..10_000 {
            assert_eq!(health.turned(true, true), None);
        }
        for _ in 0..MAX_IDLE_PAGES {
            assert_eq!(health.turned(false, false), None);
        }
        assert!(health.turned(false, false).is_some(), "places that alternate");
        assert!(Health::default().turned(false, true).is_some(), "the same place");
    }

    #[test]
    fn many_failures_in_a_row_or_in_all_stop_a_run() {
        let mut health = Health::default();
        for _ in 0..10 {
            assert_eq!(health.failed(), None);
        }
        assert!(health.failed().is_some());

        let mut health = Health::default();
        let mut stopped_at = None;
        for number in 1..=1_000_u32 {
            if number % 5 == 0 {
                stopped_at = stopped_at.or_else(|| health.failed().map(|_| number));
            } else {
                health.answered();
            }
        }
        assert_eq!(stopped_at, Some(100), "a fifth of them fail: enough are known at a hundred");
    }
}
