//! Policy options for audit records, `[type.vap_audit]`, and checks that involve the log.

use serde_json::{Value, json};

use super::audit::{AuditKind, AuditRecord, Outcome};
use super::audit_rule::AuditRule;
use crate::answers::{Answers, Questions};
use crate::authenticate::Authenticated;
use crate::decision::{Bound, Permit, TimeWindow};
use crate::guard::{Guard, GuardKind};
use crate::limits::CLOCK_SKEW;
use crate::policy::section::{Section, switch};
use crate::violation::{Place, RuleName, Violation};

/// Policy options for audit records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditOptions {
    /// True to refuse an outcome until its decision is in the log (reading A-4). The default is false: a gateway may
    /// repeat and reorder its records, and without the outcome the call would seem not to have run.
    pub require_decision: bool,
}

impl AuditOptions {
    /// Parses the policy's table `[type.vap_audit]`.
    pub(crate) fn read(section: &mut Section<'_>) -> Self {
        AuditOptions { require_decision: section.optional("require_decision", switch).unwrap_or(false) }
    }

    /// Serializes the table with every option.
    pub(crate) fn document(&self) -> Value {
        json!({ "require_decision": self.require_decision })
    }
}

/// The guard of a sequence number in a gateway's stream.
pub fn sequence_guard(gateway: &str, stream: &str, seq: u64) -> Guard {
    Guard::new(GuardKind::AuditSequence, &[gateway.as_bytes(), stream.as_bytes(), &seq.to_be_bytes()])
}

/// Adds the questions of an outcome: whether the log contains its decision, and whether that entry is a decision of
/// this stream.
pub(crate) fn questions(record: &AuditRecord, asked: &mut Questions) {
    if let AuditKind::Outcome(outcome) = &record.kind {
        asked.digests.push(outcome.decision);
        asked.guards.push(place(record, outcome));
    }
}

/// Checks an audit record against its claims and the policy's options, and adds its conditions to the permit.
pub(crate) fn check(
    options: &AuditOptions,
    statement: &Authenticated<'_>,
    record: &AuditRecord,
    log: &Answers,
    permit: &mut Permit,
) -> Result<(), Violation> {
    record.agrees(statement.iss(), statement.sub())?;
    permit.bounds.push(Bound {
        rule: RuleName::fixed(AuditRule::AtFuture.name()),
        place: Place::payload("/at"),
        window: TimeWindow::from(record.at.saturating_sub(CLOCK_SKEW)),
    });
    let stream = [record.gateway.as_bytes(), record.stream.as_bytes()];
    permit
        .guards
        .push(Guard::new(GuardKind::AuditSequence, &[stream[0], stream[1], &record.seq.to_be_bytes()]));
    match &record.kind {
        AuditKind::Decision(_) => permit.guards.push(Guard::new(
            GuardKind::AuditDecision,
            &[stream[0], stream[1], statement.digest().as_bytes()],
        )),
        AuditKind::Outcome(outcome) => check_outcome(options, record, outcome, log, permit)?,
        AuditKind::Commitment(_)
        | AuditKind::Amendment(_)
        | AuditKind::Denials(_)
        | AuditKind::Tools(_)
        | AuditKind::Closed => {}
    }
    Ok(())
}

fn check_outcome(
    options: &AuditOptions,
    record: &AuditRecord,
    outcome: &Outcome,
    log: &Answers,
    permit: &mut Permit,
) -> Result<(), Violation> {
    let is_decision = log.guard(&place(record, outcome)).is_some();
    permit.learned.insert("decision_known".to_owned(), is_decision.into());
    match log.entry(&outcome.decision) {
        Some(_) if !is_decision => {
            let detail = "that entry is no decision of this gateway in this stream";
            return Err(AuditRule::NoDecision.in_payload("/backLink", detail));
        }
        None if options.require_decision => {
            let detail = "the policy takes an outcome after its decision, which is not in the log";
            return Err(AuditRule::DecisionRequired.in_payload("/backLink", detail));
        }
        None => permit.relied_absent.push(outcome.decision),
        Some(_) => {}
    }
    permit
        .guards
        .push(Guard::new(GuardKind::Outcome, &[record.gateway.as_bytes(), outcome.decision.as_bytes()]));
    Ok(())
}

/// The guard that a decision of this stream adds for its outcome.
fn place(record: &AuditRecord, outcome: &Outcome) -> Guard {
    Guard::new(
        GuardKind::AuditDecision,
        &[record.gateway.as_bytes(), record.stream.as_bytes(), outcome.decision.as_bytes()],
    )
}
