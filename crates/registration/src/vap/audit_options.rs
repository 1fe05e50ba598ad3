//! Policy options for audit records, `[type.vap_audit]`, and checks that involve the log.

use merkle::EntryDigest;
use serde_json::{Value, json};
use vap::audit::{AuditKind, AuditRecord, AuditRule, Outcome};

use super::audit::{AuditStatement, violation};
use crate::answers::{Answers, Questions};
use crate::authenticated::Authenticated;
use crate::demands::PermitDemands;
use crate::guard::{Guard, GuardKind};
use crate::limits::CLOCK_SKEW;
use crate::section::{Section, switch};
use crate::time_window::{Bound, TimeWindow};
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
pub(crate) fn questions(statement: &AuditStatement, asked: &mut Questions) {
    let record = &statement.record;
    if let AuditKind::Outcome(outcome) = &record.kind {
        asked.digests.push(outcome.decision);
        asked.guards.push(decision_guard(record, &outcome.decision));
    }
}

/// Checks an audit record against its claims and the policy's options, and returns its demands.
pub(crate) fn check(
    options: &AuditOptions,
    statement: &Authenticated<'_>,
    audit: &AuditStatement,
    log: &Answers,
) -> Result<PermitDemands, Violation> {
    audit.agrees(statement.iss(), statement.sub())?;
    let record = &audit.record;
    let mut demands = match &record.kind {
        AuditKind::Outcome(outcome) => check_outcome(options, record, outcome, log)?,
        AuditKind::Decision(_)
        | AuditKind::Commitment(_)
        | AuditKind::Amendment(_)
        | AuditKind::Denials(_)
        | AuditKind::Tools(_)
        | AuditKind::Closed => PermitDemands::default(),
    };
    demands.bounds.push(Bound {
        rule: RuleName::fixed(AuditRule::AtFuture.name()),
        place: Place::payload("/at"),
        window: TimeWindow::from(record.at.saturating_sub(CLOCK_SKEW)),
    });
    // The sequence number comes first, so that a record that breaks both rules is refused for it.
    demands.guards.insert(0, sequence_guard(&record.gateway, &record.stream, record.seq));
    if let AuditKind::Decision(_) = &record.kind {
        demands.guards.push(decision_guard(record, &statement.digest()));
    }
    Ok(demands)
}

fn check_outcome(
    options: &AuditOptions,
    record: &AuditRecord,
    outcome: &Outcome,
    log: &Answers,
) -> Result<PermitDemands, Violation> {
    let is_decision = log.guard(&decision_guard(record, &outcome.decision)).is_some();
    let relied_absent = match log.entry(&outcome.decision) {
        Some(_) if !is_decision => {
            let detail = "that entry is not a decision of this gateway in this stream";
            return Err(violation(AuditRule::NoDecision, "/backLink", detail));
        }
        None if options.require_decision => {
            let detail = "the policy takes an outcome after its decision, which is not in the log";
            return Err(violation(AuditRule::DecisionRequired, "/backLink", detail));
        }
        None => vec![outcome.decision],
        Some(_) => Vec::new(),
    };
    let parts = [record.gateway.as_bytes(), outcome.decision.as_bytes()];
    let guards = vec![Guard::new(GuardKind::Outcome, &parts)];
    Ok(PermitDemands { guards, relied_absent, ..PermitDemands::fact("decision_known", is_decision.into()) })
}

/// The guard of a decision in a gateway's stream, which the check of its outcome looks up.
fn decision_guard(record: &AuditRecord, decision: &EntryDigest) -> Guard {
    let parts = [record.gateway.as_bytes(), record.stream.as_bytes(), decision.as_bytes()];
    Guard::new(GuardKind::AuditDecision, &parts)
}
