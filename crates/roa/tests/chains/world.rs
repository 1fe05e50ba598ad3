//! Agents, authorizers and a registry, with builders of envelopes and attestations.

use roa::aer::{CalledTool, DecidedCall, GatewayIdentity, Mode, input_hash};
use roa::attestation::Attestation;
use roa::chain::Chain;
use roa::denial::Denial;
use roa::envelope::Envelope;
use roa::registry::{Registry, RegistryDocument};
use roa::signed::Signed;
use roa::text::{Sha256Digest, UtcTime};
use roa::verify::{TimeBounds, VerifiedChain, verify_chain};
use scitt::Signer;
use serde_json::{Value, json};
pub use testkit::agentroa::{key_of as key, signed};

/// The agents of the world: each delegates to the next one.
pub const AGENTS: [&str; 5] =
    ["aha:acme/ops/lead", "aha:acme/ops/one", "aha:acme/ops/two", "aha:acme/ops/three", "aha:other/lab/four"];

pub const BOUNDS: TimeBounds = TimeBounds { clock_skew_seconds: 60, max_lifetime_seconds: 86_400 };

pub fn time(text: &str) -> UtcTime {
    UtcTime::try_from(text.to_owned()).unwrap()
}

/// A time within the validity of [`root`].
pub fn now() -> UtcTime {
    time("2026-04-08T14:05:00Z")
}

pub fn key_entry(name: &str, role: &str, organization: &str) -> Value {
    let mut entry = json!({
        "signer": name, "role": role, "organization": organization,
        "public_key": key(name).public_key().to_jwk().to_value(), "not_before": "2026-01-01T00:00:00Z",
    });
    if role == "agent" {
        entry["agent_id"] = name.into();
    }
    entry
}

/// Returns the members of the registry, without signatures.
pub fn registry_members() -> Value {
    let agents = AGENTS.iter().map(|agent| {
        let organization = agent[4..].split('/').next().unwrap();
        key_entry(agent, "agent", organization)
    });
    let mut keys: Vec<Value> = agents.collect();
    keys.push(key_entry("acme:authorizer:1", "authorizer", "acme"));
    keys.push(key_entry("acme:authorizer:2", "authorizer", "acme"));
    keys.push(key_entry("other:authorizer:1", "authorizer", "other"));
    keys.push(key_entry("gateway-1", "gateway", "acme"));
    json!({
        "schema_version": "1.0", "registry_id": "registry.acme.example", "epoch": 1, "sequence": 3,
        "issued_at": "2026-04-08T13:00:00Z", "ttl_seconds": 3600, "keys": keys,
        "agents": [{
            "agent_id": AGENTS[0],
            "oauth_clients": [{ "issuer": "https://login.example", "client_id": "lead" }],
            "device_attestations": ["att:1"],
        }],
        "servers": [{ "server_id": "github", "tools": ["read", "write"] }],
        "policies": [{ "policy_id": "incidents", "policy_digest": policy_digest("v2"), "previous_digests": [policy_digest("v1")] }],
        "classifications": ["public", "internal", "secret"],
        "revocations": [],
    })
}

pub fn policy_digest(version: &str) -> String {
    Sha256Digest::of(version.as_bytes()).to_string()
}

/// Signs any members, well-formed or not, like [`signed`].
pub fn signed_value(mut members: Value, signers: &[&str]) -> Value {
    let content = jose::jcs::canonical(&members);
    let signatures = signers.iter().map(|name| {
        let (signer, key_name) = name.split_once('=').unwrap_or((name, name));
        let signature = data_encoding::BASE64URL_NOPAD.encode(&key(key_name).sign(&content).unwrap());
        json!({ "signer": signer, "alg": "EdDSA", "sig": signature })
    });
    members["signatures"] = signatures.collect();
    members
}

pub fn registry_with(edit: impl FnOnce(&mut Value)) -> Registry {
    let mut members = registry_members();
    edit(&mut members);
    let document: Signed<RegistryDocument> = signed(members, &["operator"]);
    Registry::open(&document, &[key("operator").public_key().clone()]).unwrap()
}

pub fn registry() -> Registry {
    registry_with(|_| ())
}

/// Returns the members of a root envelope for the first agent.
pub fn root_members() -> Value {
    json!({
        "schema_version": "1.0", "envelope_id": "env:4a7c9f2b1e8d3a6f",
        "issued_at": "2026-04-08T14:00:00Z", "expires_at": "2026-04-08T14:10:00Z",
        "session": { "session_id": "sess:1", "channel": "mcp_client", "agent_id": AGENTS[0] },
        "authorized_scope": {
            "capabilities": ["mcp:github.*", "mcp:files.read", "mcp:files.write"],
            "max_delegation_depth": 4, "cross_org_permitted": false,
        },
        "policy": { "policy_id": "incidents", "policy_version": "2", "policy_digest": policy_digest("v2") },
        "authorization": { "auth_strength": "session_only", "approval_state": "not_required" },
        "evidence": { "session_hash": "sha256:1", "model_provenance": ["model:1"] },
    })
}

pub fn root_with(edit: impl FnOnce(&mut Value)) -> Signed<Envelope> {
    let mut members = root_members();
    edit(&mut members);
    signed(members, &["acme:authorizer:1"])
}

/// Returns the members of the attestation that comes after a chain.
pub fn hop_members(chain: &Chain) -> Value {
    let objects: Vec<Value> = serde_json::from_slice(&chain.canonical()).unwrap();
    hop_members_after(&objects)
}

/// Returns the members of the attestation that comes after the objects of a chain.
pub fn hop_members_after(objects: &[Value]) -> Value {
    let depth = objects.len() - 1;
    let parent = objects.last().unwrap();
    let (kind, id) = match depth {
        0 => ("roa_envelope", &parent["envelope_id"]),
        _ => ("ara", &parent["ara_id"]),
    };
    json!({
        "schema_version": "1.0", "ara_id": format!("ara:{depth:016x}"), "issued_at": "2026-04-08T14:01:00Z",
        "upstream_ref": {
            "ref_type": kind, "ref_id": id, "ref_digest": Sha256Digest::of(&jose::jcs::canonical(parent)).to_string(),
        },
        "delegating_agent": { "agent_id": AGENTS[depth], "session_id": "sess:1" },
        "delegated_agent": { "agent_id": AGENTS[depth + 1] },
        "delegated_scope": { "capabilities": ["mcp:github.*", "mcp:files.read"] },
        "policy": { "policy_digest": policy_digest("v2"), "policy_version": "2" },
    })
}

/// Appends an attestation by the holder of the chain.
pub fn delegate(chain: &Chain, edit: impl FnOnce(&mut Value)) -> Chain {
    let mut members = hop_members(chain);
    edit(&mut members);
    let hop: Signed<Attestation> = signed(members, &[AGENTS[chain.hops().len()]]);
    let hops = chain.hops().iter().cloned().chain([hop]).collect();
    Chain::new(chain.root().clone(), hops)
}

pub fn root_chain(edit: impl FnOnce(&mut Value)) -> Chain {
    Chain::new(root_with(edit), Vec::new())
}

/// Returns a valid chain with this many attestations.
pub fn chain_of(hops: usize) -> Chain {
    (0..hops).fold(root_chain(|_| ()), |chain, _| delegate(&chain, |_| ()))
}

pub fn verify(chain: &Chain) -> Result<VerifiedChain, Denial> {
    verify_chain(chain, &registry(), BOUNDS, now())
}

/// Verifies a chain that is denied, and returns the reason, code and hop.
pub fn denied(chain: &Chain) -> (&'static str, &'static str, Option<usize>) {
    summary(&verify(chain).unwrap_err())
}

pub fn summary(denial: &Denial) -> (&'static str, &'static str, Option<usize>) {
    (denial.reason.as_str(), denial.code, denial.hop)
}

/// A call without arguments of a tool of the server `github`, as the gateway decides it.
pub fn decided_call(tool: &str) -> DecidedCall {
    DecidedCall {
        aer_id: "aer:00000000000000a1".parse().unwrap(),
        produced_at: now(),
        mode: Mode::Normal,
        action: CalledTool::new("github".parse().unwrap(), tool, input_hash(None)).unwrap(),
        gateway: GatewayIdentity { id: "gateway-1".parse().unwrap(), version: "1.0.0".parse().unwrap() },
        plan_hash: None,
    }
}
