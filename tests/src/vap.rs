//! An agent that declares its calls: VAP messages and their signatures.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use merkle::EntryDigest;
use scitt::{Signer, SigningKey};
use serde_json::{Value, json};
use testkit::agent;

use crate::mcp::{McpAnswer, McpClient};

/// Default agent ID.
pub const AGENT: &str = "did:example:a";

/// An agent in one VAP session.
#[derive(Clone)]
pub struct Agent {
    /// Agent ID.
    pub id: String,
    /// VAP session ID.
    pub session: String,
    key: Arc<SigningKey>,
    /// `true` if a gateway knows the agent's key, and thus requires signed commitments.
    known: Arc<AtomicBool>,
}

impl Agent {
    /// Creates the agent [`AGENT`] with this session ID.
    pub fn new(session: &str) -> Self {
        Self::named(AGENT, session, 7)
    }

    /// Creates an agent with this ID, session ID and key.
    pub fn named(id: &str, session: &str, seed: u8) -> Self {
        let key = Arc::new(testkit::ed25519([seed; 32]));
        Self { id: id.to_owned(), session: session.to_owned(), key, known: Arc::default() }
    }

    /// Returns the same agent in another session.
    pub fn also_in(&self, session: &str) -> Self {
        Self { session: session.to_owned(), ..self.clone() }
    }

    /// Records that a gateway knows the agent's key.
    pub fn is_known(&self) {
        self.known.store(true, Ordering::Relaxed);
    }

    /// Returns the agent's public key as a JWK, as a gateway is configured with it.
    pub fn jwk(&self) -> Value {
        let jwk = self.key.public_key().to_jwk().to_value();
        agent::with(jwk, &json!({ "kid": self.kid(), "alg": "EdDSA" }))
    }

    /// Returns the key identifier.
    pub fn kid(&self) -> String {
        format!("{}#1", self.id)
    }

    /// Returns a commitment to `echo` and `payments.*`, for at most 100 calls.
    pub fn commitment(&self) -> Value {
        let commitment = agent::commitment(&self.id, &self.session, &json!({ "max_calls": 100 }));
        agent::with(commitment, &json!({ "scope": { "tools_allow": ["echo", "payments.*"] } }))
    }

    /// Returns the commitment with members replaced; `scope` and `budget` are replaced as a whole.
    pub fn commitment_with(&self, changes: Value) -> Value {
        agent::with(self.commitment(), &changes)
    }

    /// Returns an intent, which states the purpose of a call.
    pub fn intent(&self, tool: &str, arguments: &Value) -> Value {
        agent::intent(&self.session, tool, arguments)
    }

    /// Returns an amendment of a commitment (`scope_amendment`).
    pub fn amendment(&self, previous: &str, changes: Value) -> Value {
        agent::amendment(&self.session, previous, &changes)
    }

    /// Sends the commitment in a `tools/list` request.
    pub fn commit(&self, client: &mut McpClient) -> McpAnswer {
        self.commit_to(client, json!({}))
    }

    /// Sends the commitment with members replaced.
    pub fn commit_to(&self, client: &mut McpClient, changes: Value) -> McpAnswer {
        let commitment = self.commitment_with(changes);
        client.carry(self.committed(client, commitment))
    }

    /// Returns a commitment, signed if a gateway knows the agent's key, or if the client has no MCP session.
    pub fn committed(&self, client: &McpClient, commitment: Value) -> Value {
        match self.known.load(Ordering::Relaxed) {
            true => self.signed(commitment),
            false => self.dressed(client, commitment),
        }
    }

    /// Calls a tool with an intent.
    pub fn call(&self, client: &mut McpClient, tool: &str, arguments: Value) -> McpAnswer {
        let intent = self.dressed(client, self.intent(tool, &arguments));
        client.call(tool, arguments, json!({ "vap": intent }))
    }

    /// Sends a signed amendment.
    pub fn amend(&self, client: &mut McpClient, previous: &str, changes: Value) -> McpAnswer {
        client.carry(self.signed(self.amendment(previous, changes)))
    }

    /// Returns a message, signed if no MCP session identifies the agent (V-2).
    pub fn dressed(&self, client: &McpClient, message: Value) -> Value {
        if client.session().is_some() { message } else { self.signed(message) }
    }

    /// Returns a message with the agent's detached JWS in its `signature` member.
    pub fn signed(&self, message: Value) -> Value {
        let header = json!({ "alg": "EdDSA", "kid": self.kid() });
        self.signed_under(message, &header)
    }

    /// Returns a message signed with this JWS header.
    pub fn signed_under(&self, message: Value, header: &Value) -> Value {
        agent::signed_under(&message, &self.key, header)
    }
}

/// Returns canonical JSON (RFC 8785) for the values in these tests: ASCII names, and numbers in canonical form.
pub fn canonical(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

/// Returns the VAP digest of a commitment (V-17).
pub fn digest(commitment: &Value) -> String {
    format!("sha256:{}", EntryDigest::of(&canonical(commitment)))
}
