//! The stages of a decision about a call, in their order: AgentROA, then C1 to C5. For a call without an envelope, the
//! operator's posture says which of them apply (reading V-33).
//!
//! Omitting the envelope must not be an easy way around the checks. So, while the principal has a live session, a call
//! without an envelope is denied under every posture. A principal identified only by its signing key is unknown without
//! a message, so this does not apply to it.

use crate::cache::{VerdictKey, is_cacheable};
use crate::clarify::HumanAnswer;
use crate::rules::{Decider, Posture, Rules};
use crate::session::Session;
use vap::exact;
use vap::message::{IntentEnvelope, Message};
use vap::reason::Reason;
use vap::verdict::VerdictKind;

use super::bind::{bind, check_open};
use super::budget::{Projected, Spending, project};
use super::case::{CallCase, SemanticCheck};
use super::decision::{CallNotAdmitted, StageFinding};
use super::person::{Approved, check_approval, check_consent, check_state, repeats_counted_call};
use super::policy::{PolicyOutcome, evaluate};
use super::ruling::{Advised, Confirmation, Flag};
use super::semantic::{JudgeEffect, JudgeNeed, JudgeQuestion, RiskAssessment, judge_effect, judge_need};
use super::signals::signals;
use super::{Authority, ToolCall};

/// The stages of a decision about a call.
pub(super) const STAGES: &[fn(&mut CallCase<'_>) -> StageFinding] =
    &[authority, binding, open, envelope, scope, tool, answer, budget, risk, policy, judge, person];

/// Applies the decision of AgentROA, which comes before those of VAP (reading X-4).
fn authority(case: &mut CallCase<'_>) -> StageFinding {
    match case.call.authority {
        Authority::NotRequired => Ok(()),
        Authority::NotEnforced if case.is_advisory() => Ok(()),
        Authority::NotEnforced => Err(Reason::RoaNotEnforced.into()),
        Authority::Permitted => {
            case.draft.passed("authority_ok");
            Ok(())
        }
        Authority::Denied(reason) => Err(reason.clone().into()),
    }
}

/// C1: binds the envelope to its session.
fn binding(case: &mut CallCase<'_>) -> StageFinding {
    let received = match case.call.envelope {
        None => return Ok(()),
        Some(Err(unreadable)) => return Err(unreadable.reason.clone().into()),
        Some(Ok(received)) => received,
    };
    let (before, claimed) = (&case.call.before, case.claimed.take());
    case.session = Some(bind(case.context, received, before, &mut case.draft, claimed)?);
    Ok(())
}

/// Checks that the session is open, the message is not a replay, and the principal is not rate-limited.
fn open(case: &mut CallCase<'_>) -> StageFinding {
    match &case.session {
        Some(session) => {
            // A client repeats a call with its envelope to deliver an answer: then the state is single-use, not the
            // `jti`.
            let repeats =
                case.call.before.returned_state.as_ref().is_some_and(|state| state.ticket.is_some());
            check_open(case.context, session, case.account, case.call.replayed && !repeats)?;
        }
        None if case.account.is_rate_limited(case.context.now) => return Err(Reason::RateLimited.into()),
        None => {}
    }
    Ok(())
}

/// Checks that the declared call equals the forwarded one, as JSON values (reading V-7), or that the call may come
/// without an envelope.
fn envelope(case: &mut CallCase<'_>) -> StageFinding {
    let is_by_agent = case.session.as_ref().is_some_and(|session| !session.agreed.is_by_operator());
    if !is_by_agent && case.account.is_committed() {
        return Err(Reason::NoEnvelope.into());
    }
    if case.call.envelope.is_none() {
        let rules = case.context.rules;
        let is_unauthorized = rules.posture == Posture::Roa && *case.call.authority != Authority::Permitted;
        return match denied_to_all(rules, case.call.tool, *case.call.authority == Authority::NotEnforced) {
            Some(reason) => Err(reason.into()),
            None if is_unauthorized => Err(Reason::NoEnvelope.into()),
            None => Ok(()),
        };
    }
    let declared = &intent_of(case.call)?.call;
    let same_tool = declared.tool == case.call.tool;
    let same_header = case.call.header.is_none_or(|header| header == case.call.tool);
    if !(same_tool && same_header && exact::equal(&declared.arguments, case.call.arguments.text())) {
        return Err(Reason::CallMismatch.into());
    }
    case.draft.passed("call_ok");
    Ok(())
}

/// Returns the reason why a call of this tool without VAP is denied for every caller, if there is one. The arguments
/// are irrelevant, so the gateway need not parse them.
#[must_use]
pub fn denied_to_all(rules: &Rules, tool: &str, has_roa_envelope: bool) -> Option<Reason> {
    match rules.posture {
        Posture::Advisory | Posture::Roa => None,
        Posture::Deny | Posture::Restricted | Posture::Commitment if has_roa_envelope => {
            Some(Reason::RoaNotEnforced)
        }
        Posture::Deny | Posture::Commitment => Some(Reason::NoEnvelope),
        Posture::Restricted => (!rules.is_restricted_tool(tool)).then_some(Reason::Restricted),
    }
}

/// C2: checks the name that will be forwarded against the operator's ceiling, which may be lower than at the commitment,
/// and against the scope of the session. For a call without an envelope, [`envelope`] has checked the operator's list of
/// tools.
fn scope(case: &mut CallCase<'_>) -> StageFinding {
    if is_above_ceiling(case) && !case.is_advisory() {
        return Err(Reason::ScopeEscape.into());
    }
    match &case.session {
        Some(session) if !session.agreed.scope().allows(case.call.tool) => {
            return Err(Reason::ScopeEscape.into());
        }
        Some(_) => case.draft.passed("scope_ok"),
        None if case.is_advisory() => {}
        None if case.is_authorized_alone() => {}
        None => case.draft.passed("restricted_ok"),
    }
    Ok(())
}

/// Returns whether the tool is beyond the operator's ceiling of the route, or of the agent.
fn is_above_ceiling(case: &CallCase<'_>) -> bool {
    case.context.rules.ceiling.scopes_of(case.agent_id()).any(|scope| !scope.allows(case.call.tool))
}

/// Denies a call with a faulty tool or faulty arguments.
fn tool(case: &mut CallCase<'_>) -> StageFinding {
    let Some(fault) = case.call.tool_fault.filter(|_| !case.is_advisory()) else { return Ok(()) };
    case.draft.fault_place.clone_from(&fault.place);
    Err(fault.reason.clone().into())
}

/// Checks the answer that the client returned with a call of a session. For a call without a session, [`person`] checks
/// it, if a rule requires an answer; only a state that makes the call a repetition is used up.
fn answer(case: &mut CallCase<'_>) -> StageFinding {
    if case.session.is_none() {
        let returned = case.call.before.returned_state.as_ref().and_then(|state| state.ticket);
        if repeats_counted_call(case.context, None, case.call) {
            let nonce = returned.map(|ticket| ticket.nonce.clone());
            case.approved = Approved { counted: true, nonce, ..Approved::default() };
        }
        return Ok(());
    }
    case.approved = returned_answer(case)?;
    if case.call.replayed && case.approved.nonce.is_none() && case.call.before.approver_question.is_none() {
        return Err(Reason::Replayed.into());
    }
    Ok(())
}

/// Checks an approver's answer, or a sealed state.
fn returned_answer(case: &mut CallCase<'_>) -> Result<Approved, Reason> {
    let before = &case.call.before;
    match (&before.approver_question, before.returned_state.as_ref().and_then(|state| state.ticket)) {
        (Some(question), _) => {
            let subject = case.subject();
            check_approval(case.context, &mut case.draft, question, &subject)
        }
        (None, ticket) => {
            let expected = ticket.map(|ticket| case.ticket(ticket.purpose));
            check_state(case.context, &mut case.draft, before.returned_state.as_ref(), expected.as_ref())
        }
    }
}

/// C3: checks the budget of the session, and plans the reservation.
fn budget(case: &mut CallCase<'_>) -> StageFinding {
    let Some(session) = case.session.as_deref() else { return Ok(()) };
    let spending = Spending { tool: case.call.tool, counted: !case.approved.counted };
    match project(case.context, session, case.account, spending) {
        Projected::Fits(reservation) => case.reservation = Some(reservation),
        Projected::Waits => return Err(CallNotAdmitted::Wait),
        Projected::Denied(reason) => return Err(reason.into()),
    }
    case.draft.passed("budget_ok");
    Ok(())
}

/// Computes the risk score of a call of a session, for the operator's rules and the judge. It is recorded even if
/// neither reads it (reading V-28).
fn risk(case: &mut CallCase<'_>) -> StageFinding {
    let (Some(session), Some(reservation)) = (&case.session, &case.reservation) else { return Ok(()) };
    let rules = case.context.rules;
    let declared = intent_of(case.call)?.intent.sensitivity;
    let sensitivity = rules.sensitivities.of(case.call.tool, declared);
    let signals = signals(case.context, session, sensitivity, case.hashes().recurrence(session), reservation);
    let assessment = RiskAssessment { sensitivity, signals, risk: signals.weigh(&rules.risk) };
    if declared.is_some() && declared != sensitivity {
        case.draft.flags.push(Flag::SensitivityRaised);
    }
    case.draft.risk = Some(assessment.risk.score);
    case.assessment = Some(assessment);
    Ok(())
}

/// C4: evaluates the operator's rules.
fn policy(case: &mut CallCase<'_>) -> StageFinding {
    case.draft.has_rules = !case.context.rules.policy.is_empty();
    if case.is_advisory() {
        return Ok(());
    }
    let in_session = case.session.is_some();
    match evaluate(case.context.rules, case.rule_input()) {
        PolicyOutcome::Denied(reason) => return Err(reason.into()),
        PolicyOutcome::Confirm(name, by) => case.confirm = Some((Reason::Policy(name), by)),
        PolicyOutcome::Allowed(Some(name)) if in_session => case.draft.passed(&Reason::Policy(name).as_str()),
        PolicyOutcome::Allowed(None) if in_session && case.draft.has_rules => case.draft.passed("policy_ok"),
        PolicyOutcome::Allowed(_) => {}
    }
    Ok(())
}

/// Returns the decision that the operator's rules would have made about a call under [`Posture::Advisory`].
pub(super) fn advised(case: &CallCase<'_>) -> Advised {
    let denied = |reason| Advised { verdict: VerdictKind::Denied, reason: Some(reason) };
    if *case.call.authority == Authority::NotEnforced {
        return denied(Reason::RoaNotEnforced);
    }
    if is_above_ceiling(case) {
        return denied(Reason::ScopeEscape);
    }
    if let Some(fault) = case.call.tool_fault {
        return denied(fault.reason.clone());
    }
    match evaluate(case.context.rules, case.rule_input()) {
        PolicyOutcome::Allowed(_) => Advised { verdict: VerdictKind::Served, reason: None },
        PolicyOutcome::Confirm(name, _) => {
            Advised { verdict: VerdictKind::Clarify, reason: Some(Reason::Policy(name)) }
        }
        PolicyOutcome::Denied(reason) => denied(reason),
    }
}

/// C5: asks the judge if needed. If a human has answered about the call, the judge was asked before.
fn judge(case: &mut CallCase<'_>) -> StageFinding {
    let (Some(session), Some(assessment)) = (case.session.as_deref(), case.assessment) else { return Ok(()) };
    let key = verdict_key(case, session);
    let rules = case.context.rules.judge.as_ref();
    if let Some(judged) = case.call.before.judged {
        case.draft.judged = Some(judged);
        match judge_effect(rules, &judged) {
            JudgeEffect::Denied(reason) => return Err(reason.into()),
            JudgeEffect::Unsure => case.semantic.unsure = true,
            JudgeEffect::Consistent => {
                case.draft.passed("intent_consistent");
                let (consistent, until) = (Some(key), keep_until(case, &assessment));
                case.semantic = SemanticCheck { consistent, until, ..SemanticCheck::default() };
            }
        }
        return Ok(());
    }
    if case.approved.by.is_some() || case.call.before.answer.is_some() {
        return Ok(());
    }
    match judge_need(case.context, session, key, &assessment) {
        JudgeNeed::NotNeeded => {}
        JudgeNeed::Cached(until) => {
            case.draft.is_cached = true;
            case.draft.passed("intent_remembered");
            case.semantic.until = Some(until);
        }
        JudgeNeed::OverBudget(trigger) => {
            case.draft.trigger = Some(trigger);
            return Err(Reason::JudgeBudget.into());
        }
        JudgeNeed::Needed(trigger) => {
            let question = JudgeQuestion::about_call(trigger, session, intent_of(case.call)?);
            if let Some(reservation) = &mut case.reservation {
                reservation.judge = rules.map(|judge| judge.reserve).unwrap_or_default();
            }
            return Err(CallNotAdmitted::Judge(Box::new(question)));
        }
    }
    Ok(())
}

/// Returns the cache key of a verdict about this call.
fn verdict_key(case: &CallCase<'_>, session: &Session) -> VerdictKey {
    VerdictKey::of(
        session.agreed.digest().as_str(),
        case.call.tool,
        &case.call.arguments.canonical().bytes,
        &case.context.rules.policy_digest,
    )
}

/// Returns the cache expiry of a verdict about this call in Unix seconds; `None` if it must not be cached.
fn keep_until(case: &CallCase<'_>, assessment: &RiskAssessment) -> Option<i64> {
    let judge = case.context.rules.judge.as_ref().filter(|_| is_cacheable(assessment.sensitivity))?;
    let until = case.context.now.checked_add(judge.cache_for).ok()?.as_second();
    Some(until).filter(|until| *until > case.context.now.as_second())
}

/// Requires the answer of a human if a rule requires one or the judge is uncertain (reading V-26).
fn person(case: &mut CallCase<'_>) -> StageFinding {
    let usual = case.context.rules.approvals.confirmations;
    let unsure = case.semantic.unsure.then_some((Reason::ConfirmationRequired, usual));
    let required = case.confirm.take().or(unsure);
    if case.session.is_none() {
        return match (required, case.call.before.answer) {
            (Some((reason, by)), _) => person_without_session(case, reason, by),
            (None, Some(answer)) => Ok(check_client_answer(case, answer, usual)?),
            (None, None) => Ok(()),
        };
    }
    let by = required.as_ref().map_or(usual, |(_, by)| *by);
    match (case.approved.by, case.call.before.answer, required) {
        (None, None, None) => return Ok(()),
        (None, Some(answer), _) => check_client_answer(case, answer, by)?,
        // An answer of the client does not replace an approver's signature.
        (None, None, Some((reason, by))) => return Err(CallNotAdmitted::Ask(reason, by)),
        (Some(Decider::Client), _, Some((reason, Decider::Approver))) => {
            return Err(CallNotAdmitted::Ask(reason, Decider::Approver));
        }
        (Some(_), _, _) => {}
    }
    case.draft.passed("confirmed");
    Ok(())
}

/// Requires the answer of a human about a call without a session.
fn person_without_session(case: &mut CallCase<'_>, reason: Reason, by: Decider) -> StageFinding {
    case.approved = returned_answer(case)?;
    match (case.approved.by, case.call.before.answer) {
        (Some(approved), _) if approved == Decider::Approver || by == Decider::Client => {
            case.draft.passed("confirmed");
            Ok(())
        }
        (_, Some(answer)) => Ok(check_client_answer(case, answer, by)?),
        (_, None) => Err(CallNotAdmitted::Ask(reason, by)),
    }
}

/// Checks the answer of the client's user.
fn check_client_answer(case: &mut CallCase<'_>, answer: HumanAnswer, by: Decider) -> Result<(), Reason> {
    case.draft.confirmation = Some(Confirmation::Client(answer));
    check_consent(Some(answer))?;
    match by {
        Decider::Client => Ok(()),
        // The rules changed while the client was asked: now an approver has to answer.
        Decider::Approver => Err(Reason::ApprovalUnavailable),
    }
}

/// Returns the envelope of a call.
fn intent_of<'a>(call: &ToolCall<'a>) -> Result<&'a IntentEnvelope, Reason> {
    let Some(Ok(received)) = call.envelope else { return Err(Reason::NoEnvelope) };
    match &received.message {
        Message::IntentEnvelope(envelope) => Ok(envelope),
        Message::ScopeCommitment(_) | Message::ScopeAmendment(_) => Err(Reason::WrongCarrier),
    }
}
