//! JSON serialization of message fields.

// serde passes fields by reference, whatever their type.
#![expect(clippy::ref_option, clippy::trivially_copy_pass_by_ref, reason = "the signatures are serde's")]

use prost_types::Timestamp;
use serde::{Serialize, Serializer};
use time::OffsetDateTime;

const NANOS_PER_MICRO: i32 = 1_000;
const MICROS_PER_MILLI: i64 = 1_000;
const MICROS_PER_SECOND: i64 = 1_000_000;
/// The length of a time as text, in bytes.
const LENGTH: usize = "2026-11-20T12:00:00.123Z".len();

/// Microseconds since the Unix epoch, saturating.
pub fn micros(at: &Timestamp) -> i64 {
    let micros_of_second = i64::from(at.nanos / NANOS_PER_MICRO);
    at.seconds.saturating_mul(MICROS_PER_SECOND).saturating_add(micros_of_second)
}

/// RFC 3339 in UTC with milliseconds, as in the contract: `2026-11-20T12:00:00.123Z`. Every list item has two of them, so
/// it avoids the overhead of `format!`.
pub fn rfc3339(micros: i64) -> String {
    let Ok(at) = OffsetDateTime::from_unix_timestamp(micros.div_euclid(MICROS_PER_SECOND)) else {
        return "9999-12-31T23:59:59.999Z".to_owned();
    };
    let mut text = String::with_capacity(LENGTH);
    match u32::try_from(at.year()) {
        Ok(year) => push_digits(&mut text, year, 4),
        Err(_) => text.push_str(&format!("{:04}", at.year())),
    }
    let millis = micros.rem_euclid(MICROS_PER_SECOND) / MICROS_PER_MILLI;
    for (before, number, digits) in [
        ('-', u32::from(u8::from(at.month())), 2),
        ('-', u32::from(at.day()), 2),
        ('T', u32::from(at.hour()), 2),
        (':', u32::from(at.minute()), 2),
        (':', u32::from(at.second()), 2),
        ('.', u32::try_from(millis).unwrap_or_default(), 3),
    ] {
        text.push(before);
        push_digits(&mut text, number, digits);
    }
    text.push('Z');
    text
}

/// Appends the last digits of a number, zero-padded.
fn push_digits(text: &mut String, number: u32, digits: u32) {
    for place in (0..digits).rev() {
        text.push(char::from_digit(number / 10_u32.pow(place) % 10, 10).unwrap_or('0'));
    }
}

/// A required time.
pub(crate) fn time<S: Serializer>(at: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
    at.as_ref().map(|at| rfc3339(micros(at))).unwrap_or_default().serialize(serializer)
}

/// An optional time.
pub(crate) fn optional_time<S: Serializer>(at: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
    at.as_ref().map(|at| rfc3339(micros(at))).serialize(serializer)
}

/// An enum value by its name. A number of a newer version is treated like "unspecified".
pub(crate) fn word<W, S>(number: &i32, serializer: S) -> Result<S::Ok, S::Error>
where
    W: TryFrom<i32> + Default + Serialize,
    S: Serializer,
{
    W::try_from(*number).unwrap_or_default().serialize(serializer)
}

/// Enum values by their names, without those of a newer version.
pub(crate) fn words<W, S>(numbers: &[i32], serializer: S) -> Result<S::Ok, S::Error>
where
    W: TryFrom<i32> + Serialize,
    S: Serializer,
{
    serializer.collect_seq(numbers.iter().filter_map(|number| W::try_from(*number).ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_to_the_millisecond() {
        for (micros, written) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (1_795_176_000_123_999, "2026-11-20T12:00:00.123Z"),
            (951_826_154_007_000, "2000-02-29T12:09:14.007Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (-62_135_596_800_000_000, "0001-01-01T00:00:00.000Z"),
            (-62_198_755_200_000_000, "-001-01-01T00:00:00.000Z"),
            (253_402_300_799_999_999, "9999-12-31T23:59:59.999Z"),
            (i64::MAX, "9999-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(rfc3339(micros), written, "{micros}");
        }
    }
}
