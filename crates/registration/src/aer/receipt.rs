//! An execution receipt: its canonical JSON as a typed value (section 6.1; ).
//!
//! Everything here holds for the receipt alone. Not here: whether its signatures verify (`signature`), whose they are
//! (`check`), and what a log cannot know: that the session is the root's, the agent the one who asked, and what
//! `plan_hash` is the hash of.

use serde_json::Value;

use super::members::{At, Members};
use super::no_root;
use super::rule::AerRule;
use super::signature::InnerSignature;
use crate::violation::Violation;
use crate::vrf::VerifiedAt;

/// The one version of the format.
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

/// A receipt that keeps every rule which needs nothing but the receipt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// `aer:` and 16 hex digits.
    pub aer_id: String,
    /// When the decision was made, in Unix seconds; a fraction is cut.
    pub produced_at: u64,
    /// What was decided.
    pub outcome: Outcome,
    /// Whether it was made against cached material.
    pub mode: Mode,
    /// For whom.
    pub session: Session,
    /// About what.
    pub action: Action,
    /// Under which policy.
    pub policy: PolicyBinding,
    /// On whose authority; `None` when what was presented had no usable root.
    pub chain: Option<ChainSummary>,
    /// By whom.
    pub gateway: Gateway,
    /// The gateway's word for the frozen artifacts it decided with; nobody else can check it.
    pub plan_hash: Option<String>,
    /// The gateway's signatures within the receipt.
    pub signatures: Vec<InnerSignature>,
}

/// The operation in which a decision was made: `enforcement_mode`, with `degraded_reason`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Against what the registry said.
    Normal,
    /// Against cached material.
    Degraded {
        /// Why. Section 8.4.3 c) says that it should be told, so it may be absent.
        reason: Option<String>,
    },
}

/// What was decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The call went on.
    Permit,
    /// It did not.
    Deny(Denial),
}

/// Why a call was denied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// One of [`DENIAL_REASONS`].
    pub reason: &'static str,
    /// More, where the draft's list says too little.
    pub detail: Option<DenialDetail>,
    /// Which revocation it was.
    pub revocation: Option<Revocation>,
}

/// What the draft's reason leaves out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DenialDetail {
    /// A code of the gateway's, such as `no_envelope` or `registry_unavailable`.
    pub code: String,
    /// The hop of the chain at fault, counted from the root.
    pub hop: Option<u64>,
    /// The dimension of the scope at fault.
    pub dimension: Option<String>,
}

/// Where a revocation stands in the registry's sequence (section 8.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Revocation {
    /// The epoch.
    pub epoch: u64,
    /// The sequence number within it.
    pub sequence: u64,
}

/// The session that the root was issued for, and the agent that presented the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// The session.
    pub id: String,
    /// `aha:<org>/<unit>/<agent>`.
    pub agent: String,
    /// A reference to a device attestation.
    pub device_attestation: Option<String>,
}

/// The tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    /// `mcp:<server>.<tool>`.
    pub capability: String,
    /// The server.
    pub server: String,
    /// The tool. What was denied may be no name at all: empty, long, or with control characters in it.
    pub tool: String,
    /// SHA-256 of the canonical arguments.
    pub input_hash: String,
}

/// The policy that the envelope was bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyBinding {
    /// Its name.
    pub id: String,
    /// Its digest.
    pub digest: String,
}

/// The chain of delegations in short.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainSummary {
    /// Delegations; 0 for the root alone.
    pub depth: u64,
    /// The root envelope.
    pub root: String,
    /// SHA-256 of the canonical chain.
    pub digest: String,
}

/// The gateway that decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gateway {
    /// The instance.
    pub id: String,
    /// Its software.
    pub version: String,
}

/// The reasons of section 6.1.
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

/// The reason that may name a revocation.
const REVOKED: &str = "envelope_revoked";

impl Receipt {
    /// Reads a receipt out of its parsed canonical JSON.
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

    /// The word the receipt uses.
    pub fn as_str(&self) -> &'static str {
        match self {
            Mode::Normal => "normal",
            Mode::Degraded { .. } => "degraded",
        }
    }

    /// Why a degraded decision was one, where it says so.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Mode::Normal => None,
            Mode::Degraded { reason } => reason.as_deref(),
        }
    }

    /// Whether a degraded decision does not say why it was one.
    pub fn lacks_reason(&self) -> bool {
        matches!(self, Mode::Degraded { reason: None })
    }
}

impl Outcome {
    /// The word the receipt uses.
    pub fn as_str(&self) -> &'static str {
        match self {
            Outcome::Permit => "permit",
            Outcome::Deny(_) => "deny",
        }
    }

    /// Why not, if not.
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

/// `^aha:[a-zA-Z0-9_-]+/[a-zA-Z0-9_-]+/[a-zA-Z0-9_-]+$` (Appendix A.1).
fn is_agent(name: &str) -> bool {
    let segment = |segment: &str| {
        !segment.is_empty()
            && segment.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
    };
    name.strip_prefix("aha:").is_some_and(|rest| rest.split('/').count() == 3 && rest.split('/').all(segment))
}

impl Action {
    /// A permit names a tool. A denial tells what was asked for, and the caller may have asked for anything: a name that
    /// makes the receipt unfit would make the denial disappear.
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
        // At the first dot: a server's name has none, a tool's may.
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
    VerifiedAt::parse(text).map(|at| at.unix_seconds).ok_or_else(|| {
        top.unfit(AerRule::ProducedAt, "produced_at", text, "YYYY-MM-DDThh:mm:ssZ, a time that exists")
    })
}
