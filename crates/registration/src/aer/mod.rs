//! Agent Execution Receipts (AER) of AgentROA: a gateway's signed statement that it permitted or denied a tool call.
//!
//! The statement's payload is the receipt's canonical JSON with the gateway's own Ed25519 signatures
//! (draft-nivalto-agentroa-route-authorization-00, section 6.1). The draft has no schema, and its example contradicts
//! its text. This is our interpretation; [`AerRule`] cites its rows:
//!
//! | # | reading |
//! |---|---|
//! | R-1 | at least one signature, and all verify with keys that the policy lists for the gateway; `iss` is the gateway |
//! | R-8 | a strict schema of our own, closed at every level; optional: `denial_detail`, `degraded_reason`, `revocation`; for a call without a usable root all placeholders together |
//! | R-13 | server names contain no dot; a capability is split at its first dot; the tool name of a denied call is not restricted |
//! | R-17 | `denial_reason` exactly from the list; hop and dimension separately, in `denial_detail` |
//! | R-19 | times are RFC 3339 in UTC, `Z` or `+00:00`, at most five minutes ahead of the log |
//! | R-22, R-23 | digests are `sha256:` and 64 hex digits; signatures are 64 bytes in base64url without prefix; Appendix B is not a test vector |
//! | R-24 | identifiers have 16 hex digits; an `aer_id` is used once per gateway, in clear or by its hash |
//! | R-25 | agents are `aha:org/unit/agent` |
//! | R-28 | `enforcement_mode` is required; absent values are left out, not null |
//! | R-29 | degraded decisions should give a reason: without one there is a warning, or a refusal if the policy requires it; degraded permits are admitted only if the policy allows them |
//! | R-32 | the payload is canonical (JCS) and never changes after it is signed; a log's receipts are not in `signatures` |
//! | R-34 | `input_hash` is a plain SHA-256: for a public log the receipt can be registered by its hash and disclosed on audit |
//! | R-35 | the session is the root's, the agent is the caller; `sub` is the receipt or the session |
//! | R-36 | `alg` is "EdDSA" as written, Ed25519 keys only, strictly verified |
//! | R-37 | `plan_hash` is asserted by the gateway, and the fact `plan_hash_asserted` |
//!
//! a log proves that a receipt was registered, not that it is true. Not here: ROA envelopes and delegation
//! chains, which the receipt names only by digest, and the gateway that issues receipts.

mod build;
mod check;
mod form;
mod members;
mod options;
mod profile;
mod receipt;
mod redacted;
mod rule;
mod signature;

use jose::members::quote;
use scitt::header::{ContentType, Header};
use scitt::{PublicKey, SignedStatement};
use serde_json::Value;
use sha2::{Digest, Sha256, Sha384, Sha512};

pub use build::{AerStatement, BuildAerError, inner_signature};
pub use options::{AerOptions, GatewayEntry, GatewayKey};
pub use receipt::no_root::{EMPTY_CHAIN, NO_POLICY, NO_POLICY_DIGEST, NO_ROOT, NO_SESSION, UNKNOWN_AGENT};
pub use receipt::{
    Action, ChainSummary, DENIAL_REASONS, Denial, DenialDetail, Gateway, Mode, Outcome, PolicyBinding,
    Receipt, Revocation, SCHEMA_VERSION, Session,
};
pub use redacted::AerRedacted;
pub use rule::AerRule;
pub use signature::InnerSignature;

use crate::content_types::essence;
use crate::facts::Facts;
use crate::lookups::{LookupKind, Lookups};
use crate::profile::ProfileRecord;
use crate::untrusted::Untrusted;
use crate::violation::{Place, RuleName, Violation};

/// The content type of an execution receipt.
pub const AER_JSON: &str = "application/aer+json";

/// The COSE algorithm identifiers of the longer hashes (RFC 9054).
const SHA_384: i64 = -43;
const SHA_512: i64 = -44;

/// An execution statement that keeps every rule that does not depend on a policy.
#[derive(Clone, Debug, PartialEq)]
pub struct AerRecord {
    /// The parsed receipt.
    pub receipt: Receipt,
    /// The content that the inner signatures sign.
    signed: Vec<u8>,
    document: Value,
}

/// The keys for the verification of a statement without a policy.
#[derive(Clone, Copy, Debug)]
pub struct VerifyingKeys<'k> {
    /// Any of these keys may have made a signature within the receipt, under any `signer`.
    pub gateway: &'k [PublicKey],
    /// The key that signed the statement.
    pub issuer: &'k PublicKey,
}

impl AerRecord {
    /// Parses a statement's protected header and payload. The inner signatures are verified by the policy's check.
    pub fn read(header: &Header, payload: &[u8]) -> Result<AerRecord, Violation> {
        let document = form::canonical_json(payload)?;
        let receipt = Receipt::read(&document)?;
        check_subject(header, &receipt)?;
        Ok(AerRecord { receipt, signed: form::signed_content(&document), document })
    }

    /// Verifies a statement without a policy: its rules, the signatures within the receipt, and its own signature.
    /// `beside` is the receipt, if the statement does not contain it.
    pub fn verify(
        statement: &SignedStatement,
        beside: Option<&[u8]>,
        keys: VerifyingKeys<'_>,
    ) -> Result<AerRecord, Violation> {
        let receipt = receipt_of(statement, beside)?;
        let record = AerRecord::read(statement.header(), receipt)?;
        signature::check_all(&record.receipt.signatures, &record.signed, |_| keys.gateway.iter().collect())?;
        let detached = beside.filter(|_| statement.is_detached());
        match statement.verify_with(keys.issuer, detached) {
            Ok(()) => Ok(record),
            Err(error) => Err(Untrusted::from(error).violation()),
        }
    }

    fn optional_facts(&self, facts: &mut Facts) {
        let receipt = &self.receipt;
        let denial = receipt.outcome.denial();
        let detail = denial.and_then(|denial| denial.detail.as_ref());
        for (name, text) in [
            ("denial_reason", denial.map(|denial| denial.reason)),
            ("denial_code", detail.map(|detail| detail.code.as_str())),
            ("degraded_reason", receipt.mode.reason()),
            ("root_envelope", receipt.chain.as_ref().map(|chain| chain.root.as_str())),
            ("plan_hash_asserted", receipt.plan_hash.as_deref()),
        ] {
            if let Some(text) = text {
                facts.text(name, text);
            }
        }
        if let Some(chain) = &receipt.chain {
            facts.put("chain_depth", chain.depth.into());
        }
        if receipt.mode.lacks_reason() {
            facts.put("warnings", vec!["degraded-without-reason at /degraded_reason"].into());
        }
    }
}

impl ProfileRecord for AerRecord {
    fn facts(&self, facts: &mut Facts) {
        let receipt = &self.receipt;
        for (name, text) in [
            ("aer_id", receipt.aer_id.as_str()),
            ("session", &receipt.session.id),
            ("agent", &receipt.session.agent),
            ("decision", receipt.outcome.as_str()),
            ("enforcement_mode", receipt.mode.as_str()),
            ("tool", &receipt.action.tool),
            ("server", &receipt.action.server),
            ("capability", &receipt.action.capability),
            ("input_hash", &receipt.action.input_hash),
            ("policy_id", &receipt.policy.id),
            ("policy_digest", &receipt.policy.digest),
            ("gateway", &receipt.gateway.id),
        ] {
            facts.text(name, text);
        }
        facts.put("produced_at", receipt.produced_at.into());
        self.optional_facts(facts);
    }

    /// The placeholders of a call without a usable root are not indexed.
    fn lookups(&self, _header: &Header, _payload: Option<&[u8]>, found: &mut Lookups) {
        let receipt = &self.receipt;
        found.add(LookupKind::AerId, &receipt.aer_id);
        found.add(LookupKind::Verdict, receipt.outcome.as_str());
        if !receipt.action.tool.is_empty() {
            found.add(LookupKind::Tool, &receipt.action.tool);
        }
        found.add(LookupKind::Digest, &receipt.action.input_hash);
        if receipt.chain.is_some() {
            found.add(LookupKind::Session, &receipt.session.id);
            found.add(LookupKind::Agent, &receipt.session.agent);
        }
    }

    fn document(&self) -> Value {
        self.document.clone()
    }
}

/// Returns whether a content type, with or without parameters, is that of execution receipts.
pub fn is_aer(content_type: &str) -> bool {
    essence(content_type) == AER_JSON
}

/// Checks `sub`: the receipt's `aer_id` or its session, if it has one.
fn check_subject(header: &Header, receipt: &Receipt) -> Result<(), Violation> {
    let sub = header.claims().and_then(|claims| claims.sub()).unwrap_or_default();
    let session = receipt.chain.is_some() && sub == receipt.session.id;
    match session || sub == receipt.aer_id {
        true => Ok(()),
        false => {
            let detail = format!("{} is neither the receipt's aer_id nor its session", quote(sub));
            Err(AerRule::Subject.in_header("15/2", detail))
        }
    }
}

/// Returns the receipt in a statement, or `beside`, if the statement contains the hash of it.
fn receipt_of<'s>(statement: &'s SignedStatement, beside: Option<&'s [u8]>) -> Result<&'s [u8], Violation> {
    let header = statement.header();
    let named = match header.hash_envelope() {
        Some(envelope) => envelope.preimage_content_type.as_ref(),
        None => header.content_type(),
    };
    if !named.and_then(ContentType::as_text).is_some_and(is_aer) {
        let detail = "the content type is not application/aer+json";
        return Err(broken("profile", Place::protected("3"), detail));
    }
    let Some(envelope) = header.hash_envelope() else {
        return payload_of(statement, beside);
    };
    let hashed = statement.payload().ok_or_else(|| Untrusted::PayloadMissing.violation())?;
    let receipt = beside.ok_or_else(|| {
        broken(
            "payload-missing",
            Place::payload(""),
            "the statement is the hash of a receipt that did not come along",
        )
    })?;
    match digest_of(envelope.algorithm, receipt)? == hashed {
        true => Ok(receipt),
        false => Err(mismatch("the statement is not the hash of this receipt")),
    }
}

/// Returns the payload of a statement, attached or detached. If both are given, they must be equal.
fn payload_of<'s>(statement: &'s SignedStatement, beside: Option<&'s [u8]>) -> Result<&'s [u8], Violation> {
    match (statement.payload(), beside) {
        (Some(payload), Some(beside)) if payload != beside => {
            Err(mismatch("the statement holds another receipt than came along"))
        }
        (Some(payload), _) => Ok(payload),
        (None, beside) => beside.ok_or_else(|| Untrusted::PayloadMissing.violation()),
    }
}

/// Computes a digest with the algorithm of a hash envelope, if a log admits it.
fn digest_of(algorithm: i64, receipt: &[u8]) -> Result<Vec<u8>, Violation> {
    match algorithm {
        build::SHA_256 => Ok(Sha256::digest(receipt).to_vec()),
        SHA_384 => Ok(Sha384::digest(receipt).to_vec()),
        SHA_512 => Ok(Sha512::digest(receipt).to_vec()),
        other => {
            let detail = format!("hash algorithm {other} is none that a log admits");
            Err(broken("hash-envelope-algorithm", Place::protected("258"), &detail))
        }
    }
}

fn mismatch(detail: &str) -> Violation {
    broken("payload-digest-mismatch", Place::payload(""), detail)
}

fn broken(rule: &'static str, place: Place, detail: &str) -> Violation {
    Violation { rule: RuleName::fixed(rule), place, detail: detail.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_has_a_name_of_its_own() {
        let names: std::collections::HashSet<_> = AerRule::ALL.iter().map(|rule| rule.name()).collect();
        assert_eq!(names.len(), AerRule::ALL.len());
        assert!(names.iter().all(|name| name.starts_with("aer-")));
    }

    #[test]
    fn the_digest_of_no_chain_is_that_of_an_empty_array() {
        let digest = data_encoding::HEXLOWER.encode(&Sha256::digest(b"[]"));
        assert_eq!(EMPTY_CHAIN, format!("sha256:{digest}"));
    }
}
