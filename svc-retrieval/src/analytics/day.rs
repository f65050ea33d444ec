//! UTC days.

use cairn_chassis::clock::Timestamp;

const SECONDS: i64 = 24 * 60 * 60;

/// A day in UTC, as days since 1970-01-01.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Day(i64);

impl Day {
    /// The day of a moment.
    pub(crate) const fn of(at: Timestamp) -> Self {
        Self(at.as_seconds().div_euclid(SECONDS))
    }

    /// The day with that number.
    pub(crate) const fn from_number(number: i64) -> Self {
        Self(number)
    }

    /// Days since 1970-01-01.
    pub(crate) const fn number(self) -> i64 {
        self.0
    }

    /// So many days before.
    pub(crate) fn minus(self, days: u32) -> Self {
        Self(self.0.saturating_sub(i64::from(days)))
    }

    /// This day and those after it, up to and with the last.
    pub(crate) fn to(self, last: Self) -> impl Iterator<Item = Self> {
        (self.0..=last.0).map(Self)
    }

    /// As `2026-11-21`.
    pub(crate) fn date(self) -> String {
        let start = Timestamp::from_seconds(self.0.saturating_mul(SECONDS)).to_rfc3339();
        start.split('T').next().unwrap_or_default().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_begins_and_ends_at_midnight_utc() {
        let day = |text| Day::of(Timestamp::parse_rfc3339(text).unwrap());
        assert_eq!(day("2026-11-21T00:00:00.000000Z"), day("2026-11-21T23:59:59.999999Z"));
        assert_eq!(day("2026-11-22T00:00:00Z").minus(1), day("2026-11-21T12:00:00Z"));
        assert_eq!(day("2026-11-22T01:30:00+02:00").date(), "2026-11-21");
        assert_eq!(day("1969-12-31T23:59:59.999999Z"), Day::from_number(-1));
        assert_eq!(day("2028-03-01T00:00:00Z").minus(1).date(), "2028-02-29");
    }

    #[test]
    fn a_range_has_both_its_ends() {
        let last = Day::from_number(20_000);
        assert_eq!(last.minus(89).to(last).count(), 90);
        assert_eq!(last.to(last).collect::<Vec<_>>(), [last]);
    }
}
