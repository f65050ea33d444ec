//! Times in UTC, formatted as `ls`, `find` and `stat` do.

use time::{Month, OffsetDateTime};

/// Half a year: older times show the year instead of the time of day.
const RECENT: i64 = 31_556_952 / 2 * 1_000_000;

fn civil(micros: i64) -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp_nanos(i128::from(micros) * 1000).unwrap_or(OffsetDateTime::UNIX_EPOCH)
}

/// `Nov 22 02:14`, or `Nov 22  2025` if it is not recent.
pub(crate) fn listed(micros: i64, now: i64) -> String {
    let date = civil(micros);
    let month = short(date.month());
    let day = date.day();
    // A time in the future is not recent, except for a small clock skew.
    let age = now.saturating_sub(micros);
    if (-60_000_000..RECENT).contains(&age) {
        return format!("{month} {day:>2} {:02}:{:02}", date.hour(), date.minute());
    }
    format!("{month} {day:>2}  {:04}", date.year())
}

/// `2026-11-22 02:14:18 UTC`
pub(crate) fn exact(micros: i64) -> String {
    let date = civil(micros);
    format!(
        "{:04}-{:02}-{:02} {:02}:{:02}:{:02} UTC",
        date.year(),
        u8::from(date.month()),
        date.day(),
        date.hour(),
        date.minute(),
        date.second()
    )
}

fn short(month: Month) -> &'static str {
    match month {
        Month::January => "Jan",
        Month::February => "Feb",
        Month::March => "Mar",
        Month::April => "Apr",
        Month::May => "May",
        Month::June => "Jun",
        Month::July => "Jul",
        Month::August => "Aug",
        Month::September => "Sep",
        Month::October => "Oct",
        Month::November => "Nov",
        Month::December => "Dec",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_things_show_their_year() {
        let now = 1_763_777_658_000_000;
        assert_eq!(listed(now, now), "Nov 22 02:14");
        assert_eq!(listed(now - 400 * 86_400_000_000, now), "Oct 18  2024");
        assert_eq!(exact(now), "2025-11-22 02:14:18 UTC");
        assert_eq!(exact(i64::MAX), "1970-01-01 00:00:00 UTC");
    }
}
