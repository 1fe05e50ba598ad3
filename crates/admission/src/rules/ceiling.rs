//! The operator's ceilings for sessions and principals.

use jiff::{SignedDuration, Timestamp};

use crate::effective;
use crate::session::Meters;

/// The ceiling of one session. Limits that it does not set are the agent's choice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ceiling {
    /// Maximum number of calls.
    pub max_calls: Option<u64>,
    /// The latest deadline.
    pub latest: Option<Timestamp>,
    /// The maximum duration of a session from its commitment.
    pub lasts: Option<SignedDuration>,
    /// The ceiling of each meter.
    pub limits: Meters,
}

impl Ceiling {
    /// Returns the ceiling of a session that was committed at this time, with a fixed deadline.
    #[must_use]
    pub fn since(&self, committed: Timestamp) -> effective::SessionCeiling {
        let lasts = self.lasts.map(|lasts| committed.checked_add(lasts).unwrap_or(Timestamp::MAX));
        effective::SessionCeiling {
            max_calls: self.max_calls,
            deadline: self.latest.into_iter().chain(lasts).min(),
            limits: self.limits.iter().map(|(meter, most)| (meter.to_owned(), *most)).collect(),
        }
    }
}

/// The ceiling of all sessions of one principal together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrincipalCeiling {
    /// Maximum number of calls.
    pub max_calls: Option<u64>,
    /// The ceiling of each meter.
    pub limits: Meters,
    /// Seconds after which consumption is reset; `None` for never.
    pub window: Option<i64>,
}
