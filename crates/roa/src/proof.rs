//! Proofs of possession: an agent's signature over one call, which binds a chain to its presenter.
//!
//! A proof is a compact JWS whose payload names the chain, the capability, the arguments, the gateway, the time and a
//! `jti`. It proves which agent makes the call; whether this agent is the holder of the chain is decided by
//! [`enforce`](crate::enforce). A gateway remembers each `jti` until [`Proof::ends_at`] and refuses a second one.

use data_encoding::BASE64URL_NOPAD;
use jose::json;
use jose::jws::{self, Jws, JwsAlgorithm};
use scitt::{Curve, PublicKey, Signer};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::capability::Capability;
use crate::denial::{Denial, DenialReason};
use crate::limits::{MAX_PROOF_BYTES, PROOF};
use crate::registry::{KeyEntry, KeyRole, Registry};
use crate::signed::{ED_DSA, SigningError};
use crate::text::{AgentId, Reference, Sha256Digest, Text, UtcTime};

/// The value of `typ` in the protected header, which no other signature of an agent's key has.
pub const PROOF_TYPE: &str = "roa-proof+jws";

/// The payload of a proof.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProofClaims {
    /// The digest of the chain.
    pub chain_digest: Sha256Digest,
    /// The capability, `mcp:<server>.<tool>`.
    pub capability: Reference,
    /// The digest of the canonical arguments, as in a receipt.
    pub input_hash: Sha256Digest,
    /// The identifier of the proof, which the agent uses once.
    pub jti: Text,
    /// The time of the proof in Unix seconds.
    pub iat: u64,
    /// The gateway.
    pub aud: Reference,
}

/// The call that a proof must be for.
#[derive(Clone, Copy, Debug)]
pub struct ProvenCall<'a> {
    /// The digest of the chain that came with the call.
    pub chain_digest: Sha256Digest,
    /// The holder of the chain, whose proof it is if several agents have the key.
    pub holder: &'a AgentId,
    /// The requested tool.
    pub capability: &'a Capability,
    /// The digest of the canonical arguments.
    pub input_hash: Sha256Digest,
    /// The name of this gateway.
    pub audience: &'a str,
}

/// A verified proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// The agent that made the proof.
    pub agent: AgentId,
    /// The identifier of the proof, unique for this agent.
    pub jti: Text,
    /// The name of the agent's key.
    signer: Text,
    /// The agent's key.
    key: PublicKey,
    /// The time of the proof.
    issued_at: UtcTime,
    /// The capability that the call was proven for.
    capability: Reference,
    /// The time from which on the proof is refused by its age, so that its `jti` can be forgotten.
    pub ends_at: UtcTime,
}

impl ProofClaims {
    /// Signs a proof with an agent's Ed25519 key, under the key's name in the registry.
    ///
    /// # Errors
    /// [`SigningError`] if the key is not an Ed25519 key, or cannot sign.
    pub fn sign(&self, signer: &str, key: &dyn Signer) -> Result<String, SigningError> {
        if key.public_key().curve() != Curve::Ed25519 {
            return Err(SigningError::Curve(key.public_key().curve()));
        }
        let header = json!({ "alg": ED_DSA, "kid": signer, "typ": PROOF_TYPE });
        let payload = jose::jcs::canonical(&serde_json::to_value(self)?);
        let input = jws::signing_input(&header, &payload);
        let signature = BASE64URL_NOPAD.encode(&key.sign(&input)?);
        Ok(format!("{}.{signature}", String::from_utf8_lossy(&input)))
    }
}

impl Proof {
    /// Verifies the proof of a call that waited: the agent's key under the registry that is now in force, and the
    /// capability under the configuration that is.
    ///
    /// # Errors
    /// [`Denial`] if the key is revoked or no longer the agent's, or the call would need another capability.
    pub fn verify_again(&self, capability: &Capability, registry: &Registry) -> Result<(), Denial> {
        let is_key = |key: &KeyEntry| key.public_key.0 == self.key;
        let (agent, _) = agent_key(registry, &self.signer, self.issued_at, &self.agent, is_key)?;
        let is_same = agent == self.agent;
        match is_same && self.capability.as_str() == capability.to_string() {
            true => Ok(()),
            false => {
                Err(insufficient("proof_mismatch", "the agent or the capability has changed".to_owned()))
            }
        }
    }
}

/// Verifies a proof: its form, the agent's key under the registry, the call, the gateway and the time, which lies at most
/// `skew_seconds` before or after `now`.
///
/// # Errors
/// [`Denial`] with a code that begins with `proof_`, or that of a revoked key.
pub fn verify_proof(
    text: &str,
    call: ProvenCall<'_>,
    registry: &Registry,
    skew_seconds: i64,
    now: UtcTime,
) -> Result<Proof, Denial> {
    let (jws, claims) = read(text)?;
    let issued_at = i64::try_from(claims.iat).ok().and_then(UtcTime::from_unix_seconds);
    let issued_at = issued_at.ok_or_else(|| malformed("iat is not a time"))?;
    let signer: Text = jws.kid().parse().map_err(|_| malformed("kid is not the name of a key"))?;
    let is_key = |key: &KeyEntry| key.public_key.0.verify_jws(&jws).is_ok();
    let (agent, key) = agent_key(registry, &signer, issued_at, call.holder, is_key)?;
    check_call(&claims, call)?;
    let ends_at = issued_at.unix_seconds().checked_add(skew_seconds).and_then(UtcTime::from_unix_seconds);
    let ends_at = ends_at.ok_or_else(|| malformed("iat is not a time"))?;
    let ahead = issued_at.unix_seconds() - now.unix_seconds();
    match ahead <= skew_seconds && now < ends_at {
        true => {
            let ProofClaims { jti, capability, .. } = claims;
            Ok(Proof { agent, jti, signer, key, issued_at, capability, ends_at })
        }
        false => Err(insufficient("proof_time", format!("made {ahead} s after the gateway's time"))),
    }
}

/// Reads a proof without verifying anything.
fn read(text: &str) -> Result<(Jws, ProofClaims), Denial> {
    if text.len() > MAX_PROOF_BYTES {
        return Err(malformed(&format!("longer than {MAX_PROOF_BYTES} bytes")));
    }
    let payload = jws::attached_payload(text).map_err(|error| malformed(&error.to_string()))?;
    let jws = Jws::open(text, &payload, &[]).map_err(|error| malformed(&error.to_string()))?;
    let has_claims = jws.iat().is_some() || ["jti", "aud"].iter().any(|name| jws.text(name).is_some());
    if jws.algorithm() != JwsAlgorithm::EdDsa || jws.text("typ") != Some(PROOF_TYPE) || has_claims {
        return Err(malformed("the header is alg EdDSA, kid, and typ roa-proof+jws"));
    }
    let checked = json::check(&payload, PROOF).map_err(|error| malformed(&error.to_string()))?;
    let claims = checked.read().map_err(|error| malformed(&error.to_string()))?;
    Ok((jws, claims))
}

/// Returns the agent and the key of a proof: the key is an agent's, was valid at the time of the proof, and is not
/// revoked. A key of several agents is that of `expected` if it is one of them.
fn agent_key(
    registry: &Registry,
    signer: &Text,
    issued_at: UtcTime,
    expected: &AgentId,
    is_key: impl Fn(&KeyEntry) -> bool,
) -> Result<(AgentId, PublicKey), Denial> {
    let keys = registry.keys(signer, issued_at).filter(|key| key.role == KeyRole::Agent && is_key(key));
    let keys: Vec<&KeyEntry> = keys.collect();
    let of_expected = keys.iter().find(|key| key.agent_id.as_ref() == Some(expected));
    let found = of_expected.or(keys.first());
    let found = found.and_then(|key| Some((key.agent_id.clone()?, &key.public_key.0)));
    let Some((agent, key)) = found else {
        let detail = format!("not a signature with a valid agent's key named {signer}");
        return Err(Denial::new(DenialReason::InvalidSignature, "proof_signature", detail));
    };
    match registry.key_revocation(key) {
        Some(position) => Err(Denial::revoked(position, "the agent's key")),
        None => Ok((agent, key.clone())),
    }
}

/// Checks that the proof is for this call and this gateway.
fn check_call(claims: &ProofClaims, call: ProvenCall<'_>) -> Result<(), Denial> {
    let fits = [
        (claims.aud.as_str() == call.audience, "aud", "proof_audience"),
        (claims.chain_digest == call.chain_digest, "chain_digest", "proof_mismatch"),
        (claims.capability.as_str() == call.capability.to_string(), "capability", "proof_mismatch"),
        (claims.input_hash == call.input_hash, "input_hash", "proof_mismatch"),
    ];
    match fits.into_iter().find(|(fits, ..)| !fits) {
        None => Ok(()),
        Some((_, member, code)) => Err(insufficient(code, format!("{member} is of another call or gateway"))),
    }
}

fn malformed(detail: &str) -> Denial {
    insufficient("proof_malformed", format!("the proof is malformed: {detail}"))
}

fn insufficient(code: &'static str, detail: String) -> Denial {
    Denial::new(DenialReason::AuthStrengthInsufficient, code, detail)
}
