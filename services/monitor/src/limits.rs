//! Every bound this crate applies, in one place.

use std::time::Duration;

/// The most logs one monitor watches.
pub const MAX_LOGS: usize = 64;
/// The most watch lists, vantage points and witnesses of one log, each.
pub const MAX_LISTED: usize = 256;
/// How often a log is asked, unless said otherwise.
pub const EVERY: Duration = Duration::from_secs(60);
/// No log is asked more often.
pub const EVERY_AT_LEAST: Duration = Duration::from_secs(1);
/// A checkpoint that no witness cosigned for this long is stale, unless said otherwise.
pub const STALE_AFTER: Duration = Duration::from_secs(15 * 60);
/// A log that does not answer for this long is an alarm, unless said otherwise.
pub const UNREACHABLE_AFTER: Duration = Duration::from_secs(10 * 60);
/// How far two honest clocks are apart, unless said otherwise.
pub const CLOCK_TOLERANCE: Duration = Duration::from_secs(5 * 60);
