//! Offline verification: a statement, its receipts and a trust store give a verdict.
//!
//! [`verify`] answers a relying party's questions about a Signed or Transparent Statement of RFC 9943: did the issuer
//! sign it, is this the payload, and did a trusted log register it. The [`StatementVerdict`] lists every check,
//! including those not done, each with a stable [`Code`]. Verification fails closed: a check that was not done never
//! counts as passed, and one failed check outweighs all checks that passed.
//!
//! Keys come only from the [`TrustStore`], never from the message or the network. Two kinds of receipt are supported:
//! those of logs with the structure RFC9162_SHA256, for which the trust store gives the rule that makes a leaf from a
//! statement, and those of CCF ledgers (vds 2), whose leaves name their statement. The log signs the choice of
//! structure.
//!
//! Certificates and claim dates of a statement are judged at the earliest time (`iat`) of its verified receipts: a
//! signature made under a valid certificate remains valid after the certificate ends. The statement was registered at
//! that time or earlier, so what ended before is neither valid nor expired for certain
//! ([`Code::RegistrationTimeUnknown`]).
//!
//! [`verify_with_checkpoint`] checks in addition that the witnesses of a policy have cosigned the tree that contains
//! the statement. [`verify_consistency`] checks that a newer tree extends a known one.
//!
//! [`index`] verifies searches of a log's index: that an answer has every entry that it should have, or that the index is
//! wrong.
//!
//! Pure: no I/O, no clock. Not here: watching a log over time (`monitor`), other data structures (MMR and the like),
//! consistency proofs of CCF ledgers, which are experimental, revocation, printing.
//!
//! ```rust
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use scitt::{Algorithm, CoseKey, Signer, SigningKey, StatementBuilder};
//! use verifier::{StatementEvidence, TrustStore, verify};
//!
//! let (key, iss) = (SigningKey::generate(Algorithm::EdDsa)?, "https://issuer.example");
//! let builder = StatementBuilder::new("the payload").content_type("text/plain").kid("key-1");
//! let statement = builder.iss(iss).sub("a subject").sign(&key)?;
//! let evidence = StatementEvidence { statement: statement.bytes(), ..StatementEvidence::default() };
//! let now = 1_800_000_000;
//!
//! // Nobody is trusted, so nothing is verified.
//! assert!(!verify(&evidence, &TrustStore::default(), now).is_verified());
//! # Ok(())
//! # }
//! ```

mod consistency;
pub mod index;
mod issuer;
mod payload;
mod receipt;
mod registration_time;
mod time;
pub mod trust;
pub mod verdict;
mod witnesses;

#[cfg(test)]
mod tests;

use merkle::EntryDigest;
use scitt::SignedStatement;

pub use consistency::{ConsistencyVerdict, KnownTree, verify_consistency};
use issuer::IssuerCheck;
use receipt::{ReceiptReport, ReceiptSubject};
use registration_time::RegistrationTime;
pub use trust::{
    HeaderProfile, IndexMonitors, IssuerSignature, LeafRule, RetiredCheckpointKey, TrustError, TrustStore,
    TrustedIssuer, TrustedLog, TrustedRoot,
};
pub use verdict::{
    Check, CheckName, CheckState, CheckpointFacts, Code, LeafPosition, ReceiptFacts, StatementFacts,
    StatementVerdict, VerificationOutcome, WitnessCosignature,
};
use witnesses::WitnessReport;
pub use witnesses::{
    CheckpointEvidence, CheckpointVerdict, TreeProof, verify_checkpoint, verify_tlog_proof_of,
};

/// Maximum time in seconds that the verifier's clock may be behind a log's or an issuer's.
pub const CLOCK_SKEW: i64 = 300;
/// Maximum number of receipts in one verification, attached and separate ones together.
pub const MAX_RECEIPTS: usize = 64;

/// Input of a verification.
#[derive(Debug, Clone, Copy, Default)]
pub struct StatementEvidence<'e> {
    /// A Signed Statement or Transparent Statement.
    pub statement: &'e [u8],
    /// Receipts in addition to those attached to the statement.
    pub receipts: &'e [&'e [u8]],
    /// Expected payload: the detached payload, the preimage of a hash envelope, or a copy to compare with the attached
    /// payload.
    pub payload: Option<&'e [u8]>,
}

/// Verifies `evidence` against `trust` at `now` (Unix seconds).
pub fn verify(evidence: &StatementEvidence<'_>, trust: &TrustStore, now: u64) -> StatementVerdict {
    verify_with_checkpoint(evidence, &CheckpointEvidence::default(), trust, now)
}

/// Verifies `evidence` like [`verify`], and also a checkpoint or tlog-proof of the tree that contains the statement. If
/// the policy names a quorum, the quorum is required. A tlog-proof under a trusted checkpoint key replaces receipts
/// that are missing or not verified.
pub fn verify_with_checkpoint(
    evidence: &StatementEvidence<'_>,
    checkpoint_evidence: &CheckpointEvidence<'_>,
    trust: &TrustStore,
    now: u64,
) -> StatementVerdict {
    let statement = match SignedStatement::parse(evidence.statement.to_vec()) {
        Ok(statement) => statement,
        Err(why) => return not_a_statement(&why.to_string()),
    };
    let attached = statement.receipts().iter().map(|receipt| receipt.as_ref());
    let all = distinct(attached.chain(evidence.receipts.iter().copied()));
    let receipts = receipt::check_all((&statement).into(), &all, trust, now);
    let witness_report = witnesses::check(checkpoint_evidence, (&statement).into(), &receipts, trust);
    let registered = RegistrationTime::of(&receipts, witness_report.included, now);
    let issuer = issuer::check(&statement, evidence.payload, trust, registered);
    let payload = payload::check(&statement, evidence.payload, issuer.signature_held());
    conclude(&statement, trust, issuer, payload, receipts, witness_report)
}

/// Verifies that one receipt proves the registration of `statement`, at `now` (Unix seconds). The issuer's signature is
/// not verified, which suits clients that created the statement themselves.
pub fn verify_receipt(
    statement: &SignedStatement,
    receipt: &[u8],
    trust: &TrustStore,
    now: u64,
) -> StatementVerdict {
    let verdict = verify_subject(statement.into(), receipt, trust, now);
    StatementVerdict { statement: Some(facts_of(statement)), ..verdict }
}

/// Verifies a receipt like [`verify_receipt`], with only the entry ID of the statement, for monitors that do not read
/// statements. Logs with [`LeafRule::Statement`] need the statement: for them the inclusion check is not done.
pub fn verify_receipt_of(
    entry: EntryDigest,
    receipt: &[u8],
    trust: &TrustStore,
    now: u64,
) -> StatementVerdict {
    verify_subject(ReceiptSubject { entry, statement: None }, receipt, trust, now)
}

fn verify_subject(
    subject: ReceiptSubject<'_>,
    receipt: &[u8],
    trust: &TrustStore,
    now: u64,
) -> StatementVerdict {
    let receipts = receipt::check_all(subject, &[receipt], trust, now);
    let mut checks = Vec::new();
    let detail = "not part of this verification";
    checks.push(Check::not_done(CheckName::IssuerSignature, Code::LeftToLog, detail));
    let (receipts, outcome, reason) = merge_receipts(receipts, &mut checks);
    checks.push(Check::not_done(CheckName::Witnesses, Code::NoWitness, "none configured"));
    StatementVerdict { outcome, reason, statement: None, receipts, checkpoint: None, checks }
}

fn distinct<'r>(receipts: impl Iterator<Item = &'r [u8]>) -> Vec<&'r [u8]> {
    let mut distinct = Vec::new();
    for receipt in receipts {
        if !distinct.contains(&receipt) {
            distinct.push(receipt);
        }
    }
    distinct
}

fn not_a_statement(why: &str) -> StatementVerdict {
    let reason = Code::MalformedStatement;
    let skipped = [
        CheckName::IssuerSignature,
        CheckName::Payload,
        CheckName::Inclusion,
        CheckName::ReceiptSignature,
        CheckName::Witnesses,
    ];
    let mut checks = vec![Check::failed(CheckName::Statement, reason, why)];
    checks.extend(
        skipped.map(|name| Check::not_done(name, Code::NotReached, "there is no statement to check")),
    );
    let (outcome, reason) = (VerificationOutcome::Failed, Some(reason));
    StatementVerdict { outcome, reason, statement: None, receipts: Vec::new(), checkpoint: None, checks }
}

fn conclude(
    statement: &SignedStatement,
    trust: &TrustStore,
    issuer: IssuerCheck,
    payload: Option<Check>,
    receipts: Vec<ReceiptReport>,
    witness_report: WitnessReport,
) -> StatementVerdict {
    let mut checks = vec![Check::ok(CheckName::Statement, format!("entry {}", statement.digest()))];
    checks.extend(issuer.checks);
    checks.extend(payload);
    let own_failure =
        checks.iter().find(|check| check.state == CheckState::Failed).and_then(|check| check.code);
    let own_failure = own_failure.or(witness_report.failure());
    let own_gap = own_gap(&checks, trust.issuer_signature).or(witness_report.gap());
    let (facts, outcome, reason) = merge_proofs(receipts, witness_report.included, &mut checks);
    checks.extend(witness_report.checks);
    let (outcome, reason) = match (own_failure, outcome, own_gap) {
        (Some(code), ..) => (VerificationOutcome::Failed, Some(code)),
        (None, VerificationOutcome::Failed, _) => (VerificationOutcome::Failed, reason),
        (None, _, _) if trust.is_empty() && !trust.self_certified => {
            (VerificationOutcome::NotVerified, Some(Code::NoTrustAnchors))
        }
        (None, VerificationOutcome::NotVerified, _) => (VerificationOutcome::NotVerified, reason),
        (None, VerificationOutcome::Verified, Some(code)) => (VerificationOutcome::NotVerified, Some(code)),
        (None, VerificationOutcome::Verified, None) => (VerificationOutcome::Verified, None),
    };
    let (statement, checkpoint) = (Some(facts_of(statement)), witness_report.facts);
    StatementVerdict { outcome, reason, statement, receipts: facts, checkpoint, checks }
}

/// Returns why the statement itself is not fully checked, if the trust store or the given payload requires that check.
fn own_gap(checks: &[Check], issuer_rule: IssuerSignature) -> Option<Code> {
    let gap = |name: CheckName| {
        let of_name = |check: &&Check| check.name == name && check.state == CheckState::NotDone;
        checks.iter().find(of_name).and_then(|check| check.code)
    };
    let issuer = gap(CheckName::IssuerSignature);
    let payload = gap(CheckName::Payload);
    let left_to_log = issuer_rule == IssuerSignature::LeftToLog && issuer == Some(Code::UnknownIssuer);
    let signed = match payload {
        None | Some(Code::PayloadNotGiven | Code::PayloadMissing) if left_to_log => None,
        None | Some(Code::PayloadNotGiven) => issuer,
        Some(code) => issuer.or(Some(code)),
    };
    signed.or(gap(CheckName::StatementDates))
}

/// Combines the receipts with a tlog-proof that counts if `included`. It replaces receipts that are missing or not
/// verified; a failed receipt decides.
fn merge_proofs(
    receipts: Vec<ReceiptReport>,
    included: bool,
    checks: &mut Vec<Check>,
) -> (Vec<ReceiptFacts>, VerificationOutcome, Option<Code>) {
    if included && receipts.is_empty() {
        return (Vec::new(), VerificationOutcome::Verified, None);
    }
    match merge_receipts(receipts, checks) {
        (facts, VerificationOutcome::NotVerified, _) if included => {
            (facts, VerificationOutcome::Verified, None)
        }
        merged => merged,
    }
}

/// Combines the receipts: a failed receipt decides; otherwise a verified one; otherwise the first reason.
fn merge_receipts(
    receipts: Vec<ReceiptReport>,
    checks: &mut Vec<Check>,
) -> (Vec<ReceiptFacts>, VerificationOutcome, Option<Code>) {
    if receipts.is_empty() {
        for name in [CheckName::Inclusion, CheckName::ReceiptSignature] {
            checks.push(Check::not_done(name, Code::NoReceipt, "the statement has no receipt"));
        }
        return (Vec::new(), VerificationOutcome::NotVerified, Some(Code::NoReceipt));
    }
    let first = |state: CheckState| {
        let of_state = |check: &&Check| check.state == state && check.code != Some(Code::NotReached);
        receipts.iter().flat_map(|report| &report.checks).find(of_state).and_then(|check| check.code)
    };
    let (failed, gap) = (first(CheckState::Failed), first(CheckState::NotDone));
    let (outcome, reason) = match failed {
        Some(code) => (VerificationOutcome::Failed, Some(code)),
        None if receipts.iter().any(|report| report.facts.verified) => (VerificationOutcome::Verified, None),
        None => (VerificationOutcome::NotVerified, gap.or(Some(Code::NotReached))),
    };
    let mut facts = Vec::new();
    for (number, report) in receipts.into_iter().enumerate() {
        checks.extend(report.checks.into_iter().map(|check| Check { receipt: Some(number), ..check }));
        facts.push(report.facts);
    }
    (facts, outcome, reason)
}

fn facts_of(statement: &SignedStatement) -> StatementFacts {
    let header = statement.header();
    let claim = |text: Option<&str>| text.map(str::to_owned);
    let preimage = header.hash_envelope().and_then(|envelope| envelope.preimage_content_type.as_ref());
    StatementFacts {
        entry: statement.digest(),
        iss: claim(header.iss()),
        sub: claim(header.sub()),
        content_type: header.content_type().or(preimage).map(ToString::to_string),
        algorithm: header.algorithm().map(|algorithm| algorithm.name()),
    }
}

pub(crate) fn to_signed(seconds: u64) -> i64 {
    i64::try_from(seconds).unwrap_or(i64::MAX)
}
