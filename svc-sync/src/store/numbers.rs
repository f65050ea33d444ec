//! Counts, which columns hold as signed numbers.

pub(super) fn to_count(column: i64) -> u64 {
    u64::try_from(column).unwrap_or(0)
}

/// A number that was small when it was written.
pub(super) fn to_small(column: i64) -> u32 {
    u32::try_from(column.max(0)).unwrap_or(u32::MAX)
}

pub(super) fn to_column(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
