//! Receipts (RFC 9942, RFC 9943, section 7).
//!
//! The keys are those that the service publishes: a receipt that verifies shows that the service is consistent with
//! itself. Whether its keys deserve trust is not a question of conformance.

use scitt::{KeySet, Receipt, ReceiptError, SkippedKey, Structure};
use verifier::{HeaderProfile, LeafRule, StatementVerdict, TrustStore, TrustedLog, verify_receipt};

use crate::check::{ConformanceCheck, must, should};
use crate::judgement::{Judgement, Shortfall, not_applicable, quoted, require, violated};
use crate::observations::{Observations, published_kids};
use crate::probe::Probe;

/// Name of the check without which a run does not show that a service conforms.
pub const RECEIPT_VERIFIES: &str = "receipt-verifies";

/// The checks of this module.
pub const CHECKS: &[ConformanceCheck] = &[
    must(
        "receipt-structure",
        "RFC 9942, 4, 5",
        "The receipt is a tagged COSE_Sign1 with alg, vds (395) and proofs (396)",
        structure,
    ),
    must(
        "receipt-proof",
        "RFC 9942, 5.2; RFC 9943, 5.1",
        "The receipt has an inclusion proof",
        inclusion_proof,
    ),
    should(
        "receipt-detached",
        "RFC 9942, 5.2",
        "The tree's root is detached, so that a verifier must compute it",
        |observations| {
            let attached = observations.receipt()?.attached_root().is_some();
            require(!attached, if attached { "the root is attached" } else { "detached" })
        },
    ),
    must("receipt-claims", "RFC 9943, 6.1", "The protected header has the CWT claims iss and sub", claims),
    must("receipt-kid", "RFC 9943, 6.1; SCRAPI-11, 2.1", "The protected kid is that of a published key", kid),
    must(
        RECEIPT_VERIFIES,
        "RFC 9942, 5.2.1",
        "The proof of this statement's leaf and the signature verify with a published key",
        |observations| verifies(observations, observations.receipt()?.bytes()),
    ),
    must(
        "receipt-on-registration",
        "SCRAPI-11, 2.3.1",
        "The receipt in the answer 201 verifies, too",
        |observations| {
            let response = observations.accepted(Probe::Registration)?;
            match response.status == http::StatusCode::CREATED {
                true => verifies(observations, &response.body),
                false => not_applicable("the registration was answered with 202"),
            }
        },
    ),
];

fn structure(observations: &Observations) -> Judgement {
    match Receipt::parse(observations.receipt_bytes()?.to_vec()) {
        Ok(receipt) => Ok(receipt.structure().name().to_owned()),
        Err(ReceiptError::UnsupportedStructure(number)) => {
            Err(Shortfall::Unsupported(format!("verifiable data structure {number}")))
        }
        Err(error) => violated(error.to_string()),
    }
}

fn inclusion_proof(observations: &Observations) -> Judgement {
    let receipt = observations.receipt()?;
    let proofs = match receipt.structure() {
        Structure::Rfc9162 => receipt.inclusion_proofs().len(),
        Structure::CcfLedger => receipt.ledger_proofs().len(),
    };
    require(proofs > 0, format!("{proofs} inclusion proofs"))
}

fn claims(observations: &Observations) -> Judgement {
    let receipt = observations.receipt()?;
    match (receipt.header().iss(), receipt.header().sub()) {
        (Some(iss), Some(sub)) => Ok(format!("iss {}, sub {}", quoted(iss), quoted(sub))),
        (None, _) => violated("no iss"),
        (_, None) => violated("no sub"),
    }
}

fn kid(observations: &Observations) -> Judgement {
    let receipt = observations.receipt()?;
    let header = receipt.header();
    match header.kid() {
        Some(kid) => {
            let keys = observations.keys()?;
            let published = published_kids(&keys).filter(|published| *published == Some(&kid[..])).count();
            require(published > 0, format!("published keys that have it: {published}"))
        }
        None if header.x5chain().is_some() || header.x5t().is_some() => {
            Err(Shortfall::Unsupported("the receipt names its key by a certificate".into()))
        }
        None => violated("no kid in the protected header"),
    }
}

/// Verifies a receipt of the registered statement with the published keys, under each rule that makes a leaf of a
/// statement: no specification chooses one.
fn verifies(observations: &Observations, receipt: &[u8]) -> Judgement {
    let keys = observations.keys()?;
    if let Some(what) = unsupported(&keys, receipt) {
        return Err(Shortfall::Unsupported(what));
    }
    let mut verdict = verdict(observations, &keys, receipt, LeafRule::Sha256OfStatement);
    let mut rule = "SHA-256 of the statement";
    if !verdict.is_verified() {
        verdict = self::verdict(observations, &keys, receipt, LeafRule::Statement);
        rule = "the statement";
    }
    match verdict.is_verified() {
        true => Ok(format!("verified; the leaf is that of {rule}")),
        false => violated(quoted(verdict.why())),
    }
}

/// Returns the option of a receipt, or of the key that it names, that the suite cannot check.
fn unsupported(keys: &KeySet, receipt: &[u8]) -> Option<String> {
    let receipt = match Receipt::parse(receipt.to_vec()) {
        Ok(receipt) => receipt,
        Err(ReceiptError::UnsupportedStructure(number)) => {
            return Some(format!("verifiable data structure {number}"));
        }
        Err(ReceiptError::Malformed(_)) => return None,
    };
    let header = receipt.header();
    match header.alg() {
        Some(number) if header.algorithm().is_none() => Some(format!("signature algorithm {number}")),
        _ => unsupported_key(keys, header.kid()?),
    }
}

/// Returns the error of the key with this `kid`, if it is of a type that the suite does not know.
fn unsupported_key(keys: &KeySet, kid: &[u8]) -> Option<String> {
    let is_named = |skipped: &&SkippedKey| skipped.is_unsupported() && skipped.kid.as_deref() == Some(kid);
    let skipped = keys.skipped().iter().find(is_named).filter(|_| keys.with_kid(kid).next().is_none())?;
    Some(skipped.error.to_string())
}

fn verdict(observations: &Observations, keys: &KeySet, receipt: &[u8], rule: LeafRule) -> StatementVerdict {
    let log = TrustedLog {
        iss: None,
        origin: None,
        leaf_rule: rule,
        profile: HeaderProfile::Rfc9942,
        ..TrustedLog::new("", "", keys.keys().to_vec())
    };
    let trust = TrustStore { logs: vec![log], ..TrustStore::default() };
    verify_receipt(observations.statement(), receipt, &trust, observations.now())
}
