//! Lifetimes that several modules of OAuth share.

use std::time::Duration;

use cairn_chassis::clock::Timestamp;

/// A grant expires if it is not used for this long.
pub(super) const GRANT_LIFETIME: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The time `duration` ago.
pub(super) fn before(now: Timestamp, duration: Duration) -> Timestamp {
    Timestamp::from_micros(
        now.as_micros().saturating_sub(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)),
    )
}
