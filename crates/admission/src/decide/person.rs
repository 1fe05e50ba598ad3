//! Where a person decides (reading V-26): a state that comes back, and a question that goes out.

use jiff::SignedDuration;

use crate::approval::{self, Decision, Question, SignedApproval, Subject, SubjectKind};
use crate::clarify::{self, Answer, Asked, Purpose, Shown, Ticket};
use crate::digest::{Canon, Digest};
use crate::limits::MAX_APPROVAL_CONTENT;
use crate::message::slot::Received;
use crate::reason::Reason;
use crate::rules::Decider;
use crate::session::Session;
use crate::signature;
use crate::verdict::{Clarification, VerdictKind};

use super::draft::{Draft, standing};
use super::ruling::{ClaimKind, Confirmation, Ruling};
use super::{Declared, Put, Scene};

/// What a sealed state that came back is good for.
#[derive(Clone, Debug, Default)]
pub(super) struct Approved {
    /// Who said yes, or was asked before the upstream asked its own.
    pub by: Option<Decider>,
    /// The call was counted already (reading V-38).
    pub counted: bool,
    /// The state that the admitted call uses up.
    pub nonce: Option<String>,
    /// The question to an approver that it uses up.
    pub question: Option<String>,
}

impl Approved {
    /// What an admitted call or message uses up.
    pub fn claim(&self, draft: &mut Draft) {
        let Approved { nonce, question, .. } = self;
        nonce.iter().for_each(|nonce| draft.claim(ClaimKind::State, nonce));
        question.iter().for_each(|question| draft.claim(ClaimKind::Approval, question));
    }
}

/// Looks at a state that came back with a call. One that fails any binding consumes nothing, and neither does one whose call is
/// denied: single use means one admitted call. A no is used up by being said. An upstream's question that was answered
/// before is a new call.
pub(super) fn check_state(
    scene: &Scene<'_>,
    draft: &mut Draft,
    shown: Option<&Shown<'_>>,
    expected: impl Fn(Purpose) -> Ticket,
) -> Result<Approved, Reason> {
    let Some(shown) = shown else { return Ok(Approved::default()) };
    let ticket = shown.ticket.ok_or(Reason::InvalidState)?;
    if !expected(ticket.purpose).is_met_by(ticket, scene.now) {
        return Err(Reason::InvalidState);
    }
    let nonce = Some(ticket.nonce.clone());
    match (ticket.purpose, shown.spent) {
        (Purpose::Upstream, true) => Ok(Approved::default()),
        (Purpose::Upstream, false) => {
            let by = if ticket.approved { Decider::Approver } else { Decider::Client };
            Ok(Approved { by: Some(by), counted: true, nonce, question: None })
        }
        // The gateway has no such question any more.
        (Purpose::Question, true) | (Purpose::Approval, _) => Err(Reason::InvalidState),
        (Purpose::Question, false) => {
            let said = said_yes(shown.answer);
            draft.confirmation = shown.answer.map(Confirmation::Client);
            if said.is_err() {
                draft.claim(ClaimKind::State, &ticket.nonce);
            }
            said.map(|()| Approved { by: Some(Decider::Client), counted: false, nonce, question: None })
        }
    }
}

/// Looks at the answer to a question that was put to approvers. It counts for the call that was asked about, once, and only under
/// a key of an approver who may give it now.
pub(super) fn check_approval(
    scene: &Scene<'_>,
    draft: &mut Draft,
    put: &Put<'_>,
    subject: &Subject,
) -> Result<Approved, Reason> {
    if put.spent || put.question.subject != *subject {
        return Err(Reason::InvalidState);
    }
    let id = &put.question.id;
    let Some(answer) = put.answer else {
        draft.claim(ClaimKind::Approval, id);
        return Err(Reason::Unanswered);
    };
    let signed = SignedApproval::parse(answer);
    let signed = signed.map_err(|_| Reason::InvalidApproval)?;
    let approver = scene.rules.approvals.check(&signed, put.question, scene.now);
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

/// The question about a subject, if an approver can be asked: somebody may answer it, and it is short enough to be shown.
pub(super) fn approval_question(
    scene: &Scene<'_>,
    draft: &Draft,
    subject: Subject,
    id: String,
    because: &Reason,
) -> Result<Box<Question>, Reason> {
    let approvals = &scene.rules.approvals;
    let can_be_shown = subject.content.len() <= MAX_APPROVAL_CONTENT;
    if !can_be_shown || !approvals.anybody_may_answer(subject.kind, subject.name(), scene.now) {
        return Err(Reason::ApprovalUnavailable);
    }
    let expires = scene.now.checked_add(approvals.time.max(SignedDuration::from_secs(1)));
    Ok(Box::new(Question {
        id,
        subject,
        agent_id: draft.agent_id.clone(),
        agent_proven_by: draft.proven_by.as_str().to_owned(),
        because: because.to_string(),
        asked: scene.now.as_second(),
        expires: expires.unwrap_or(scene.now).as_second(),
    }))
}

/// Why a message does not count, or not yet.
pub(super) enum Unapproved {
    Denied(Reason),
    Waits(Box<Question>),
}

impl From<Reason> for Unapproved {
    fn from(reason: Reason) -> Self {
        Unapproved::Denied(reason)
    }
}

/// Looks for an approver's answer about a message, and asks for one where there is none. It counts when the message is sent again.
pub(super) fn approve_message(
    scene: &Scene<'_>,
    draft: &mut Draft,
    declared: &Declared<'_>,
    subject: Subject,
) -> Result<(), Unapproved> {
    let because = Reason::ApprovalRequired;
    match &declared.before.put {
        Some(put) if put.answer.is_some() => {
            let approved = check_approval(scene, draft, put, &subject)?;
            approved.claim(draft);
            draft.passed("approved");
            Ok(())
        }
        Some(put) if put.question.subject == subject => {
            Err(Unapproved::Waits(Box::new(put.question.clone())))
        }
        _ if !declared.can_wait => Err(Reason::ApprovalUnavailable.into()),
        _ => {
            let id = approval::id_of_subject(&subject);
            Err(Unapproved::Waits(approval_question(scene, draft, subject, id, &because)?))
        }
    }
}

/// A commitment or an amendment as an approver is asked about it: what its sender says, without the signature.
pub(super) fn message_subject(
    scene: &Scene<'_>,
    kind: SubjectKind,
    received: &Received,
    principal: &str,
    commitment: Option<&Digest>,
) -> Result<Subject, Reason> {
    let content = match received.canon_raw {
        true => received.text.clone(),
        false => String::from_utf8_lossy(&signature::payload(received)?).into_owned(),
    };
    Ok(Subject {
        kind,
        gateway: scene.rules.demands.audience.clone(),
        route: scene.rules.route.clone(),
        session_id: received.message.session_id().to_owned(),
        principal: principal.to_owned(),
        commitment: commitment.cloned(),
        tool: None,
        content,
    })
}

/// A message that waits for an approver: nothing of it is in force.
pub(super) fn put(scene: &Scene<'_>, draft: Draft, question: Box<Question>) -> Ruling {
    let mut ruling = draft.rule(scene.rules, VerdictKind::Clarify, Some(Reason::ApprovalRequired));
    let words = format!("an approver has to sign this {} first; send it again", question.subject.name());
    ruling.verdict.clarification = Some(Clarification { question: words, schema: None });
    ruling.put = Some(question);
    ruling
}

/// A call as an approver is asked about it.
pub(super) fn call_subject(
    scene: &Scene<'_>,
    tool: &str,
    arguments: &Canon,
    (session_id, principal): (&str, &str),
    commitment: Option<&Digest>,
) -> Subject {
    Subject {
        kind: SubjectKind::Call,
        gateway: scene.rules.demands.audience.clone(),
        route: scene.rules.route.clone(),
        session_id: session_id.to_owned(),
        principal: principal.to_owned(),
        commitment: commitment.cloned(),
        tool: Some(tool.to_owned()),
        content: String::from_utf8_lossy(&arguments.bytes).into_owned(),
    }
}

/// Only a yes is a yes.
pub(super) fn said_yes(answer: Option<Answer>) -> Result<(), Reason> {
    match answer {
        Some(Answer::Confirmed) => Ok(()),
        Some(Answer::Declined) | None => Err(Reason::Declined),
        Some(Answer::Unanswered) => Err(Reason::Unanswered),
    }
}

/// A decision that waits for a person: no call is admitted, and nothing reserved.
pub(super) fn pending(
    scene: &Scene<'_>,
    mut draft: Draft,
    asked: Asked,
    can_ask: bool,
    reason: Reason,
    session: Option<&Session>,
) -> Ruling {
    if let Some(session) = session {
        draft.meters = standing(scene.rules, session);
    }
    let reason = if can_ask { reason } else { Reason::ConfirmationRequired };
    let mut ruling = draft.rule(scene.rules, VerdictKind::Clarify, Some(reason));
    let schema = jose::json::parse_text(clarify::SCHEMA).ok().filter(|_| asked.approval.is_none());
    ruling.verdict.clarification = Some(Clarification { question: asked.question.clone(), schema });
    ruling.pending = can_ask.then(|| Box::new(asked));
    ruling
}

/// What a state about a call is bound to.
pub(super) fn ticket(
    scene: &Scene<'_>,
    tool: &str,
    arguments: &Canon,
    purpose: Purpose,
    session_id: &str,
    account: &str,
) -> Ticket {
    Ticket {
        purpose,
        route: scene.rules.route.clone(),
        session_id: session_id.to_owned(),
        account: account.to_owned(),
        tool: tool.to_owned(),
        arguments: arguments.digest().to_string(),
        // What an approver says is judged by the rules in force when it is used.
        policy: match purpose {
            Purpose::Approval => String::new(),
            Purpose::Question | Purpose::Upstream => scene.rules.policy_digest.clone(),
        },
        issued: scene.now.as_second(),
        expires: clarify::expiry(purpose, scene.now),
        nonce: match purpose {
            Purpose::Approval => approval::id_of(&scene.dice.secret),
            Purpose::Question | Purpose::Upstream => {
                data_encoding::BASE64URL_NOPAD.encode(&scene.dice.secret)
            }
        },
        approved: false,
    }
}
