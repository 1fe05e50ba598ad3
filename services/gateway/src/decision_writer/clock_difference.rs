//! The gateway's clock compared with that of the database's server, which all gateways on the database share.

use std::fmt;
use std::time::Duration;

use jiff::SignedDuration;

use crate::limits::CLOCK_TOLERANCE;

/// The time by which the gateway's clock is ahead of the server's; negative if it is behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockDifference(SignedDuration);

impl ClockDifference {
    /// Compares with a clock that was read at an unknown moment between two readings of the gateway's, in milliseconds since
    /// 1970: the time of the round trip does not count as a difference.
    pub fn between(theirs: Duration, (before, after): (u64, u64)) -> Self {
        let theirs = u64::try_from(theirs.as_millis()).unwrap_or(u64::MAX);
        let ours = theirs.clamp(before, after.max(before));
        Self(SignedDuration::from_millis(signed(ours).saturating_sub(signed(theirs))))
    }

    /// Returns whether the clocks agree: they differ by at most [`CLOCK_TOLERANCE`].
    pub fn is_tolerated(self) -> bool {
        self.0.unsigned_abs() <= CLOCK_TOLERANCE
    }

    /// The seconds by which the gateway's clock is ahead; negative if it is behind.
    pub fn seconds(self) -> f64 {
        self.0.as_secs_f64()
    }
}

impl fmt::Display for ClockDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let direction = if self.0.is_negative() { "behind" } else { "ahead of" };
        write!(f, "{:.1} s {direction} the database server's", self.0.unsigned_abs().as_secs_f64())
    }
}

fn signed(milliseconds: u64) -> i64 {
    i64::try_from(milliseconds).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: Duration = Duration::from_secs(1_000);

    #[test]
    fn the_time_of_the_round_trip_is_no_difference() {
        for readings in [(1_000_000, 1_000_000), (990_000, 1_010_000), (1_000_000, 1_030_000)] {
            assert_eq!(ClockDifference::between(SERVER, readings), ClockDifference::default());
        }
    }

    #[test]
    fn a_clock_is_ahead_by_its_first_reading_and_behind_by_its_last() {
        let ahead = ClockDifference::between(SERVER, (1_012_300, 1_013_000));
        assert_eq!(ahead.to_string(), "12.3 s ahead of the database server's");
        let behind = ClockDifference::between(SERVER, (987_000, 987_700));
        assert_eq!(behind.to_string(), "12.3 s behind the database server's");
        assert!(!ahead.is_tolerated() && !behind.is_tolerated());
        assert!((ahead.seconds() + behind.seconds()).abs() < 1e-9, "{ahead:?} {behind:?}");
    }

    #[test]
    fn five_seconds_are_tolerated_and_a_clock_that_was_set_back_in_between_is_read_once() {
        assert!(ClockDifference::between(SERVER, (1_005_000, 1_005_001)).is_tolerated());
        assert!(!ClockDifference::between(SERVER, (1_005_001, 1_005_001)).is_tolerated());
        assert!(ClockDifference::between(SERVER, (1_000_000, 900_000)).is_tolerated());
    }
}
