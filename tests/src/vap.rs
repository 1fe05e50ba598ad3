//! An agent that declares what it is about to do: the messages of VAP, and their signatures.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use data_encoding::BASE64URL_NOPAD;
use ed25519_dalek::{Signer, SigningKey};
use merkle::EntryDigest;
use serde_json::{Value, json};

use crate::mcp::{McpClient, Told};

/// Who commits here.
pub const AGENT: &str = "did:example:a";

/// An agent in one session of VAP.
#[derive(Clone)]
pub struct Agent {
    /// Its name.
    pub id: String,
    /// Its session.
    pub session: String,
    key: SigningKey,
    /// Whether a gateway knows its key: then its commitments have to be signed.
    known: Arc<AtomicBool>,
}

impl Agent {
    /// One with a session of this name.
    pub fn new(session: &str) -> Self {
        Self::named(AGENT, session, 7)
    }

    /// Another one, with a key of its own.
    pub fn named(id: &str, session: &str, seed: u8) -> Self {
        let key = SigningKey::from_bytes(&[seed; 32]);
        Self { id: id.to_owned(), session: session.to_owned(), key, known: Arc::default() }
    }

    /// The same agent in another session.
    pub fn also_in(&self, session: &str) -> Self {
        Self { session: session.to_owned(), ..self.clone() }
    }

    /// A gateway was told of its key.
    pub fn is_known(&self) {
        self.known.store(true, Ordering::Relaxed);
    }

    /// Its public key, as it is configured.
    pub fn jwk(&self) -> Value {
        let x = BASE64URL_NOPAD.encode(self.key.verifying_key().as_bytes());
        json!({ "kty": "OKP", "crv": "Ed25519", "x": x, "kid": self.kid(), "alg": "EdDSA" })
    }

    /// What its key is called.
    pub fn kid(&self) -> String {
        format!("{}#1", self.id)
    }

    /// A commitment to `echo` and payments, at most a hundred times.
    pub fn commitment(&self) -> Value {
        json!({
            "vap": "0.1",
            "type": "scope_commitment",
            "session_id": self.session,
            "goal": "to see what a gateway does",
            "scope": { "tools_allow": ["echo", "payments.*"] },
            "budget": { "max_calls": 100 },
            "principal": { "agent_id": self.id },
        })
    }

    /// The same, with members replaced: those of `scope` and `budget` as a whole.
    pub fn commitment_with(&self, changes: Value) -> Value {
        with(self.commitment(), changes)
    }

    /// Says what a call is for.
    pub fn intent(&self, tool: &str, arguments: &Value) -> Value {
        json!({
            "vap": "0.1",
            "type": "intent_call",
            "session_id": self.session,
            "intent": { "rationale": "it is the next step", "expected_effect": "an answer" },
            "call": { "tool": tool, "arguments": arguments },
        })
    }

    /// Asks for more.
    pub fn amendment(&self, previous: &str, changes: Value) -> Value {
        let amendment = json!({
            "vap": "0.1",
            "type": "scope_amendment",
            "session_id": self.session,
            "prev_commitment_digest": previous,
            "reason": "the plan has changed",
        });
        with(amendment, changes)
    }

    /// Commits, on the way of a `tools/list`.
    pub fn commit(&self, client: &mut McpClient) -> Told {
        self.commit_to(client, json!({}))
    }

    /// The same, with members of the commitment replaced.
    pub fn commit_to(&self, client: &mut McpClient, changes: Value) -> Told {
        let commitment = self.commitment_with(changes);
        client.carry(self.committed(client, commitment))
    }

    /// A commitment, signed where the gateway knows its key, or nothing else says whose it is.
    pub fn committed(&self, client: &McpClient, commitment: Value) -> Value {
        match self.known.load(Ordering::Relaxed) {
            true => self.signed(commitment),
            false => self.dressed(client, commitment),
        }
    }

    /// Calls a tool, and says what for.
    pub fn call(&self, client: &mut McpClient, tool: &str, arguments: Value) -> Told {
        let intent = self.dressed(client, self.intent(tool, &arguments));
        client.call(tool, arguments, json!({ "vap": intent }))
    }

    /// Asks for more, under a signature.
    pub fn amend(&self, client: &mut McpClient, previous: &str, changes: Value) -> Told {
        client.carry(self.signed(self.amendment(previous, changes)))
    }

    /// Signed where nothing else says whose session this is: V-2.
    pub fn dressed(&self, client: &McpClient, message: Value) -> Value {
        if client.session().is_some() { message } else { self.signed(message) }
    }

    /// A message with the agent's detached signature in it.
    pub fn signed(&self, message: Value) -> Value {
        let header = json!({ "alg": "EdDSA", "kid": self.kid() });
        self.signed_under(message, &header)
    }

    /// The same, under a header of one's own.
    pub fn signed_under(&self, mut message: Value, header: &Value) -> Value {
        let protected = BASE64URL_NOPAD.encode(&canonical(header));
        let input = format!("{protected}.{}", BASE64URL_NOPAD.encode(&canonical(&message)));
        let signature = BASE64URL_NOPAD.encode(&self.key.sign(input.as_bytes()).to_bytes());
        message["signature"] = format!("{protected}..{signature}").into();
        message
    }
}

/// RFC 8785 for what these tests write: ASCII names, and numbers that read as they are written.
pub fn canonical(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

/// The digest that VAP gives a commitment (V-17).
pub fn digest(commitment: &Value) -> String {
    format!("sha256:{}", EntryDigest::of(&canonical(commitment)))
}

/// Replaces members; null removes one.
pub fn with(mut message: Value, changes: Value) -> Value {
    for (name, value) in changes.as_object().cloned().unwrap_or_default() {
        match value {
            Value::Null => {
                message.as_object_mut().map(|members| members.remove(&name));
            }
            value => message[name] = value,
        }
    }
    message
}
