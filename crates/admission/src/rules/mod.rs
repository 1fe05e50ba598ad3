//! One route's rules as they stand at one moment: what the operator configured, compiled and ready to be asked.
//!
//! A call is decided under one snapshot; its digest goes into every record. Not here: how rules are written down (the
//! gateway's configuration), and what is decided by them ([`decide`](crate::decide)).

mod approvals;
mod ceiling;
mod cost;
mod describe;
mod judge;
mod policy;
mod sensitivity;

pub use approvals::{Approvals, Approver, Decider};
pub use ceiling::{Ceiling, PrincipalCeiling};
pub use cost::CostRules;
pub use judge::JudgeRules;
pub use policy::{PolicyRule, RuleError, Then};
pub use sensitivity::SensitivityRules;

use crate::glob::Pattern;
use crate::signature::{Demands, Freshness, Keyring};
use crate::tool::ToolRules;

/// The rules of one route.
#[derive(Clone, Debug)]
pub struct Rules {
    /// The route they are for: a session belongs to the route on which it was committed.
    pub route: String,
    /// What is demanded of signatures.
    pub demands: Demands,
    /// What happens to callers without VAP (reading V-33).
    pub posture: Posture,
    /// The tools that callers without VAP may call under [`Posture::Restricted`].
    pub restricted: Vec<Pattern>,
    /// The agents' keys, and those of approvers.
    pub keyring: Keyring,
    /// The most that a session may agree to (reading V-23).
    pub ceiling: Ceiling,
    /// The most that all sessions of a principal may spend together (reading V-3).
    pub principal_ceiling: Option<PrincipalCeiling>,
    /// What calls cost, as far as the operator knows (readings V-12, V-13).
    pub costs: CostRules,
    /// How sensitive tools are (reading V-30).
    pub sensitivities: SensitivityRules,
    /// C4: the operator's rules about tools, arguments, principal and meters, in order.
    pub policy: Vec<PolicyRule>,
    /// How the risk of a call is scored.
    pub risk: crate::risk::Weights,
    /// S2 and C5; without a judge the tier does not exist (reading V-28).
    pub judge: Option<JudgeRules>,
    /// What is demanded of tools and of their arguments.
    pub tools: ToolRules,
    /// Who outside of the client decides, and about what.
    pub approvals: Approvals,
    /// Methods besides `tools/call` that are judged like calls, by a name of their own (`resources/read`, …).
    pub gated_methods: Vec<String>,
    /// `sha256:` and the digest of what was configured.
    pub policy_digest: String,
}

/// What happens to a caller that says nothing of VAP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Posture {
    /// Its calls are denied.
    #[default]
    Deny,
    /// It may call what the operator listed.
    Restricted,
    /// Its calls are forwarded and recorded; it is told nothing.
    Advisory,
}

impl Posture {
    /// The word of the configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Posture::Deny => "deny",
            Posture::Restricted => "restricted",
            Posture::Advisory => "advisory",
        }
    }
}

impl Rules {
    /// Rules that deny every caller without VAP and have nothing else configured.
    #[must_use]
    pub fn new(route: &str, issuer: &str, policy_digest: &str) -> Self {
        Rules {
            route: route.to_owned(),
            demands: Demands {
                signed: false,
                amendments_signed: true,
                freshness: Freshness::Optional,
                audience: issuer.to_owned(),
            },
            posture: Posture::default(),
            restricted: Vec::new(),
            keyring: Keyring::default(),
            ceiling: Ceiling::default(),
            principal_ceiling: None,
            costs: CostRules::default(),
            sensitivities: SensitivityRules::default(),
            policy: Vec::new(),
            risk: crate::risk::Weights::default(),
            judge: None,
            tools: ToolRules::default(),
            approvals: Approvals::default(),
            gated_methods: Vec::new(),
            policy_digest: policy_digest.to_owned(),
        }
    }

    /// The rules of a route that is not served any more: nothing is admitted on it.
    ///
    /// # Panics
    /// Never: the name of its one rule can stand in a record.
    #[must_use]
    pub fn of_nothing(route: &str, issuer: &str) -> Self {
        let mut rules = Rules::new(route, issuer, "sha256:");
        // No key is known, so no message can be signed by one.
        rules.demands.signed = true;
        let gone = PolicyRule::new("route-gone", None, None, Then::Deny);
        rules.policy.push(gone.expect("a name, and no condition"));
        rules
    }

    /// Whether a tool is one that callers without VAP may call under [`Posture::Restricted`].
    #[must_use]
    pub fn is_restricted_tool(&self, tool: &str) -> bool {
        self.restricted.iter().any(|pattern| pattern.matches(tool))
    }
}
