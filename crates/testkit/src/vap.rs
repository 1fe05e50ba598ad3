//! Fixtures of a VAP gateway: wire Verdicts, audit records, and its key set.

use jose::{jcs, jws};
use merkle::EntryDigest;
use registration::jwk_set::JWK_SET;
use registration::vap::VAP_VERDICT;
use scitt::{SignedStatement, Signer, StatementBuilder};
use serde_json::{Value, json};
use vap::audit::VAP_AUDIT;

use crate::keys::gateway;
use crate::names::{GATEWAY, KID};

/// Session, and thus stream, of the records in this module.
pub const SESSION: &str = "session-1";
/// Commitment to an unknown value.
pub const COMMITMENT: &str = "hmac-sha256:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

/// Returns the `[[type]]` tables of a policy that admits the content types of this module.
pub(crate) fn types() -> String {
    let key = gateway().public_key().did_key();
    format!(
        r#"
[[type]]
content_type = "{VAP_VERDICT}"

[type.vap_verdict]
require_signature = false
verifier = [{{ id = "gateway", keys = [{{ key = "{key}", kid = "{KID}" }}] }}]

[[type]]
content_type = "{VAP_AUDIT}"

[[type]]
content_type = "{JWK_SET}"

[[type]]
content_type = "application/cll-checkpoint+cbor"

[[type]]
content_type = "text/x-c2sp-checkpoint"
"#
    )
}

/// Returns a Verdict that serves a call, with the required members and the served answer.
pub fn verdict_json() -> Value {
    json!({
        "vap": "0.1",
        "type": "verdict",
        "session_id": SESSION,
        "in_response_to": "intent_call",
        "verdict": "served",
        "verification": { "checks": ["scope_ok", "budget_ok"], "method": "static" },
    })
}

/// Returns a Verdict with the gateway's detached JWS in its `signature` member.
pub fn signed_verdict_json(verdict: &Value) -> Value {
    let header = json!({ "alg": "EdDSA", "kid": KID });
    let input = jws::signing_input(&header, &jcs::canonical(verdict));
    let signature = gateway().sign(&input).expect("a fixed key signs");
    let mut signed = verdict.clone();
    signed["signature"] = jws::detached(&input, &signature).into();
    signed
}

/// Returns the statement of a Verdict, signed by the [`gateway`].
pub fn verdict(verdict: &Value) -> SignedStatement {
    gateway_statement(VAP_VERDICT, SESSION, verdict)
}

/// Returns the record of a decision to serve a call of `read_file`.
pub fn decision_json(stream: &str, seq: u64) -> Value {
    let mut record = audit_json("decision", stream, seq);
    for (name, value) in [
        ("agent_id", json!("did:web:agent.example")),
        ("tool", json!("read_file")),
        ("verdict", json!("served")),
        ("verification", json!({ "checks": ["scope_ok", "budget_ok"], "method": "static" })),
        ("policy_digest", json!("sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")),
        ("meters", json!({ "calls": "1", "usd": "0.25" })),
        ("committed", json!({ "arguments": COMMITMENT, "rationale": COMMITMENT })),
    ] {
        record[name] = value;
    }
    record
}

/// Returns the record of an executed call, linked to the decision.
pub fn outcome_json(stream: &str, seq: u64, decision: &EntryDigest) -> Value {
    let mut record = audit_json("outcome", stream, seq);
    for (name, value) in [
        ("backLink", json!(decision.to_string())),
        ("status", json!("executed")),
        ("settled", json!({ "calls": "1", "usd": "0.2" })),
        ("committed", json!({ "result": COMMITMENT })),
    ] {
        record[name] = value;
    }
    record
}

/// Returns an audit record with the members that all kinds share, which is complete for the kind `closed`.
pub fn audit_json(kind: &str, stream: &str, seq: u64) -> Value {
    json!({
        "version": "1",
        "kind": kind,
        "gateway": GATEWAY,
        "stream": stream,
        "seq": seq,
        "at": "2026-01-01T00:00:00Z",
    })
}

/// Returns the statement of an audit record, signed by the [`gateway`].
pub fn audit_record(record: &Value) -> SignedStatement {
    gateway_statement(VAP_AUDIT, record["stream"].as_str().unwrap_or_default(), record)
}

/// Returns the gateway's public key as a JWK Set.
pub fn jwk_set_json() -> Value {
    let mut key = gateway().public_key().to_jwk().to_value();
    key["kid"] = KID.into();
    json!({ "keys": [key] })
}

/// Returns the statement of a JWK Set, signed by the [`gateway`].
pub fn jwk_set(set: &Value) -> SignedStatement {
    gateway_statement(JWK_SET, GATEWAY, set)
}

fn gateway_statement(content_type: &'static str, sub: &str, payload: &Value) -> SignedStatement {
    StatementBuilder::new(jcs::canonical(payload))
        .content_type(content_type)
        .kid(KID)
        .iss(GATEWAY)
        .sub(sub)
        .sign(&gateway())
        .expect("a fixed key signs")
}
