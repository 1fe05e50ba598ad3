//! Audit records beside those that the log holds already.

use merkle::EntryDigest;
use registration::vap::AuditRule as R;
use scitt::SignedStatement;
use serde_json::json;
use testkit::{SESSION, audit_json, audit_record, decision_json, outcome_json};

use super::{breaks, keeps, statement, with};
use crate::Case;

fn bytes(statement: &SignedStatement) -> Vec<u8> {
    statement.bytes().to_vec()
}

fn decision(stream: &str, seq: u64) -> SignedStatement {
    audit_record(&decision_json(stream, seq))
}

fn outcome(seq: u64, decision: &EntryDigest) -> SignedStatement {
    audit_record(&outcome_json(SESSION, seq, decision))
}

pub fn cases() -> Vec<Case> {
    let first = decision(SESSION, 0);
    let elsewhere = decision("session-2", 0);
    let after = outcome(1, &first.digest());
    let again = audit_record(&with(outcome_json(SESSION, 2, &first.digest()), "/status", json!("unknown")));
    let closed = audit_record(&audit_json("closed", SESSION, 0));
    let other = SignedStatement::parse(statement("text/plain", "note", "a note")).unwrap();
    let required = json!({ "vap_audit": { "require_decision": true } });
    vec![
        keeps(R::SequenceUnique, "another-stream", "Every stream counts for itself.", bytes(&first))
            .log(vec![bytes(&elsewhere)]),
        keeps(R::SequenceUnique, "gap", "A gap is admitted, and shown.", bytes(&decision(SESSION, 7)))
            .log(vec![bytes(&first)]),
        breaks(R::SequenceUnique, "second", "Two records of one number.", bytes(&closed))
            .log(vec![bytes(&first)]),
        keeps(R::NoDecision, "decision", "It names a decision of its stream.", bytes(&after))
            .log(vec![bytes(&first)]),
        breaks(
            R::NoDecision,
            "another-stream",
            "It names a decision of another stream.",
            bytes(&outcome(0, &elsewhere.digest())),
        )
        .log(vec![bytes(&elsewhere)]),
        breaks(
            R::NoDecision,
            "no-record",
            "It names an entry that is no record.",
            bytes(&outcome(0, &other.digest())),
        )
        .log(vec![bytes(&other)]),
        breaks(R::NoDecision, "outcome", "It names an outcome.", bytes(&outcome(2, &after.digest())))
            .log(vec![bytes(&first), bytes(&after)]),
        keeps(R::DecisionRequired, "there", "The decision is there.", bytes(&after))
            .log(vec![bytes(&first)])
            .options(required.clone()),
        breaks(R::DecisionRequired, "not-there", "The decision is not there yet.", bytes(&after))
            .options(required),
        keeps(R::DecisionRequired, "not-asked-for", "The policy does not ask for the order.", bytes(&after)),
        keeps(R::OutcomeUnique, "first", "One outcome.", bytes(&after)).log(vec![bytes(&first)]),
        breaks(R::OutcomeUnique, "second", "A second outcome of one decision.", bytes(&again))
            .log(vec![bytes(&first), bytes(&after)]),
        breaks(
            R::OutcomeUnique,
            "second-before-decision",
            "Two outcomes of a decision that is not there.",
            bytes(&again),
        )
        .log(vec![bytes(&after)]),
    ]
}
