//! Attestations: one agent's signed delegation to another (section 5.1; ).

use decimal::Decimal;
use jose::json::Limits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::amount;
use crate::capability::Capabilities;
use crate::envelope::{SchemaVersion, budget};
use crate::limits::{self, MAX_TASK};
use crate::placeholder::UNKNOWN_AGENT;
use crate::scope::DeclaredScope;
use crate::signed::{BrokenMemberRule, Document, Signatures, present};
use crate::text::{AgentId, AttestationId, Reference, Sha256Digest, Text, UtcTime};

/// An attestation of a delegation (ARA).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "AgentROA Agent Route Attestation")]
pub struct Attestation {
    /// The version of the format.
    pub schema_version: SchemaVersion,
    /// The identifier of the attestation.
    pub ara_id: AttestationId,
    /// The time of issue.
    pub issued_at: UtcTime,
    /// The reference to the object before this one in the chain.
    pub upstream_ref: UpstreamRef,
    /// The agent that delegates.
    pub delegating_agent: DelegatingAgent,
    /// The agent that the scope is delegated to.
    pub delegated_agent: DelegatedAgent,
    /// The scope that is delegated.
    pub delegated_scope: DelegatedScope,
    /// The policy of the chain.
    pub policy: AttestationPolicy,
    /// The signatures, at least one of them by the delegating agent.
    pub signatures: Signatures,
}

/// A reference to the object before an attestation in its chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UpstreamRef {
    /// The type of the object.
    pub ref_type: RefType,
    /// Its identifier.
    pub ref_id: Text,
    /// The digest of the complete object, signatures included.
    pub ref_digest: Sha256Digest,
}

/// The type of the object that an attestation refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RefType {
    /// A root envelope.
    RoaEnvelope,
    /// An attestation.
    Ara,
}

/// The agent that delegates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DelegatingAgent {
    /// The agent.
    pub agent_id: AgentId,
    /// Its session.
    pub session_id: Text,
}

/// The agent that a scope is delegated to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DelegatedAgent {
    /// The agent.
    pub agent_id: AgentId,
    /// A reference to the agent's own declaration of its capabilities.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Reference")]
    pub capability_declaration_ref: Option<Reference>,
}

/// The scope that an attestation delegates. What it omits is inherited.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DelegatedScope {
    /// The capabilities.
    pub capabilities: Capabilities,
    /// A description of the delegated task.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Text<MAX_TASK>")]
    pub task_context: Option<Text<MAX_TASK>>,
    /// The number of further delegations; omitted, it is one less than before.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u32")]
    pub max_delegation_depth: Option<u32>,
    /// The highest classification of data.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Text")]
    pub data_classification_ceiling: Option<Text>,
    /// The highest amount that this agent and its descendants may spend, in `budget_unit`.
    #[serde(default, with = "amount", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "amount::schema")]
    pub budget_ceiling: Option<Decimal>,
    /// The unit of `budget_ceiling`, which requires it.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Text")]
    pub budget_unit: Option<Text>,
    /// The highest price class; lower is cheaper.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u32")]
    pub price_class: Option<u32>,
    /// The lowest class of service level; higher is stricter.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u32")]
    pub slo_class: Option<u32>,
}

/// The policy of a chain, as an attestation repeats it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AttestationPolicy {
    /// The digest of the policy document, equal to that of the root.
    pub policy_digest: Sha256Digest,
    /// The version of the policy.
    pub policy_version: Text,
}

impl Attestation {
    /// Returns the agent that the scope is delegated to.
    pub fn holder(&self) -> &AgentId {
        &self.delegated_agent.agent_id
    }

    /// Returns the scope that the attestation declares.
    pub fn declared_scope(&self) -> DeclaredScope {
        let scope = &self.delegated_scope;
        DeclaredScope {
            capabilities: scope.capabilities.clone(),
            max_delegation_depth: scope.max_delegation_depth,
            budget: budget(scope.budget_ceiling, scope.budget_unit.as_ref()),
            price_class: scope.price_class,
            slo_class: scope.slo_class,
            classification: scope.data_classification_ceiling.clone(),
        }
    }
}

impl Document for Attestation {
    const LIMITS: Limits = limits::OBJECT;

    fn signatures(&self) -> &Signatures {
        &self.signatures
    }

    fn check(&self) -> Result<(), BrokenMemberRule> {
        if self.delegated_scope.budget_ceiling.is_some() && self.delegated_scope.budget_unit.is_none() {
            return Err(BrokenMemberRule {
                pointer: "/delegated_scope/budget_unit",
                rule: "a budget_ceiling requires a budget_unit",
            });
        }
        match self.delegated_agent.agent_id.as_str() == UNKNOWN_AGENT {
            true => Err(BrokenMemberRule {
                pointer: "/delegated_agent/agent_id",
                rule: "a value that is reserved for calls without an envelope",
            }),
            false => Ok(()),
        }
    }
}
