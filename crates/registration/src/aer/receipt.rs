//! Parsed execution receipts (section 6.1; ).
//!
//! These rules apply to the receipt alone. Not here: the verification of its signatures (`signature`) with the
//! gateway's keys (`check`), and facts that a log cannot check: that the session is the root's and the agent the caller
//! and the content that `plan_hash` is the hash of.

pub(super) mod no_root;

use serde_json::Value;

use super::members::{At, Members};
use super::rule::AerRule;
use super::signature::InnerSignature;
use crate::utc_time::UtcTime;
use crate::violation::Violation;

/// The only version of the format (`schema_version`).
pub const SCHEMA_VERSION: &str = "1.0";

const TOP: &[&str] = &[
    "schema_version",
    "aer_id",
    "produced_at",
    "enforcement_outcome",
    "enforcement_mode",
    "degraded_reason",
    "denial_reason",
    "denial_detail",
    "revocation",
    "session",
    "action",
    "policy",
    "chain_summary",
    "border_gateway",
    "plan_hash",
    "signatures",
];

/// An execution receipt that keeps every rule about its own contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The receipt's identifier: `aer:` and 16 hexadecimal digits.
    pub aer_id: String,
    /// The time of the decision in Unix seconds, rounded down.
    pub produced_at: u64,
    /// The decision.
    pub outcome: Outcome,
    /// The mode of operation: normal, or with cached data.
    pub mode: Mode,
    /// The session and agent that made the call.
    pub session: Session,
    /// The tool call.
    pub action: Action,
    /// The policy that applied to the call.
    pub policy: PolicyBinding,
    /// The delegation chain that authorized the call; `None` if the request had no usable root envelope.
    pub chain: Option<ChainSummary>,
    /// The gateway that decided.
    pub gateway: Gateway,
    /// The digest of the frozen artifacts of the decision, as stated by the gateway; it cannot be verified.
    pub plan_hash: Option<String>,
    /// The gateway's signatures within the receipt.
    pub signatures: Vec<InnerSignature>,
}

/// The mode of operation of a decision: `enforcement_mode`, with `degraded_reason`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Decided with current data of the registry.
    Normal,
    /// Decided with cached data.
    Degraded {
        /// The reason for degraded operation. Section 8.4.3 c) recommends it, so it may be absent.
        reason: Option<String>,
    },
}

/// The decision about a tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The call was forwarded.
    Permit,
    /// The call was denied.
    Deny(Denial),
}

/// The reasons for a denial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// The reason, one of [`DENIAL_REASONS`].
    pub reason: &'static str,
    /// Details that the draft's list of reasons does not cover.
    pub detail: Option<DenialDetail>,
    /// The revocation, if the reason is `envelope_revoked`.
    pub revocation: Option<Revocation>,
}

/// Details of a denial (`denial_detail`, R-17).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DenialDetail {
    /// The gateway's code, such as `no_envelope` or `registry_unavailable`.
    pub code: String,
    /// The failing hop of the chain, counted from the root.
    pub hop: Option<u64>,
    /// The failing dimension of the scope.
    pub dimension: Option<String>,
}

/// The position of a revocation in the registry's sequence (section 8.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Revocation {
    /// The epoch of the sequence.
    pub epoch: u64,
    /// The sequence number within the epoch.
    pub sequence: u64,
}

/// The session that the root was issued for, and the agent that presented the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// The session's identifier.
    pub id: String,
    /// The agent's identifier, `aha:<org>/<unit>/<agent>`.
    pub agent: String,
    /// A reference to a device attestation.
    pub device_attestation: Option<String>,
}

/// The tool call that was decided about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    /// The capability, `mcp:<server>.<tool>`.
    pub capability: String,
    /// The identifier of the MCP server.
    pub server: String,
    /// The name of the tool. In a denial it is unrestricted: empty, long, or with control characters.
    pub tool: String,
    /// The SHA-256 digest of the canonical arguments.
    pub input_hash: String,
}

/// The policy that the envelope was bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyBinding {
    /// The name of the policy.
    pub id: String,
    /// The digest of the policy.
    pub digest: String,
}

/// A summary of the delegation chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainSummary {
    /// Number of delegations; 0 for the root alone.
    pub depth: u64,
    /// The identifier of the root envelope.
    pub root: String,
    /// The SHA-256 digest of the canonical chain.
    pub digest: String,
}

/// The gateway that decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gateway {
    /// The identifier of the gateway's instance.
    pub id: String,
    /// The version of the gateway's software.
    pub version: String,
}

/// The reasons for a denial (section 6.1).
pub const DENIAL_REASONS: [&str; 12] = [
    "invalid_signature",
    "envelope_expired",
    "envelope_revoked",
    "replay_detected",
    "chain_integrity_violation",
    "scope_expansion_violation",
    "budget_expansion_denied",
    "slo_relaxation_denied",
    "capability_not_in_scope",
    "policy_digest_mismatch",
    "approval_required",
    "auth_strength_insufficient",
];

/// The reason that may have a `revocation`.
const REVOKED: &str = "envelope_revoked";

impl Receipt {
    /// Parses a receipt from canonical JSON.
    pub fn read(json: &Value) -> Result<Receipt, Violation> {
        let top = Members::open(json, At::Member(""), TOP)?;
        schema_version(&top)?;
        let aer_id = top.id("aer_id", "aer:", AerRule::Id)?;
        let produced_at = produced_at(&top)?;
        let outcome = Outcome::read(&top)?;
        let receipt = Receipt {
            aer_id,
            produced_at,
            mode: Mode::read(&top)?,
            session: Session::read(&top)?,
            action: Action::read(&top, &outcome)?,
            outcome,
            policy: PolicyBinding::read(&top)?,
            chain: Some(ChainSummary::read(&top)?),
            gateway: Gateway::read(&top)?,
            plan_hash: top.optional_digest("plan_hash")?,
            signatures: InnerSignature::read_all(&top)?,
        };
        no_root::settle(receipt)
    }
}

impl Mode {
    fn read(top: &Members<'_>) -> Result<Mode, Violation> {
        if !top.has("enforcement_mode") {
            return Err(top.broken(AerRule::Mode, "enforcement_mode", "this member is required"));
        }
        match (top.raw("enforcement_mode")?, top.optional_token("degraded_reason")?) {
            ("normal", None) => Ok(Mode::Normal),
            ("degraded", reason) => Ok(Mode::Degraded { reason }),
            ("normal", Some(_)) => {
                let detail = "a decision in normal operation has no such reason";
                Err(top.broken(AerRule::DegradedReason, "degraded_reason", detail))
            }
            (other, _) => Err(top.unfit(AerRule::Mode, "enforcement_mode", other, "normal or degraded")),
        }
    }

    /// The value of `enforcement_mode`.
    pub fn as_str(&self) -> &'static str {
        match self {
            Mode::Normal => "normal",
            Mode::Degraded { .. } => "degraded",
        }
    }

    /// The reason for degraded operation, if given.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Mode::Normal => None,
            Mode::Degraded { reason } => reason.as_deref(),
        }
    }

    /// Returns whether a degraded decision has no reason.
    pub fn lacks_reason(&self) -> bool {
        matches!(self, Mode::Degraded { reason: None })
    }
}

impl Outcome {
    /// The value of `enforcement_outcome`.
    pub fn as_str(&self) -> &'static str {
        match self {
            Outcome::Permit => "permit",
            Outcome::Deny(_) => "deny",
        }
    }

    /// The denial, or `None` for a permit.
    pub fn denial(&self) -> Option<&Denial> {
        match self {
            Outcome::Permit => None,
            Outcome::Deny(denial) => Some(denial),
        }
    }

    fn read(top: &Members<'_>) -> Result<Outcome, Violation> {
        match top.raw("enforcement_outcome")? {
            "permit" => {
                no_denial(top)?;
                Ok(Outcome::Permit)
            }
            "deny" => Denial::read(top).map(Outcome::Deny),
            other => Err(top.unfit(AerRule::Outcome, "enforcement_outcome", other, "permit or deny")),
        }
    }
}

fn no_denial(top: &Members<'_>) -> Result<(), Violation> {
    for (name, rule) in [
        ("denial_reason", AerRule::Denial),
        ("denial_detail", AerRule::Denial),
        ("revocation", AerRule::Revocation),
    ] {
        if top.has(name) {
            return Err(top.broken(rule, name, "a permit has no such member"));
        }
    }
    Ok(())
}

impl Denial {
    fn read(top: &Members<'_>) -> Result<Denial, Violation> {
        if !top.has("denial_reason") {
            return Err(top.broken(AerRule::Denial, "denial_reason", "a denial says why"));
        }
        let given = top.raw("denial_reason")?;
        let reason = DENIAL_REASONS.into_iter().find(|reason| *reason == given);
        let reason = reason.ok_or_else(|| {
            top.unfit(AerRule::DenialReason, "denial_reason", given, "one of the twelve of section 6.1")
        })?;
        let revocation = Revocation::read(top)?;
        if revocation.is_some() && reason != REVOKED {
            let detail = format!("only a denial for the reason {REVOKED} names a revocation");
            return Err(top.broken(AerRule::Revocation, "revocation", &detail));
        }
        Ok(Denial { reason, detail: DenialDetail::read(top)?, revocation })
    }
}

impl DenialDetail {
    fn read(top: &Members<'_>) -> Result<Option<DenialDetail>, Violation> {
        let known = ["code", "hop", "dimension"];
        let Some(detail) = top.optional_object("denial_detail", "/denial_detail", &known)? else {
            return Ok(None);
        };
        Ok(Some(DenialDetail {
            code: detail.token("code")?,
            hop: detail.optional_count("hop")?,
            dimension: detail.optional_token("dimension")?,
        }))
    }
}

impl Revocation {
    fn read(top: &Members<'_>) -> Result<Option<Revocation>, Violation> {
        let known = ["epoch", "sequence"];
        let Some(revocation) = top.optional_object("revocation", "/revocation", &known)? else {
            return Ok(None);
        };
        Ok(Some(Revocation { epoch: revocation.count("epoch")?, sequence: revocation.count("sequence")? }))
    }
}

impl Session {
    fn read(top: &Members<'_>) -> Result<Session, Violation> {
        let known = ["session_id", "agent_id", "device_attestation_ref"];
        let session = top.object("session", "/session", &known)?;
        let agent = session.text("agent_id")?;
        if !is_agent(&agent) {
            let needed = "aha:<organisation>/<unit>/<agent>";
            return Err(session.unfit(AerRule::AgentId, "agent_id", &agent, needed));
        }
        Ok(Session {
            id: session.text("session_id")?,
            agent,
            device_attestation: session.optional_reference("device_attestation_ref")?,
        })
    }
}

/// Matches `^aha:[a-zA-Z0-9_-]+/[a-zA-Z0-9_-]+/[a-zA-Z0-9_-]+$` (Appendix A.1).
fn is_agent(name: &str) -> bool {
    let segment = |segment: &str| {
        !segment.is_empty()
            && segment.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
    };
    name.strip_prefix("aha:").is_some_and(|rest| rest.split('/').count() == 3 && rest.split('/').all(segment))
}

impl Action {
    /// Parses the action. In a denial, the tool's name is not restricted, because the caller may have requested any
    /// name: rejecting the receipt would lose the record of the denial.
    fn read(top: &Members<'_>, outcome: &Outcome) -> Result<Action, Violation> {
        let known = ["capability", "mcp_server_id", "mcp_tool_name", "input_hash"];
        let action = top.object("action", "/action", &known)?;
        let denied = outcome.denial().is_some();
        let server = action.text("mcp_server_id")?;
        let tool = match denied {
            true => action.raw("mcp_tool_name")?.to_owned(),
            false => action.text("mcp_tool_name")?,
        };
        if server.contains('.') {
            return Err(action.unfit(AerRule::ServerId, "mcp_server_id", &server, "a name without a dot"));
        }
        let capability = action.raw("capability")?;
        // Splits at the first dot: a server's name has none, a tool's may have some.
        let named = capability.strip_prefix("mcp:").and_then(|pair| pair.split_once('.'));
        let named = named.filter(|(server, tool)| !server.is_empty() && (denied || !tool.is_empty()));
        let named = named.ok_or_else(|| {
            action.unfit(AerRule::Capability, "capability", capability, "mcp:<server>.<tool>")
        })?;
        if named != (&server, &tool) {
            let detail = "names another server or tool than mcp_server_id and mcp_tool_name do";
            return Err(action.broken(AerRule::CapabilityAgrees, "capability", detail));
        }
        let input_hash = action.digest("input_hash")?;
        Ok(Action { capability: capability.to_owned(), server, tool, input_hash })
    }
}

impl PolicyBinding {
    fn read(top: &Members<'_>) -> Result<PolicyBinding, Violation> {
        let policy = top.object("policy", "/policy", &["policy_id", "policy_digest"])?;
        Ok(PolicyBinding { id: policy.text("policy_id")?, digest: policy.digest("policy_digest")? })
    }
}

impl ChainSummary {
    fn read(top: &Members<'_>) -> Result<ChainSummary, Violation> {
        let known = ["chain_depth", "root_envelope_id", "chain_digest"];
        let chain = top.object("chain_summary", "/chain_summary", &known)?;
        Ok(ChainSummary {
            depth: chain.count("chain_depth")?,
            root: chain.id("root_envelope_id", "env:", AerRule::RootEnvelope)?,
            digest: chain.digest("chain_digest")?,
        })
    }
}

impl Gateway {
    fn read(top: &Members<'_>) -> Result<Gateway, Violation> {
        let gateway = top.object("border_gateway", "/border_gateway", &["gateway_id", "gateway_version"])?;
        Ok(Gateway { id: gateway.text("gateway_id")?, version: gateway.text("gateway_version")? })
    }
}

fn schema_version(top: &Members<'_>) -> Result<(), Violation> {
    match top.raw("schema_version")? {
        SCHEMA_VERSION => Ok(()),
        other => Err(top.unfit(AerRule::SchemaVersion, "schema_version", other, "\"1.0\"")),
    }
}

fn produced_at(top: &Members<'_>) -> Result<u64, Violation> {
    let text = top.raw("produced_at")?;
    UtcTime::parse(text).map(|at| at.unix_seconds).ok_or_else(|| {
        top.unfit(AerRule::ProducedAt, "produced_at", text, "YYYY-MM-DDThh:mm:ssZ, a time that exists")
    })
}
