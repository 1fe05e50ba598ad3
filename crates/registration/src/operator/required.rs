//! How many operators an action needs, and whether so many have agreed.
//!
//! One operator signs the statement. The others approve it beforehand: each approval is an entry of the log and claims a
//! guard made of content type, payload digest, expiry and the key of the operator. The statement carries the expiry as its
//! `exp`, so it is admitted only while the approvals stand, and whoever audits the log finds the same guards below it. No
//! payload is admitted twice (a revision, a number of an erasure or hold, one freeze), so approvals count once.

use std::collections::BTreeSet;

use super::OperatorRule as Rule;
use super::{Action, Pending};
use crate::answers::{Answers, Questions};
use crate::authenticate::Authenticated;
use crate::guard::Guard;
use crate::policy::{BoundKey, Contents};
use crate::record::Record;
use crate::violation::Violation;

/// How many operators must agree, by what they do: one of them signs, the others approve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Required {
    /// To a policy after the first.
    pub policy: u64,
    /// To an erasure.
    pub erasure: u64,
    /// To a freeze.
    pub freeze: u64,
    /// To a release.
    pub release: u64,
}

impl Required {
    /// One operator is enough.
    pub const ONE: Required = Required::all(1);

    /// The same number for all.
    pub const fn all(number: u64) -> Required {
        Required { policy: number, erasure: number, freeze: number, release: number }
    }

    /// Each number under its name in a policy.
    pub fn named(&self) -> [(&'static str, u64); 4] {
        [
            ("policy", self.policy),
            ("erasure", self.erasure),
            ("freeze", self.freeze),
            ("release", self.release),
        ]
    }

    /// How many operators must agree to this record. A clock correction needs one: while the log's time is ahead, the log
    /// takes no approvals.
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

/// The keys of operators, each once.
pub(crate) fn distinct(operators: &[BoundKey]) -> BTreeSet<[u8; 32]> {
    operators.iter().map(|operator| operator.key.thumbprint()).collect()
}

/// Asks for the approvals of a statement that needs some.
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

/// Refuses a statement that fewer operators agreed to than the policy demands.
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

/// The claims of the approvals that count: those of the policy's operators but the one who signed.
fn approvals_of(statement: &Authenticated<'_>, policy: &Contents) -> Vec<Guard> {
    let Some(pending) = pending(statement) else { return Vec::new() };
    let signer = statement.key().thumbprint();
    let others = distinct(&policy.operators).into_iter().filter(|operator| *operator != signer);
    others.map(|operator| pending.approval_guard(&operator)).collect()
}

/// The statement as approvals name it.
fn pending(statement: &Authenticated<'_>) -> Option<Pending> {
    let header = statement.header();
    let expires = u64::try_from(header.claims()?.exp()?).ok()?;
    Some(Pending::of(header.content_type()?.as_text()?, statement.payload(), expires))
}
