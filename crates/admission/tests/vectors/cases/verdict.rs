//! Signed Verdicts, byte for byte: Ed25519 has one signature for one text.

use admission::digest::Digest;
use serde_json::{Value, json};

use crate::Case;

fn case(name: &'static str, why: &'static str, verdict: &Value, req: Option<&[u8]>) -> Case {
    let mut binding = json!({ "iat": 1_795_338_000, "jti": "v-1" });
    if let Some(message) = req {
        binding["req"] = Digest::of(message).as_str().into();
    }
    let input = json!({ "verdict": verdict, "binding": binding, "seed": "07".repeat(32) });
    Case { folder: "verdict", name, reading: "V-25", why, input, expected: "accept" }
}

pub fn cases() -> Vec<Case> {
    let denied = json!({
        "vap": "0.1", "type": "verdict", "session_id": "s-1", "in_response_to": "intent_call", "verdict": "denied",
        "verification": { "checks": ["bind_ok", "scope_failed"], "method": "static", "risk_score": 0.25, "reason": "scope_escape" },
        "audit_ref": format!("https://log.example/entries/{}", "0".repeat(64)),
    });
    let clarify = json!({
        "vap": "0.1", "type": "verdict", "session_id": "s-1", "in_response_to": "intent_call", "verdict": "clarify",
        "verification": { "checks": ["policy:large_failed"], "method": "static+policy", "reason": "policy:large" },
        "clarification": { "question": "Call payments.send?", "schema": { "type": "object", "properties": { "confirm": { "type": "boolean" } }, "required": ["confirm"] } },
    });
    let accepted = json!({
        "vap": "0.1", "type": "verdict", "session_id": "s-1", "in_response_to": "scope_commitment", "verdict": "downgraded",
        "accepted_commitment_digest": Digest::of(b"E0").as_str(),
        "verification": { "checks": ["schema_ok"], "method": "static", "reason": "ceiling" },
        "downgrade": { "applied_scope": { "budget": { "max_calls": 10 } }, "note": "ceiling" },
    });
    let unbound = json!({
        "vap": "0.1", "type": "verdict", "session_id": "none", "in_response_to": "intent_call", "verdict": "denied",
        "verification": { "checks": [], "method": "static", "reason": "no_envelope" },
    });
    vec![
        case("denied", "Bound to the message it answers.", &denied, Some(b"{}")),
        case("clarify", "With a question and its form.", &clarify, Some(b"{}")),
        case("downgraded", "With what is in force instead.", &accepted, Some(b"{}")),
        case("no-message", "A call without VAP has no message to bind.", &unbound, None),
    ]
}
