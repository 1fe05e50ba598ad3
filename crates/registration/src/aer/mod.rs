//! Agent Execution Receipts (AER) of AgentROA as statements: a gateway's signed word that it permitted or denied a call.
//!
//! The statement's payload is a receipt ([`roa::aer`], where its format and our readings of it are): canonical JSON with
//! the gateway's own Ed25519 signatures, which the policy's keys must verify. `iss` is the gateway, `sub` the
//! receipt or its session. For a public log the receipt can be registered by its hash and disclosed on audit
//!
//!
//! a log proves that a receipt was registered, not that it is true. Not here: the receipts themselves, ROA
//! envelopes and delegation chains (crate `roa`), and the gateway that issues receipts.

mod build;
mod check;
mod options;
mod profile;
mod redacted;

use jose::members::quote;
use roa::aer::{ExecutionReceipt, SignedReceipt};
use scitt::header::{ContentType, Header};
use scitt::{PublicKey, SignedStatement};
use serde_json::Value;
use sha2::{Digest, Sha256, Sha384, Sha512};

pub use build::{AerStatement, BuildAerError, inner_signature};
pub use options::{AerOptions, GatewayEntry, GatewayKey};
pub use redacted::AerRedacted;
pub use roa::aer::{AER_JSON, AerRule};

use crate::content_types::essence;
use crate::facts::Facts;
use crate::profile::ProfileRecord;
use crate::untrusted::Untrusted;
use crate::violation::{Place, RuleName, Violation};

/// The COSE algorithm identifiers of the longer hashes (RFC 9054).
const SHA_384: i64 = -43;
const SHA_512: i64 = -44;

/// An execution statement that keeps every rule that does not depend on a policy.
#[derive(Clone, Debug, PartialEq)]
pub struct AerRecord {
    signed: SignedReceipt,
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
        let signed = SignedReceipt::parse(payload)?;
        check_subject(header, signed.receipt())?;
        Ok(AerRecord { signed })
    }

    /// Returns the receipt.
    pub fn receipt(&self) -> &ExecutionReceipt {
        self.signed.receipt()
    }

    /// Returns the receipt with its signatures.
    pub fn signed(&self) -> &SignedReceipt {
        &self.signed
    }

    /// Verifies a statement without a policy: its rules, the signatures within the receipt, and its own signature.
    /// `separate` is the receipt, if the statement does not contain it.
    pub fn verify(
        statement: &SignedStatement,
        separate: Option<&[u8]>,
        keys: VerifyingKeys<'_>,
    ) -> Result<AerRecord, Violation> {
        let record = AerRecord::verify_inner(statement, separate, keys.gateway)?;
        let detached = separate.filter(|_| statement.is_detached());
        match statement.verify_with(keys.issuer, detached) {
            Ok(()) => Ok(record),
            Err(error) => Err(Untrusted::from(error).violation()),
        }
    }

    /// Verifies the rules and the signatures within the receipt, for callers that verify the statement's signature
    /// themselves. `content` is the receipt, if the statement does not contain it.
    pub fn verify_inner(
        statement: &SignedStatement,
        content: Option<&[u8]>,
        gateway: &[PublicKey],
    ) -> Result<AerRecord, Violation> {
        let record = AerRecord::read(statement.header(), receipt_of(statement, content)?)?;
        record.signed.verify(|_| gateway.iter().collect())?;
        Ok(record)
    }

    fn optional_facts(&self, facts: &mut Facts) {
        let receipt = self.receipt();
        let denial = receipt.outcome.denial();
        for (name, text) in [
            ("denial_reason", denial.map(|denial| denial.reason.as_str().to_owned())),
            ("denial_code", denial.and_then(|denial| denial.code()).map(str::to_owned)),
            ("degraded_reason", receipt.mode.reason().map(ToString::to_string)),
            ("root_envelope", receipt.chain.as_ref().map(|chain| chain.root.to_string())),
            ("plan_hash_asserted", receipt.plan_hash.map(|digest| digest.to_string())),
        ] {
            if let Some(text) = text {
                facts.text(name, &text);
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
        let receipt = self.receipt();
        for (name, text) in [
            ("aer_id", receipt.aer_id.as_str()),
            ("session", receipt.session.id.as_str()),
            ("agent", receipt.session.agent.as_str()),
            ("decision", receipt.outcome.as_str()),
            ("enforcement_mode", receipt.mode.as_str()),
            ("tool", &receipt.action.tool),
            ("server", receipt.action.server.as_str()),
            ("capability", &receipt.action.capability()),
            ("input_hash", &receipt.action.input_hash.to_string()),
            ("policy_id", receipt.policy.id.as_str()),
            ("policy_digest", &receipt.policy.digest.to_string()),
            ("gateway", receipt.gateway.id.as_str()),
        ] {
            facts.text(name, text);
        }
        facts.put("produced_at", receipt.produced_at.unix_seconds().into());
        self.optional_facts(facts);
    }

    fn payload_json(&self) -> Option<&Value> {
        Some(self.signed.document())
    }
}

/// Returns whether a content type, with or without parameters, is that of execution receipts.
pub fn is_aer(content_type: &str) -> bool {
    essence(content_type) == AER_JSON
}

/// Returns whether a statement contains an execution receipt or its hash.
pub fn is_execution_receipt(statement: &SignedStatement) -> bool {
    let header = statement.header();
    let named = match header.hash_envelope() {
        Some(envelope) => envelope.preimage_content_type.as_ref(),
        None => header.content_type(),
    };
    named.and_then(ContentType::as_text).is_some_and(is_aer)
}

/// Checks `sub`: the receipt's `aer_id` or its session, if it has one.
fn check_subject(header: &Header, receipt: &ExecutionReceipt) -> Result<(), Violation> {
    let sub = header.sub().unwrap_or_default();
    let session = receipt.chain.is_some() && sub == receipt.session.id.as_str();
    match session || sub == receipt.aer_id.as_str() {
        true => Ok(()),
        false => {
            let detail = format!("{} is neither the receipt's aer_id nor its session", quote(sub));
            Err(in_header(AerRule::Subject, "15/2", detail))
        }
    }
}

/// Returns a violation in the payload.
fn in_payload(rule: AerRule, pointer: &str, detail: impl Into<String>) -> Violation {
    crate::rule::in_payload(rule.name(), pointer.to_owned(), detail.into())
}

/// Returns a violation in the protected header.
fn in_header(rule: AerRule, labels: &'static str, detail: impl Into<String>) -> Violation {
    crate::rule::in_header(rule.name(), labels, detail.into())
}

/// Returns the receipt in a statement, or `separate`, if the statement contains the hash of it.
fn receipt_of<'s>(statement: &'s SignedStatement, separate: Option<&'s [u8]>) -> Result<&'s [u8], Violation> {
    let header = statement.header();
    if !is_execution_receipt(statement) {
        let detail = "the content type is not application/aer+json";
        return Err(broken("profile", Place::protected("3"), detail));
    }
    let Some(envelope) = header.hash_envelope() else {
        return payload_of(statement, separate);
    };
    let hashed = statement.payload().ok_or_else(|| Untrusted::PayloadMissing.violation())?;
    let receipt = separate.ok_or_else(|| {
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
fn payload_of<'s>(statement: &'s SignedStatement, separate: Option<&'s [u8]>) -> Result<&'s [u8], Violation> {
    match (statement.payload(), separate) {
        (Some(payload), Some(separate)) if payload != separate => {
            Err(mismatch("the statement holds another receipt than came along"))
        }
        (Some(payload), _) => Ok(payload),
        (None, separate) => separate.ok_or_else(|| Untrusted::PayloadMissing.violation()),
    }
}

/// Computes a digest with the algorithm of a hash envelope, if a log admits it.
fn digest_of(algorithm: i64, receipt: &[u8]) -> Result<Vec<u8>, Violation> {
    match algorithm {
        build::SHA_256 => Ok(Sha256::digest(receipt).to_vec()),
        SHA_384 => Ok(Sha384::digest(receipt).to_vec()),
        SHA_512 => Ok(Sha512::digest(receipt).to_vec()),
        other => {
            let detail = format!("hash algorithm {other} is not admitted");
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
}
