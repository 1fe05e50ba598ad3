//! Messages that are in order, to be changed by the tests.

use jiff::Timestamp;
use scitt::{Algorithm, Signer, SigningKey};
use serde_json::{Value, json};
use vap::message::slot::{self, Carrier, Received};
use vap::message::{Message, ScopeAmendment, ScopeCommitment};

pub const AGENT: &str = "did:example:a";
pub const GATEWAY: &str = "https://gw.example";

pub fn commitment() -> Value {
    json!({
        "vap": "0.1",
        "type": "scope_commitment",
        "session_id": "s-1",
        "goal": "Answer ticket SUP-9931",
        "scope": { "tools_allow": ["crm.*", "mail.send"], "tools_deny": ["crm.delete*"] },
        "budget": { "max_calls": 20, "deadline": "2026-12-01T00:00:00Z", "limits": { "usd_opcost": 0.5, "tokens": 1000 } },
        "plan_digest": "sha256:00ff",
        "principal": { "agent_id": AGENT, "auth": "oauth:ref", "delegated_by": "did:example:boss" },
    })
}

pub fn intent() -> Value {
    json!({
        "vap": "0.1",
        "type": "intent_call",
        "session_id": "s-1",
        "intent": {
            "rationale": "The ticket reports a double charge",
            "expected_effect": "one ticket is read",
            "step": 3,
            "sensitivity": "reads",
            "reasoning_digest": "sha256:0a",
        },
        "call": { "tool": "crm.read", "arguments": { "ticket": 9931 } },
    })
}

pub fn amendment(prev: &str) -> Value {
    json!({
        "vap": "0.1",
        "type": "scope_amendment",
        "session_id": "s-1",
        "prev_commitment_digest": prev,
        "add_scope": { "tools_allow": ["refunds.create"], "tools_deny": ["refunds.list"] },
        "increase_budget": {
            "add_calls": 5,
            "extend_deadline": "2026-12-02T00:00:00+01:00",
            "add_limits": { "usd_opcost": 0.1 },
        },
        "reason": "The charge has to be refunded",
        "new_plan_digest": "sha256:11ff",
    })
}

/// The message with members set, each by its JSON pointer, or removed where the value is null.
pub fn with(mut message: Value, changes: &[(&str, Value)]) -> Value {
    for (pointer, value) in changes {
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        let parent = message.pointer_mut(parent).unwrap().as_object_mut().unwrap();
        match value {
            Value::Null => drop(parent.remove(name).unwrap()),
            value => drop(parent.insert(name.to_owned(), value.clone())),
        }
    }
    message
}

pub fn scope_commitment(message: &Value) -> ScopeCommitment {
    match Message::read(&message.to_string()).unwrap() {
        Message::ScopeCommitment(commitment) => commitment,
        other => panic!("{other:?}"),
    }
}

pub fn scope_amendment(message: &Value) -> ScopeAmendment {
    match Message::read(&message.to_string()).unwrap() {
        Message::ScopeAmendment(amendment) => amendment,
        other => panic!("{other:?}"),
    }
}

pub fn carrier_of(message: &Value) -> Carrier {
    match message["type"].as_str().unwrap() {
        "scope_commitment" => Carrier::Initialize,
        "intent_call" => Carrier::ToolsCall,
        _ => Carrier::Amend,
    }
}

pub fn received(message: &Value) -> Received {
    slot::read(Some(&message.to_string()), None, carrier_of(message)).unwrap().unwrap()
}

pub fn now() -> Timestamp {
    "2026-11-22T09:00:00Z".parse().unwrap()
}

pub fn ed25519(seed: u8) -> SigningKey {
    SigningKey::from_ed25519_seed(&[seed; 32]).unwrap()
}

pub fn p256() -> SigningKey {
    SigningKey::generate(Algorithm::Es256).unwrap()
}

/// A protected header of this key with nothing optional in it.
pub fn header(key: &SigningKey) -> Value {
    let alg = if key.algorithm() == Algorithm::Es256 { "ES256" } else { "EdDSA" };
    json!({ "alg": alg, "kid": key.public_key().jwk_thumbprint() })
}
