//! How the desk behaves, as the operator set it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use admission::rules::Rules;

use super::outbox::OutboxLimits;
use crate::limits::{DECIDE_TIME, RECEIPT_WAIT, SESSIONS_IN_MEMORY, VAP_SESSION_IDLE, WAIT_FOR_COST};

/// The rules of a route as they are now, by its path: what a process that died left behind is settled under them.
#[derive(Clone)]
pub struct RulesOf(Arc<dyn Fn(&str) -> Option<Arc<Rules>> + Send + Sync>);

/// How the desk behaves.
#[derive(Clone, Debug)]
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
    /// Sessions that are kept in memory.
    pub sessions_in_memory: usize,
    /// How long a call waits for what another one of its tool costs (V-12).
    pub wait_for_cost: Duration,
    /// How long a decision may take before the call is denied.
    pub decide_time: Duration,
    /// Whether other gateways use the same database: then what another instance left may be under way.
    pub shared: bool,
    /// Denials a minute and principal, before every call is denied `rate_limited` (V-11).
    pub denials_per_minute: u32,
    /// The rules of the routes.
    pub rules: RulesOf,
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
            sessions_in_memory: SESSIONS_IN_MEMORY,
            wait_for_cost: WAIT_FOR_COST,
            decide_time: DECIDE_TIME,
            shared: false,
            denials_per_minute: crate::limits::DENIALS_PER_MINUTE,
            rules: RulesOf::new(|_| None),
        }
    }
}

impl RulesOf {
    /// Whoever knows the routes.
    pub fn new(rules: impl Fn(&str) -> Option<Arc<Rules>> + Send + Sync + 'static) -> Self {
        Self(Arc::new(rules))
    }

    /// Those of the route with this path, if there is one.
    pub fn route(&self, path: &str) -> Option<Arc<Rules>> {
        (self.0)(path)
    }
}

impl fmt::Debug for RulesOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RulesOf(..)")
    }
}
