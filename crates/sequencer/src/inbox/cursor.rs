//! Where the next page of inbox keys begins.

use std::time::Duration;

use tokio::time::Instant;

/// How long a number is read again after it was seen last: an item with a smaller number than its
/// neighbour may become visible a little later.
const OVERLAP: Duration = Duration::from_secs(1);
/// How often the whole inbox is read again, for what became visible later still.
const SWEEP: Duration = Duration::from_secs(10);

/// A position in the inbox that goes from its start to its end, and then stays a little before the end.
#[derive(Debug)]
pub(super) struct Cursor {
    /// The next page begins after this number.
    after: Option<u64>,
    /// The largest number that was looked at.
    seen: Option<u64>,
    /// `seen` as it was at `marked`: what the cursor goes back to once that is old enough.
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

    /// All items up to this number have been looked at.
    pub(super) fn pass(&mut self, number: u64) {
        self.after = self.after.max(Some(number));
        self.seen = self.seen.max(self.after);
    }

    /// There is nothing behind the cursor now.
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
