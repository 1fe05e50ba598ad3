//! Authorizers, agents and a registry of AgentROA, with builders of chains that are valid now.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use data_encoding::HEXLOWER;
use jiff::{SignedDuration, Timestamp};
use registration::agentroa::AGENTROA_CHAIN;
use roa::attestation::Attestation;
pub use roa::chain::Chain;
use roa::proof::ProofClaims;
use roa::signed::{Document, Signed};
use roa::text::Sha256Digest;
use scitt::{SignedStatement, Signer, SigningKey, StatementBuilder};
use serde_json::{Value, json};

use crate::names::{GATEWAY, GATEWAY_ID, KID};

/// The agents: each of the first four delegates to the next one.
pub const AGENTS: [&str; 4] =
    ["aha:acme/ops/lead", "aha:acme/ops/one", "aha:acme/ops/two", "aha:acme/ops/three"];
/// The authorizer of the agents' organisation.
pub const AUTHORIZER: &str = "acme:authorizer";
/// The name of the gateway's key.
pub const GATEWAY_SIGNER: &str = "acme:gateway";

/// Returns the key that belongs to a name, always the same one.
pub fn key_of(name: &str) -> SigningKey {
    let digest = Sha256Digest::of(name.as_bytes()).to_string();
    let mut seed = [0; 32];
    seed.copy_from_slice(&digest.as_bytes()[7..39]);
    crate::ed25519(seed)
}

/// Returns the digest of the policy in force.
pub fn policy_digest() -> String {
    Sha256Digest::of(b"{}").to_string()
}

/// Returns a time this many seconds from now, as objects have it.
pub fn in_seconds(seconds: i64) -> String {
    let now = Timestamp::now().checked_add(SignedDuration::from_secs(seconds)).unwrap();
    Timestamp::from_second(now.as_second()).unwrap().to_string()
}

/// Signs an object with the keys of these signers. `SIGNER=KEY` is a signer with another key than its own.
pub fn signed<D: Document>(members: Value, signers: &[&str]) -> Signed<D> {
    let signers = signers.iter().map(|name| name.split_once('=').unwrap_or((name, name)));
    let keys: Vec<(&str, SigningKey)> = signers.map(|(signer, name)| (signer, key_of(name))).collect();
    let signers: Vec<(&str, &dyn Signer)> =
        keys.iter().map(|(name, key)| (*name, key as &dyn Signer)).collect();
    Signed::sign(&members, &signers).unwrap()
}

/// Returns the members of a version of the registry; the server `crm` has the tools `crm.read` and `pay`.
pub fn registry_members(sequence: u64) -> Value {
    let entry = |name: &str, role: &str| {
        json!({
            "signer": name, "role": role, "organization": "acme", "not_before": "2026-01-01T00:00:00Z",
            "public_key": key_of(name).public_key().to_jwk().to_value(),
        })
    };
    let mut keys: Vec<Value> = AGENTS
        .iter()
        .map(|agent| {
            let mut key = entry(agent, "agent");
            key["agent_id"] = (*agent).into();
            key
        })
        .collect();
    keys.push(entry(AUTHORIZER, "authorizer"));
    keys.push(entry(GATEWAY_SIGNER, "gateway"));
    json!({
        "schema_version": "1.0", "registry_id": "registry.acme.example", "epoch": 1, "sequence": sequence,
        "issued_at": in_seconds(-3600), "ttl_seconds": 3600, "keys": keys, "agents": [],
        "servers": [{ "server_id": "crm", "tools": ["crm.read", "pay"] }],
        "policies": [{ "policy_id": "incidents", "policy_digest": policy_digest() }],
        "classifications": ["public", "secret"], "revocations": [],
    })
}

/// Returns a signed version of the registry.
pub fn registry(sequence: u64, edit: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut members = registry_members(sequence);
    edit(&mut members);
    signed::<roa::registry::RegistryDocument>(members, &["operator"]).canonical().to_vec()
}

/// Writes the first version of the registry and the operator's public key into the folder of a gateway.
pub fn write_registry(folder: &Path, edit: impl FnOnce(&mut Value)) {
    let operator = key_of("operator").public_key().to_jwk().to_value().to_string();
    std::fs::write(folder.join("operator.jwk"), operator).unwrap();
    std::fs::write(folder.join("registry.json"), registry(1, edit)).unwrap();
}

/// Returns the table of a gateway's configuration that names the files of [`write_registry`], to which settings can be
/// appended.
pub fn registry_table() -> String {
    format!(
        "[agentroa]\nregistry = \"registry.json\"\nregistry_keys = [\"operator.jwk\"]\n\
         gateway_id = \"{GATEWAY_ID}\"\nsigner = \"{GATEWAY_SIGNER}\"\n"
    )
}

/// Returns a chain of a root envelope for the first agent, valid from now on.
pub fn root(edit: impl FnOnce(&mut Value)) -> Chain {
    let random = HEXLOWER.encode(&Timestamp::now().as_nanosecond().to_be_bytes()[8..]);
    let mut members = json!({
        "schema_version": "1.0", "envelope_id": format!("env:{random}"),
        "issued_at": in_seconds(0), "expires_at": in_seconds(600),
        "session": { "session_id": "sess:1", "channel": "mcp_client", "agent_id": AGENTS[0] },
        "authorized_scope": {
            "capabilities": ["mcp:crm.*"], "max_delegation_depth": 4, "cross_org_permitted": false,
        },
        "policy": { "policy_id": "incidents", "policy_version": "1", "policy_digest": policy_digest() },
        "authorization": { "auth_strength": "session_only", "approval_state": "not_required" },
        "evidence": { "session_hash": "sha256:1", "model_provenance": ["model:1"] },
    });
    edit(&mut members);
    Chain::new(signed(members, &[AUTHORIZER]), Vec::new())
}

/// Appends an attestation by the holder of a chain to the next agent.
pub fn delegated(chain: &Chain, edit: impl FnOnce(&mut Value)) -> Chain {
    let depth = chain.hops().len();
    let (kind, id, digest) = match chain.hops().last() {
        None => ("roa_envelope", chain.root().document().envelope_id.to_string(), chain.root().digest()),
        Some(hop) => ("ara", hop.document().ara_id.to_string(), hop.digest()),
    };
    let mut members = json!({
        "schema_version": "1.0", "ara_id": format!("ara:{depth:016x}"), "issued_at": in_seconds(0),
        "upstream_ref": { "ref_type": kind, "ref_id": id, "ref_digest": digest.to_string() },
        "delegating_agent": { "agent_id": AGENTS[depth], "session_id": "sess:1" },
        "delegated_agent": { "agent_id": AGENTS[depth + 1] },
        "delegated_scope": { "capabilities": ["mcp:crm.*"] },
        "policy": { "policy_digest": policy_digest(), "policy_version": "1" },
    });
    edit(&mut members);
    let delegating = members["delegating_agent"]["agent_id"].as_str().unwrap().to_owned();
    let hop: Signed<Attestation> = signed(members, &[&delegating]);
    Chain::new(chain.root().clone(), chain.hops().iter().cloned().chain([hop]).collect())
}

/// Returns the statement of a chain, signed by [`GATEWAY`].
pub fn chain_statement(chain: &Chain) -> SignedStatement {
    let builder = StatementBuilder::new(chain.canonical()).content_type(AGENTROA_CHAIN);
    builder.iss(GATEWAY).kid(KID).sub(&chain.digest().to_string()).sign(&crate::gateway()).unwrap()
}

/// Returns the `n`th execution receipt of [`GATEWAY`] about a call under a chain, in a session.
pub fn receipt_under(chain: &Chain, session: &str, n: u64) -> SignedStatement {
    let mut receipt = crate::aer_json(n);
    receipt["session"] = json!({ "session_id": session, "agent_id": chain.holder().as_str() });
    receipt["chain_summary"] = json!({
        "chain_depth": chain.hops().len(),
        "root_envelope_id": chain.root().document().envelope_id.as_str(),
        "chain_digest": chain.digest().to_string(),
    });
    crate::aer_statement(receipt).sign(&crate::gateway()).unwrap()
}

/// Returns the digest of a call's arguments, as receipts have it.
pub fn input_hash(arguments: &Value) -> String {
    Sha256Digest::of(&jose::jcs::canonical(arguments)).to_string()
}

/// Returns an ID that no other proof has: threads may ask in the same nanosecond.
fn unused_id() -> String {
    static PROOFS: AtomicU64 = AtomicU64::new(0);
    let number = PROOFS.fetch_add(1, Ordering::Relaxed).to_be_bytes();
    HEXLOWER.encode(&[&Timestamp::now().as_nanosecond().to_be_bytes()[8..], &number].concat())
}

/// Returns a proof by an agent that it calls this tool of the server `crm` under a chain.
pub fn proof(chain: &Chain, agent: &str, tool: &str, arguments: &Value, gateway: &str) -> String {
    proof_for(chain, agent, &format!("mcp:crm.{tool}"), arguments, gateway)
}

/// Returns a proof by an agent that it calls the tool of this capability under a chain.
pub fn proof_for(chain: &Chain, agent: &str, capability: &str, arguments: &Value, gateway: &str) -> String {
    let claims = ProofClaims {
        chain_digest: chain.digest(),
        capability: capability.parse().unwrap(),
        input_hash: Sha256Digest::of(&jose::jcs::canonical(arguments)),
        jti: unused_id().parse().unwrap(),
        iat: u64::try_from(Timestamp::now().as_second()).unwrap(),
        aud: gateway.parse().unwrap(),
    };
    claims.sign(agent, &key_of(agent)).unwrap()
}
