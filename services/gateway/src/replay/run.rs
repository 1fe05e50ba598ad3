//! Replay of a recorded session: every decision is made again, and compared with the recorded one.

use std::str::FromStr;

use admission::arguments::CallArguments;
use admission::authenticated::Authenticated;
use admission::decide::{Advised, Authority, JudgeFinding, ToolCall};
use admission::principal::Caller;
use admission::rules::AuthorityDemand;
use evidence::{RecordKind, StoredRecord};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use vap::audit::{AuditKind, AuditRecord, Decided, Outcome};
use vap::message::slot::{self, Carrier};
use vap::message::{MessageType, UNBOUND};
use vap::reason::Reason;
use vap::verdict::VerdictKind;

use super::ReplayError;
use super::replayed_session::{RecordedRounds, ReplayResult, ReplayedSession};
use crate::annex::{
    ApproverQuestionInputs, DecisionAnnex, DecisionInputs, JudgeOpinion, NotWhole, OutcomeAnnex,
    RecordedInputs, Text, whole,
};

/// A verdict and its reason, as words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VerdictWords {
    /// `served`, `downgraded`, `clarify` or `denied`.
    pub verdict: String,
    /// The code of the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The reason in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub because: Option<&'static str>,
}

/// A recorded decision and its replay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReplayedDecision {
    /// The sequence number of the record in its stream.
    pub seq: u64,
    /// Time of the decision.
    pub at: String,
    /// `commitment`, `amendment` or `decision`.
    pub kind: &'static str,
    /// The tool's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The recorded decision.
    pub then: VerdictWords,
    /// The replayed decision; `None` if there is none.
    pub now: Option<VerdictWords>,
    /// The recorded decision of the rules, if the posture `advisory` let the call through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advised_then: Option<VerdictWords>,
    /// The replayed decision of the rules, if the posture `advisory` lets the call through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advised_now: Option<VerdictWords>,
    /// The reason why there is no replayed decision, or a remark.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The question that was put to approvers, with its signed answer: `tabellion gateway approval verify` checks it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<Value>,
    /// `true` if the replayed decision differs from the recorded one.
    pub differs: bool,
}

/// Replays every record, in order.
///
/// # Errors
/// [`ReplayError::Record`] if a record cannot be read, and [`ReplayError::Forgotten`] if one is missing.
pub fn replay(
    again: &mut ReplayedSession,
    records: &[StoredRecord],
) -> Result<Vec<ReplayedDecision>, ReplayError> {
    check_no_record_is_missing(records)?;
    let mut compared = Vec::new();
    for stored in records {
        match stored.record.kind {
            RecordKind::Commitment | RecordKind::Amendment | RecordKind::Decision => {
                compared.push(decision(again, stored)?);
            }
            RecordKind::Outcome => outcome(again, stored)?,
            RecordKind::Closed => again.close(),
            RecordKind::Denials
            | RecordKind::Tools
            | RecordKind::Keys
            | RecordKind::Receipt
            | RecordKind::Chain => {}
        }
    }
    Ok(compared)
}

/// Checks that the records are numbered from 0. A record that the log refused is kept for longer than those after it, so
/// that one may also be missing in between.
fn check_no_record_is_missing(records: &[StoredRecord]) -> Result<(), ReplayError> {
    let mut numbered = (0..).zip(records.iter().map(|stored| &stored.record));
    match numbered.find(|(number, record)| record.seq != *number) {
        None => Ok(()),
        Some((_, record)) => Err(ReplayError::Forgotten(record.stream.clone(), record.seq)),
    }
}

fn decision(again: &mut ReplayedSession, stored: &StoredRecord) -> Result<ReplayedDecision, ReplayError> {
    let record = &stored.record;
    let annex = DecisionAnnex::read(stored).map_err(|error| unreadable(stored, &error))?;
    let audit = audit_record(stored)?;
    let recorded = audit.kind.decided().ok_or_else(|| unreadable(stored, &"it is not a decision"))?;
    let at = i64::try_from(record.at).ok().and_then(|at| Timestamp::from_second(at).ok());
    let at = at.unwrap_or(Timestamp::MAX);
    let (inputs, now) = match annex.inputs.as_ref() {
        Some(RecordedInputs::LateDenial { .. }) => (None, Err(NotReplayable::DeniedAfterwards)),
        Some(RecordedInputs::Partial(_)) | None => (None, Err(NotReplayable::NotWhole)),
        Some(RecordedInputs::Decision(inputs)) => {
            let arguments = annex.arguments.as_ref();
            (Some(&**inputs), decided_again(again, stored, arguments, inputs, (at, recorded)))
        }
    };
    let tool = inputs.and_then(|inputs| whole(inputs.tool.as_ref()).ok().flatten().map(str::to_owned));
    // A denial changes the session too, as one more in a row; one of a rate-limited principal does not.
    let reason = recorded.verification.reason.as_deref();
    let is_rate_limited = reason.is_some_and(|code| code == Reason::RateLimited.as_str());
    let may_change_session =
        recorded.verdict.is_permit() || (matches!(now, Err(NotReplayable::NotWhole)) && !is_rate_limited);
    let mut compared = compare(stored, tool, at, recorded, now);
    compared.approval = inputs.and_then(|inputs| serde_json::to_value(inputs.put.as_ref()?).ok());
    let is_of_session = !record.stream.starts_with(UNBOUND);
    if compared.now.is_none() && may_change_session && is_of_session {
        again.set_unknown_after(record.seq);
    }
    Ok(compared)
}

/// Reason why a decision cannot be replayed.
#[derive(Clone, Copy, Debug, thiserror::Error)]
enum NotReplayable {
    #[error("the texts of the messages were not kept whole")]
    NotWhole,
    #[error("the message could not be read")]
    Unreadable,
    #[error("it is about a request that is not a call")]
    NoCall,
    #[error("it depends on a session that has its own records")]
    OfAnotherSession,
    #[error("the call was admitted, and denied since the log gave no receipt")]
    DeniedAfterwards,
    #[error("it depends on record {0}, which cannot be decided again")]
    Follows(u64),
    #[error("the route requires a delegation chain (AgentROA), and no decision about one was recorded")]
    NoAuthority,
    #[error("the route does not enforce AgentROA, and it was not recorded whether the call had a chain")]
    UnknownChain,
}

impl From<NotWhole> for NotReplayable {
    fn from(_: NotWhole) -> Self {
        Self::NotWhole
    }
}

/// Replays a decision, if all its inputs were kept.
fn decided_again(
    again: &mut ReplayedSession,
    stored: &StoredRecord,
    arguments: Option<&Text>,
    inputs: &DecisionInputs,
    (recorded_at, recorded): (Timestamp, &Decided),
) -> Result<ReplayResult, NotReplayable> {
    if let Some(seq) = again.unknown_after() {
        return Err(NotReplayable::Follows(seq));
    }
    if inputs.unreadable {
        return Err(NotReplayable::Unreadable);
    }
    if inputs.method.is_some() {
        return Err(NotReplayable::NoCall);
    }
    let caller = inputs.caller();
    let message = whole(inputs.message.as_ref())?;
    if message.is_some() && stored.record.stream.starts_with(UNBOUND) {
        return Err(NotReplayable::OfAnotherSession);
    }
    let rounds = rounds_of(inputs, &caller, recorded_at, recorded);
    let (carrier, kind) = match stored.record.kind {
        RecordKind::Commitment => (Carrier::ToolsList, Some(MessageType::ScopeCommitment)),
        RecordKind::Amendment => (Carrier::Amend, Some(MessageType::ScopeAmendment)),
        _ => (Carrier::ToolsCall, None),
    };
    let read = slot::read(message, None, carrier).transpose();
    let read = read.map(|read| {
        read.map(|received| match inputs.by_operator {
            true => Authenticated::by_operator(received),
            false => again.authenticated(&inputs.route, received),
        })
    });
    let message = read.as_ref().map(|read| read.as_ref().map_err(|unreadable| &**unreadable));
    Ok(match (kind, message) {
        (Some(kind), Some(message)) => again.declare(kind, &rounds, &inputs.declaration(message)),
        (Some(_), None) => ReplayResult::NoRoute,
        (None, envelope) => {
            let arguments = inputs.arguments.as_ref().or(arguments);
            let arguments = CallArguments::new(whole(arguments)?.unwrap_or("{}"));
            let Some(rules) = again.rules(&inputs.route) else { return Ok(ReplayResult::NoRoute) };
            let had_receipt = recorded.aer_id.is_some();
            let authority = authority_under(rules.authority.demand, &inputs.authority, had_receipt)?;
            let call = ToolCall { authority: &authority, ..inputs.call(envelope, &arguments)? };
            again.call(&rounds, &call, Some(&stored.record.id.to_string()))
        }
    })
}

/// Returns the decision of AgentROA on a route with this demand. The chain is not decided again: its registry and the use of
/// its envelope are not kept. `had_receipt` if the recorded decision has an execution receipt: then the route required
/// chains or was advisory, with or without a chain.
fn authority_under(
    demand: AuthorityDemand,
    recorded: &Authority,
    had_receipt: bool,
) -> Result<Authority, NotReplayable> {
    match (demand, recorded) {
        (AuthorityDemand::Advisory, _) => Ok(Authority::NotRequired),
        (AuthorityDemand::Required, Authority::NotRequired | Authority::NotEnforced) => {
            Err(NotReplayable::NoAuthority)
        }
        (AuthorityDemand::Off, Authority::Permitted) => Ok(Authority::NotEnforced),
        (AuthorityDemand::Off, Authority::Denied(_)) => Err(NotReplayable::UnknownChain),
        (AuthorityDemand::Off, Authority::NotRequired) if had_receipt => Err(NotReplayable::UnknownChain),
        (AuthorityDemand::Off | AuthorityDemand::Required, _) => Ok(recorded.clone()),
    }
}

fn rounds_of<'a>(
    inputs: &'a DecisionInputs,
    caller: &'a Caller,
    recorded_at: Timestamp,
    recorded: &'a Decided,
) -> RecordedRounds<'a> {
    let now = Timestamp::from_millisecond(inputs.at).unwrap_or(recorded_at);
    RecordedRounds {
        first: inputs.first_at.and_then(|at| Timestamp::from_millisecond(at).ok()).unwrap_or(now),
        sample: inputs.sample,
        opinion: inputs.judge.as_ref().map(JudgeOpinion::semantic),
        presumed: presumed_finding(recorded),
        policy_digest: &recorded.policy_digest,
        answer: inputs.answer,
        put: inputs.put.as_ref().map(ApproverQuestionInputs::to_question),
        of_these_rules: inputs.state.as_ref().is_some_and(|state| state.of_these_rules),
        held_for_others: &inputs.held_for_others,
        account: inputs.account.as_ref(),
        ..RecordedRounds::new(&inputs.route, caller, now)
    }
}

/// Returns the presumed finding of a judge that was not asked. It agrees with the recorded verdict, unless that was the
/// answer of a person, who is asked after the judge.
fn presumed_finding(recorded: &Decided) -> JudgeFinding {
    let reason = recorded.verification.reason.as_deref().and_then(|code| Reason::from_str(code).ok());
    match recorded.verdict {
        VerdictKind::Denied if !reason.as_ref().is_some_and(is_about_person) => JudgeFinding::Inconsistent,
        _ => JudgeFinding::Consistent,
    }
}

/// Returns whether a reason is about a person's answer (V-26).
const fn is_about_person(reason: &Reason) -> bool {
    matches!(
        reason,
        Reason::ConfirmationRequired
            | Reason::Declined
            | Reason::ApprovalRequired
            | Reason::ApprovalDenied
            | Reason::ApprovalUnavailable
            | Reason::InvalidApproval
            | Reason::Unanswered
            | Reason::InvalidState
    )
}

fn compare(
    stored: &StoredRecord,
    tool: Option<String>,
    at: Timestamp,
    recorded: &Decided,
    now: Result<ReplayResult, NotReplayable>,
) -> ReplayedDecision {
    let then = VerdictWords::of(recorded.verdict.as_str(), recorded.verification.reason.clone());
    let advised_then = recorded.advised.as_ref();
    let advised_then = advised_then.map(|then| VerdictWords::of(then.verdict.as_str(), then.reason.clone()));
    let advised_now = match &now {
        Ok(ReplayResult::Ruled(ruling)) => ruling.advised.as_ref().map(VerdictWords::advised),
        _ => None,
    };
    let (now, note) = match now {
        Err(why) => (None, Some(format!("it cannot be decided again: {why}"))),
        Ok(now) => described(now),
    };
    let differs = now.as_ref().is_some_and(|now| *now != then || advised_now != advised_then);
    ReplayedDecision {
        seq: stored.record.seq,
        at: at.to_string(),
        kind: stored.record.kind.as_str(),
        tool,
        then,
        now,
        advised_then,
        advised_now,
        note,
        approval: None,
        differs,
    }
}

/// Returns the decision, and a remark for [`ReplayedDecision::note`].
fn described(now: ReplayResult) -> (Option<VerdictWords>, Option<String>) {
    match now {
        ReplayResult::Ruled(ruling) => {
            let reason = ruling.reason.as_ref();
            (Some(VerdictWords::of(ruling.verdict.verdict.as_str(), reason.map(Reason::to_string))), None)
        }
        ReplayResult::Waits => (None, Some("it would wait for the cost of another call (V-12)".to_owned())),
        ReplayResult::Asks(question) => {
            (Some(VerdictWords::of("clarify", None)), Some(format!("a person is asked: {question}")))
        }
        ReplayResult::NoRoute => {
            (None, Some("it cannot be decided again: there is no such route".to_owned()))
        }
    }
}

fn outcome(again: &mut ReplayedSession, stored: &StoredRecord) -> Result<(), ReplayError> {
    let annex = OutcomeAnnex::read(stored).map_err(|error| unreadable(stored, &error))?;
    let AuditKind::Outcome(Outcome { decision, status, .. }) = audit_record(stored)?.kind else {
        return Err(unreadable(stored, &"it is not an outcome"));
    };
    // A cost that was cut in the annex is longer than any valid one.
    let [tool, cost] = [&annex.tool, &annex.cost].map(|text| whole(text.as_ref()).ok().flatten());
    again.settle(&decision.to_string(), status, tool.unwrap_or_default(), cost);
    Ok(())
}

fn unreadable(stored: &StoredRecord, why: &impl std::fmt::Display) -> ReplayError {
    ReplayError::Record { seq: stored.record.seq, why: why.to_string() }
}

/// Returns the record, as the log has it.
fn audit_record(stored: &StoredRecord) -> Result<AuditRecord, ReplayError> {
    let statement = scitt::SignedStatement::parse(stored.record.statement.clone())
        .map_err(|error| unreadable(stored, &error))?;
    let payload = statement.payload().ok_or_else(|| unreadable(stored, &"its statement holds no record"))?;
    AuditRecord::read(payload).map_err(|broken| unreadable(stored, &broken))
}

impl VerdictWords {
    /// The decision of the rules.
    pub(super) fn advised(advised: &Advised) -> Self {
        Self::of(advised.verdict.as_str(), advised.reason.as_ref().map(Reason::to_string))
    }

    /// A verdict and its reason, with the reason in words.
    #[must_use]
    pub fn of(verdict: &str, reason: Option<String>) -> Self {
        let known = reason.as_deref().and_then(|code| Reason::from_str(code).ok());
        let because = known.as_ref().map(|reason| admission::explain::explain(reason).what);
        Self { verdict: verdict.to_owned(), reason, because }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorded_decision_about_a_chain_counts_as_the_route_treats_chains_now() {
        let denied = Authority::Denied(Reason::RoaNotEnforced);
        let under = |demand, recorded: &Authority| authority_under(demand, recorded, false).ok();
        for recorded in [Authority::NotRequired, Authority::NotEnforced, Authority::Permitted, denied.clone()]
        {
            assert_eq!(under(AuthorityDemand::Advisory, &recorded), Some(Authority::NotRequired));
        }
        for (recorded, off, required) in [
            (Authority::NotRequired, Some(Authority::NotRequired), None),
            (Authority::NotEnforced, Some(Authority::NotEnforced), None),
            (Authority::Permitted, Some(Authority::NotEnforced), Some(Authority::Permitted)),
            (denied.clone(), None, Some(denied.clone())),
        ] {
            assert_eq!(under(AuthorityDemand::Off, &recorded), off, "{recorded:?}");
            assert_eq!(under(AuthorityDemand::Required, &recorded), required, "{recorded:?}");
        }
    }

    #[test]
    fn a_call_of_an_advisory_route_may_have_had_a_chain_which_a_route_without_agentroa_denies() {
        let advisory = |demand| authority_under(demand, &Authority::NotRequired, true).ok();
        assert_eq!(advisory(AuthorityDemand::Off), None);
        assert_eq!(advisory(AuthorityDemand::Advisory), Some(Authority::NotRequired));
        assert_eq!(advisory(AuthorityDemand::Required), None);
    }

    #[test]
    fn a_call_with_a_permitted_chain_is_decided_again_on_a_route_without_agentroa() {
        let required = authority_under(AuthorityDemand::Off, &Authority::Permitted, true).ok();
        assert_eq!(required, Some(Authority::NotEnforced));
    }
}
