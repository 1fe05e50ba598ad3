//! The operator's ceilings for sessions and principals.

use jiff::{SignedDuration, Timestamp};

use crate::effective::{ScopeCeiling, SessionCeiling};
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
    /// The tools that a session may call.
    pub scope: ScopeCeiling,
    /// Further ceilings of the sessions of an agent, by its id.
    pub agents: Vec<(String, ScopeCeiling)>,
}

impl Ceiling {
    /// Returns the ceilings of the scope that apply to the sessions of an agent. `None` stands for a caller whose
    /// agent is unknown.
    pub fn scopes_of<'a>(&'a self, agent_id: Option<&'a str>) -> impl Iterator<Item = &'a ScopeCeiling> {
        let of_agent = self.agents.iter().filter(move |(agent, _)| Some(agent.as_str()) == agent_id);
        std::iter::once(&self.scope).chain(of_agent.map(|(_, scope)| scope))
    }

    /// Returns the ceiling of a session that this agent committed at this time, with a fixed deadline.
    #[must_use]
    pub fn of_session(&self, agent_id: &str, committed: Timestamp) -> SessionCeiling {
        let lasts = self.lasts.map(|lasts| committed.checked_add(lasts).unwrap_or(Timestamp::MAX));
        SessionCeiling {
            max_calls: self.max_calls,
            deadline: self.latest.into_iter().chain(lasts).min(),
            limits: self.limits.iter().map(|(meter, most)| (meter.to_owned(), *most)).collect(),
            scopes: self.scopes_of(Some(agent_id)).cloned().collect(),
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
