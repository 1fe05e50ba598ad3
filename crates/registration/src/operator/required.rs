//! Number of operators who must agree to an action, and the check that they did.
//!
//! One operator signs the statement, and the others approve it beforehand: each approval is an entry of the log with a
//! guard made of content type, payload digest, expiry and the operator's key. The statement has the expiry as its
//! `exp`, so it is admitted only while the approvals are valid, and an auditor finds the same guards below it. No
//! payload is admitted twice (a revision, a number of an erasure or hold, one freeze), so an approval counts once.

use std::collections::BTreeSet;

use super::OperatorRule as Rule;
use super::{Action, Pending};
use crate::answers::{Answers, Questions};
use crate::authenticate::Authenticated;
use crate::guard::Guard;
use crate::policy::{BoundKey, Contents};
use crate::record::Record;
use crate::violation::Violation;

/// The number of operators who must agree, by kind of statement: one of them signs, the others approve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Required {
    /// Number of operators for a policy after the first.
    pub policy: u64,
    /// Number of operators for an erasure.
    pub erasure: u64,
    /// Number of operators for a freeze.
    pub freeze: u64,
    /// Number of operators for a release.
    pub release: u64,
}

impl Required {
    /// One operator for every kind of statement.
    pub const ONE: Required = Required::all(1);

    /// Requires one number of operators for all kinds of statements.
    pub const fn all(number: u64) -> Required {
        Required { policy: number, erasure: number, freeze: number, release: number }
    }

    /// Returns the numbers with their names in a policy.
    pub fn named(&self) -> [(&'static str, u64); 4] {
        [
            ("policy", self.policy),
            ("erasure", self.erasure),
            ("freeze", self.freeze),
            ("release", self.release),
        ]
    }

    /// Returns the number for a record. A clock correction needs one operator: while the log's time is ahead, the log
    /// admits no approvals.
    fn of(&self, record: &Record) -> u64 {
        match record {
            Record::Policy(_) => self.policy,
            Record::Erasure(_) => self.erasure,
            Record::OperatorAction(action) => match **action {
                Action::Freeze { .. } => self.freeze,
                Action::Release(_) => self.release,
                Action::Hold(_) => 1,
            },
            _ => 1,
        }
    }
}

/// Returns the thumbprints of the operators' different keys.
pub(crate) fn distinct(operators: &[BoundKey]) -> BTreeSet<[u8; 32]> {
    operators.iter().map(|operator| operator.key.thumbprint()).collect()
}

/// Adds the questions for the approvals that a statement requires.
pub(crate) fn approval_questions(
    statement: &Authenticated<'_>,
    record: &Record,
    policy: &Contents,
    asked: &mut Questions,
) {
    if policy.required.of(record) > 1 {
        asked.guards.extend(approvals_of(statement, policy));
    }
}

/// Checks that as many operators agreed to a statement as the policy requires.
pub(crate) fn check_approvals(
    statement: &Authenticated<'_>,
    record: &Record,
    policy: &Contents,
    log: &Answers,
) -> Result<(), Violation> {
    let required = policy.required.of(record);
    if required <= 1 {
        return Ok(());
    }
    let Some(pending) = pending(statement) else {
        let detail =
            format!("1 of {required} operators; approvals name an expiry, and the statement has no exp");
        return Err(Rule::Approvals.in_header("15/4", detail));
    };
    let given = approvals_of(statement, policy).iter().filter(|guard| log.guard(guard).is_some()).count();
    match 1 + given as u64 {
        agreed if agreed >= required => Ok(()),
        agreed => {
            let (digest, expires) = (pending.digest(), pending.expires);
            let detail = format!(
                "{agreed} of {required} operators; missing: approval of {digest} that expires at {expires}"
            );
            Err(Rule::Approvals.in_payload("", detail))
        }
    }
}

/// Returns the guards of the approvals that count: those of the policy's operators other than the signer.
fn approvals_of(statement: &Authenticated<'_>, policy: &Contents) -> Vec<Guard> {
    let Some(pending) = pending(statement) else { return Vec::new() };
    let signer = statement.key().thumbprint();
    let others = distinct(&policy.operators).into_iter().filter(|operator| *operator != signer);
    others.map(|operator| pending.approval_guard(&operator)).collect()
}

/// Describes a statement as approvals name it.
fn pending(statement: &Authenticated<'_>) -> Option<Pending> {
    let header = statement.header();
    let expires = u64::try_from(header.claims()?.exp()?).ok()?;
    Some(Pending::of(header.content_type()?.as_text()?, statement.payload(), expires))
}
