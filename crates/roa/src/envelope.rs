//! Root envelopes: an authorizer's signed grant to one agent for one session (section 4.1, Appendix A.1; ).

use decimal::Decimal;
use jose::json::Limits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::amount;
use crate::capability::Capabilities;
use crate::limits;
use crate::placeholder::{NO_POLICY, NO_POLICY_DIGEST, NO_ROOT, NO_SESSION, UNKNOWN_AGENT};
use crate::scope::{Budget, DeclaredScope};
use crate::signed::{BrokenMemberRule, Document, Signatures, present};
use crate::text::{AgentId, EnvelopeId, Reference, Sha256Digest, Text, UtcTime};

/// The only version of the objects (`schema_version`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SchemaVersion {
    /// Version 1.0.
    #[serde(rename = "1.0")]
    V1,
}

/// A root envelope (ROA).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "AgentROA ROA Envelope")]
pub struct Envelope {
    /// The version of the format.
    pub schema_version: SchemaVersion,
    /// The identifier of the envelope.
    pub envelope_id: EnvelopeId,
    /// The time of issue.
    pub issued_at: UtcTime,
    /// The time from which on the envelope is not valid any more.
    pub expires_at: UtcTime,
    /// The session and agent that the envelope is for.
    pub session: EnvelopeSession,
    /// The scope that is granted.
    pub authorized_scope: AuthorizedScope,
    /// The policy under which the scope is granted.
    pub policy: EnvelopePolicy,
    /// The approval and the strength of authentication that are required.
    pub authorization: Authorization,
    /// References to evidence. A gateway cannot check them.
    pub evidence: EnvelopeEvidence,
    /// The signatures, at least one of them by an authorizer.
    pub signatures: Signatures,
}

/// The session that an envelope is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EnvelopeSession {
    /// The identifier of the session.
    pub session_id: Text,
    /// The channel of the session.
    pub channel: Channel,
    /// The agent.
    pub agent_id: AgentId,
    /// A reference to a device attestation.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Reference")]
    pub device_attestation_ref: Option<Reference>,
}

/// The channel of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Channel {
    /// A programming interface.
    Api,
    /// A client of the Model Context Protocol.
    McpClient,
    /// Voice.
    Voice,
    /// A browser.
    Browser,
    /// A mobile app.
    MobileApp,
}

/// The scope that an envelope grants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AuthorizedScope {
    /// The capabilities.
    pub capabilities: Capabilities,
    /// The number of delegations that are permitted.
    pub max_delegation_depth: u32,
    /// Whether agents of other organisations may be in the chain.
    pub cross_org_permitted: bool,
    /// The highest classification of data.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Text")]
    pub data_classification_ceiling: Option<Text>,
    /// The highest amount that all descendants together may spend, in `budget_unit`.
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

/// The policy of an envelope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EnvelopePolicy {
    /// The name of the policy.
    pub policy_id: Text,
    /// The version of the policy.
    pub policy_version: Text,
    /// The digest of the policy document.
    pub policy_digest: Sha256Digest,
    /// The address of the policy document.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Reference")]
    pub policy_uri: Option<Reference>,
}

/// The approval and the strength of authentication that an envelope requires.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Authorization {
    /// The strength of authentication.
    pub auth_strength: AuthStrength,
    /// The state of the approval.
    pub approval_state: ApprovalState,
    /// A reference to the signed approval.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Reference")]
    pub approval_artifact_ref: Option<Reference>,
}

/// The required strength of authentication.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AuthStrength {
    /// The session alone.
    SessionOnly,
    /// A device, with an approval.
    DeviceBound,
    /// A device with an attestation, and an approval.
    DeviceBoundWithAttestation,
    /// Two authorizers.
    DualControl,
}

/// The state of an approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalState {
    /// Not decided yet.
    Pending,
    /// Granted.
    Granted,
    /// Not required.
    NotRequired,
}

/// References to evidence about the session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EnvelopeEvidence {
    /// The hash of the event that established the session.
    pub session_hash: Text,
    /// The models that may run in the session.
    #[schemars(length(max = limits::MAX_MODELS))]
    pub model_provenance: Vec<Text>,
}

impl Envelope {
    /// Returns the agent that the scope is granted to.
    pub fn holder(&self) -> &AgentId {
        &self.session.agent_id
    }

    /// Returns the scope that the envelope declares.
    pub fn declared_scope(&self) -> DeclaredScope {
        let scope = &self.authorized_scope;
        DeclaredScope {
            capabilities: scope.capabilities.clone(),
            max_delegation_depth: Some(scope.max_delegation_depth),
            budget: budget(scope.budget_ceiling, scope.budget_unit.as_ref()),
            price_class: scope.price_class,
            slo_class: scope.slo_class,
            classification: scope.data_classification_ceiling.clone(),
        }
    }

    /// Returns the JSON pointer of a value that stands for a missing envelope in a receipt.
    fn placeholder(&self) -> Option<&'static str> {
        let reserved = [
            (self.envelope_id.as_str() == NO_ROOT, "/envelope_id"),
            (self.session.session_id.as_str() == NO_SESSION, "/session/session_id"),
            (self.session.agent_id.as_str() == UNKNOWN_AGENT, "/session/agent_id"),
            (self.policy.policy_id.as_str() == NO_POLICY, "/policy/policy_id"),
            (self.policy.policy_digest == NO_POLICY_DIGEST, "/policy/policy_digest"),
        ];
        reserved.into_iter().find(|(is_reserved, _)| *is_reserved).map(|(_, pointer)| pointer)
    }
}

/// Returns the budget that a scope declares. A unit without an amount declares none.
pub(crate) fn budget(ceiling: Option<Decimal>, unit: Option<&Text>) -> Option<Budget> {
    Some(Budget { ceiling: ceiling?, unit: unit?.clone() })
}

impl Document for Envelope {
    const LIMITS: Limits = limits::OBJECT;

    fn signatures(&self) -> &Signatures {
        &self.signatures
    }

    fn check(&self) -> Result<(), BrokenMemberRule> {
        let scope = &self.authorized_scope;
        if scope.budget_ceiling.is_some() && scope.budget_unit.is_none() {
            return Err(BrokenMemberRule {
                pointer: "/authorized_scope/budget_unit",
                rule: "a budget_ceiling requires a budget_unit",
            });
        }
        if self.expires_at <= self.issued_at {
            return Err(BrokenMemberRule {
                pointer: "/expires_at",
                rule: "the envelope ends before it begins",
            });
        }
        if self.evidence.model_provenance.len() > limits::MAX_MODELS {
            return Err(BrokenMemberRule {
                pointer: "/evidence/model_provenance",
                rule: "more than 64 models",
            });
        }
        match self.placeholder() {
            None => Ok(()),
            Some(pointer) => Err(BrokenMemberRule {
                pointer,
                rule: "a value that is reserved for calls without an envelope",
            }),
        }
    }
}
