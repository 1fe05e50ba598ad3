//! Records of an agent's conversation, and a policy type that admits them.

use registration::conversation::{AGENT_CONVERSATION, Form};
use scitt::cbor;
use scitt::{SignedStatement, Signer, SigningKey, StatementBuilder};
use serde_json::{Value, json};

use crate::keys::ed25519;

/// Ed25519 seed of the [`recorder`].
pub const RECORDER: [u8; 32] = [0x1c; 32];

/// Returns the key that signs conversation records, whose issuer is its `did:key`.
pub fn recorder() -> SigningKey {
    ed25519(RECORDER)
}

/// Returns the `[[type]]` table of a policy that admits conversation records.
pub fn conversation_type() -> &'static str {
    r#"
[[type]]
content_type = "application/agent-conversation"
max_size = 1048576
detached = true
hash_envelope = true
"#
}

/// Returns the `n`th record as JSON: a question, reasoning, one tool call with its result, and an answer.
pub fn conversation_json(n: u64) -> Value {
    json!({
        "version": "3.0.0-draft",
        "id": format!("22222222-2222-4222-8222-{n:012x}"),
        "created": "2026-02-01T12:00:09Z",
        "session": {
            "format": "interactive",
            "session-id": format!("session-{n}"),
            "session-start": "2026-02-01T12:00:00Z",
            "session-end": "2026-02-01T12:00:08.250Z",
            "agent-meta": {
                "model-id": "model-1",
                "model-provider": "provider",
                "models": ["model-1"],
                "cli-name": "agent-cli",
                "cli-version": "1.2.3"
            },
            "environment": {
                "working-dir": "/work",
                "vcs": { "type": "git", "revision": "0f1e2d", "branch": "main" }
            },
            "entries": [
                { "type": "user", "id": "e1", "timestamp": "2026-02-01T12:00:00Z", "content": "how many tests?" },
                {
                    "type": "assistant",
                    "id": "e2",
                    "parent-id": "e1",
                    "timestamp": "2026-02-01T12:00:02Z",
                    "model-id": "model-1",
                    "token-usage": { "input": 12, "output": 30, "cost": 0.25 },
                    "children": [
                        { "type": "reasoning", "content": "run them" },
                        {
                            "type": "tool-call",
                            "id": "e3",
                            "call-id": format!("call-{n}"),
                            "name": "Bash",
                            "input": { "command": "cargo test", "timeout": 60 }
                        }
                    ]
                },
                {
                    "type": "tool-result",
                    "id": "e4",
                    "call-id": format!("call-{n}"),
                    "status": "success",
                    "is-error": false,
                    "output": format!("{n} passed")
                },
                { "type": "system-event", "event-type": "token-count", "data": { "total": 42 } },
                { "type": "assistant", "id": "e5", "parent-id": "e2", "content": [{ "type": "text", "text": "all" }] }
            ]
        },
        "recording-agent": { "name": "recorder", "version": "1" }
    })
}

/// Returns the statement with the `n`th record, signed by the [`recorder`].
pub fn conversation(n: u64, form: Form) -> SignedStatement {
    let statement = conversation_builder(n, form).sign(&recorder());
    statement.expect("a fixed key signs")
}

/// Returns the statement with the `n`th record before it is signed.
pub fn conversation_builder(n: u64, form: Form) -> StatementBuilder {
    let record = conversation_json(n);
    let payload = match form {
        Form::Json => record.to_string().into_bytes(),
        Form::Cbor => json_as_cbor(&record).encode(),
        Form::TaggedCbor => [&[0xd9, 0x10, 0x35][..], &json_as_cbor(&record).encode()].concat(),
    };
    conversation_of(payload, &format!("session-{n}"))
}

/// Returns a statement of the [`recorder`] about a session, before it is signed.
pub fn conversation_of(payload: Vec<u8>, session: &str) -> StatementBuilder {
    let iss = recorder().public_key().did_key();
    StatementBuilder::new(payload).content_type(AGENT_CONVERSATION).kid(iss.as_bytes()).iss(&iss).sub(session)
}

/// Converts a JSON value to the data model of CBOR.
pub fn json_as_cbor(value: &Value) -> cbor::Value<'static> {
    match value {
        Value::Null => cbor::Value::Null,
        Value::Bool(value) => (*value).into(),
        Value::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
            (Some(unsigned), ..) => unsigned.into(),
            (_, Some(integer), _) => integer.into(),
            (.., float) => cbor::Value::Float(float.unwrap_or_default()),
        },
        Value::String(text) => text.clone().into(),
        Value::Array(items) => cbor::Value::array(items.iter().map(json_as_cbor)),
        Value::Object(members) => {
            cbor::Value::map(members.iter().map(|(name, value)| (name.clone().into(), json_as_cbor(value))))
        }
    }
}
