//! Number of operators who must agree to an action, and the check that they did.
//!
//! One operator signs the statement, and the others approve it beforehand: each approval is an entry of the log with a
//! guard made of content type, payload digest, expiry and the operator's key. The statement has the expiry as its
//! `exp`, so it is admitted only while the approvals are valid, and an auditor finds the same guards below it. No
//! payload is admitted twice (a revision, a number of an erasure or hold, one freeze), so an approval counts once.

use crate::answers::{Answers, Questions};
use crate::authenticated::Authenticated;
use crate::bound_key::distinct;
use crate::guard::Guard;
use crate::operator::{Action, OperatorRule as Rule, Pending};
use crate::policy::{Contents, Required};
use crate::record::Record;
use crate::violation::Violation;

/// Returns the number of operators for a record. A clock correction needs one operator: while the log's time is ahead,
/// the log admits no approvals.
fn required_for(required: &Required, record: &Record) -> u64 {
    match record {
        Record::Policy(_) => required.policy,
        Record::Erasure(_) => required.erasure,
        Record::OperatorAction(action) => match **action {
            Action::Freeze { .. } => required.freeze,
            Action::Release(_) => required.release,
            Action::Hold(_) => 1,
        },
        _ => 1,
    }
}

/// Adds the questions for the approvals that a statement requires.
pub(crate) fn approval_questions(
    statement: &Authenticated<'_>,
    record: &Record,
    policy: &Contents,
    asked: &mut Questions,
) {
    if required_for(&policy.required, record) > 1 {
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
    let required = required_for(&policy.required, record);
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
