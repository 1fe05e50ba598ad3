//! Verifies that a known tree is the beginning of a newer one (RFC 9942, section 5.3).
//!
//! The older root is never taken from the receipt or from data sent with it, which would prove nothing. It is
//! recomputed from the path together with the newer root, and the log's signature is verified over the result. A
//! changed path, size or signature therefore fails in the same way.
//!
//! A size that the log does not sign is only the service's claim: the verdict says so, and contains no newer tree.
//!
//! Not here: equal sizes and the empty tree, for which no such receipt exists; and CCF ledgers (vds 2).

use merkle::{RootHash, TreeSize};
use scitt::{PublicKey, Receipt, ReceiptError, ReceiptRefused};
use serde::Serialize;

use crate::receipt::{check_dates, check_form, kid_text, logs_for};
use crate::trust::{Candidates, NoCandidate, refuse_ended};
use crate::verdict::{Check, CheckName, Code, VerificationOutcome};
use crate::{TrustStore, TrustedLog, to_signed};

/// A tree that was verified before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownTree {
    /// Tree size of the known tree.
    pub size: TreeSize,
    /// Root hash of the known tree.
    pub root: RootHash,
}

/// Result of [`verify_consistency`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConsistencyVerdict {
    /// Overall result.
    pub outcome: VerificationOutcome,
    /// Reason why `outcome` is not [`VerificationOutcome::Verified`].
    pub reason: Option<Code>,
    /// Name of the log, as [`TrustedLog::name`] returns it.
    pub log: Option<String>,
    /// Size of the known tree.
    pub older: u64,
    /// Size of the newer tree; `None` if the receipt does not sign it.
    pub newer: Option<u64>,
    /// Newer root in hexadecimal, to be known next time. Present only if the receipt is verified and signs its size.
    pub root: Option<String>,
    /// All checks, including those not done.
    pub checks: Vec<Check>,
}

impl ConsistencyVerdict {
    /// Returns `true` if the known tree is the beginning of the signed one. The signed one becomes a [`KnownTree`] only
    /// if `root` is present.
    pub fn is_verified(&self) -> bool {
        self.outcome == VerificationOutcome::Verified
    }
}

/// Verifies that the receipt's tree extends `known`, at `now` (Unix seconds).
pub fn verify_consistency(
    receipt: &[u8],
    known: &KnownTree,
    trust: &TrustStore,
    now: u64,
) -> ConsistencyVerdict {
    let receipt = match Receipt::parse(receipt.to_vec()) {
        Ok(receipt) => receipt,
        Err(why) => return ConsistencyFacts::default().conclude(known, vec![unreadable(&why)]),
    };
    let newer = receipt.signed_tree_size();
    let iss = receipt.header().iss();
    let logs = logs_for(iss, trust);
    let attempts = logs.into_iter().map(|log| attempt(&receipt, known, log, newer, to_signed(now)));
    let best = attempts.min_by_key(|verdict| match verdict.outcome {
        VerificationOutcome::Verified => 0,
        VerificationOutcome::Failed => 1,
        VerificationOutcome::NotVerified => 2,
    });
    best.unwrap_or_else(|| {
        let detail = format!("no trusted log issues receipts as {:?}", iss.unwrap_or_default());
        let check = Check::not_done(CheckName::Receipt, Code::UnknownLog, detail);
        ConsistencyFacts { newer, ..ConsistencyFacts::default() }.conclude(known, vec![check])
    })
}

/// Verifies the receipt against one log.
fn attempt(
    receipt: &Receipt,
    known: &KnownTree,
    log: &TrustedLog,
    newer: Option<TreeSize>,
    now: i64,
) -> ConsistencyVerdict {
    let mut found = ConsistencyFacts { log: Some(log.name().to_owned()), newer, root: None };
    let form = match check_form(receipt, log) {
        Ok(form) => form,
        Err(check) => return found.conclude(known, vec![check]),
    };
    let mut checks = vec![form];
    let proven = prove(receipt, known, log).and_then(|(root, key)| {
        let size = newer.unwrap_or_else(|| TreeSize::new(newer_size_in_proof(receipt)));
        let kid = kid_text(receipt.header()).unwrap_or_default();
        refuse_ended(CheckName::ReceiptSignature, &kid, &log.end_of(key), size)?;
        Ok((root, key))
    });
    match proven {
        Ok((root, key)) => {
            let newer = newer.map_or_else(
                || {
                    format!(
                        "a signed one; how many leaves that has is not signed, the proof says {}",
                        newer_size_in_proof(receipt)
                    )
                },
                |size| format!("that of {size}"),
            );
            let kid = kid_text(receipt.header())
                .unwrap_or_else(|| data_encoding::BASE64URL_NOPAD.encode(&key.thumbprint()));
            let detail = format!("the tree of size {} is the beginning of {newer}", known.size);
            checks.push(Check::ok(CheckName::Consistency, detail));
            checks.push(Check::ok(CheckName::ReceiptSignature, format!("{}, kid {kid}", log.name())));
            found.root = Some(root.to_string());
        }
        Err(check) => checks.push(check),
    }
    checks.push(check_dates(receipt, now));
    found.conclude(known, checks)
}

/// Returns the newer size in the first proof, which need not be signed.
fn newer_size_in_proof(receipt: &Receipt) -> u64 {
    receipt.consistency_proofs().first().map_or(0, |proof| proof.newer.get())
}

/// Returns the newer root and the key that signed it.
fn prove<'l>(
    receipt: &Receipt,
    known: &KnownTree,
    log: &'l TrustedLog,
) -> Result<(RootHash, &'l PublicKey), Check> {
    let kid = receipt.header().kid().map(|kid| kid.as_ref());
    let mut root = None;
    let found = Candidates::of(&log.keys, kid)
        .find(|key| receipt.verify_consistency(known.size, &known.root, key).map(|newer| root = Some(newer)));
    match (found, root) {
        (Ok(key), Some(root)) => Ok((root, key)),
        (Err(NoCandidate::Refused(why)), _) => Err(refused(receipt, known, why)),
        _ => {
            let detail = format!(
                "{} is trusted, but not with a key named {}",
                log.name(),
                kid_text(receipt.header()).unwrap_or_default()
            );
            Err(Check::not_done(CheckName::ReceiptSignature, Code::UnknownLogKey, detail))
        }
    }
}

fn refused(receipt: &Receipt, known: &KnownTree, why: ReceiptRefused) -> Check {
    let name = CheckName::Consistency;
    match why {
        ReceiptRefused::OlderSize { .. } => {
            Check::not_done(name, Code::ConsistencyOtherSize, why.to_string())
        }
        ReceiptRefused::Signature(scitt::SignatureError::Invalid) if receipt.attached_root().is_none() => {
            let detail = format!(
                "the path does not lead from root {} of size {} to the one that the receipt signs",
                known.root, known.size
            );
            Check::failed(name, Code::ConsistencyMismatch, detail)
        }
        ReceiptRefused::Signature(_) => {
            Check::failed(CheckName::ReceiptSignature, Code::ReceiptSignatureInvalid, why.to_string())
        }
        ReceiptRefused::NoConsistencyProof => {
            Check::not_done(name, Code::NoConsistencyProof, why.to_string())
        }
        _ => Check::failed(name, Code::ConsistencyMismatch, why.to_string()),
    }
}

fn unreadable(why: &ReceiptError) -> Check {
    match why {
        ReceiptError::Malformed(why) => {
            Check::failed(CheckName::Receipt, Code::MalformedReceipt, why.to_string())
        }
        ReceiptError::UnsupportedStructure(_) => {
            Check::not_done(CheckName::Receipt, Code::UnsupportedStructure, why.to_string())
        }
    }
}

#[derive(Default)]
struct ConsistencyFacts {
    log: Option<String>,
    newer: Option<TreeSize>,
    root: Option<String>,
}

impl ConsistencyFacts {
    fn conclude(self, known: &KnownTree, mut checks: Vec<Check>) -> ConsistencyVerdict {
        let names = [CheckName::Consistency, CheckName::ReceiptSignature, CheckName::ReceiptDates];
        Check::add_not_reached(&mut checks, &names);
        let (outcome, reason) = VerificationOutcome::of(&checks);
        ConsistencyVerdict {
            root: self.root.filter(|_| outcome == VerificationOutcome::Verified && self.newer.is_some()),
            outcome,
            reason,
            log: self.log,
            older: known.size.get(),
            newer: self.newer.map(TreeSize::get),
            checks,
        }
    }
}
