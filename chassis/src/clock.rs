//! Time as a parameter: rules take a [`Clock`] and never read the system clock.

use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use cairn_proto::json;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

const MICROS_PER_SECOND: i64 = 1_000_000;
const NANOS_PER_MICRO: i32 = 1_000;

/// A moment: microseconds since the Unix epoch, UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The moment `micros` microseconds after the Unix epoch.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since the Unix epoch.
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// The moment `seconds` seconds after the Unix epoch, at the end of time when that does not fit.
    pub const fn from_seconds(seconds: i64) -> Self {
        Self(seconds.saturating_mul(MICROS_PER_SECOND))
    }

    /// Whole seconds since the Unix epoch.
    pub const fn as_seconds(self) -> i64 {
        self.0.div_euclid(MICROS_PER_SECOND)
    }

    /// This moment and `duration` more.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)))
    }

    /// How long after `earlier` this is; zero when it is before.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// How long ago this was; `None` when it is in the future, such as after the clock was set back.
    pub fn age(self, now: Self) -> Option<Duration> {
        (self <= now).then(|| now.since(self))
    }

    /// The protobuf form.
    pub fn to_proto(self) -> prost_types::Timestamp {
        let micros_of_second = i32::try_from(self.0.rem_euclid(MICROS_PER_SECOND)).unwrap_or(0);
        prost_types::Timestamp { seconds: self.as_seconds(), nanos: micros_of_second * NANOS_PER_MICRO }
    }

    /// From the protobuf form, truncated to microseconds.
    pub fn from_proto(proto: &prost_types::Timestamp) -> Self {
        Self(json::micros(proto))
    }

    /// RFC 3339, UTC, with milliseconds, as the contract has it: `2026-11-20T12:00:00.123Z`.
    pub fn to_rfc3339(self) -> String {
        json::rfc3339(self.0)
    }

    /// Parses RFC 3339 with any offset; `None` when it is invalid.
    pub fn parse_rfc3339(text: &str) -> Option<Self> {
        let at = OffsetDateTime::parse(text, &Rfc3339).ok()?;
        i64::try_from(at.unix_timestamp_nanos() / i128::from(NANOS_PER_MICRO)).ok().map(Self)
    }
}

/// A source of the current time.
pub trait Clock: fmt::Debug + Send + Sync {
    /// The present moment.
    fn now(&self) -> Timestamp;
}

/// The system's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the system's clock")]
    fn now(&self) -> Timestamp {
        let elapsed = std::time::SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(i64::try_from(elapsed.as_micros()).unwrap_or(i64::MAX))
    }
}

/// A clock that moves only when it is set, for tests.
#[derive(Debug)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// A clock that shows `start`.
    pub const fn new(start: Timestamp) -> Self {
        Self(AtomicI64::new(start.0))
    }

    /// Moves the clock forward.
    pub fn advance(&self, duration: Duration) {
        self.0.fetch_add(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX), Ordering::SeqCst);
    }

    /// Sets the clock back, as a correction of the system clock does.
    pub fn put_back(&self, duration: Duration) {
        self.0.fetch_sub(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX), Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timestamp_survives_its_forms() {
        let at = Timestamp::parse_rfc3339("2026-11-20T14:00:00.123456+02:00").unwrap();
        assert_eq!(at.to_rfc3339(), "2026-11-20T12:00:00.123Z");
        assert_eq!(Timestamp::from_proto(&at.to_proto()), at);
        let before_epoch = Timestamp::from_micros(-1);
        assert_eq!(Timestamp::from_proto(&before_epoch.to_proto()), before_epoch);
        assert_eq!(before_epoch.to_rfc3339(), "1969-12-31T23:59:59.999Z");
    }

    #[test]
    fn nonsense_is_no_timestamp() {
        for odd in ["", "yesterday", "2026-13-01T00:00:00Z", "2026-11-20"] {
            assert_eq!(Timestamp::parse_rfc3339(odd), None);
        }
    }
}
