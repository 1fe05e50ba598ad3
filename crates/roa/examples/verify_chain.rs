//! The cost of a chain at depths 1, 3 and 8, as ratios to one Ed25519 verification in the same run.
//!
//! ```text
//! cargo run --release -p roa --example verify_chain -- 2000
//! ```
//! The argument is the number of rounds. A round measures every row once, so that a slow moment of the machine concerns
//! all rows.
//!
//! | row | content |
//! |---|---|
//! | cold | reads and opens the registry, reads the chain and verifies it |
//! | warm keys | reads the chain and verifies it under a registry that is open |
//! | VerifyChain | verifies a chain that is read already |
//! | cached | reads the chain and finds it among the verified ones by its digest, as a gateway does |
#![allow(clippy::unwrap_used)]

use std::collections::HashMap;
use std::hint::black_box;
use std::time::{Duration, Instant};

use roa::chain::Chain;
use roa::registry::{Registry, RegistryDocument};
use roa::signed::{Document, Signed};
use roa::text::{Sha256Digest, UtcTime};
use roa::verify::{TimeBounds, VerifiedChain, verify_chain};
use scitt::{Algorithm, PublicKey, Signer, SigningKey};
use serde_json::{Value, json};

const DEPTHS: [usize; 3] = [1, 3, 8];
/// The goal for a chain of depth 8 with warm keys.
const GOAL: Duration = Duration::from_micros(500);

fn main() {
    let rounds: usize = std::env::args().nth(1).map_or(2000, |text| text.parse().unwrap());
    let rows = rows();
    let mut took: Vec<Vec<Duration>> = vec![Vec::new(); rows.len()];
    for _ in 0..rounds {
        for ((_, run), took) in rows.iter().zip(&mut took) {
            let start = Instant::now();
            run();
            took.push(start.elapsed());
        }
    }
    let unit = percentile(&mut took[0], 50);
    for ((name, _), took) in rows.iter().zip(&mut took) {
        let (median, slow) = (percentile(took, 50), percentile(took, 99));
        let ratio = median.as_secs_f64() / unit.as_secs_f64();
        println!("{name:<24} p50 {median:>9.1?}  p99 {slow:>9.1?}  {ratio:>6.2} signatures");
    }
    for name in ["VerifyChain, depth 8", "warm keys, depth 8"] {
        let row = rows.iter().position(|(row, _)| row == name).unwrap();
        let median = percentile(&mut took[row], 50);
        let share = 100.0 * median.as_secs_f64() / GOAL.as_secs_f64();
        println!("{name}: {share:.0} % of the goal of {GOAL:?}");
    }
}

/// What is measured: a name, and the work of one round.
type Row = (String, Box<dyn Fn()>);

fn rows() -> Vec<Row> {
    let mut rows = vec![one_signature()];
    for depth in DEPTHS {
        rows.extend(rows_of(depth));
    }
    rows
}

/// The verification of a signature over an object of the size of an attestation.
fn one_signature() -> Row {
    let (key, content) = (key("agent-0"), vec![b'a'; 700]);
    let (signature, public) = (key.sign(&content).unwrap(), key.public_key().clone());
    let verify = move || public.verify(Algorithm::EdDsa, black_box(&content), &signature).unwrap();
    ("one signature".to_owned(), Box::new(verify))
}

fn rows_of(depth: usize) -> [Row; 4] {
    let (document, text) = (registry().canonical().to_vec(), chain(depth).canonical());
    let registry = open(&document);
    let read = Chain::parse(&text).unwrap();
    let verified = HashMap::from([(read.digest(), verify(&read, &registry))]);
    let (cold_text, warm_text, warm_registry) = (text.clone(), text.clone(), registry.clone());
    let cold = move || drop(verify(&Chain::parse(black_box(&cold_text)).unwrap(), &open(&document)));
    let warm = move || drop(verify(&Chain::parse(black_box(&warm_text)).unwrap(), &warm_registry));
    let alone = {
        let registry = registry.clone();
        move || drop(verify(black_box(&read), &registry))
    };
    let cached = move || assert!(find(&verified, &Chain::parse(black_box(&text)).unwrap(), &registry));
    [
        (format!("cold, depth {depth}"), Box::new(cold)),
        (format!("warm keys, depth {depth}"), Box::new(warm)),
        (format!("VerifyChain, depth {depth}"), Box::new(alone)),
        (format!("cached, depth {depth}"), Box::new(cached)),
    ]
}

fn percentile(took: &mut [Duration], part: usize) -> Duration {
    took.sort_unstable();
    took[(took.len() - 1) * part / 100]
}

fn open(document: &[u8]) -> Registry {
    let document = Signed::<RegistryDocument>::parse(document).unwrap();
    Registry::open(&document, &[public_key("operator")]).unwrap()
}

fn verify(chain: &Chain, registry: &Registry) -> VerifiedChain {
    verify_chain(chain, registry, TimeBounds::default(), time("2026-04-08T14:05:00Z")).unwrap()
}

/// Returns whether a chain was verified under this version of the registry, and has not ended.
fn find(verified: &HashMap<Sha256Digest, VerifiedChain>, chain: &Chain, registry: &Registry) -> bool {
    let known = verified.get(&chain.digest()).filter(|known| known.version() == registry.version());
    known.is_some_and(|known| time("2026-04-08T14:05:00Z") < known.root().expires_at)
}

fn time(text: &str) -> UtcTime {
    text.to_owned().try_into().unwrap()
}

/// Returns the key that belongs to a name.
fn key(name: &str) -> SigningKey {
    let digest = Sha256Digest::of(name.as_bytes()).to_string();
    SigningKey::from_ed25519_seed(digest.as_bytes()[7..39].try_into().unwrap()).unwrap()
}

fn public_key(name: &str) -> PublicKey {
    key(name).public_key().clone()
}

fn signed<D: Document>(members: &Value, signer: &str) -> Signed<D> {
    Signed::sign(members, &[(signer, &key(signer) as &dyn Signer)]).unwrap()
}

fn agent(number: usize) -> String {
    format!("aha:acme/ops/agent-{number}")
}

/// A registry with a key for each agent of the deepest chain, and for the authorizer.
fn registry() -> Signed<RegistryDocument> {
    let entry = |signer: &str, role: &str| {
        json!({
            "signer": signer, "role": role, "organization": "acme", "not_before": "2026-01-01T00:00:00Z",
            "public_key": public_key(signer).to_jwk().to_value(),
        })
    };
    let mut keys = vec![entry("authorizer", "authorizer")];
    for number in 0..=DEPTHS[2] {
        let mut key = entry(&agent(number), "agent");
        key["agent_id"] = agent(number).into();
        keys.push(key);
    }
    let members = json!({
        "schema_version": "1.0", "registry_id": "registry.acme.example", "epoch": 1, "sequence": 1,
        "issued_at": "2026-04-08T13:00:00Z", "ttl_seconds": 3600, "keys": keys, "agents": [], "servers": [],
        "policies": [], "classifications": ["public", "internal", "secret"], "revocations": [],
    });
    signed(&members, "operator")
}

/// A chain with this many delegations, each of which narrows the budget.
fn chain(depth: usize) -> Chain {
    let policy = Sha256Digest::of(b"policy");
    let root = json!({
        "schema_version": "1.0", "envelope_id": "env:4a7c9f2b1e8d3a6f",
        "issued_at": "2026-04-08T14:00:00Z", "expires_at": "2026-04-08T14:10:00Z",
        "session": { "session_id": "sess:1", "channel": "mcp_client", "agent_id": agent(0) },
        "authorized_scope": {
            "capabilities": ["mcp:github.*", "mcp:files.read"], "max_delegation_depth": DEPTHS[2],
            "cross_org_permitted": false, "budget_ceiling": 100, "budget_unit": "USD",
            "data_classification_ceiling": "secret", "slo_class": 1, "price_class": 3,
        },
        "policy": { "policy_id": "incidents", "policy_version": "2", "policy_digest": policy },
        "authorization": { "auth_strength": "session_only", "approval_state": "not_required" },
        "evidence": { "session_hash": "sha256:1", "model_provenance": ["model:1"] },
    });
    let root = Chain::new(signed(&root, "authorizer"), Vec::new());
    (0..depth).fold(root, |chain, hop| delegated(&chain, hop, policy))
}

fn delegated(chain: &Chain, hop: usize, policy: Sha256Digest) -> Chain {
    let (kind, id, digest) = match chain.hops().last() {
        None => ("roa_envelope", chain.root().document().envelope_id.to_string(), chain.root().digest()),
        Some(parent) => ("ara", parent.document().ara_id.to_string(), parent.digest()),
    };
    let members = json!({
        "schema_version": "1.0", "ara_id": format!("ara:{hop:016x}"), "issued_at": "2026-04-08T14:01:00Z",
        "upstream_ref": { "ref_type": kind, "ref_id": id, "ref_digest": digest },
        "delegating_agent": { "agent_id": agent(hop), "session_id": "sess:1" },
        "delegated_agent": { "agent_id": agent(hop + 1) },
        "delegated_scope": {
            "capabilities": ["mcp:github.*"], "budget_ceiling": 99 - hop, "budget_unit": "USD",
        },
        "policy": { "policy_digest": policy, "policy_version": "2" },
    });
    let attestation = signed(&members, &agent(hop));
    Chain::new(chain.root().clone(), chain.hops().iter().cloned().chain([attestation]).collect())
}
