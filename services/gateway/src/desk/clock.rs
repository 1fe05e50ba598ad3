//! The time, as an argument: what is decided and written is told when it is.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// Says what time it is.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> u64 + Send + Sync>);

impl Clock {
    /// The system's.
    pub fn system() -> Self {
        Self::of(|| {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
        })
    }

    /// One that answers so, in milliseconds since 1970.
    pub fn of(milliseconds: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self(Arc::new(milliseconds))
    }

    /// Milliseconds since 1970.
    pub fn milliseconds(&self) -> u64 {
        (self.0)()
    }

    /// Whole seconds since 1970.
    pub fn seconds(&self) -> u64 {
        self.milliseconds() / 1000
    }
}

impl std::fmt::Debug for Clock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Clock({})", self.milliseconds())
    }
}
