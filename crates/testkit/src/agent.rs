//! VAP messages of an agent, and its signatures.

use jose::{jcs, jws};
use scitt::{Signer, SigningKey};
use serde_json::{Value, json};

/// Returns a commitment to `crm.*` without `crm.delete`, and to `pay`, under this budget.
pub fn commitment(agent: &str, session: &str, budget: &Value) -> Value {
    json!({
        "vap": "0.1", "type": "scope_commitment", "session_id": session,
        "goal": "Answer ticket SUP-9931",
        "scope": { "tools_allow": ["crm.*", "pay"], "tools_deny": ["crm.delete"] },
        "budget": budget,
        "principal": { "agent_id": agent },
    })
}

/// Returns an intent, which declares a call.
pub fn intent(session: &str, tool: &str, arguments: &Value) -> Value {
    json!({
        "vap": "0.1", "type": "intent_call", "session_id": session,
        "intent": { "rationale": "the ticket says so", "expected_effect": "one ticket is read" },
        "call": { "tool": tool, "arguments": arguments },
    })
}

/// Returns an amendment of the commitment with this digest, with more members.
pub fn amendment(session: &str, previous: &str, additions: &Value) -> Value {
    let amendment = json!({
        "vap": "0.1", "type": "scope_amendment", "session_id": session,
        "prev_commitment_digest": previous, "reason": "there is more to do",
    });
    with(amendment, additions)
}

/// Replaces members of a message; null removes a member.
pub fn with(mut message: Value, changes: &Value) -> Value {
    for (name, value) in changes.as_object().into_iter().flatten() {
        match (value, message.as_object_mut()) {
            (Value::Null, Some(members)) => drop(members.remove(name)),
            _ => message[name] = value.clone(),
        }
    }
    message
}

/// Returns a message, signed under a header that names the key by its thumbprint, with more members in the header.
pub fn signed(message: &Value, key: &SigningKey, more: &Value) -> Value {
    let header = json!({ "alg": "EdDSA", "kid": key.public_key().jwk_thumbprint() });
    signed_under(message, key, &with(header, more))
}

/// Returns a message with the detached JWS of a key, under this header, in its `signature` member.
pub fn signed_under(message: &Value, key: &SigningKey, header: &Value) -> Value {
    let input = jws::signing_input(header, &jcs::canonical(message));
    let signature = key.sign(&input).expect("a key in memory signs");
    with(message.clone(), &json!({ "signature": jws::detached(&input, &signature) }))
}
