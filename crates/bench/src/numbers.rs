//! Numbers of statements, each given out once, so that no statement is registered twice by accident.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Numbers per second of the clock: more than one second of signing needs, so that a later run begins above all numbers
/// of this one. The largest number stays below 2^53 until the year 2242.
const PER_SECOND: u64 = 1 << 20;

/// The numbers that are left.
pub(crate) struct Numbers(AtomicU64);

impl Numbers {
    /// Returns numbers that no earlier run on this machine has used, nor [`grow`](crate::grow).
    pub(crate) fn unused() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        Self(AtomicU64::new(now * PER_SECOND))
    }

    /// Takes the next numbers.
    pub(crate) fn take(&self, count: u64) -> Range<u64> {
        let first = self.0.fetch_add(count, Ordering::Relaxed);
        first..first + count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_number_is_given_out_twice() {
        let numbers = Numbers::unused();
        let (first, second) = (numbers.take(10), numbers.take(5));
        assert_eq!((first.end - first.start, second.start), (10, first.end));
        assert!(second.end < 1 << 53);
    }
}
