//! How the desk behaves, as the operator set it.

use std::time::Duration;

use super::outbox::OutboxLimits;
use crate::limits::{DECIDE_TIME, RECEIPT_WAIT, SESSIONS_IN_MEMORY, VAP_SESSION_IDLE, WAIT_FOR_COST};

/// How the desk behaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The gateway's name: the issuer of its statements.
    pub issuer: String,
    /// What may wait for the log.
    pub outbox: OutboxLimits,
    /// No call is served before the log gave a receipt for its decision.
    pub receipt_required: bool,
    /// How long one is waited for then.
    pub receipt_wait: Duration,
    /// When a session ends that nobody ended.
    pub session_idle: Duration,
    /// How long records are kept here that the log has; none: for ever.
    pub keep: Option<Duration>,
    /// Sessions that are kept in memory.
    pub sessions_in_memory: usize,
    /// How long a call waits for what another one of its tool costs (V-12).
    pub wait_for_cost: Duration,
    /// How long a decision may take before the call is denied.
    pub decide_time: Duration,
    /// Whether other gateways use the same database: then what another instance left may be under way.
    pub shared: bool,
}

impl Settings {
    /// The defaults for a gateway of that name.
    pub fn of(issuer: impl Into<String>) -> Self {
        Self {
            issuer: issuer.into(),
            outbox: OutboxLimits::default(),
            receipt_required: false,
            receipt_wait: RECEIPT_WAIT,
            session_idle: VAP_SESSION_IDLE,
            keep: None,
            sessions_in_memory: SESSIONS_IN_MEMORY,
            wait_for_cost: WAIT_FOR_COST,
            decide_time: DECIDE_TIME,
            shared: false,
        }
    }
}
