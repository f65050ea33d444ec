//! Counts, which columns hold as signed numbers.

pub(super) fn to_count(column: i64) -> u64 {
    u64::try_from(column).unwrap_or(0)
}

pub(super) fn to_column(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
