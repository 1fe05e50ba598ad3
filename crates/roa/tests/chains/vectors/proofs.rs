//! Vectors of proofs of possession.

use std::path::Path;

use roa::aer::input_hash;
use roa::capability::Capability;
use roa::chain::Chain;
use roa::denial::Denial;
use roa::proof::{PROOF_TYPE, Proof, ProvenCall, verify_proof};
use scitt::Signer;
use serde::Deserialize;
use serde_json::{Value, json};
use testkit::vectors::{ByteEdit, DocumentEdit};

use super::{Made, chains, decision, edited, expected, open, operator, registry_edited};
use crate::world::*;

const AUDIENCE: &str = "https://gateway.example";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Source {
    case: Vec<Case>,
}

/// A case: edits of the proof that the first agent makes for a call without arguments under a root envelope.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    reading: String,
    why: String,
    /// `accept AGENT`, or the denial: reason, code, and `- -`.
    expected: String,
    /// Edits of the registry.
    #[serde(default)]
    registry: Vec<DocumentEdit>,
    /// Edits of the protected header.
    #[serde(default)]
    header: Vec<DocumentEdit>,
    /// Edits of the claims.
    #[serde(default)]
    claims: Vec<DocumentEdit>,
    /// Edits of the payload's bytes, before it is signed.
    #[serde(default)]
    payload: Vec<ByteEdit>,
    /// The name of the key that signs.
    #[serde(default = "lead")]
    key: String,
    /// Edits of the proof.
    #[serde(default)]
    proof: Vec<ByteEdit>,
    /// The arguments of the call as JSON.
    arguments: Option<String>,
    #[serde(default = "chains::during")]
    at: String,
}

fn lead() -> String {
    AGENTS[0].to_owned()
}

impl Case {
    fn proof(&self, chain: &Chain) -> String {
        let header = edited(json!({ "alg": "EdDSA", "kid": AGENTS[0], "typ": PROOF_TYPE }), &self.header);
        let claims = json!({
            "chain_digest": chain.digest(), "capability": chains::read_github(), "input_hash": input_hash(None),
            "jti": "proof-1", "iat": now().unix_seconds(), "aud": AUDIENCE,
        });
        let claims = jose::jcs::canonical(&edited(claims, &self.claims));
        let payload = self.payload.iter().fold(claims, |payload, edit| edit.apply(payload));
        let input = jose::jws::signing_input(&header, &payload);
        let signature = data_encoding::BASE64URL_NOPAD.encode(&key(&self.key).sign(&input).unwrap());
        let proof = format!("{}.{signature}", String::from_utf8(input).unwrap()).into_bytes();
        String::from_utf8(self.proof.iter().fold(proof, |proof, edit| edit.apply(proof))).unwrap()
    }

    /// Returns the vector, without its decision.
    fn vector(&self) -> Value {
        let chain = chain_of(0);
        let arguments = self.arguments.as_ref().map(|text| serde_json::from_str::<Value>(text).unwrap());
        json!({
            "name": self.name, "reading": self.reading, "why": self.why,
            "registry": registry_edited(&self.registry), "operator": operator(),
            "chain": String::from_utf8(chain.canonical()).unwrap(),
            "call": chains::read_github(), "arguments": arguments, "audience": AUDIENCE,
            "at": self.at, "proof": self.proof(&chain),
        })
    }

    fn expected(&self, found: &Value) -> Value {
        match self.expected.strip_prefix("accept ") {
            None => expected(&self.expected),
            Some(agent) => json!({
                "outcome": "accept", "agent_id": agent, "jti": found["jti"], "ends_at": found["ends_at"],
            }),
        }
    }
}

/// Verifies the proof of a vector, as any implementation would.
fn verify(vector: &Value) -> Result<Proof, Denial> {
    let text = |name: &str| vector[name].as_str().unwrap();
    let registry = open(&vector["registry"], &vector["operator"]);
    let capability: Capability = text("call").parse().unwrap();
    let arguments = Some(&vector["arguments"]).filter(|arguments| !arguments.is_null());
    let arguments = arguments.map(Value::to_string);
    let chain = Chain::parse(text("chain").as_bytes())?;
    let call = ProvenCall {
        chain_digest: chain.digest(),
        holder: chain.holder(),
        capability: &capability,
        input_hash: input_hash(arguments.as_deref().map(|text| jose::json::check_text(text).unwrap())),
        audience: text("audience"),
    };
    verify_proof(text("proof"), call, &registry, BOUNDS.clock_skew_seconds, time(text("at")))
}

fn found(vector: &Value) -> Value {
    match verify(vector) {
        Err(denial) => decision(&Err(denial)),
        Ok(Proof { agent, jti, ends_at, .. }) => {
            json!({ "outcome": "accept", "agent_id": agent, "jti": jti, "ends_at": ends_at })
        }
    }
}

pub fn made_from(source: &Path) -> Vec<Made> {
    let cases = testkit::vectors::read::<Source>(source).case;
    let made = cases.into_iter().map(|case| {
        let mut vector = case.vector();
        let found = found(&vector);
        assert_eq!(found, case.expected(&found), "{}", case.name);
        vector["expected"] = found;
        (case.name, vector)
    });
    made.collect()
}
