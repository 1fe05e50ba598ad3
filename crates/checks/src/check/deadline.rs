//! The time of one request: that of its runs, and that of the comparisons around them.

use std::time::Duration;

use super::outcome::{Cause, out_of_time};

/// The end of the time of a request.
#[derive(Clone, Copy)]
pub(super) struct Deadline<'a> {
    elapsed: &'a dyn Fn() -> Duration,
    total: Duration,
}

impl<'a> Deadline<'a> {
    /// Sets the deadline `total_ms` after the moment at which `elapsed` is zero.
    pub(super) fn new(elapsed: &'a dyn Fn() -> Duration, total_ms: u64) -> Self {
        Self { elapsed, total: Duration::from_millis(total_ms) }
    }

    /// Returns a deadline that is not before `time` from now.
    pub(super) fn at_least(self, time: Duration) -> Self {
        Self { total: self.total.max((self.elapsed)().saturating_add(time)), ..self }
    }

    /// Returns the time that is left.
    pub(super) fn left(&self) -> Duration {
        self.total.saturating_sub((self.elapsed)())
    }

    /// Returns an error if no time is left.
    pub(super) fn check(&self) -> Result<(), Cause> {
        if self.left().is_zero() { Err(out_of_time()) } else { Ok(()) }
    }
}
