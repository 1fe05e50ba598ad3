//! The clock as a parameter: decisions and records take their time from a [`Clock`], so that tests can set it.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use jiff::Timestamp;

/// A clock with millisecond resolution. Clones share the source of the time.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> u64 + Send + Sync>);

impl Clock {
    /// The system clock.
    pub fn system() -> Self {
        Self::of(|| {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
        })
    }

    /// A clock that reads the time from a function, in milliseconds since the Unix epoch.
    pub fn of(milliseconds: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self(Arc::new(milliseconds))
    }

    /// Returns the time in milliseconds since the Unix epoch.
    pub fn milliseconds(&self) -> u64 {
        (self.0)()
    }

    /// Returns the time.
    pub fn now(&self) -> Timestamp {
        timestamp(self.milliseconds())
    }

    /// Returns the time in whole seconds since the Unix epoch.
    pub fn seconds(&self) -> u64 {
        self.milliseconds() / 1000
    }
}

/// Converts milliseconds since the Unix epoch to a timestamp; a value out of range becomes the maximum.
pub fn timestamp(milliseconds: u64) -> Timestamp {
    let milliseconds = i64::try_from(milliseconds).unwrap_or(i64::MAX);
    Timestamp::from_millisecond(milliseconds).unwrap_or(Timestamp::MAX)
}

impl std::fmt::Debug for Clock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Clock({})", self.milliseconds())
    }
}
