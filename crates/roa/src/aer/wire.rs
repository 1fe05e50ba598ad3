//! Writing of receipts, and their JSON Schema: the members as section 6.1 names them.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::{Value, json};

use super::receipt::{ExecutionReceipt, RecordedDenial};
use crate::denial::DenialReason;
use crate::envelope::SchemaVersion;
use crate::limits::{MAX_AER_SIGNATURES, MAX_INTEGER};
use crate::placeholder::{EMPTY_CHAIN, NO_ROOT};
use crate::signed::ObjectSignature;
use crate::text::{AerId, AgentId, Code, EnvelopeId, Reference, Sha256Digest, Text, UtcTime};

/// A receipt's members, borrowed from the receipt.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields, title = "AgentROA Agent Execution Receipt")]
#[schemars(extend("if" = { "properties": { "enforcement_outcome": { "const": "deny" } } }))]
#[schemars(extend("then" = { "required": ["denial_reason"] }))]
#[schemars(extend("else" = {
    "not": { "anyOf": [
        { "required": ["denial_reason"] }, { "required": ["denial_detail"] }, { "required": ["revocation"] },
    ] },
}))]
struct ReceiptMembers<'r> {
    /// The version of the format.
    schema_version: SchemaVersion,
    /// The identifier of the receipt.
    aer_id: &'r AerId,
    /// The time of the decision.
    #[schemars(schema_with = "produced_at")]
    produced_at: UtcTime,
    /// The decision.
    #[schemars(schema_with = "outcome")]
    enforcement_outcome: &'static str,
    /// The mode of operation.
    #[schemars(schema_with = "mode")]
    enforcement_mode: &'static str,
    /// The reason for degraded operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Code")]
    degraded_reason: Option<&'r Code>,
    /// The reason for a denial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "denial_reason")]
    denial_reason: Option<&'static str>,
    /// Details of a denial (R-17).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "DetailMembers")]
    denial_detail: Option<DetailMembers<'r>>,
    /// The revocation, only with the reason `envelope_revoked`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "RevocationMembers")]
    revocation: Option<RevocationMembers>,
    /// The session of the root and the agent that presented the chain.
    session: SessionMembers<'r>,
    /// The tool call.
    action: ActionMembers<'r>,
    /// The policy of the root.
    policy: PolicyMembers<'r>,
    /// The delegation chain.
    chain_summary: ChainMembers<'r>,
    /// The gateway that decided.
    border_gateway: GatewayMembers<'r>,
    /// The digest of the frozen artifacts of the decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Sha256Digest")]
    plan_hash: Option<Sha256Digest>,
    /// The signatures of the gateway.
    #[schemars(length(min = 1, max = MAX_AER_SIGNATURES))]
    signatures: &'r [ObjectSignature],
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "DenialDetail")]
struct DetailMembers<'r> {
    code: &'r Code,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "count")]
    hop: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Code")]
    dimension: Option<&'r Code>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "RevocationPosition")]
struct RevocationMembers {
    #[schemars(schema_with = "count")]
    epoch: u64,
    #[schemars(schema_with = "count")]
    sequence: u64,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "Session")]
struct SessionMembers<'r> {
    session_id: &'r Text,
    agent_id: &'r AgentId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Reference")]
    device_attestation_ref: Option<&'r Reference>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "Action")]
struct ActionMembers<'r> {
    #[schemars(regex(pattern = r"^mcp:[^.]+\."))]
    capability: String,
    #[schemars(regex(pattern = r"^[^.]{1,256}$"))]
    mcp_server_id: &'r str,
    mcp_tool_name: &'r str,
    input_hash: Sha256Digest,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "Policy")]
struct PolicyMembers<'r> {
    policy_id: &'r Text,
    policy_digest: Sha256Digest,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "ChainSummary")]
struct ChainMembers<'r> {
    #[schemars(schema_with = "count")]
    chain_depth: u64,
    #[schemars(with = "EnvelopeId")]
    root_envelope_id: &'r str,
    chain_digest: Sha256Digest,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "BorderGateway")]
struct GatewayMembers<'r> {
    gateway_id: &'r Text,
    gateway_version: &'r Text,
}

/// Returns the members of a receipt as JSON. Without signatures, they have no member `signatures`.
pub(super) fn document(receipt: &ExecutionReceipt) -> Value {
    let mut members = json!(ReceiptMembers::of(receipt));
    if let Value::Object(members) = &mut members {
        members.remove("signatures");
    }
    members
}

/// Returns the JSON Schema of a receipt.
pub(super) fn schema(generator: &mut SchemaGenerator) -> Schema {
    ReceiptMembers::json_schema(generator)
}

impl<'r> ReceiptMembers<'r> {
    fn of(receipt: &'r ExecutionReceipt) -> ReceiptMembers<'r> {
        let denial = receipt.outcome.denial();
        ReceiptMembers {
            schema_version: SchemaVersion::V1,
            aer_id: &receipt.aer_id,
            produced_at: receipt.produced_at,
            enforcement_outcome: receipt.outcome.as_str(),
            enforcement_mode: receipt.mode.as_str(),
            degraded_reason: receipt.mode.reason(),
            denial_reason: denial.map(|denial| denial.reason.as_str()),
            denial_detail: denial.and_then(DetailMembers::of),
            revocation: denial.and_then(RevocationMembers::of),
            session: SessionMembers::of(receipt),
            action: ActionMembers::of(receipt),
            policy: PolicyMembers { policy_id: &receipt.policy.id, policy_digest: receipt.policy.digest },
            chain_summary: ChainMembers::of(receipt),
            border_gateway: GatewayMembers {
                gateway_id: &receipt.gateway.id,
                gateway_version: &receipt.gateway.version,
            },
            plan_hash: receipt.plan_hash,
            signatures: &[],
        }
    }
}

impl<'r> DetailMembers<'r> {
    fn of(denial: &'r RecordedDenial) -> Option<DetailMembers<'r>> {
        let detail = denial.detail.as_ref()?;
        Some(DetailMembers { code: &detail.code, hop: detail.hop, dimension: detail.dimension.as_ref() })
    }
}

impl RevocationMembers {
    fn of(denial: &RecordedDenial) -> Option<RevocationMembers> {
        let position = denial.revocation?;
        Some(RevocationMembers { epoch: position.epoch, sequence: position.sequence })
    }
}

impl<'r> SessionMembers<'r> {
    fn of(receipt: &'r ExecutionReceipt) -> SessionMembers<'r> {
        let session = &receipt.session;
        SessionMembers {
            session_id: &session.id,
            agent_id: &session.agent,
            device_attestation_ref: session.device_attestation.as_ref(),
        }
    }
}

impl<'r> ActionMembers<'r> {
    fn of(receipt: &'r ExecutionReceipt) -> ActionMembers<'r> {
        let action = &receipt.action;
        ActionMembers {
            capability: action.capability(),
            mcp_server_id: action.server.as_str(),
            mcp_tool_name: &action.tool,
            input_hash: action.input_hash,
        }
    }
}

impl<'r> ChainMembers<'r> {
    fn of(receipt: &'r ExecutionReceipt) -> ChainMembers<'r> {
        match &receipt.chain {
            Some(chain) => ChainMembers {
                chain_depth: chain.depth,
                root_envelope_id: chain.root.as_str(),
                chain_digest: chain.digest,
            },
            None => ChainMembers { chain_depth: 0, root_envelope_id: NO_ROOT, chain_digest: EMPTY_CHAIN },
        }
    }
}

fn produced_at(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "format": "date-time", "pattern": r"(Z|\+00:00)$" })
}

fn outcome(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "enum": ["permit", "deny"] })
}

fn mode(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "enum": ["normal", "degraded"] })
}

fn denial_reason(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "enum": DenialReason::ALL.map(DenialReason::as_str) })
}

fn count(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "integer", "minimum": 0, "maximum": MAX_INTEGER })
}
