//! Decisions about tool calls: the stages run, and their result becomes a permit, a question or a refusal.

use jiff::Timestamp;

use crate::clarify::{self, HumanQuestion, Purpose, SealedCall};
use crate::principal::Era;
use crate::rules::Decider;
use crate::session::{Account, Ledgers, Session, Stage};
use vap::message::Deadline;
use vap::reason::Reason;
use vap::verdict::{Downgrade, VerdictKind};

use super::bind::count_denied;
use super::case::CallCase;
use super::decision::{CallDecision, CallNotAdmitted, CallPermit, CallQuestion, EveryStagePassed, run};
use super::person::{approval_question, awaiting_answer};
use super::ruling::VerdictDelivery;
use super::stages::{STAGES, advised};
use super::{DecisionContext, DecisionState, ToolCall};

/// Decides about a call. Reservations of an earlier decision are released first, and all checks run again.
pub fn call(context: &DecisionContext<'_>, state: DecisionState<'_>, call: &ToolCall<'_>) -> CallDecision {
    let DecisionState { session, account } = state;
    end_question(session.as_mut(), account, call);
    let mut case = CallCase::new(context, session.as_mut(), account, call);
    match run(STAGES, &mut case) {
        Ok(proof) => admit(case, proof),
        Err(CallNotAdmitted::Wait) => CallDecision::Wait,
        Err(CallNotAdmitted::Judge(question)) => {
            let held = case.reserve(Stage::Asking);
            CallDecision::Ask { question: CallQuestion::Judge(question), held }
        }
        Err(CallNotAdmitted::Ask(reason, Decider::Client)) => {
            let can_ask = case.call.can_ask;
            let question = human_question(&case, case.ticket(Purpose::Question));
            ask(case, question, can_ask, reason)
        }
        Err(CallNotAdmitted::Ask(reason, Decider::Approver)) => match approver_question(&case, &reason) {
            Ok(question) => ask(case, question, true, reason),
            Err(reason) => refuse(case, reason),
        },
        Err(CallNotAdmitted::Denied(reason)) => refuse(case, reason),
    }
}

/// Ends an earlier question: releases its reservation, and adds the cost of the judge's answer once.
fn end_question(session: Option<&mut Session>, account: &mut Account, call: &ToolCall<'_>) {
    let Some(session) = session else { return };
    if let Some(held) = call.before.held {
        Ledgers::of(session, account).release(held);
    }
    if let Some(judged) = call.before.judged.filter(|_| call.before.answer.is_none()) {
        session.running.bill_judge(judged.cost);
    }
}

fn refuse(mut case: CallCase<'_>, reason: Reason) -> CallDecision {
    if let Some(session) = case.session.as_deref() {
        case.draft.set_meters(case.context.rules, session);
    }
    count_denied(case.context, case.session, case.account, &reason);
    CallDecision::Refuse(Box::new(case.draft.rule(case.context.rules, VerdictKind::Denied, Some(reason))))
}

/// Admits the call: reserves its cost, stores its hashes, and rules that it is forwarded.
fn admit(mut case: CallCase<'_>, proof: EveryStagePassed) -> CallDecision {
    let rules = case.context.rules;
    let advised = case.is_advisory().then(|| advised(&case));
    let ticket = case.ticket(Purpose::Upstream);
    let ticket = SealedCall { approved: case.approved.by == Some(Decider::Approver), ..ticket };
    let reservation = case.reserve(Stage::Admitted);
    remember(&mut case);
    case.approved.claim(&mut case.draft);
    let is_restricted = case.session.is_none() && advised.is_none() && !case.is_authorized_alone();
    if let Some(session) = case.session.as_deref() {
        case.draft.set_meters(rules, session);
    }
    if advised.is_some() {
        case.draft.delivery = VerdictDelivery::NotSent;
    }
    let mut ruling = match is_restricted {
        true => case.draft.rule(rules, VerdictKind::Downgraded, Some(Reason::Restricted)),
        false => case.draft.rule(rules, VerdictKind::Served, None),
    };
    if is_restricted {
        let note = Some("served in restricted mode: the call carried no VAP".to_owned());
        ruling.verdict.downgrade = Some(Downgrade { applied_scope: None, note });
    }
    let until = case.semantic.until.and_then(|until| Timestamp::from_second(until).ok());
    ruling.verdict.expires_at = until.map(Deadline::from);
    ruling.ticket = advised.is_none().then(|| Box::new(ticket));
    ruling.advised = advised;
    CallDecision::Admit(CallPermit::new(proof, reservation), Box::new(ruling))
}

/// Adds an admitted call to the recent ones of its session, and the judge's verdict to the cache.
fn remember(case: &mut CallCase<'_>) {
    if case.session.is_none() {
        return;
    }
    let hashes = case.hashes();
    let Some(session) = case.session.as_deref_mut() else { return };
    session.running.recent.remember(hashes.tool, hashes.call, hashes.shape);
    session.running.end_denials();
    if let (Some(key), Some(until)) = (case.semantic.consistent, case.semantic.until) {
        session.running.verdicts.keep(key, until, case.context.now);
    }
}

/// Asks a human: on the open stream (legacy), or with a `clarify` verdict, after which the client sends the call again
/// (modern). Without a client that can ask, the verdict is `clarify` with [`Reason::ConfirmationRequired`].
fn ask(mut case: CallCase<'_>, question: HumanQuestion, can_ask: bool, reason: Reason) -> CallDecision {
    if can_ask && case.context.caller.era == Era::Legacy {
        let held = case.reserve(Stage::Asking);
        return CallDecision::Ask { question: CallQuestion::Human(Box::new(question)), held };
    }
    let session = case.session.as_deref();
    CallDecision::Refuse(Box::new(awaiting_answer(
        case.context,
        case.draft,
        question,
        can_ask,
        reason,
        session,
    )))
}

fn human_question(case: &CallCase<'_>, ticket: SealedCall) -> HumanQuestion {
    HumanQuestion {
        question: clarify::question(case.call.tool, case.call.arguments.text()),
        ticket,
        approver_question: None,
    }
}

/// Creates the question for an approver; at most one for each call.
fn approver_question(case: &CallCase<'_>, because: &Reason) -> Result<HumanQuestion, Reason> {
    if !case.call.can_wait || case.call.before.approver_question.is_some() {
        return Err(Reason::ApprovalUnavailable);
    }
    let ticket = case.ticket(Purpose::Approval);
    let id = ticket.nonce.clone();
    let to_approver = approval_question(case.context, &case.draft, case.subject(), id, because)?;
    let question = human_question(case, SealedCall { expires: to_approver.expires, ..ticket });
    Ok(HumanQuestion { approver_question: Some(to_approver), ..question })
}
