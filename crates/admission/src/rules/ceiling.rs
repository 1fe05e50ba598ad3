//! The operator's ceilings.

use jiff::{SignedDuration, Timestamp};

use crate::effective;
use crate::session::Meters;

/// The most that one session may agree to. What is not named here is the agent's to choose.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ceiling {
    /// Calls.
    pub max_calls: Option<u64>,
    /// The latest deadline.
    pub latest: Option<Timestamp>,
    /// The longest a session may last from its commitment.
    pub lasts: Option<SignedDuration>,
    /// Each meter.
    pub limits: Meters,
}

impl Ceiling {
    /// The ceiling of a session that was committed at a time.
    #[must_use]
    pub fn since(&self, committed: Timestamp) -> effective::Ceiling {
        let lasts = self.lasts.map(|lasts| committed.checked_add(lasts).unwrap_or(Timestamp::MAX));
        effective::Ceiling {
            max_calls: self.max_calls,
            deadline: self.latest.into_iter().chain(lasts).min(),
            limits: self.limits.iter().map(|(meter, most)| (meter.to_owned(), *most)).collect(),
        }
    }
}

/// The most that all sessions of one principal may spend together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrincipalCeiling {
    /// Calls.
    pub max_calls: Option<u64>,
    /// Each meter.
    pub limits: Meters,
    /// Seconds after which consumption is counted anew; without, it never is.
    pub window: Option<i64>,
}
