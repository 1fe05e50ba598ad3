//! Intervals of the log's time, and the rules about time that demand them.

use crate::violation::{Place, RuleName};

/// An interval of Unix time in seconds, with both ends included; a `None` end is unbounded.
///
/// This crate has no clock. Rules about time return the interval in which they hold, and the caller compares it with
/// the log's time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeWindow {
    /// The first second of the interval.
    pub not_before: Option<u64>,
    /// The last second of the interval.
    pub not_after: Option<u64>,
}

impl TimeWindow {
    /// The interval without bounds.
    pub const ALWAYS: TimeWindow = TimeWindow { not_before: None, not_after: None };

    /// The interval from a second on, without an end.
    pub fn from(not_before: u64) -> Self {
        TimeWindow { not_before: Some(not_before), not_after: None }
    }

    /// The interval up to and including a second.
    pub fn until(not_after: u64) -> Self {
        TimeWindow { not_before: None, not_after: Some(not_after) }
    }

    /// Returns whether the time `at`, in Unix seconds, lies in the interval.
    pub fn contains(&self, at: u64) -> bool {
        self.not_before.is_none_or(|start| start <= at) && self.not_after.is_none_or(|end| at <= end)
    }

    /// Returns the interval of the times that lie in both.
    pub fn intersect(self, other: TimeWindow) -> TimeWindow {
        TimeWindow {
            not_before: self.not_before.max(other.not_before),
            not_after: match (self.not_after, other.not_after) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            },
        }
    }

    /// Returns whether the interval contains no time.
    pub fn is_empty(&self) -> bool {
        matches!((self.not_before, self.not_after), (Some(start), Some(end)) if start > end)
    }
}

/// A rule about time, and the interval in which it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bound {
    pub rule: RuleName,
    pub place: Place,
    pub window: TimeWindow,
}

/// Formats Unix seconds as RFC 3339, or as a number if they are out of range.
pub(crate) fn rfc3339(seconds: u64) -> String {
    let time = i64::try_from(seconds).ok().and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
    time.map_or_else(|| seconds.to_string(), |time| time.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_intersect_as_sets_of_seconds() {
        let window = |a: Option<u64>, b: Option<u64>| TimeWindow { not_before: a, not_after: b };
        assert_eq!(TimeWindow::from(5).intersect(TimeWindow::until(9)), window(Some(5), Some(9)));
        assert_eq!(window(Some(1), Some(9)).intersect(window(Some(5), Some(20))), window(Some(5), Some(9)));
        assert_eq!(TimeWindow::ALWAYS.intersect(TimeWindow::until(3)), TimeWindow::until(3));
        assert!(TimeWindow::from(5).intersect(TimeWindow::until(4)).is_empty());
        assert!(!TimeWindow::from(5).intersect(TimeWindow::until(5)).is_empty());
        assert!(TimeWindow::from(5).contains(5) && !TimeWindow::from(5).contains(4));
        assert!(TimeWindow::until(5).contains(5) && !TimeWindow::until(5).contains(6));
    }
}
