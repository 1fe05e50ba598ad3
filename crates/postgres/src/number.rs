//! Conversion of unsigned numbers to SQL's signed ones.

/// Converts to a column's value. A number that does not fit becomes `i64::MAX`: as a time it is never reached, and
/// otherwise it matches no row, since no position reaches it (a tree has at most 2^62 leaves).
pub fn column(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Converts a row limit.
pub fn rows(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
