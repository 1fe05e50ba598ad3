//! Reading of receipts: the rules that apply to the receipt alone (section 6.1; ).
//!
//! Not here: the verification of signatures, and facts that no reader can check: that the session is the root's and the
//! agent the caller, and the content that `plan_hash` is the hash of.

use data_encoding::BASE64URL_NOPAD;
use jiff::Timestamp;
use jose::BrokenRule;
use jose::json;
use jose::members::JsonRule;
use serde_json::Value;

use super::members::{Members, code, count, digest, object, open, text};
use super::no_root;
use super::receipt::{
    CalledTool, ChainSummary, DenialDetail, ExecutionReceipt, GatewayIdentity, Mode, Outcome, PolicyBinding,
    RecordedDenial, Session,
};
use super::rule::AerRule;
use crate::denial::{DenialReason, RevocationPosition};
use crate::limits::{AER, MAX_AER_SIGNATURES};
use crate::signed::{ED_DSA, ObjectSignature};
use crate::text::{AgentId, Text, UtcTime};

/// The only version of the format (`schema_version`).
pub(super) const SCHEMA_VERSION: &str = "1.0";

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

/// Parses canonical JSON of at most the size of a receipt.
pub(super) fn canonical_json(bytes: &[u8]) -> Result<Value, BrokenRule> {
    let broken =
        |rule: AerRule, detail: String| BrokenRule { rule: rule.name(), pointer: String::new(), detail };
    if bytes.len() > AER.bytes {
        let detail = format!("{} bytes, a receipt takes at most {}", bytes.len(), AER.bytes);
        return Err(broken(AerRule::Size, detail));
    }
    let value = json::parse_strict(bytes, AER).map_err(|error| AerRule::not_json(&error))?;
    match jose::jcs::canonical(&value) == bytes {
        true => Ok(value),
        false => {
            Err(broken(AerRule::Canonical, "the JSON is not in its canonical form (RFC 8785)".to_owned()))
        }
    }
}

/// Reads a receipt with its signatures.
pub(super) fn receipt(json: &Value) -> Result<(ExecutionReceipt, Vec<ObjectSignature>), BrokenRule> {
    let top = open(json, "", TOP)?;
    schema_version(&top)?;
    let aer_id = top.text("aer_id")?;
    let needed = "\"aer:\" and 16 lower-case hex digits";
    let aer_id = aer_id.parse().map_err(|_| top.unfit(AerRule::Id, "aer_id", aer_id, needed))?;
    let produced_at = produced_at(&top)?;
    let outcome = outcome(&top)?;
    let receipt = ExecutionReceipt {
        aer_id,
        produced_at,
        mode: mode(&top)?,
        session: session(&top)?,
        action: action(&top, &outcome)?,
        outcome,
        policy: policy(&top)?,
        chain: Some(chain(&top)?),
        gateway: gateway(&top)?,
        plan_hash: top.optional("plan_hash", digest)?,
    };
    let signatures = signatures(&top)?;
    Ok((no_root::settle(receipt)?, signatures))
}

fn schema_version(top: &Members<'_>) -> Result<(), BrokenRule> {
    match top.text("schema_version")? {
        SCHEMA_VERSION => Ok(()),
        other => Err(top.unfit(AerRule::SchemaVersion, "schema_version", other, "\"1.0\"")),
    }
}

fn produced_at(top: &Members<'_>) -> Result<UtcTime, BrokenRule> {
    let text = top.text("produced_at")?;
    let time = UtcTime::with_offset(text).filter(|time| time.0 >= Timestamp::UNIX_EPOCH);
    let needed = "YYYY-MM-DDThh:mm:ssZ, a time that exists";
    time.ok_or_else(|| top.unfit(AerRule::ProducedAt, "produced_at", text, needed))
}

fn mode(top: &Members<'_>) -> Result<Mode, BrokenRule> {
    if !top.has("enforcement_mode") {
        return Err(top.broken(AerRule::Mode, "enforcement_mode", "this member is required"));
    }
    match (top.text("enforcement_mode")?, top.optional("degraded_reason", code)?) {
        ("normal", None) => Ok(Mode::Normal),
        ("degraded", reason) => Ok(Mode::Degraded { reason }),
        ("normal", Some(_)) => {
            let detail = "a decision in normal operation has no such reason";
            Err(top.broken(AerRule::DegradedReason, "degraded_reason", detail))
        }
        (other, _) => Err(top.unfit(AerRule::Mode, "enforcement_mode", other, "normal or degraded")),
    }
}

fn outcome(top: &Members<'_>) -> Result<Outcome, BrokenRule> {
    match top.text("enforcement_outcome")? {
        "permit" => {
            no_denial(top)?;
            Ok(Outcome::Permit)
        }
        "deny" => denial(top).map(Outcome::Deny),
        other => Err(top.unfit(AerRule::Outcome, "enforcement_outcome", other, "permit or deny")),
    }
}

fn no_denial(top: &Members<'_>) -> Result<(), BrokenRule> {
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

fn denial(top: &Members<'_>) -> Result<RecordedDenial, BrokenRule> {
    if !top.has("denial_reason") {
        return Err(top.broken(AerRule::Denial, "denial_reason", "a denial says why"));
    }
    let given = top.text("denial_reason")?;
    let reason = DenialReason::ALL.into_iter().find(|reason| reason.as_str() == given);
    let needed = "one of the twelve of section 6.1";
    let reason = reason.ok_or_else(|| top.unfit(AerRule::DenialReason, "denial_reason", given, needed))?;
    let revocation = revocation(top)?;
    if revocation.is_some() && reason != DenialReason::EnvelopeRevoked {
        let revoked = DenialReason::EnvelopeRevoked.as_str();
        let detail = format!("only a denial for the reason {revoked} names a revocation");
        return Err(top.broken(AerRule::Revocation, "revocation", detail));
    }
    Ok(RecordedDenial { reason, detail: denial_detail(top)?, revocation })
}

fn denial_detail(top: &Members<'_>) -> Result<Option<DenialDetail>, BrokenRule> {
    top.optional("denial_detail", |top, name| {
        let detail = open(top.required(name)?, "/denial_detail", &["code", "hop", "dimension"])?;
        Ok(DenialDetail {
            code: code(&detail, "code")?,
            hop: detail.optional("hop", count)?,
            dimension: detail.optional("dimension", code)?,
        })
    })
}

fn revocation(top: &Members<'_>) -> Result<Option<RevocationPosition>, BrokenRule> {
    top.optional("revocation", |top, name| {
        let revocation = open(top.required(name)?, "/revocation", &["epoch", "sequence"])?;
        Ok(RevocationPosition {
            epoch: count(&revocation, "epoch")?,
            sequence: count(&revocation, "sequence")?,
        })
    })
}

fn session(top: &Members<'_>) -> Result<Session, BrokenRule> {
    let session = object(top, "session", &["session_id", "agent_id", "device_attestation_ref"])?;
    let agent: Text = text(&session, "agent_id")?;
    let agent = AgentId::try_from(agent.to_string()).map_err(|_| {
        let needed = "aha:<organisation>/<unit>/<agent>";
        session.unfit(AerRule::AgentId, "agent_id", agent.as_str(), needed)
    })?;
    Ok(Session {
        id: text(&session, "session_id")?,
        agent,
        device_attestation: session.optional("device_attestation_ref", text)?,
    })
}

/// Reads the action. In a denial, the tool's name is not restricted, because the caller may have requested any name:
/// rejecting the receipt would lose the record of the denial.
fn action(top: &Members<'_>, outcome: &Outcome) -> Result<CalledTool, BrokenRule> {
    let known = ["capability", "mcp_server_id", "mcp_tool_name", "input_hash"];
    let action = object(top, "action", &known)?;
    let denied = outcome.denial().is_some();
    let server: Text = text(&action, "mcp_server_id")?;
    let tool = match denied {
        true => action.text("mcp_tool_name")?.to_owned(),
        false => String::from(text::<{ crate::limits::MAX_NAME }>(&action, "mcp_tool_name")?),
    };
    if server.as_str().contains('.') {
        return Err(action.unfit(
            AerRule::ServerId,
            "mcp_server_id",
            server.as_str(),
            "a name without a dot",
        ));
    }
    let capability = action.text("capability")?;
    // Splits at the first dot: a server's name has none, a tool's may have some.
    let named = capability.strip_prefix("mcp:").and_then(|pair| pair.split_once('.'));
    let named = named.filter(|(server, tool)| !server.is_empty() && (denied || !tool.is_empty()));
    let named = named
        .ok_or_else(|| action.unfit(AerRule::Capability, "capability", capability, "mcp:<server>.<tool>"))?;
    if named != (server.as_str(), tool.as_str()) {
        let detail = "names another server or tool than mcp_server_id and mcp_tool_name do";
        return Err(action.broken(AerRule::CapabilityAgrees, "capability", detail));
    }
    Ok(CalledTool { server, tool, input_hash: digest(&action, "input_hash")? })
}

fn policy(top: &Members<'_>) -> Result<PolicyBinding, BrokenRule> {
    let policy = object(top, "policy", &["policy_id", "policy_digest"])?;
    Ok(PolicyBinding { id: text(&policy, "policy_id")?, digest: digest(&policy, "policy_digest")? })
}

fn chain(top: &Members<'_>) -> Result<ChainSummary, BrokenRule> {
    let chain = object(top, "chain_summary", &["chain_depth", "root_envelope_id", "chain_digest"])?;
    let depth = count(&chain, "chain_depth")?;
    let root = chain.text("root_envelope_id")?;
    let needed = "\"env:\" and 16 lower-case hex digits";
    let root =
        root.parse().map_err(|_| chain.unfit(AerRule::RootEnvelope, "root_envelope_id", root, needed))?;
    Ok(ChainSummary { depth, root, digest: digest(&chain, "chain_digest")? })
}

fn gateway(top: &Members<'_>) -> Result<GatewayIdentity, BrokenRule> {
    let gateway = object(top, "border_gateway", &["gateway_id", "gateway_version"])?;
    Ok(GatewayIdentity { id: text(&gateway, "gateway_id")?, version: text(&gateway, "gateway_version")? })
}

fn signatures(top: &Members<'_>) -> Result<Vec<ObjectSignature>, BrokenRule> {
    let Value::Array(items) = top.required("signatures")? else {
        return Err(top.broken(AerRule::Member, "signatures", "an array is needed here"));
    };
    if items.is_empty() || items.len() > MAX_AER_SIGNATURES {
        let detail = format!("{} signatures, from 1 to {MAX_AER_SIGNATURES} are needed", items.len());
        return Err(top.broken(AerRule::Signatures, "signatures", detail));
    }
    items.iter().enumerate().map(|(position, item)| signature(item, position)).collect()
}

fn signature(item: &Value, position: usize) -> Result<ObjectSignature, BrokenRule> {
    let item = open(item, format!("/signatures/{position}"), &["signer", "alg", "sig"])?;
    let signer = text(&item, "signer")?;
    let algorithm = item.text("alg")?;
    if algorithm != ED_DSA {
        return Err(item.unfit(AerRule::SignatureAlgorithm, "alg", algorithm, "\"EdDSA\""));
    }
    let sig = item.text("sig")?;
    let bytes = BASE64URL_NOPAD.decode(sig.as_bytes()).ok().and_then(|bytes| bytes.try_into().ok());
    let needed = "64 bytes in base64url without padding or prefix";
    bytes
        .map(|bytes| ObjectSignature::new(signer, bytes))
        .ok_or_else(|| item.unfit(AerRule::SignatureForm, "sig", sig, needed))
}
