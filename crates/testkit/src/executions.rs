//! AgentROA execution receipts that [`policy`](crate::policy()) admits, and parts to build others.

use registration::aer::AerStatement;
use roa::placeholder::{EMPTY_CHAIN, NO_POLICY, NO_POLICY_DIGEST, NO_ROOT, NO_SESSION, UNKNOWN_AGENT};
use scitt::SignedStatement;
use serde_json::{Value, json};

use crate::keys::gateway;
use crate::names::{GATEWAY, GATEWAY_ID, KID};

/// Returns the `n`th execution statement: a tool call that [`GATEWAY`] permitted.
pub fn aer(n: u64) -> SignedStatement {
    aer_statement(aer_json(n)).sign(&gateway()).expect("the receipt keeps every rule")
}

/// Returns a statement of [`GATEWAY`] before it is signed.
pub fn aer_statement(receipt: Value) -> AerStatement {
    AerStatement::new(receipt).iss(GATEWAY).kid(KID)
}

/// Returns the `n`th permit as JSON, without signatures and with the required members only.
pub fn aer_json(n: u64) -> Value {
    json!({
        "schema_version": "1.0",
        "aer_id": format!("aer:{:016x}", 0xaaaa_0000_0000 + n),
        "produced_at": "2026-01-01T00:00:00Z",
        "enforcement_outcome": "permit",
        "enforcement_mode": "normal",
        "session": { "session_id": "sess:8b3d0e7f2a1c9b4e", "agent_id": "aha:acme/engineering/coder-7" },
        "action": {
            "capability": "mcp:github.get_pull_request",
            "mcp_server_id": "github",
            "mcp_tool_name": "get_pull_request",
            // SHA-256 of {}: a call without arguments.
            "input_hash": "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
        },
        "policy": { "policy_id": "devops-v4", "policy_digest": format!("sha256:{}", "a3".repeat(32)) },
        "chain_summary": {
            "chain_depth": 1,
            "root_envelope_id": "env:4a7c9f2b1e8d3a6f",
            "chain_digest": format!("sha256:{}", "9f".repeat(32)),
        },
        "border_gateway": { "gateway_id": GATEWAY_ID, "gateway_version": "1.0.0" },
    })
}

/// Returns the receipt of [`aer_json`] with the outcome `deny`.
pub fn denied_aer_json(n: u64, reason: &str) -> Value {
    let mut receipt = aer_json(n);
    receipt["enforcement_outcome"] = json!("deny");
    receipt["denial_reason"] = json!(reason);
    receipt
}

/// Returns a denied receipt without an agent and a session, as for a call without envelope (`no_envelope`).
pub fn rootless_aer_json(n: u64) -> Value {
    let mut receipt = denied_aer_json(n, "chain_integrity_violation");
    receipt["denial_detail"] = json!({ "code": "no_envelope" });
    receipt["session"] = json!({ "session_id": NO_SESSION, "agent_id": UNKNOWN_AGENT });
    receipt["policy"] = json!({ "policy_id": NO_POLICY, "policy_digest": NO_POLICY_DIGEST });
    receipt["chain_summary"] =
        json!({ "chain_depth": 0, "root_envelope_id": NO_ROOT, "chain_digest": EMPTY_CHAIN });
    receipt
}
