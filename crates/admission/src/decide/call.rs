//! Decisions about tool calls: runs the checks, and turns their result into a ruling.

use jiff::Timestamp;

use crate::clarify::{self, Asked, Purpose, Ticket};
use crate::message::Deadline;
use crate::message::slot::Received;
use crate::principal::Era;
use crate::reason::Reason;
use crate::rules::Decider;
use crate::session::{Account, Reservation, ReservationId, Session, Stage};
use crate::verdict::VerdictKind;

use super::bind::{bind, count_denied};
use super::draft::{Draft, canon};
use super::hearing::{Heard, Hearing, Stop};
use super::person::{approval_question, pending};
use super::ruling::{CallRuling, Ruling};
use super::settle::give_back;
use super::unaware::unaware;
use super::{Books, Call, Scene};

/// Decides about a call. Reservations of an earlier decision are released first, and all checks run again.
pub fn call(scene: &Scene<'_>, books: Books<'_>, call: &Call<'_>) -> CallRuling {
    let Books { session, account } = books;
    resume(session.as_mut(), account, call);
    match call.envelope {
        None => unaware(scene, account, call),
        Some(Err(unreadable)) => {
            let mut draft = Draft::of_unreadable(unreadable, account.only_session());
            draft.calls(call.tool, &canon(call.arguments));
            count_denied(scene, None, account, &unreadable.reason);
            ruled(draft.rule(scene.rules, VerdictKind::Denied, Some(unreadable.reason.clone())))
        }
        Some(Ok(received)) => with_envelope(scene, session.as_mut(), account, call, received),
    }
}

/// Releases the reservation of an earlier question, and bills the judge's answer once.
fn resume(session: Option<&mut Session>, account: &mut Account, call: &Call<'_>) {
    let Some(session) = session else { return };
    if let Some(held) = call.before.held {
        give_back(session, account, held);
    }
    if let Some(judged) = call.before.judged.filter(|_| call.before.answer.is_none()) {
        session.running.bill_judge(judged.cost);
    }
}

fn with_envelope(
    scene: &Scene<'_>,
    session: Option<&mut Session>,
    account: &mut Account,
    call: &Call<'_>,
    received: &Received,
) -> CallRuling {
    let arguments = canon(call.arguments);
    let mut draft = Draft::of(received);
    draft.calls(call.tool, &arguments);
    let session = match bind(scene, received, &call.before, &mut draft, session) {
        Ok(session) => session,
        Err(reason) => {
            count_denied(scene, None, account, &reason);
            return ruled(draft.rule(scene.rules, VerdictKind::Denied, Some(reason)));
        }
    };
    let hearing = Hearing { scene, call, received, arguments: &arguments };
    match hearing.hear(&mut draft, session, account) {
        Ok(heard) => ruled(admit(&hearing, draft, session, account, heard)),
        Err(Stop::Wait) => CallRuling::Wait,
        Err(Stop::Judge { question, reservation }) => {
            CallRuling::Judge { question, held: hold(scene, session, account, reservation) }
        }
        Err(Stop::Ask { reason, by: Decider::Client, reservation }) => {
            ask(&hearing, draft, session, account, reason, reservation)
        }
        Err(Stop::Ask { reason, by: Decider::Approver, reservation }) => {
            match approval_of(&hearing, &draft, session, &reason) {
                Ok(asked) => {
                    wait_for_approver(&hearing, draft, (session, account), asked, (reason, reservation))
                }
                Err(reason) => ruled(deny(&hearing, draft, session, account, reason)),
            }
        }
        Err(Stop::Denied(reason)) => ruled(deny(&hearing, draft, session, account, reason)),
    }
}

fn deny(
    hearing: &Hearing<'_>,
    mut draft: Draft,
    session: &mut Session,
    account: &mut Account,
    reason: Reason,
) -> Ruling {
    let scene = hearing.scene;
    draft.standing(scene.rules, session);
    count_denied(scene, Some(session), account, &reason);
    draft.rule(scene.rules, VerdictKind::Denied, Some(reason))
}

pub(super) fn ruled(ruling: Ruling) -> CallRuling {
    CallRuling::Ruled(Box::new(ruling))
}

/// Admits the call: reserves its cost, stores its marks, and rules that it is forwarded.
fn admit(
    hearing: &Hearing<'_>,
    mut draft: Draft,
    session: &mut Session,
    account: &mut Account,
    heard: Heard,
) -> Ruling {
    let scene = hearing.scene;
    let Heard { reservation, approved, marks, key, found } = heard;
    let id = hold(scene, session, account, Reservation { stage: Stage::Admitted, ..reservation });
    session.running.recent.remember(marks.tool, marks.call, marks.shape);
    session.running.end_denials();
    if let Some(until) = found.until.filter(|_| found.consistent) {
        session.running.verdicts.keep(key, until, scene.now);
    }
    approved.claim(&mut draft);
    draft.standing(scene.rules, session);
    let mut ruling = draft.rule(scene.rules, VerdictKind::Served, None);
    let until = found.until.and_then(|until| Timestamp::from_second(until).ok());
    ruling.verdict.expires_at = until.map(Deadline::from);
    ruling.forward = true;
    ruling.reservation = Some(id);
    let ticket = hearing.ticket(session, Purpose::Upstream);
    ruling.ticket = Some(Box::new(Ticket { approved: approved.by == Some(Decider::Approver), ..ticket }));
    ruling
}

/// Asks the client's user: on the open stream (legacy) or with a `clarify` verdict (modern). Without a client that can
/// ask, the verdict is `clarify` with [`Reason::ConfirmationRequired`].
fn ask(
    hearing: &Hearing<'_>,
    draft: Draft,
    session: &mut Session,
    account: &mut Account,
    reason: Reason,
    reservation: Reservation,
) -> CallRuling {
    let Hearing { scene, call, .. } = hearing;
    let asked = Asked {
        question: clarify::question(call.tool, call.arguments),
        ticket: hearing.ticket(session, Purpose::Question),
        approval: None,
    };
    if call.can_ask && scene.caller.era == Era::Legacy {
        let held = hold(scene, session, account, reservation);
        return CallRuling::Ask { asked: Box::new(asked), held: Some(held) };
    }
    ruled(pending(scene, draft, asked, call.can_ask, reason, Some(session)))
}

/// Creates the question for an approver; at most one for each call.
fn approval_of(
    hearing: &Hearing<'_>,
    draft: &Draft,
    session: &Session,
    because: &Reason,
) -> Result<Asked, Reason> {
    let Hearing { scene, call, .. } = hearing;
    if !call.can_wait || call.before.put.is_some() {
        return Err(Reason::ApprovalUnavailable);
    }
    let ticket = hearing.ticket(session, Purpose::Approval);
    let (subject, id) = (hearing.subject(session), ticket.nonce.clone());
    let question = approval_question(scene, draft, subject, id, because)?;
    Ok(Asked {
        question: clarify::question(call.tool, call.arguments),
        ticket: Ticket { expires: question.expires, ..ticket },
        approval: Some(question),
    })
}

/// Lets the call wait for an approver: on the open stream (legacy), or until the client sends it again (modern).
fn wait_for_approver(
    hearing: &Hearing<'_>,
    draft: Draft,
    (session, account): (&mut Session, &mut Account),
    asked: Asked,
    (reason, reservation): (Reason, Reservation),
) -> CallRuling {
    let scene = hearing.scene;
    if scene.caller.era == Era::Legacy {
        let held = hold(scene, session, account, reservation);
        return CallRuling::Ask { asked: Box::new(asked), held: Some(held) };
    }
    ruled(pending(scene, draft, asked, true, reason, Some(session)))
}

/// Adds a reservation to the session, and to the principal's account if it has a ceiling.
fn hold(
    scene: &Scene<'_>,
    session: &mut Session,
    account: &mut Account,
    reservation: Reservation,
) -> ReservationId {
    if let Some(ceiling) = scene.rules.principal_ceiling.as_ref().filter(|_| reservation.by_principal) {
        account.spent = account.spent.within(ceiling.window, scene.now);
        account.spent.reserve(&reservation);
    }
    session.running.reserve(reservation)
}
