//! Questions to a human and their answers (reading V-26): returned states, approvals, and new questions.

use jiff::SignedDuration;

use crate::approval::{self, Decision, Question, SignedApproval, Subject, SubjectKind};
use crate::authenticated::{self, Authenticated};
use crate::clarify::{self, HumanAnswer, HumanQuestion, Purpose, ReturnedState, SealedCall};
use crate::limits::MAX_APPROVAL_CONTENT;
use crate::principal::account_key;
use crate::rules::Decider;
use crate::session::Session;
use vap::digest::{Canon, Digest};
use vap::message::NO_SESSION;
use vap::reason::Reason;
use vap::verdict::{Clarification, VerdictKind};

use super::draft::{Draft, session_meters};
use super::ruling::{ClaimKind, Confirmation, Ruling};
use super::{ApproverQuestion, DecisionContext, Declaration, ToolCall};

/// The effect of an answer that was returned with a call.
#[derive(Clone, Debug, Default)]
pub(super) struct Approved {
    /// The party whose confirmation counts. For an upstream server's question, the one of the earlier decision.
    pub by: Option<Decider>,
    /// `true` if the call was counted before (reading V-38).
    pub counted: bool,
    /// The nonce of the state, used up if the call is admitted.
    pub nonce: Option<String>,
    /// The id of the question to an approver, used up if the call is admitted.
    pub question: Option<String>,
}

impl Approved {
    /// Claims the keys that an admitted call or message uses up.
    pub fn claim(&self, draft: &mut Draft) {
        let Approved { nonce, question, .. } = self;
        nonce.iter().for_each(|nonce| draft.claim(ClaimKind::State, nonce));
        question.iter().for_each(|question| draft.claim(ClaimKind::Approval, question));
    }
}

/// Checks a state that was returned with a call against the expected content.
///
/// A state is used up by the call that it admits, or by the answer "no". It is not used up if it does not fit the call,
/// or if the call is denied for another reason. With a used state of an upstream server's question, the call counts as a
/// new one.
pub(super) fn check_state(
    context: &DecisionContext<'_>,
    draft: &mut Draft,
    returned: Option<&ReturnedState<'_>>,
    expected: Option<&SealedCall>,
) -> Result<Approved, Reason> {
    let Some(returned) = returned else { return Ok(Approved::default()) };
    let ticket = returned.ticket.ok_or(Reason::InvalidState)?;
    if !expected.is_some_and(|expected| expected.matches(ticket, context.now)) {
        return Err(Reason::InvalidState);
    }
    let nonce = Some(ticket.nonce.clone());
    match (ticket.purpose, returned.spent) {
        (Purpose::Upstream, true) => Ok(Approved::default()),
        (Purpose::Upstream, false) => {
            let by = if ticket.approved { Decider::Approver } else { Decider::Client };
            Ok(Approved { by: Some(by), counted: true, nonce, question: None })
        }
        // The gateway no longer stores this question.
        (Purpose::Question, true) | (Purpose::Approval, _) => Err(Reason::InvalidState),
        (Purpose::Question, false) => {
            let consent = check_consent(returned.answer);
            draft.confirmation = returned.answer.map(Confirmation::Client);
            if consent.is_err() {
                draft.claim(ClaimKind::State, &ticket.nonce);
            }
            consent.map(|()| Approved { by: Some(Decider::Client), counted: false, nonce, question: None })
        }
    }
}

/// Returns whether a call repeats one that was counted (reading V-38): it brings back the unused state of a question that the
/// upstream asked about it. `session` is the one that its message names.
#[must_use]
pub fn repeats_counted_call(
    context: &DecisionContext<'_>,
    session: Option<&Session>,
    call: &ToolCall<'_>,
) -> bool {
    let Some(ReturnedState { ticket: Some(returned), spent: false, .. }) = &call.before.returned_state else {
        return false;
    };
    let (session_id, account) = holder(context, session);
    let arguments = call.arguments.canonical();
    ticket(context, call.tool, arguments, Purpose::Upstream, &session_id, &account)
        .matches(returned, context.now)
}

/// Returns the session's id and the principal's account, as far as they are known.
pub(super) fn holder(context: &DecisionContext<'_>, session: Option<&Session>) -> (String, String) {
    match session {
        Some(session) => (session.agreed.session_id().to_owned(), session.agreed.account().to_owned()),
        None => (NO_SESSION.to_owned(), account_key(context.caller, None).unwrap_or_default()),
    }
}

/// Checks the answer to a question to approvers. It is valid once, for the call of the question, and only under a key
/// of an approver who may answer it now.
pub(super) fn check_approval(
    context: &DecisionContext<'_>,
    draft: &mut Draft,
    approver_question: &ApproverQuestion<'_>,
    subject: &Subject,
) -> Result<Approved, Reason> {
    let &ApproverQuestion { question, answer, spent } = approver_question;
    if spent || question.subject != *subject {
        return Err(Reason::InvalidState);
    }
    let id = &question.id;
    let Some(answer) = answer else {
        draft.claim(ClaimKind::Approval, id);
        return Err(Reason::Unanswered);
    };
    let signed = SignedApproval::parse(answer);
    let signed = signed.map_err(|_| Reason::InvalidApproval)?;
    let approver = context.rules.approvals.check(&signed, question, context.now);
    let approver = approver.map_err(|_| Reason::InvalidApproval)?;
    let decision = signed.approval().decision;
    draft.confirmation = Some(Confirmation::Approver {
        approver: approver.name.clone(),
        kid: signed.kid().to_owned(),
        question: id.clone(),
        decision,
        approval: signed.digest().clone(),
    });
    match decision {
        Decision::Approve => {
            let (by, question) = (Some(Decider::Approver), Some(id.clone()));
            Ok(Approved { by, question, ..Approved::default() })
        }
        Decision::Deny => {
            draft.claim(ClaimKind::Approval, id);
            Err(Reason::ApprovalDenied)
        }
    }
}

/// Creates the question about a subject.
///
/// # Errors
/// [`Reason::ApprovalUnavailable`] if no approver may answer it, or it is too long to be displayed.
pub(super) fn approval_question(
    context: &DecisionContext<'_>,
    draft: &Draft,
    subject: Subject,
    id: String,
    because: &Reason,
) -> Result<Box<Question>, Reason> {
    let approvals = &context.rules.approvals;
    let can_be_displayed = subject.content.len() <= MAX_APPROVAL_CONTENT;
    if !can_be_displayed || !approvals.has_approver_for(subject.kind, subject.name(), context.now) {
        return Err(Reason::ApprovalUnavailable);
    }
    let expires = context.now.checked_add(approvals.time.max(SignedDuration::from_secs(1)));
    Ok(Box::new(Question {
        id,
        subject,
        agent_id: draft.agent_id.clone(),
        agent_proven_by: draft.proven_by.as_str().to_owned(),
        because: because.to_string(),
        asked: context.now.as_second(),
        expires: expires.unwrap_or(context.now).as_second(),
    }))
}

/// The reason why a message has no effect, or not yet.
pub(super) enum Unapproved {
    Denied(Reason),
    Waits(Box<Question>),
}

impl From<Reason> for Unapproved {
    fn from(reason: Reason) -> Self {
        Unapproved::Denied(reason)
    }
}

/// Checks the approver's answer about a message, or creates a question if there is none. The answer takes effect when
/// the message is sent again.
pub(super) fn approve_message(
    context: &DecisionContext<'_>,
    draft: &mut Draft,
    declared: &Declaration<'_>,
    subject: Subject,
) -> Result<(), Unapproved> {
    let because = Reason::ApprovalRequired;
    match &declared.before.approver_question {
        Some(earlier) if earlier.answer.is_some() => {
            let approved = check_approval(context, draft, earlier, &subject)?;
            approved.claim(draft);
            draft.passed("approved");
            Ok(())
        }
        Some(earlier) if earlier.question.subject == subject => {
            Err(Unapproved::Waits(Box::new(earlier.question.clone())))
        }
        _ if !declared.can_wait => Err(Reason::ApprovalUnavailable.into()),
        _ => {
            let id = approval::id_of_subject(&subject);
            Err(Unapproved::Waits(approval_question(context, draft, subject, id, &because)?))
        }
    }
}

/// Creates the subject of a question about a commitment or an amendment, from the message without its signature.
pub(super) fn message_subject(
    context: &DecisionContext<'_>,
    kind: SubjectKind,
    received: &Authenticated,
    principal: &str,
    commitment: Option<&Digest>,
) -> Result<Subject, Reason> {
    let content = match received.canon_raw {
        true => received.text.clone(),
        false => String::from_utf8_lossy(&authenticated::payload(received)?).into_owned(),
    };
    Ok(Subject {
        kind,
        gateway: context.rules.demands.audience.clone(),
        route: context.rules.route.clone(),
        session_id: received.message.session_id().to_owned(),
        principal: principal.to_owned(),
        commitment: commitment.cloned(),
        tool: None,
        content,
    })
}

/// Creates the ruling of a message that waits for an approver. Nothing in it takes effect.
pub(super) fn awaiting_approval(
    context: &DecisionContext<'_>,
    draft: Draft,
    question: Box<Question>,
) -> Ruling {
    let mut ruling = draft.rule(context.rules, VerdictKind::Clarify, Some(Reason::ApprovalRequired));
    let words = format!("an approver has to sign this {} first; send it again", question.subject.name());
    ruling.verdict.clarification = Some(Clarification { question: words, schema: None });
    ruling.approver_question = Some(question);
    ruling
}

/// Creates the subject of a question about a call.
pub(super) fn call_subject(
    context: &DecisionContext<'_>,
    tool: &str,
    arguments: &Canon,
    (session_id, principal): (&str, &str),
    commitment: Option<&Digest>,
) -> Subject {
    Subject {
        kind: SubjectKind::Call,
        gateway: context.rules.demands.audience.clone(),
        route: context.rules.route.clone(),
        session_id: session_id.to_owned(),
        principal: principal.to_owned(),
        commitment: commitment.cloned(),
        tool: Some(tool.to_owned()),
        content: String::from_utf8_lossy(&arguments.bytes).into_owned(),
    }
}

/// Checks that an answer is a confirmation.
pub(super) fn check_consent(answer: Option<HumanAnswer>) -> Result<(), Reason> {
    match answer {
        Some(HumanAnswer::Confirmed) => Ok(()),
        Some(HumanAnswer::Declined) | None => Err(Reason::Declined),
        Some(HumanAnswer::Unanswered) => Err(Reason::Unanswered),
    }
}

/// Creates the ruling of a call that waits for a human. Nothing is admitted or reserved.
pub(super) fn awaiting_answer(
    context: &DecisionContext<'_>,
    mut draft: Draft,
    question: HumanQuestion,
    can_ask: bool,
    reason: Reason,
    session: Option<&Session>,
) -> Ruling {
    if let Some(session) = session {
        draft.meters = session_meters(context.rules, session);
    }
    let reason = if can_ask { reason } else { Reason::ConfirmationRequired };
    let mut ruling = draft.rule(context.rules, VerdictKind::Clarify, Some(reason));
    let schema =
        jose::json::parse_text(clarify::SCHEMA).ok().filter(|_| question.approver_question.is_none());
    ruling.verdict.clarification = Some(Clarification { question: question.question.clone(), schema });
    ruling.pending = can_ask.then(|| Box::new(question));
    ruling
}

/// Creates the content of a sealed state about a call.
pub(super) fn ticket(
    context: &DecisionContext<'_>,
    tool: &str,
    arguments: &Canon,
    purpose: Purpose,
    session_id: &str,
    account: &str,
) -> SealedCall {
    SealedCall {
        purpose,
        route: context.rules.route.clone(),
        session_id: session_id.to_owned(),
        account: account.to_owned(),
        tool: tool.to_owned(),
        arguments: arguments.digest().to_string(),
        // An approver's answer is judged by the rules in force at the time of its use.
        policy: match purpose {
            Purpose::Approval => String::new(),
            Purpose::Question | Purpose::Upstream => context.rules.policy_digest.clone(),
        },
        issued: context.now.as_second(),
        expires: clarify::expiry(purpose, context.now),
        nonce: match purpose {
            Purpose::Approval => approval::id_of(&context.random.secret),
            Purpose::Question | Purpose::Upstream => {
                data_encoding::BASE64URL_NOPAD.encode(&context.random.secret)
            }
        },
        approved: false,
    }
}
