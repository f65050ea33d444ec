//! Parses timestamps of services.

use cairn_chassis::clock::Timestamp;

/// The error for a timestamp without time zone: guessing one could lose changes.
pub(crate) const NO_ZONE: &str = "the provider's time of its last change is missing, or has no time zone";

/// Bytes of a timestamp.
const MAX_BYTES: usize = 64;

/// Parses RFC 3339, also with an offset without colon (`2026-11-20T12:00:00.000+0000`, Jira). `None` for anything else, including times
/// without zone.
pub(crate) fn moment(text: &str) -> Option<Timestamp> {
    if text.len() > MAX_BYTES {
        return None;
    }
    Timestamp::parse_rfc3339(text).or_else(|| {
        let (time, offset) = text.split_at_checked(text.len().checked_sub(4)?)?;
        let (hours, minutes) = offset.split_at_checked(2)?;
        Timestamp::parse_rfc3339(&format!("{time}{hours}:{minutes}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_has_a_zone_is_a_moment() {
        let noon = Timestamp::parse_rfc3339("2026-11-20T12:00:00Z");
        for text in [
            "2026-11-20T12:00:00Z",
            "2026-11-20T12:00:00.000+0000",
            "2026-11-20T14:00:00+02:00",
            "2026-11-20T07:00:00-0500",
        ] {
            assert_eq!(moment(text), noon, "{text}");
        }
        for odd in [
            "",
            "2026",
            "2026-11-20",
            "2026-11-20T12:00:00",
            "2026-11-20 12:00:00",
            "1763640000",
            "yesterday",
            "ééééé",
        ] {
            assert_eq!(moment(odd), None, "{odd}");
        }
        assert_eq!(moment(&"2".repeat(10_000)), None);
    }
}
