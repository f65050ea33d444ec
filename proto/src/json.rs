//! How parts of messages are written as JSON.

// serde gives fields by reference, whatever they are.
#![expect(clippy::ref_option, clippy::trivially_copy_pass_by_ref, reason = "the signatures are serde's")]

use prost_types::Timestamp;
use serde::{Serialize, Serializer};
use time::OffsetDateTime;

const NANOS_PER_MICRO: i32 = 1_000;
const MICROS_PER_SECOND: i64 = 1_000_000;

/// Microseconds since the epoch; as far as they reach.
pub fn micros(at: &Timestamp) -> i64 {
    let micros_of_second = i64::from(at.nanos / NANOS_PER_MICRO);
    at.seconds.saturating_mul(MICROS_PER_SECOND).saturating_add(micros_of_second)
}

/// RFC 3339, UTC, with milliseconds, as the contract has it: `2026-11-20T12:00:00.123Z`.
pub fn rfc3339(micros: i64) -> String {
    let nanos = i128::from(micros) * i128::from(NANOS_PER_MICRO);
    let Ok(at) = OffsetDateTime::from_unix_timestamp_nanos(nanos) else {
        return "9999-12-31T23:59:59.999Z".to_owned();
    };
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
        at.year(),
        u8::from(at.month()),
        at.day(),
        at.hour(),
        at.minute(),
        at.second(),
        at.millisecond()
    )
}

/// A time that every such message has.
pub(crate) fn time<S: Serializer>(at: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
    at.as_ref().map(|at| rfc3339(micros(at))).unwrap_or_default().serialize(serializer)
}

/// A time that a message may lack.
pub(crate) fn optional_time<S: Serializer>(at: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
    at.as_ref().map(|at| rfc3339(micros(at))).serialize(serializer)
}

/// A word by its name. A number of tomorrow is read as what "unspecified" is.
pub(crate) fn word<W, S>(number: &i32, serializer: S) -> Result<S::Ok, S::Error>
where
    W: TryFrom<i32> + Default + Serialize,
    S: Serializer,
{
    W::try_from(*number).unwrap_or_default().serialize(serializer)
}

/// Words by their names, without those of tomorrow.
pub(crate) fn words<W, S>(numbers: &[i32], serializer: S) -> Result<S::Ok, S::Error>
where
    W: TryFrom<i32> + Serialize,
    S: Serializer,
{
    serializer.collect_seq(numbers.iter().filter_map(|number| W::try_from(*number).ok()))
}
