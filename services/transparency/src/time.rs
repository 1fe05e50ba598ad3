//! The system time, and times as text.

use std::time::{SystemTime, UNIX_EPOCH};

/// Now, in Unix seconds.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// A time as RFC 3339; `None` if it is out of range.
pub fn rfc3339(seconds: u64) -> Option<String> {
    Some(jiff::Timestamp::from_second(i64::try_from(seconds).ok()?).ok()?.to_string())
}
