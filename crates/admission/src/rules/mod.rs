//! The rules of one route at one time: the operator's configuration, compiled for evaluation.
//!
//! A call is decided under one snapshot of [`Rules`], whose digest is part of every record.
//!
//! Not here: the syntax of the configuration (the gateway), and the decisions ([`decide`](crate::decide)).

mod approvals;
mod authority;
mod ceiling;
mod cost;
mod describe;
mod judge;
mod operator_commitment;
mod policy;
mod sensitivity;

pub use approvals::{Approvals, Approver, Decider};
pub use authority::{AuthorityDemand, AuthorityRules, CapabilityServers, DegradedMode, ToolClass};
pub use ceiling::{Ceiling, PrincipalCeiling};
pub use cost::{CostRules, ExpectedCosts};
pub use judge::JudgeRules;
pub use operator_commitment::{OperatorCommitment, OperatorSession, envelope_text};
pub use policy::{PolicyRule, RuleError, Then};
pub use sensitivity::SensitivityRules;

use crate::signature::{Demands, Freshness, Keyring};
use crate::tool::ToolRules;
use vap::glob::{self, Pattern};

/// The rules of one route.
#[derive(Clone, Debug)]
pub struct Rules {
    /// The name of the route. A session belongs to the route of its commitment.
    pub route: String,
    /// The requirements on signatures.
    pub demands: Demands,
    /// The treatment of callers without VAP (reading V-33).
    pub posture: Posture,
    /// The tools that callers without VAP may call under [`Posture::Restricted`].
    pub restricted: Vec<Pattern>,
    /// The commitment for callers without VAP under [`Posture::Commitment`].
    pub operator_commitment: Option<OperatorCommitment>,
    /// The keys of agents and approvers.
    pub keyring: Keyring,
    /// The ceiling of each session (reading V-23).
    pub ceiling: Ceiling,
    /// The ceiling of all sessions of a principal together (reading V-3).
    pub principal_ceiling: Option<PrincipalCeiling>,
    /// The operator's costs of calls (readings V-12, V-13).
    pub costs: CostRules,
    /// The operator's sensitivity classes of tools (reading V-30).
    pub sensitivities: SensitivityRules,
    /// C4: the operator's rules about tools, arguments, principal and meters, in order.
    pub policy: Vec<PolicyRule>,
    /// The weights of the risk score.
    pub risk: crate::risk::Weights,
    /// The judge's rules for S2 and C5; `None` if no judge is configured (reading V-28).
    pub judge: Option<JudgeRules>,
    /// The requirements on tools and arguments.
    pub tools: ToolRules,
    /// The approvers outside of the client, and the decisions that wait for them.
    pub approvals: Approvals,
    /// Methods other than `tools/call` that are decided like calls, under a name of their own (`resources/read`, …).
    pub gated_methods: Vec<String>,
    /// The enforcement of AgentROA.
    pub authority: AuthorityRules,
    /// The digest of these rules (see [`Rules::digested`]), as `sha256:` and hexadecimal.
    pub policy_digest: String,
}

/// The treatment of calls without VAP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Posture {
    /// `deny`: the calls are denied.
    #[default]
    Deny,
    /// `restricted`: only the tools in [`Rules::restricted`] may be called.
    Restricted,
    /// `advisory`: the calls are forwarded and recorded; the caller gets no Verdict.
    Advisory,
    /// `roa`: the calls are admitted if AgentROA authorizes them.
    Roa,
    /// `commitment`: the calls belong to a session under [`Rules::operator_commitment`].
    Commitment,
}

impl Posture {
    /// Returns the name used in the configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Posture::Deny => "deny",
            Posture::Restricted => "restricted",
            Posture::Advisory => "advisory",
            Posture::Roa => "roa",
            Posture::Commitment => "commitment",
        }
    }
}

impl Rules {
    /// Creates rules that deny every caller without VAP and configure nothing else.
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
            operator_commitment: None,
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
            authority: AuthorityRules::default(),
            policy_digest: policy_digest.to_owned(),
        }
    }

    /// Creates the rules of a route that is no longer served: nothing is admitted.
    ///
    /// # Panics
    /// Never: the name of its one rule is valid in a record.
    #[must_use]
    pub fn denying_all(route: &str, issuer: &str) -> Self {
        let mut rules = Rules::new(route, issuer, "");
        // The keyring is empty, so no signature can verify.
        rules.demands.signed = true;
        let gone = PolicyRule::new("route-gone", None, None, Then::Deny);
        rules.policy.push(gone.expect("a name, and no condition"));
        rules.digested()
    }

    /// Returns `true` if callers without VAP may call the tool under [`Posture::Restricted`].
    #[must_use]
    pub fn is_restricted_tool(&self, tool: &str) -> bool {
        glob::matches_any(&self.restricted, tool)
    }
}
