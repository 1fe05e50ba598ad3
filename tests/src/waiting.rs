//! Waiting for something that another process does.

use std::fmt::Display;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The time between two looks.
const PAUSE: Duration = Duration::from_millis(20);

/// Waits until something holds.
///
/// # Panics
/// With `why`, if it does not hold within `patience`.
#[track_caller]
pub fn until<W: Display>(patience: Duration, why: impl Fn() -> W, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < patience, "{}", why());
        sleep(PAUSE);
    }
}
