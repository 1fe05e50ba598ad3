//! Files that accuse a log of a wrong index, checked with nothing but a trust store.

use std::collections::BTreeSet;

use lookup_tree::TermKey;
use scitt::SignedStatement;
use verifier::index::{AccusationRefused, IndexAccusationFile, TrustedIndex};
use verifier::{
    Code, IssuerSignature, StatementEvidence, StatementVerdict, TrustStore, VerificationOutcome, verify,
};

use crate::index_policy::{NoIndexPolicy, PolicyIndex};
use crate::statement_terms::StatementTerms;

/// Reasons why a file shows no misbehaviour of the log.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum AccusationFault {
    /// The policy in the file is not verified, because something is missing or wrong.
    #[error("the policy in the file is not verified: {why}")]
    Policy {
        /// The result of its verification.
        outcome: VerificationOutcome,
        /// Reason of the result.
        code: Option<Code>,
        /// Detail of the check that decided.
        why: String,
    },
    /// The policy describes no index of the log.
    #[error("the policy in the file: {0}")]
    NoIndex(#[from] NoIndexPolicy),
    /// The accusation itself is refused.
    #[error(transparent)]
    Refused(#[from] AccusationRefused),
}

/// Checks that a file shows misbehaviour of a trusted log, at `now` (Unix seconds). The policy in it is that under which
/// the log registered the heads.
///
/// # Errors
/// Returns an [`AccusationFault`] if the file shows nothing, or a part of it is not verified.
pub fn check_accusation(
    file: &IndexAccusationFile,
    trust: &TrustStore,
    now: u64,
) -> Result<(), AccusationFault> {
    let index = described_index(file, trust, now)?;
    Ok(file.accusation.check(&index, trust, &read_terms, now)?)
}

/// Verifies that the log registered the policy, and returns the index that it describes.
fn described_index(
    file: &IndexAccusationFile,
    trust: &TrustStore,
    now: u64,
) -> Result<TrustedIndex, AccusationFault> {
    let trust = TrustStore { issuer_signature: IssuerSignature::LeftToLog, ..trust.clone() };
    let receipts: [&[u8]; 1] = [&file.policy.receipt];
    let evidence =
        StatementEvidence { statement: &file.policy.statement, receipts: &receipts, payload: None };
    let verdict = verify(&evidence, &trust, now);
    if !verdict.is_verified() {
        return Err(unverified(&verdict));
    }
    let statement = SignedStatement::parse(file.policy.statement.clone());
    let payload = statement.ok().and_then(|statement| statement.payload().map(<[u8]>::to_vec));
    let log = verdict.receipts.first().and_then(|receipt| receipt.log.as_deref()).unwrap_or_default();
    let index = PolicyIndex::read(&payload.unwrap_or_default(), log)?;
    match index.has_known_table() {
        true => Ok(index.trusted),
        false => Err(NoIndexPolicy::OtherTable(index.table).into()),
    }
}

fn unverified(verdict: &StatementVerdict) -> AccusationFault {
    AccusationFault::Policy { outcome: verdict.outcome, code: verdict.reason, why: verdict.why().to_owned() }
}

/// Reads the keys of a statement; `None` if its payload is detached and not in the file.
fn read_terms(statement: &SignedStatement, payload: Option<&[u8]>) -> Option<BTreeSet<TermKey>> {
    let is_there = payload.is_some() || statement.payload().is_some();
    is_there.then(|| StatementTerms::read(statement, payload).into_keys())
}
