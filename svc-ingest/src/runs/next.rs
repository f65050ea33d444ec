//! The kind and the time of a source's next run.

use std::time::Duration;

use cairn_chassis::clock::Timestamp;
use cairn_chassis::entropy::Entropy;
use cairn_proto::domain::{SourceRunKind, SourceRunStatus};
use cairn_providers::{Changes, Traits};

use crate::model::{Run, Source, Stage};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Interval of verifying runs where change feeds are complete.
const VERIFY_EXACT: Duration = DAY.saturating_mul(30);
/// Interval where change feeds miss some deletions.
const VERIFY_HIGH_WATER: Duration = DAY.saturating_mul(7);
/// Jitter in percent of the interval, so that sources that were connected together drift apart.
const JITTER_PERCENT: u32 = 5;
/// Backoff of failing sources: at most this multiple of the interval.
const MAX_BACKOFF_FACTOR: u32 = 8;

/// The kind of a source's next run.
pub(crate) fn kind(source: &Source, traits: &Traits, now: Timestamp) -> SourceRunKind {
    let verify_after = match traits.changes {
        Changes::None => return SourceRunKind::Full,
        Changes::Exact => VERIFY_EXACT,
        Changes::HighWater { .. } => VERIFY_HIGH_WATER,
    };
    if source.full_next || source.position.is_none() {
        return SourceRunKind::Full;
    }
    match source.listed_at {
        Some(listed) if now.since(listed) < verify_after => SourceRunKind::Changes,
        _ => SourceRunKind::Verify,
    }
}

/// Initializes a queued run: it continues where the last one stopped, or starts with the kind that is due.
pub(crate) fn begin(run: &mut Run, last: Option<&Run>, source: &Source, traits: &Traits, now: Timestamp) {
    let stopped = last.filter(|last| goes_on(last, source));
    if let Some(stopped) = stopped {
        run.kind = stopped.kind;
        run.position.clone_from(&stopped.position);
        run.listing = stopped.listing;
        return;
    }
    run.kind = kind(source, traits, now);
    if run.kind == SourceRunKind::Changes {
        run.position.clone_from(&source.position);
    }
}

/// Whether the next run continues where this one stopped.
fn goes_on(last: &Run, source: &Source) -> bool {
    let stopped = matches!(last.state, SourceRunStatus::Cancelled | SourceRunStatus::Failed);
    // After the last page, the position is one of the change feed and not of the listing.
    let is_within = matches!(last.stage, Stage::Retries | Stage::Pages);
    stopped && last.kind.lists() && last.position.is_some() && is_within && !source.full_next
}

/// The time of the next run, from the start of the last one.
pub(crate) fn at(from: Timestamp, every: Duration, failures: u32, entropy: &dyn Entropy) -> Timestamp {
    let slower = 1_u32
        .checked_shl(failures.saturating_sub(1).min(8))
        .unwrap_or(MAX_BACKOFF_FACTOR)
        .min(MAX_BACKOFF_FACTOR);
    let every = every.saturating_mul(slower);
    let mut bytes = [0_u8; 4];
    entropy.fill(&mut bytes);
    let part = u32::from_le_bytes(bytes) % (JITTER_PERCENT * 100 + 1);
    from.plus(every.saturating_add(every.saturating_mul(part) / 10_000))
}

/// The start of the next day (UTC), when budgets are reset.
pub(crate) fn tomorrow(now: Timestamp) -> Timestamp {
    let day = i64::try_from(DAY.as_secs()).unwrap_or(i64::MAX);
    Timestamp::from_seconds((now.as_seconds().div_euclid(day) + 1).saturating_mul(day))
}

/// The number of a day, UTC.
pub(crate) fn day(now: Timestamp) -> i64 {
    now.as_seconds().div_euclid(i64::try_from(DAY.as_secs()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use cairn_chassis::entropy::SeededEntropy;

    use super::*;

    #[test]
    fn a_run_follows_its_time_with_little_jitter() {
        let (start, hour) = (Timestamp::from_seconds(1_800_000_000), Duration::from_secs(3_600));
        let entropy = SeededEntropy::new(1);
        let pauses: Vec<Duration> = (0..100).map(|_| at(start, hour, 0, &entropy).since(start)).collect();
        assert!(pauses.iter().all(|pause| (hour..=hour * 105 / 100).contains(pause)));
        assert!(pauses.iter().any(|pause| *pause != pauses[0]), "the jitter differs");
        assert!(at(start, hour, 3, &entropy).since(start) >= hour * 4);
        assert!(at(start, hour, 200, &entropy).since(start) <= hour * 9, "slower, not for ever");
    }

    #[test]
    fn budgets_are_of_days_in_utc() {
        let noon = Timestamp::parse_rfc3339("2026-11-23T12:00:00Z").unwrap();
        assert_eq!(tomorrow(noon).to_rfc3339(), "2026-11-24T00:00:00.000Z");
        assert_eq!(day(tomorrow(noon)), day(noon) + 1);
        assert_eq!(tomorrow(tomorrow(noon)).to_rfc3339(), "2026-11-25T00:00:00.000Z");
    }
}
