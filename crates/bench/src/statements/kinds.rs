//! One statement of each content type that a new log admits, made from a number.

use fastrand::Rng;
use jose::jcs;
use registration::aer::AerStatement;
use registration::vrf::VrfStatement;
use roa::chain::Chain;
use roa::envelope::Envelope;
use roa::registry::RegistryDocument;
use roa::signed::Signed;
use scitt::{SignedStatement, Signer, StatementBuilder};
use serde_json::{Value, json};

use super::issuer::{ISS, Issuer, KID, REGISTRY};

/// Approximate size in bytes of an opaque statement without its payload; the digits of its number may add a few.
const OVERHEAD: usize = 169;
/// Digest in fields that name content which no statement contains.
const DIGEST: &str = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
/// Agent whose work statements are about.
const AGENT: &str = "did:web:agent.bench.example";
/// Content type of audit records.
pub(super) const AUDIT: &str = "application/vap-audit+json";
/// Time in records.
const AT: &str = "2026-01-01T00:00:00Z";

/// A content type and its statements.
pub(super) struct Kind {
    /// The content type.
    pub(super) content_type: &'static str,
    /// Signs a statement.
    pub(super) sign: fn(&NumberedStatement<'_>) -> anyhow::Result<SignedStatement>,
}

/// What a statement is made from.
pub(super) struct NumberedStatement<'a> {
    /// The issuer.
    pub(super) issuer: &'a Issuer,
    /// The content type.
    pub(super) content_type: &'static str,
    /// The number, which no other statement has.
    pub(super) number: u64,
    /// The length in bytes of an opaque one.
    pub(super) bytes: usize,
}

impl NumberedStatement<'_> {
    /// Signs the statement with this payload, about `sub`.
    fn with_payload(&self, payload: Vec<u8>, sub: &str) -> anyhow::Result<SignedStatement> {
        let statement = StatementBuilder::new(payload).content_type(self.content_type);
        Ok(statement.kid(KID).iss(ISS).sub(sub).sign(&self.issuer.key)?)
    }
}

/// All content types of a new log.
pub(super) const KINDS: &[Kind] = &[
    Kind { content_type: super::OPAQUE, sign: opaque },
    Kind { content_type: "application/json", sign: json_document },
    Kind { content_type: "text/plain", sign: opaque },
    Kind { content_type: "application/vrf+cbor", sign: vrf_cbor },
    Kind { content_type: "application/vrf+json", sign: vrf_json },
    Kind { content_type: "application/aer+json", sign: aer },
    Kind { content_type: "application/agentroa-chain+json", sign: chain },
    Kind { content_type: "application/agentroa-registry+json", sign: registry },
    Kind { content_type: "application/agentroa-policy+json", sign: policy_document },
    Kind { content_type: "application/agent-conversation", sign: conversation },
    Kind { content_type: "application/vap-verdict+json", sign: verdict },
    Kind { content_type: AUDIT, sign: audit_record },
    Kind { content_type: "application/jwk-set+json", sign: jwk_set },
    Kind { content_type: "application/cll-checkpoint+cbor", sign: opaque },
    Kind { content_type: "text/x-c2sp-checkpoint", sign: opaque },
];

fn opaque(statement: &NumberedStatement<'_>) -> anyhow::Result<SignedStatement> {
    let number = statement.number;
    let mut payload = vec![0; statement.bytes.saturating_sub(OVERHEAD)];
    Rng::with_seed(number).fill(&mut payload);
    statement.with_payload(payload, &subject(number))
}

/// Returns the subject of the opaque statement or JSON document with this number.
pub(crate) fn subject(number: u64) -> String {
    format!("pkg:generic/artifact@{number:08}")
}

fn json_document(statement: &NumberedStatement<'_>) -> anyhow::Result<SignedStatement> {
    let number = statement.number;
    let text = "x".repeat(statement.bytes.saturating_sub(OVERHEAD));
    let payload = json!({ "number": number.to_string(), "text": text }).to_string().into_bytes();
    statement.with_payload(payload, &subject(number))
}

fn vrf_cbor(statement: &NumberedStatement<'_>) -> anyhow::Result<SignedStatement> {
    Ok(receipt(statement.number, AGENT).unchained().sign(&statement.issuer.key)?)
}

fn vrf_json(statement: &NumberedStatement<'_>) -> anyhow::Result<SignedStatement> {
    Ok(receipt(statement.number, AGENT).unchained().bare_json().sign(&statement.issuer.key)?)
}

/// The verification receipt of one test that an agent's work passed.
pub(super) fn receipt(number: u64, agent: &str) -> VrfStatement {
    let receipt = json!({
        "vrf_version": "1.0",
        "receipt_id": uuid(0x1111, number),
        "verified_at": AT,
        "tier": 0,
        "verdict": "pass",
        "results": { "total": 1, "passed": 1, "failed": 0, "errors": 0 },
        "hashes": { "output": DIGEST },
        "metadata": { "structural": true, "verifier": "bench/1" },
    });
    VrfStatement::new(receipt, agent)
}

/// The execution receipt of a permitted tool call.
fn aer(statement: &NumberedStatement<'_>) -> anyhow::Result<SignedStatement> {
    let number = statement.number;
    let receipt = json!({
        "schema_version": "1.0",
        "aer_id": format!("aer:{number:016x}"),
        "produced_at": AT,
        "enforcement_outcome": "permit",
        "enforcement_mode": "normal",
        "session": { "session_id": format!("sess:{number:016x}"), "agent_id": "aha:bench/engineering/coder-7" },
        "action": {
            "capability": "mcp:github.get_pull_request",
            "mcp_server_id": "github",
            "mcp_tool_name": "get_pull_request",
            "input_hash": DIGEST,
        },
        "policy": { "policy_id": "devops-v4", "policy_digest": DIGEST },
        "chain_summary": { "chain_depth": 1, "root_envelope_id": "env:4a7c9f2b1e8d3a6f", "chain_digest": DIGEST },
        "border_gateway": { "gateway_id": statement.issuer.did, "gateway_version": "1.0.0" },
    });
    Ok(AerStatement::new(receipt).sign(&statement.issuer.key)?)
}

/// A chain of a root envelope alone.
fn chain(statement: &NumberedStatement<'_>) -> anyhow::Result<SignedStatement> {
    let number = statement.number;
    let members = json!({
        "schema_version": "1.0", "envelope_id": format!("env:{number:016x}"), "issued_at": AT, "expires_at": "2026-01-01T01:00:00Z",
        "session": { "session_id": format!("sess:{number:016x}"), "channel": "api", "agent_id": "aha:bench/engineering/coder-7" },
        "authorized_scope": { "capabilities": ["mcp:github.*"], "max_delegation_depth": 0, "cross_org_permitted": false },
        "policy": { "policy_id": "devops-v4", "policy_version": "1", "policy_digest": DIGEST },
        "authorization": { "auth_strength": "session_only", "approval_state": "not_required" },
        "evidence": { "session_hash": "sha256:1", "model_provenance": [] },
    });
    let issuer = statement.issuer;
    let root: Signed<Envelope> = Signed::sign(&members, &[("authorizer", &issuer.key as &dyn Signer)])?;
    let chain = Chain::new(root, Vec::new());
    let builder = StatementBuilder::new(chain.canonical()).content_type(statement.content_type);
    let builder = builder.kid(issuer.public_key().thumbprint()).iss(&issuer.did);
    Ok(builder.sub(&chain.digest().to_string()).sign(&issuer.key)?)
}

/// A version of a registry without entries.
fn registry(statement: &NumberedStatement<'_>) -> anyhow::Result<SignedStatement> {
    let members = json!({
        "schema_version": "1.0", "registry_id": REGISTRY, "epoch": 1, "sequence": statement.number, "issued_at": AT,
        "ttl_seconds": 3600, "keys": [], "agents": [], "servers": [], "policies": [], "classifications": [],
        "revocations": [],
    });
    let signed: Signed<RegistryDocument> =
        Signed::sign(&members, &[("operator", &statement.issuer.key as &dyn Signer)])?;
    statement.with_payload(signed.canonical().to_vec(), REGISTRY)
}

fn policy_document(statement: &NumberedStatement<'_>) -> anyhow::Result<SignedStatement> {
    let number = statement.number;
    let document = json!({ "policy_id": format!("policy-{number}"), "rules": [] });
    statement.with_payload(jcs::canonical(&document), &format!("policy-{number}"))
}

/// A conversation of a question, one tool call with its result, and an answer.
fn conversation(statement: &NumberedStatement<'_>) -> anyhow::Result<SignedStatement> {
    let number = statement.number;
    let session = format!("session-{number}");
    let record = json!({
        "version": "3.0.0-draft",
        "id": uuid(0x2222, number),
        "created": AT,
        "session": {
            "format": "interactive",
            "session-id": session,
            "session-start": AT,
            "agent-meta": { "model-id": "model-1", "model-provider": "provider" },
            "entries": [
                { "type": "user", "id": "e1", "timestamp": AT, "content": "how many tests?" },
                {
                    "type": "assistant", "id": "e2", "parent-id": "e1", "timestamp": AT, "model-id": "model-1",
                    "children": [{
                        "type": "tool-call", "id": "e3", "call-id": format!("call-{number}"), "name": "Bash",
                        "input": { "command": "cargo test" },
                    }],
                },
                {
                    "type": "tool-result", "id": "e4", "call-id": format!("call-{number}"), "status": "success",
                    "is-error": false, "output": format!("{number} passed"),
                },
            ],
        },
        "recording-agent": { "name": "recorder", "version": "1" },
    });
    statement.with_payload(record.to_string().into_bytes(), &session)
}

/// A Verdict that serves a call.
fn verdict(statement: &NumberedStatement<'_>) -> anyhow::Result<SignedStatement> {
    let number = statement.number;
    let session = format!("session-{number}");
    let verdict = json!({
        "vap": "0.1",
        "type": "verdict",
        "session_id": session,
        "in_response_to": "intent_call",
        "verdict": "served",
        "verification": checks(),
    });
    statement.with_payload(jcs::canonical(&verdict), &session)
}

fn audit_record(statement: &NumberedStatement<'_>) -> anyhow::Result<SignedStatement> {
    decision(statement, "bench")
}

/// The record of a decision to serve a call, in the stream of a session. Its place there is the statement's number.
pub(super) fn decision(statement: &NumberedStatement<'_>, stream: &str) -> anyhow::Result<SignedStatement> {
    let commitment = format!("hmac-sha256:{}", "0f".repeat(32));
    let record = json!({
        "version": "1", "kind": "decision", "gateway": ISS, "stream": stream, "seq": statement.number, "at": AT,
        "agent_id": AGENT, "tool": "read_file", "verdict": "served", "verification": checks(),
        "policy_digest": DIGEST, "meters": { "calls": "1" },
        "committed": { "arguments": commitment, "rationale": commitment },
    });
    statement.with_payload(jcs::canonical(&record), stream)
}

fn jwk_set(statement: &NumberedStatement<'_>) -> anyhow::Result<SignedStatement> {
    let number = statement.number;
    let mut key = statement.issuer.public_key().to_jwk().to_value();
    key["kid"] = format!("key-{number}").into();
    statement.with_payload(jcs::canonical(&json!({ "keys": [key] })), ISS)
}

fn checks() -> Value {
    json!({ "checks": ["scope_ok", "budget_ok"], "method": "static" })
}

/// Returns a UUID of version 4 that contains the number.
fn uuid(prefix: u16, number: u64) -> String {
    let low = number & 0xffff_ffff_ffff;
    format!("{prefix:04x}{:04x}-1111-4111-8111-{low:012x}", number >> 48)
}
