//! The retry schedule of deliveries, and the meaning of responses.

use std::time::Duration;

use cairn_chassis::clock::Timestamp;
use cairn_chassis::entropy::Entropy;
use http::StatusCode;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;

/// The default backoff between tries: a day in all.
pub(crate) const USUAL_WAITS: [Duration; 8] = [
    Duration::from_secs(5),
    Duration::from_secs(30),
    Duration::from_secs(2 * MINUTE),
    Duration::from_secs(10 * MINUTE),
    Duration::from_secs(HOUR),
    Duration::from_secs(3 * HOUR),
    Duration::from_secs(6 * HOUR),
    Duration::from_secs(12 * HOUR),
];
/// Jitter in percent of the backoff, so that deliveries that failed together are not retried together.
const JITTER_PERCENT: u32 = 20;
/// The longest `Retry-After` that is honored.
const MAX_ASKED: Duration = Duration::from_secs(24 * HOUR);

/// The result of a try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) verdict: Verdict,
    /// Absent when there was no response.
    pub(crate) status: Option<u16>,
    /// The error message; empty after a success.
    pub(crate) message: String,
    /// The `Retry-After` of the receiver.
    pub(crate) retry_after: Option<Duration>,
}

/// The outcome of a try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Arrived,
    Failed,
    /// The receiver has unsubscribed (410).
    Gone,
}

impl Verdict {
    /// The label in metrics.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Arrived => "delivered",
            Self::Failed => "failed",
            Self::Gone => "gone",
        }
    }
}

impl Outcome {
    /// The outcome of a status (Standard Webhooks: 2xx is success, 410 unsubscribes, all else is a failure).
    pub(crate) fn of_status(status: StatusCode, retry_after: Option<Duration>) -> Self {
        let (verdict, message) = match status.as_u16() {
            200..=299 => (Verdict::Arrived, String::new()),
            410 => (Verdict::Gone, "the receiver answers 410: it wants nothing any more".to_owned()),
            300..=399 => {
                let message = format!("the receiver answers {}: redirects are not followed", status.as_u16());
                (Verdict::Failed, message)
            }
            code => (Verdict::Failed, format!("the receiver answers with the status {code}")),
        };
        Self { verdict, status: Some(status.as_u16()), message, retry_after }
    }

    /// No response, for that reason.
    pub(crate) fn unanswered(message: impl Into<String>) -> Self {
        Self { verdict: Verdict::Failed, status: None, message: message.into(), retry_after: None }
    }
}

/// The time of the next try after that many; `None` when it was the last one.
pub(crate) fn next_try(
    waits: &[Duration],
    tries: u32,
    asked: Option<Duration>,
    now: Timestamp,
    entropy: &dyn Entropy,
) -> Option<Timestamp> {
    let place = usize::try_from(tries.checked_sub(1)?).ok()?;
    let wait = *waits.get(place)?;
    let mut byte = [0_u8; 1];
    entropy.fill(&mut byte);
    let chance = u32::from(byte.first().copied().unwrap_or_default());
    let jitter = wait.saturating_mul(JITTER_PERCENT).saturating_mul(chance) / (100 * 255);
    let asked = asked.unwrap_or_default().min(MAX_ASKED);
    Some(now.plus(wait.saturating_add(jitter).max(asked)))
}

#[cfg(test)]
mod tests {
    use cairn_chassis::entropy::SeededEntropy;

    use super::*;

    const NOW: Timestamp = Timestamp::from_seconds(1_800_000_000);

    #[test]
    fn tries_go_on_for_a_day_with_ever_longer_waits_and_a_little_chance() {
        let entropy = SeededEntropy::new(1);
        let mut total = Duration::ZERO;
        for (tries, wait) in (1..).zip(USUAL_WAITS) {
            let next = next_try(&USUAL_WAITS, tries, None, NOW, &entropy).unwrap();
            let waited = next.since(NOW);
            assert!(waited >= wait && waited <= wait + wait / 5, "{tries}: {waited:?}");
            total += wait;
        }
        assert!((20..=26).contains(&(total.as_secs() / HOUR)));
        assert_eq!(next_try(&USUAL_WAITS, 9, None, NOW, &entropy), None, "nine tries are all");
        assert_eq!(next_try(&USUAL_WAITS, 0, None, NOW, &entropy), None);
    }

    #[test]
    fn a_receiver_may_ask_for_more_time_and_not_for_less_or_for_ever() {
        let entropy = SeededEntropy::new(1);
        let wait = |asked| {
            let next = next_try(&USUAL_WAITS, 1, Some(Duration::from_secs(asked)), NOW, &entropy);
            next.unwrap().since(NOW).as_secs()
        };
        assert_eq!(wait(600), 600);
        assert!((5..=6).contains(&wait(1)));
        assert_eq!(wait(1_000_000), 24 * HOUR);
    }

    #[test]
    fn two_hundreds_arrive_and_410_ends_it() {
        let verdict = |status| Outcome::of_status(StatusCode::from_u16(status).unwrap(), None).verdict;
        assert_eq!(verdict(204), Verdict::Arrived);
        assert_eq!(verdict(410), Verdict::Gone);
        for failed in [302, 400, 404, 429, 500, 503] {
            assert_eq!(verdict(failed), Verdict::Failed, "{failed}");
        }
    }
}
