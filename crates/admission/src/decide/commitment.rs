//! Decisions about Scope Commitments: S1 and S2, and the creation of the session.
//!
//! The first commitment wins: a second one for a known id, open or closed, is always denied (reading V-3). Reductions
//! by the operator's ceiling are part of E0, and the verdict reports them (reading V-23).

use serde_json::json;

use crate::approval::{self, SubjectKind};
use crate::authenticated::Authenticated;
use crate::effective::{Capped, Effective};
use crate::limits::{MAX_LIMITS, METER_PREFIX};
use crate::principal::{Principal, ProvenBy};
use crate::session::{Account, AgreedTerms, Owner, Session};
use vap::message::slot::Unreadable;
use vap::message::{Message, ScopeCommitment};
use vap::reason::Reason;
use vap::record_key::StreamKey;
use vap::verdict::{Downgrade, Trigger, VerdictKind};

use super::bind::{check_signature, count_denied, stronger};
use super::draft::{Draft, principal_bytes};
use super::person::{Unapproved, approve_message, awaiting_approval, message_subject};
use super::ruling::{ClaimKind, MessageRuling, Ruling};
use super::semantic::{JudgeEffect, JudgeNeed, JudgeQuestion, check_judge_budget, judge_effect};
use super::{DecisionContext, DecisionState, Declaration};

/// Decides about a commitment whose carrier request succeeded.
pub fn commitment(
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
    match new_session(context, session, account, declared, received, &mut draft) {
        Ok(NewSession { session: new, is_capped }) => {
            let ruling = accept(context, draft, &new, is_capped);
            account.opened(&new.agreed);
            *session = Some(new);
            MessageRuling::Ruled(Box::new(ruling))
        }
        Err(CommitmentNotAccepted::Judge(question)) => MessageRuling::Judge { question, held: None },
        Err(CommitmentNotAccepted::Approval(question)) => {
            count_denied(context, None, account, &Reason::ApprovalRequired);
            MessageRuling::Ruled(Box::new(awaiting_approval(context, draft, question)))
        }
        Err(CommitmentNotAccepted::Denied(reason)) => {
            count_denied(context, None, account, &reason);
            MessageRuling::Ruled(Box::new(draft.rule(context.rules, VerdictKind::Denied, Some(reason))))
        }
    }
}

/// Denies a message that could not be parsed (reading X-2).
pub(super) fn denied_unreadable(
    context: &DecisionContext<'_>,
    account: &mut Account,
    unreadable: &Unreadable,
) -> MessageRuling {
    let draft = Draft::of_unreadable(unreadable, account.only_session());
    count_denied(context, None, account, &unreadable.reason);
    let ruling = draft.rule(context.rules, VerdictKind::Denied, Some(unreadable.reason.clone()));
    MessageRuling::Ruled(Box::new(ruling))
}

/// The reason why a message is not accepted, or not yet.
pub(super) enum CommitmentNotAccepted {
    Denied(Reason),
    Judge(Box<JudgeQuestion>),
    /// An approver has to answer first.
    Approval(Box<approval::Question>),
}

impl From<Reason> for CommitmentNotAccepted {
    fn from(reason: Reason) -> Self {
        CommitmentNotAccepted::Denied(reason)
    }
}

impl From<Unapproved> for CommitmentNotAccepted {
    fn from(unapproved: Unapproved) -> Self {
        match unapproved {
            Unapproved::Denied(reason) => CommitmentNotAccepted::Denied(reason),
            Unapproved::Waits(question) => CommitmentNotAccepted::Approval(question),
        }
    }
}

/// A session that is ready to be stored.
struct NewSession {
    session: Session,
    /// `true` if the operator's ceiling changed the commitment.
    is_capped: bool,
}

fn new_session(
    context: &DecisionContext<'_>,
    known: &Option<Session>,
    account: &Account,
    declared: &Declaration<'_>,
    received: &Authenticated,
    draft: &mut Draft,
) -> Result<NewSession, CommitmentNotAccepted> {
    let Message::ScopeCommitment(commitment) = &received.message else {
        return Err(Reason::WrongCarrier.into());
    };
    received.check_author()?;
    if received.is_by_operator() && account.is_committed() {
        return Err(Reason::NoEnvelope.into());
    }
    if account.is_rate_limited(context.now) {
        return Err(Reason::RateLimited.into());
    }
    match known {
        Some(session) if session.running.is_closed() => return Err(Reason::SessionClosed.into()),
        Some(_) => return Err(Reason::SessionInUse.into()),
        None => {}
    }
    let Identified { principal, signed_by, proven_by } =
        identify(context, declared, received, commitment, draft)?;
    let ceiling = context.rules.ceiling.of_session(&commitment.principal.agent_id, context.now);
    let capped = Effective::of(commitment, &ceiling)?;
    check_effective(context, &capped.effective)?;
    draft.passed("budget_ok");
    let Capped { effective, changed: is_capped } = capped;
    let owner = Owner {
        principal,
        signed_by,
        proven_by,
        route: context.rules.route.clone(),
        committed: context.now,
        key: StreamKey::new(context.random.secret),
    };
    let mut session = Session::new(AgreedTerms::new(effective, owner));
    draft.set_commitment(&session);
    if received.is_by_operator() {
        return Ok(NewSession { session, is_capped });
    }
    if context.rules.approvals.commitments {
        let principal = session.agreed.account();
        let subject = message_subject(context, SubjectKind::Commitment, received, principal, None)?;
        approve_message(context, draft, declared, subject)?;
    }
    judge(context, draft, declared, &mut session)?;
    Ok(NewSession { session, is_capped })
}

/// The owner of a commitment.
struct Identified {
    principal: Principal,
    signed_by: Option<String>,
    proven_by: ProvenBy,
}

/// S1, as far as this crate checks it: identifies the owner of the commitment (readings V-2, V-20).
fn identify(
    context: &DecisionContext<'_>,
    declared: &Declaration<'_>,
    received: &Authenticated,
    commitment: &ScopeCommitment,
    draft: &mut Draft,
) -> Result<Identified, Reason> {
    let agent_id = &commitment.principal.agent_id;
    let signed = check_signature(context, received, agent_id, &declared.before)?;
    if let Some(signed) = &signed {
        draft.passed("signature_ok");
        if let Some(jti) = &signed.jti {
            draft.claim(ClaimKind::Jti, jti);
        }
    }
    if declared.replayed {
        return Err(Reason::Replayed);
    }
    let signed_by = signed.as_ref().map(|signed| signed.thumbprint.clone());
    let principal = match received.is_by_operator() {
        true => Principal::under_operator(context.caller),
        false => Principal::of(context.caller, signed_by.as_deref()).ok_or(Reason::NoPrincipal)?,
    };
    if context.rules.principal_ceiling.is_some() && principal.ledger(signed_by.as_deref()).is_none() {
        return Err(Reason::NoPrincipal);
    }
    draft.texts.principal = Some(principal_bytes(&principal));
    draft.passed("principal_ok");
    let by_token = context.rules.keyring.check_token(agent_id, context.caller.token.as_ref())?;
    let proven_by = match stronger(signed.as_ref(), by_token) {
        ProvenBy::Asserted if received.is_by_operator() => ProvenBy::Operator,
        proven_by => proven_by,
    };
    draft.proven_by = proven_by;
    Ok(Identified { principal, signed_by, proven_by })
}

/// Checks that a commitment can be in force: its deadline has not passed, no meter has the gateway's prefix, and a
/// record can hold all meters.
pub(super) fn check_effective(context: &DecisionContext<'_>, effective: &Effective) -> Result<(), Reason> {
    let budget = &effective.budget;
    if budget.deadline.as_ref().is_some_and(|deadline| deadline.has_passed(context.now)) {
        return Err(Reason::DeadlinePassed);
    }
    let ours = budget.limits.keys().any(|meter| meter.starts_with(METER_PREFIX));
    match ours || budget.limits.len() > MAX_LIMITS {
        true => Err(Reason::OutOfRange),
        false => Ok(()),
    }
}

/// S2: asks the judge, if the operator configured that.
fn judge(
    context: &DecisionContext<'_>,
    draft: &mut Draft,
    declared: &Declaration<'_>,
    session: &mut Session,
) -> Result<(), CommitmentNotAccepted> {
    let Some(rules) = context.rules.judge.as_ref().filter(|judge| judge.commitments) else { return Ok(()) };
    match declared.before.judged {
        Some(judged) => {
            session.running.bill_judge(judged.cost);
            apply_judge_answer(context, draft, judged)
        }
        None => match check_judge_budget(rules, session.running.judge_used(), Trigger::SessionStart) {
            JudgeNeed::OverBudget(_) => Err(Reason::JudgeBudget.into()),
            _ => Err(CommitmentNotAccepted::Judge(Box::new(JudgeQuestion::about_session(
                Trigger::SessionStart,
                session,
            )))),
        },
    }
}

/// Applies the judge's answer to a commitment or an amendment. An uncertain answer denies, since no human is asked
/// about these.
pub(super) fn apply_judge_answer(
    context: &DecisionContext<'_>,
    draft: &mut Draft,
    judged: super::semantic::JudgeAnswer,
) -> Result<(), CommitmentNotAccepted> {
    draft.judged = Some(judged);
    match judge_effect(context.rules.judge.as_ref(), &judged) {
        JudgeEffect::Consistent => {
            draft.passed("goal_consistent");
            Ok(())
        }
        JudgeEffect::Unsure => Err(Reason::ConfirmationRequired.into()),
        JudgeEffect::Denied(reason) => Err(reason.into()),
    }
}

/// Creates the ruling for an accepted commitment or amendment.
pub(super) fn accept(
    context: &DecisionContext<'_>,
    mut draft: Draft,
    session: &Session,
    is_capped: bool,
) -> Ruling {
    let proven_by = draft.proven_by;
    draft.bind(session, proven_by);
    draft.set_meters(context.rules, session);
    let (kind, reason) = match is_capped {
        true => (VerdictKind::Downgraded, Some(Reason::Ceiling)),
        false => (VerdictKind::Served, None),
    };
    let mut ruling = draft.rule(context.rules, kind, reason);
    ruling.verdict.accepted_commitment_digest = Some(session.agreed.digest().clone());
    if is_capped {
        let effective = session.agreed.effective();
        let applied = json!({ "scope": effective.scope, "budget": budget(session) });
        let note = Some("the operator's ceiling applies".to_owned());
        ruling.verdict.downgrade = Some(Downgrade { applied_scope: Some(applied), note });
    }
    ruling.effective = Some(session.agreed.text().to_owned());
    ruling
}

/// Returns the budget in force as in the canonical text.
fn budget(session: &Session) -> serde_json::Value {
    let text: Option<serde_json::Value> = jose::json::parse_text(session.agreed.text()).ok();
    text.map_or(serde_json::Value::Null, |text| text["budget"].clone())
}
