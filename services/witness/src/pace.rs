//! How fast a log may grow: `qpd` times a day, evenly, so that nobody uses up the log's day.
//!
//! Anybody may send any checkpoint that a log has published. A count by the day would let a stranger spend it on old
//! ones; here a growth is due every `1/qpd` of a day, and once a larger tree was sent too early, no smaller one is
//! taken before it: the newest waits for one interval at most.

use merkle::TreeSize;

use crate::limits::GROWTH_BURST;

/// Microseconds of a second and of a day.
const SECOND: u64 = 1_000_000;
const DAY: u64 = 86_400 * SECOND;

/// When one log may grow again. All times in microseconds since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pace {
    /// By when all that was taken would have been due.
    paid: u64,
    /// The largest tree that came too early, and until when smaller ones wait for it.
    awaited: Option<(TreeSize, u64)>,
}

impl Pace {
    /// Counts a growth at `now` (Unix seconds); or gives the seconds to wait, and remembers what waits.
    pub fn grow(&mut self, per_day: u32, size: TreeSize, now: u64) -> Result<(), u64> {
        let now = now.saturating_mul(SECOND);
        let interval = (DAY / u64::from(per_day.max(1))).max(1);
        // The clock is read in seconds: a second's growths are taken in one.
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

    /// When all this happens.
    const NOON: u64 = 1_800_000_000;

    fn size(size: u64) -> TreeSize {
        TreeSize::new(size)
    }

    #[test]
    fn whoever_sends_every_old_checkpoint_keeps_the_newest_out_for_one_interval_at_most() {
        let (mut pace, mut taken) = (Pace::default(), 0);
        // Every second all day, one larger each time; 24 may be taken.
        for second in 0..43_300 {
            taken += u64::from(pace.grow(24, size(second), NOON + second).is_ok());
        }
        assert!((12..=14).contains(&taken), "{taken}");
        let now = NOON + 43_300;
        let wait = pace.grow(24, size(1_000_000), now).expect_err("not at once");
        assert!(wait <= 3_600, "{wait}");
        // The stranger is there first, and comes after.
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
