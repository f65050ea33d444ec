//! Durations as people write them: 90s, 15m, 12h, 7d.

use std::time::Duration;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
const UNITS: [(char, u64); 4] = [('d', DAY), ('h', HOUR), ('m', MINUTE), ('s', 1)];
/// A hundred years: anything longer is a mistake.
const MAX_SECONDS: u64 = 36_500 * DAY;

/// Parses a whole number with its unit.
///
/// # Errors
/// When it is malformed, zero, or more than a hundred years.
pub(crate) fn read(text: &str) -> Result<Duration, String> {
    let odd =
        || "it takes a whole number with s, m, h or d behind it, such as 60s, 15m, 12h or 7d".to_owned();
    let split = |(letter, seconds): (char, u64)| text.strip_suffix(letter).map(|number| (number, seconds));
    let (number, seconds) = UNITS.into_iter().find_map(split).ok_or_else(odd)?;
    let number: u64 = number.parse().map_err(|_| odd())?;
    let span = number.checked_mul(seconds).filter(|span| (1..=MAX_SECONDS).contains(span));
    span.map(Duration::from_secs).ok_or_else(|| "it is at least a second and at most 36500d".to_owned())
}

/// A duration in its two largest units, such as `2h 5m`; smaller units are dropped.
pub(crate) fn shown(span: Duration) -> String {
    let mut left = span.as_secs();
    let mut parts = Vec::new();
    for (letter, seconds) in UNITS {
        let number = left / seconds;
        left %= seconds;
        if number > 0 {
            parts.push(format!("{number}{letter}"));
        }
    }
    parts.truncate(2);
    if parts.is_empty() { "less than 1s".to_owned() } else { parts.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_and_shown() {
        for (text, seconds, told) in [
            ("1s", 1, "1s"),
            ("90s", 90, "1m 30s"),
            ("15m", 900, "15m"),
            ("125m", 7_500, "2h 5m"),
            ("7d", 604_800, "7d"),
        ] {
            let span = read(text).unwrap();
            assert_eq!((span.as_secs(), shown(span).as_str()), (seconds, told), "{text}");
        }
        assert_eq!(shown(Duration::from_millis(999)), "less than 1s");
        assert_eq!(shown(Duration::from_secs(90_061)), "1d 1h");
    }

    #[test]
    fn what_is_no_span_is_refused() {
        for odd in
            ["", "s", "60", "0s", "-1s", "1.5h", "1h30m", "60ss", "1w", "36501d", "99999999999999999999d"]
        {
            assert!(read(odd).is_err(), "{odd}");
        }
    }
}
