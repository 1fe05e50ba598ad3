//! Rate limiter for the growth of a log: `qpd` growths per day, evenly spaced.
//!
//! Checkpoints are public, so third parties can submit old ones. With a daily counter they could exhaust the log's
//! quota. Here a growth is permitted every `1/qpd` of a day, and after a larger tree was sent too early, smaller ones
//! are rejected until it had its chance: the newest checkpoint waits for at most one interval.

use merkle::TreeSize;

use crate::limits::GROWTH_BURST;

/// Microseconds in a second; `DAY`: in a day.
const SECOND: u64 = 1_000_000;
const DAY: u64 = 86_400 * SECOND;

/// State of one log's rate limiter. All times are in microseconds since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pace {
    /// Time at which all accepted growths would have been due.
    paid: u64,
    /// The largest tree that was sent too early, and the time until which smaller ones are rejected in its favour.
    awaited: Option<(TreeSize, u64)>,
}

impl Pace {
    /// Counts a growth to `size` at `now` (Unix seconds). If it is too early, returns the seconds to wait and remembers
    /// `size`.
    pub fn grow(&mut self, per_day: u32, size: TreeSize, now: u64) -> Result<(), u64> {
        let now = now.saturating_mul(SECOND);
        let interval = (DAY / u64::from(per_day.max(1))).max(1);
        // The clock has a resolution of one second: a second's growths are accepted together.
        let ahead = interval.saturating_mul(GROWTH_BURST - 1).max(SECOND);
        let due = self.paid.saturating_sub(ahead);
        if now < due {
            let until = due.saturating_add(interval);
            let size = self.awaited.map_or(size, |(awaited, _)| awaited.max(size));
            self.awaited = Some((size, until));
            return Err((due - now).div_ceil(SECOND));
        }
        if let Some((awaited, until)) = self.awaited
            && size < awaited
            && now < until
        {
            return Err((until - now).div_ceil(SECOND));
        }
        *self = Self { paid: self.paid.max(now).saturating_add(interval), awaited: None };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The time of the tests, in Unix seconds.
    const NOON: u64 = 1_800_000_000;

    fn size(size: u64) -> TreeSize {
        TreeSize::new(size)
    }

    #[test]
    fn whoever_sends_every_old_checkpoint_keeps_the_newest_out_for_one_interval_at_most() {
        let (mut pace, mut taken) = (Pace::default(), 0);
        // One growth per second for half a day; `qpd` is 24.
        for second in 0..43_300 {
            taken += u64::from(pace.grow(24, size(second), NOON + second).is_ok());
        }
        assert!((12..=14).contains(&taken), "{taken}");
        let now = NOON + 43_300;
        let wait = pace.grow(24, size(1_000_000), now).expect_err("not at once");
        assert!(wait <= 3_600, "{wait}");
        // The third party submits first and is rejected in favour of the larger tree.
        for second in 0..=wait {
            assert!(pace.grow(24, size(50_000 + second), now + second).is_err(), "{second}");
        }
        assert_eq!(pace.grow(24, size(1_000_000), now + wait), Ok(()));
    }

    #[test]
    fn nobody_waits_for_ever_for_a_tree_that_does_not_come_again() {
        let mut pace = Pace::default();
        for number in 1..=GROWTH_BURST {
            assert_eq!(pace.grow(24, size(number), NOON), Ok(()));
        }
        let wait = pace.grow(24, size(100), NOON).expect_err("too early");
        let longer = pace.grow(24, size(50), NOON + wait).expect_err("a larger one is awaited");
        assert_eq!(pace.grow(24, size(50), NOON + wait + longer), Ok(()));
    }

    #[test]
    fn a_log_that_keeps_its_pace_never_waits() {
        for per_day in [1, 7, 24, 86_400, 864_000] {
            let mut pace = Pace::default();
            for number in 0_u64..200 {
                let now = NOON + (number * 86_400).div_ceil(u64::from(per_day));
                assert_eq!(pace.grow(per_day, size(number), now), Ok(()), "{per_day} {number}");
            }
        }
    }
}
