//! How long things of OAuth last that more than one module counts.

use std::time::Duration;

use cairn_chassis::clock::Timestamp;

/// A grant that is not used for this long has ended.
pub(super) const GRANT_LIFETIME: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The moment that was so long ago.
pub(super) fn before(now: Timestamp, duration: Duration) -> Timestamp {
    Timestamp::from_micros(
        now.as_micros().saturating_sub(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)),
    )
}
