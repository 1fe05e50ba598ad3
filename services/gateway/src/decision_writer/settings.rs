//! Settings of the decision writer, as the operator configured them.

use std::time::Duration;

use super::backlog::OutboxLimits;
use crate::limits::{DECIDE_TIME, RECEIPT_WAIT, SESSIONS_IN_MEMORY, VAP_SESSION_IDLE, WAIT_FOR_COST};

/// Settings of a [`DecisionWriter`](super::DecisionWriter).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriterSettings {
    /// The gateway's name: the issuer (`iss`) of its statements.
    pub issuer: String,
    /// Limits of the backlog for the log, at which calls are denied.
    pub outbox: OutboxLimits,
    /// `true` if a call is forwarded only after the log issued a receipt for its decision.
    pub receipt_required: bool,
    /// Longest wait for such a receipt.
    pub receipt_wait: Duration,
    /// Idle time after which a session is ended.
    pub session_idle: Duration,
    /// Retention of records that the log has; `None` keeps them for ever.
    pub keep: Option<Duration>,
    /// Number of streams (sessions, accounts and others) whose state is cached in memory.
    pub sessions_in_memory: usize,
    /// Longest time that a call waits for the cost of another call of its tool (V-12).
    pub wait_for_cost: Duration,
    /// Longest time for a decision, after which the call is denied.
    pub decide_time: Duration,
    /// `true` if other gateways use the same database: then a call that another instance has open may still be in
    /// flight.
    pub shared: bool,
}

impl WriterSettings {
    /// The default settings for a gateway with this name.
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
