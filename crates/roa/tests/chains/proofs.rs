//! Proofs of possession: for one call, one gateway and a short time, by an agent's key that the registry lists.

use roa::aer::input_hash;
use roa::capability::Capability;
use roa::denial::Denial;
use roa::proof::{Proof, ProofClaims, ProvenCall, verify_proof};
use roa::registry::Registry;
use roa::text::Sha256Digest;
use scitt::Signer;
use serde_json::{Value, json};

use crate::world::*;

const SKEW: i64 = 60;

fn claims() -> ProofClaims {
    ProofClaims {
        chain_digest: chain_of(0).digest(),
        capability: "mcp:github.read".parse().unwrap(),
        input_hash: input_hash(None),
        jti: "proof-1".parse().unwrap(),
        iat: now().unix_seconds().cast_unsigned(),
        aud: "https://gateway.example".parse().unwrap(),
    }
}

fn verified(text: &str, registry: &Registry, at: i64) -> Result<Proof, Denial> {
    let capability: Capability = "mcp:github.read".parse().unwrap();
    let chain = chain_of(0);
    let call = ProvenCall {
        chain_digest: chain.digest(),
        holder: chain.holder(),
        capability: &capability,
        input_hash: input_hash(None),
        audience: "https://gateway.example",
    };
    let at = roa::text::UtcTime::from_unix_seconds(now().unix_seconds() + at).unwrap();
    verify_proof(text, call, registry, SKEW, at)
}

fn code(text: &str) -> &'static str {
    verified(text, &registry(), 0).unwrap_err().code
}

fn by_lead(claims: &ProofClaims) -> String {
    claims.sign(AGENTS[0], &key(AGENTS[0])).unwrap()
}

/// Signs any header and payload.
fn forged(header: &Value, payload: &[u8]) -> String {
    let input = jose::jws::signing_input(header, payload);
    let signature = data_encoding::BASE64URL_NOPAD.encode(&key(AGENTS[0]).sign(&input).unwrap());
    format!("{}.{signature}", String::from_utf8(input).unwrap())
}

#[test]
fn r_3_a_proof_names_the_agent_that_made_it() {
    let proof = verified(&by_lead(&claims()), &registry(), 0).unwrap();
    assert_eq!(proof.agent.as_str(), AGENTS[0]);
    assert_eq!(proof.jti.as_str(), "proof-1");
    assert_eq!(proof.ends_at.unix_seconds(), now().unix_seconds() + SKEW);
    let other = claims().sign(AGENTS[1], &key(AGENTS[1])).unwrap();
    let other = verified(&other, &registry(), 0).unwrap();
    assert_eq!(other.agent.as_str(), AGENTS[1], "enforce compares it with the holder");
}

#[test]
fn a_proof_with_a_key_of_two_agents_is_the_holders() {
    for position in [0, 9] {
        let shared = registry_with(|registry| {
            let mut entry = registry["keys"][0].clone();
            entry["agent_id"] = AGENTS[3].into();
            registry["keys"].as_array_mut().unwrap().insert(position, entry);
        });
        let proof = verified(&by_lead(&claims()), &shared, 0).unwrap();
        assert_eq!(proof.agent.as_str(), AGENTS[0], "{position}");
        assert_eq!(proof.verify_again(&"mcp:github.read".parse().unwrap(), &shared), Ok(()));
    }
}

#[test]
fn a_proof_is_for_one_call_and_one_gateway() {
    let changes: [(&str, ProofClaims); 4] = [
        ("proof_mismatch", ProofClaims { chain_digest: Sha256Digest::of(b"other"), ..claims() }),
        ("proof_mismatch", ProofClaims { capability: "mcp:github.write".parse().unwrap(), ..claims() }),
        ("proof_mismatch", ProofClaims { input_hash: Sha256Digest::of(b"other"), ..claims() }),
        ("proof_audience", ProofClaims { aud: "https://other.example".parse().unwrap(), ..claims() }),
    ];
    for (expected, changed) in changes {
        assert_eq!(code(&by_lead(&changed)), expected, "{changed:?}");
    }
}

#[test]
fn a_proof_ends_after_the_clock_skew() {
    let proof = by_lead(&claims());
    for (at, fits) in [(-SKEW - 1, false), (-SKEW, true), (SKEW - 1, true), (SKEW, false)] {
        assert_eq!(verified(&proof, &registry(), at).is_ok(), fits, "{at}");
    }
    assert_eq!(code(&by_lead(&ProofClaims { iat: u64::MAX, ..claims() })), "proof_malformed");
}

#[test]
fn only_an_agent_s_valid_key_makes_proofs() {
    for (signer, by) in [
        ("acme:authorizer:1", "acme:authorizer:1"),
        ("gateway-1", "gateway-1"),
        ("stranger", "stranger"),
        (AGENTS[0], "stranger"),
    ] {
        let proof = claims().sign(signer, &key(by)).unwrap();
        assert_eq!(code(&proof), "proof_signature", "{signer} by {by}");
    }
    let ended = registry_with(|registry| registry["keys"][0]["not_after"] = "2026-04-08T14:04:00Z".into());
    assert_eq!(verified(&by_lead(&claims()), &ended, 0).unwrap_err().code, "proof_signature");
    let revoked = registry_with(|registry| {
        registry["revocations"] = json!([{
            "sequence": 2, "revoked_at": "2026-04-08T14:04:00Z",
            "subject": { "key": key(AGENTS[0]).public_key().jwk_thumbprint() },
        }]);
    });
    let denial = verified(&by_lead(&claims()), &revoked, 0).unwrap_err();
    assert_eq!(denial.reason.as_str(), "envelope_revoked", "R-30");
}

#[test]
fn a_proof_has_one_form() {
    let header = json!({ "alg": "EdDSA", "kid": AGENTS[0], "typ": "roa-proof+jws" });
    let payload = jose::jcs::canonical(&serde_json::to_value(claims()).unwrap());
    assert!(verified(&forged(&header, &payload), &registry(), 0).is_ok());
    for (member, value) in [
        ("typ", json!("JOSE")),
        ("alg", json!("ES256")),
        ("iat", json!(1)),
        ("jti", json!("another")),
        ("jwk", json!({})),
        ("kid", json!("")),
    ] {
        let mut header = header.clone();
        header[member] = value;
        assert_eq!(code(&forged(&header, &payload)), "proof_malformed", "{member}");
    }
    let text = String::from_utf8(payload).unwrap();
    for bad in [
        "".to_owned(),
        "[]".to_owned(),
        text.replace("{\"aud\"", "{\"nonce\":1,\"aud\""),
        text.replace("{\"aud\"", "{\"iat\":1,\"aud\""),
        text.replace("\"jti\":\"proof-1\"", "\"jti\":\"\""),
    ] {
        assert_eq!(code(&forged(&header, bad.as_bytes())), "proof_malformed", "{bad}");
    }
    let proof = by_lead(&claims());
    let (rest, _) = proof.rsplit_once('.').unwrap();
    assert_eq!(code(&format!("{rest}.AAAA")), "proof_signature");
    assert_eq!(code(&"a".repeat(200_000)), "proof_malformed");
    assert_eq!(code("a.b"), "proof_malformed");
}
