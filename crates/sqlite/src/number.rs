//! Conversion of unsigned numbers to SQLite's signed ones, and back.

/// A number below zero, stored where none is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a negative number, {0}, is stored where only non-negative ones are valid")]
pub struct NegativeNumber(pub i64);

/// Converts to SQLite's signed integer. A number that does not fit becomes `i64::MAX`: as a time it is never reached,
/// and otherwise it matches no row.
pub fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Converts a stored number.
///
/// # Errors
/// [`NegativeNumber`] if it is negative.
pub fn unsigned(number: i64) -> Result<u64, NegativeNumber> {
    u64::try_from(number).map_err(|_| NegativeNumber(number))
}
