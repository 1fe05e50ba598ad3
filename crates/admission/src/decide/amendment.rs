//! Decisions about Scope Amendments. E(n+1) is computed as a new value, judged, and replaces E(n) only when it is
//! accepted (reading V-18).

use crate::approval::SubjectKind;
use crate::authenticated::Authenticated;
use crate::effective::Capped;
use crate::session::{
    Account, AgreedTerms, Ledgers, Meters, Reservation, ReservationId, Session, ShortHash, Stage,
};
use decimal::Decimal;
use vap::message::{Message, ScopeAmendment};
use vap::reason::Reason;
use vap::verdict::{Trigger, VerdictKind};

use super::bind::{bind, check_open, count_denied};
use super::commitment::{
    CommitmentNotAccepted, accept, apply_judge_answer, check_effective, denied_unreadable,
};
use super::draft::Draft;
use super::person::{approve_message, awaiting_approval, message_subject};
use super::ruling::{MessageRuling, Ruling};
use super::semantic::{JudgeNeed, JudgeQuestion, check_judge_budget};
use super::{DecisionContext, DecisionState, Declaration};

/// Decides about an amendment whose carrier request succeeded.
pub fn amendment(
    context: &DecisionContext<'_>,
    state: DecisionState<'_>,
    declared: &Declaration<'_>,
) -> MessageRuling {
    let DecisionState { session, account } = state;
    let received = match declared.message {
        Ok(received) => received,
        Err(unreadable) => return denied_unreadable(context, account, unreadable),
    };
    let mut draft = Draft::of(received);
    let session = match bind(context, received, &declared.before, &mut draft, session.as_mut()) {
        Ok(session) => session,
        Err(reason) => {
            count_denied(context, None, account, &reason);
            return ruled(draft.rule(context.rules, VerdictKind::Denied, Some(reason)));
        }
    };
    end_question(session, account, declared);
    match amend(context, session, account, declared, received, &mut draft) {
        Ok((agreed, is_capped)) => {
            session.agreed = agreed;
            session.running.verdicts.clear();
            ruled(accept(context, draft, session, is_capped))
        }
        Err(CommitmentNotAccepted::Approval(question)) => {
            draft.set_meters(context.rules, session);
            count_denied(context, Some(session), account, &Reason::ApprovalRequired);
            ruled(awaiting_approval(context, draft, question))
        }
        Err(CommitmentNotAccepted::Judge(_)) if !session.running.has_room() => {
            draft.set_meters(context.rules, session);
            ruled(draft.rule(context.rules, VerdictKind::Denied, Some(Reason::RateLimited)))
        }
        Err(CommitmentNotAccepted::Judge(question)) => {
            let held = reserve_judge_cost(context, session);
            MessageRuling::Judge { question, held: Some(held) }
        }
        Err(CommitmentNotAccepted::Denied(reason)) => {
            draft.set_meters(context.rules, session);
            count_denied(context, Some(session), account, &reason);
            ruled(draft.rule(context.rules, VerdictKind::Denied, Some(reason)))
        }
    }
}

fn ruled(ruling: Ruling) -> MessageRuling {
    MessageRuling::Ruled(Box::new(ruling))
}

/// Ends an earlier question to the judge: releases its reservation, and adds the cost of the answer.
fn end_question(session: &mut Session, account: &mut Account, declared: &Declaration<'_>) {
    if let Some(held) = declared.before.held {
        Ledgers::of(session, account).release(held);
    }
    if let Some(judged) = &declared.before.judged {
        session.running.bill_judge(judged.cost);
    }
}

/// Returns the amended commitment, and whether the operator's ceiling changed it. The session is not modified.
fn amend(
    context: &DecisionContext<'_>,
    session: &Session,
    account: &Account,
    declared: &Declaration<'_>,
    received: &Authenticated,
    draft: &mut Draft,
) -> Result<(AgreedTerms, bool), CommitmentNotAccepted> {
    let Message::ScopeAmendment(amendment) = &received.message else {
        return Err(Reason::WrongCarrier.into());
    };
    check_open(context, session, account, declared.replayed)?;
    check_effective(context, session.agreed.effective())?;
    let agreed = &session.agreed;
    let ceiling = context.rules.ceiling.of_session(agreed.agent_id(), agreed.committed());
    let Capped { effective, changed } = session.agreed.effective().amended(amendment, &ceiling)?;
    check_effective(context, &effective)?;
    draft.passed("chain_ok");
    draft.passed("budget_ok");
    // An amendment signed by an approver needs no further approval.
    if context.rules.approvals.amendments && !draft.approved {
        let (principal, commitment) = (session.agreed.account(), Some(session.agreed.digest()));
        let subject = message_subject(context, SubjectKind::Amendment, received, principal, commitment)?;
        approve_message(context, draft, declared, subject)?;
    }
    judge(context, draft, declared, session, amendment)?;
    Ok((session.agreed.amended(effective), changed))
}

/// S2 for the additions of an amendment.
fn judge(
    context: &DecisionContext<'_>,
    draft: &mut Draft,
    declared: &Declaration<'_>,
    session: &Session,
    amendment: &ScopeAmendment,
) -> Result<(), CommitmentNotAccepted> {
    let Some(rules) = context.rules.judge.as_ref().filter(|judge| judge.commitments) else { return Ok(()) };
    match declared.before.judged {
        Some(judged) => apply_judge_answer(context, draft, judged),
        None => match check_judge_budget(rules, session.running.judge_used(), Trigger::Amendment) {
            JudgeNeed::OverBudget(_) => Err(Reason::JudgeBudget.into()),
            _ => Err(CommitmentNotAccepted::Judge(Box::new(JudgeQuestion::about_amendment(
                session, amendment,
            )))),
        },
    }
}

/// Reserves the cost of the judge's answer.
fn reserve_judge_cost(context: &DecisionContext<'_>, session: &mut Session) -> ReservationId {
    session.running.reserve(Reservation {
        id: ReservationId(0),
        stage: Stage::Asking,
        tool: ShortHash::of(&[]),
        amounts: Meters::default(),
        counted: false,
        blind: false,
        judge: context.rules.judge.as_ref().map_or(Decimal::ZERO, |judge| judge.reserve),
        by_principal: false,
    })
}
