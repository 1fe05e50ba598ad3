//! The planned end of a log: how many entries it may have, and the time from which on it takes none.
//!
//! Both bounds hold for what content types admit. Statements of the operator (policies, erasures, actions and approvals,
//! clock corrections) count as entries and are never refused by them: a later policy can lift the bounds.

use merkle::TreeSize;

use crate::time_window::{Bound, TimeWindow, rfc3339};
use crate::violation::{Place, RuleName, Violation};

/// The rule that a log with as many entries as its policy allows takes no more.
pub const LOG_FULL: &str = "log-full";
/// The rule that a log takes no entry at or after the time at which its policy ends it.
pub const LOG_ENDED: &str = "log-ended";

/// The planned end of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogEnd {
    /// How many entries the log may have; at least 1.
    pub max_entries: Option<u64>,
    /// The first second of Unix time at which it takes no entry; at least 1.
    pub ends: Option<u64>,
}

impl LogEnd {
    /// No end.
    pub const NEVER: LogEnd = LogEnd { max_entries: None, ends: None };

    /// The largest tree that an entry may be part of when it is appended.
    pub(crate) fn largest_tree(&self) -> Option<TreeSize> {
        self.max_entries.map(TreeSize::new)
    }

    /// When an entry may be appended.
    pub(crate) fn bound(&self) -> Option<Bound> {
        let last = self.ends?.saturating_sub(1);
        let (rule, place) = (RuleName::fixed(LOG_ENDED), Place::Statement);
        Some(Bound { rule, place, window: TimeWindow::until(last) })
    }
}

/// The violation of a statement that would be an entry beyond the largest tree.
pub(crate) fn log_full(largest: TreeSize) -> Violation {
    let detail = format!("the policy ends the log at {largest} entries (log.max_entries), and it has them");
    Violation { rule: RuleName::fixed(LOG_FULL), place: Place::Statement, detail }
}

/// What is wrong with an entry at this time, when the log takes entries up to the second `last`.
pub(crate) fn ended(at: u64, last: u64) -> String {
    let ends = rfc3339(last.saturating_add(1));
    format!("the log's time is {}, and its policy ends it at {ends} (log.ends)", rfc3339(at))
}
