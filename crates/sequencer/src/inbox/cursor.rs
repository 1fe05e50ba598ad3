//! Position of the next page of inbox keys.

use std::time::Duration;

use tokio::time::Instant;

/// Time for which a number is read again after it was first seen: an item with a smaller number than its neighbour
/// may become visible a little later.
const OVERLAP: Duration = Duration::from_secs(1);
/// Interval at which the whole inbox is read again, for items that become visible later still.
const SWEEP: Duration = Duration::from_secs(10);

/// Position that moves from the start of the inbox to its end, and then stays a little before the end.
#[derive(Debug)]
pub(super) struct Cursor {
    /// Number after which the next page begins.
    after: Option<u64>,
    /// Largest number that was looked at.
    seen: Option<u64>,
    /// Value of `seen` at `marked`; the cursor returns to it once it is old enough ([`OVERLAP`]).
    mark: Option<u64>,
    marked: Instant,
    back_to: Option<u64>,
    swept: Instant,
}

impl Cursor {
    pub(super) fn at_start() -> Self {
        let now = Instant::now();
        Self { after: None, seen: None, mark: None, marked: now, back_to: None, swept: now }
    }

    pub(super) fn after(&self) -> Option<u64> {
        self.after
    }

    /// Records that all items up to this number have been looked at.
    pub(super) fn pass(&mut self, number: u64) {
        self.after = self.after.max(Some(number));
        self.seen = self.seen.max(self.after);
    }

    /// Records that there are no items after the cursor at present.
    pub(super) fn end(&mut self) {
        let now = Instant::now();
        if now - self.marked >= OVERLAP {
            self.back_to = self.mark;
            (self.mark, self.marked) = (self.seen, now);
        }
        self.after = self.back_to;
        if now - self.swept >= SWEEP {
            (self.after, self.swept) = (None, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_became_visible_late_is_read_within_a_sweep() {
        let mut cursor = Cursor::at_start();
        cursor.pass(100);
        for _ in 0..30 {
            tokio::time::advance(Duration::from_millis(100)).await;
            cursor.end();
        }
        assert_eq!(cursor.after(), Some(100), "what was seen a second ago is not read again and again");
        cursor.pass(200);
        cursor.end();
        assert_eq!(cursor.after(), Some(100), "what was seen just now is");
        let begun = Instant::now();
        while cursor.after().is_some() {
            tokio::time::advance(Duration::from_millis(100)).await;
            cursor.end();
        }
        assert!(begun.elapsed() <= SWEEP);
    }
}
