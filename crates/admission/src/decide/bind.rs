//! C1: whose message it is, and whose session (readings V-2, V-20).

use jiff::Timestamp;
use serde_json::Value;

use crate::message::Message;
use crate::message::slot::Received;
use crate::principal::ProvenBy;
use crate::reason::Reason;
use crate::session::{Account, Session};
use crate::signature::{self, Holder, Signed};

use super::draft::Draft;
use super::ruling::ClaimKind;
use super::{Before, Scene};

/// Binds a message to its session: accepted, of this route, and the caller's. Until then nothing about the session is told, and
/// nothing is written into its stream: whoever only knows its name learns as much as about a session that never was.
pub(super) fn bind<'s>(
    scene: &Scene<'_>,
    received: &Received,
    before: &Before<'_>,
    draft: &mut Draft,
    session: Option<&'s mut Session>,
) -> Result<&'s mut Session, Reason> {
    let session = session.filter(|session| session.agreed.route() == scene.rules.route);
    let session = session.ok_or(Reason::NoCommitment)?;
    let signed = check_signature(scene, received, session.agreed.agent_id(), before)?;
    let signed_by = signed.as_ref().map(|signed| signed.thumbprint.as_str());
    if !session.agreed.principal().is_shown_by(scene.caller, signed_by) {
        return Err(Reason::WrongPrincipal);
    }
    let by_token = scene.rules.keyring.check_token(session.agreed.agent_id(), scene.caller.token.as_ref())?;
    let proven_by = session.agreed.proven_by(stronger(signed.as_ref(), by_token));
    if proven_by == ProvenBy::Asserted && scene.rules.keyring.has_keys_of(session.agreed.agent_id()) {
        // The session began before the agent had keys.
        return Err(Reason::SignatureRequired);
    }
    if signed.is_some() {
        draft.passed("signature_ok");
    }
    draft.approved = signed.as_ref().is_some_and(|signed| signed.holder == Holder::Approver);
    if let Some(jti) = signed.as_ref().and_then(|signed| signed.jti.as_deref()) {
        draft.claim(ClaimKind::Jti, jti);
    }
    draft.bind(session, proven_by);
    draft.passed("bind_ok");
    Ok(session)
}

/// How the agent's name is shown: by its key, or else by its access token.
pub(super) fn stronger(signed: Option<&Signed>, by_token: ProvenBy) -> ProvenBy {
    match signed.map(Signed::proves) {
        Some(ProvenBy::Key) => ProvenBy::Key,
        _ => by_token,
    }
}

/// Checks a message's signature. One that was fresh when its question was asked does not grow stale over the answer: then it
/// is the time of the asking that counts.
pub(super) fn check_signature(
    scene: &Scene<'_>,
    received: &Received,
    agent_id: &str,
    before: &Before<'_>,
) -> Result<Option<Signed>, Reason> {
    let check = |at| signature::check(received, agent_id, &scene.rules.keyring, &scene.rules.demands, at);
    match (check(scene.now), asked_at(scene, received, before)) {
        (Err(Reason::Stale), Some(asked)) => check(asked),
        (checked, _) => checked,
    }
}

/// The thumbprint of the key that signed a message, if the signature holds: what C1 and S1 find, for whoever has to know whose
/// account the message is decided with. `session` is the one that the message names.
#[must_use]
pub fn signed_by(
    scene: &Scene<'_>,
    received: &Received,
    before: &Before<'_>,
    session: Option<&Session>,
) -> Option<String> {
    let agent_id = match (&received.message, session) {
        (Message::ScopeCommitment(commitment), _) => &commitment.principal.agent_id,
        (_, Some(session)) => session.agreed.agent_id(),
        (_, None) => return None,
    };
    let signed = check_signature(scene, received, agent_id, before);
    signed.ok().flatten().map(|signed| signed.thumbprint)
}

/// When the message was looked at first, if it was: its own time, where the gateway still holds the request, or that of the
/// state that came back.
fn asked_at(scene: &Scene<'_>, received: &Received, before: &Before<'_>) -> Option<Timestamp> {
    // A message that waits for an approver is sent again, and as fresh as any.
    let is_call = matches!(received.message, Message::IntentEnvelope(_));
    let second = match before.shown.as_ref().and_then(|shown| shown.ticket) {
        Some(ticket) if scene.now.as_second() < ticket.expires && !is_spent(before) => ticket.issued,
        Some(_) => return None,
        None if before.judged.is_some() || before.answer.is_some() || (is_call && before.put.is_some()) => {
            header(received)?["iat"].as_i64()?
        }
        None => return None,
    };
    Timestamp::from_second(second).ok()
}

fn is_spent(before: &Before<'_>) -> bool {
    before.shown.as_ref().is_some_and(|shown| shown.spent)
}

/// Whether a session takes messages at all, and this one from its principal now.
pub(super) fn check_open(
    scene: &Scene<'_>,
    session: &Session,
    account: &Account,
    replayed: bool,
) -> Result<(), Reason> {
    if session.running.is_closed() {
        return Err(Reason::SessionClosed);
    }
    if replayed {
        return Err(Reason::Replayed);
    }
    match account.is_rate_limited(scene.now) {
        true => Err(Reason::RateLimited),
        false => Ok(()),
    }
}

/// Counts a denial with the principal, so that it can be limited (reading V-11); only with one that was shown, or else a
/// stranger could have somebody denied. Denials for the sake of the limit do not prolong it.
pub(super) fn count_denied(
    scene: &Scene<'_>,
    session: Option<&mut Session>,
    account: &mut Account,
    reason: &Reason,
) {
    let shown = session.is_some() || super::account_key(scene.caller, None).is_some();
    if *reason == Reason::RateLimited || !shown {
        return;
    }
    account.count_denied(scene.now);
    if let Some(session) = session {
        session.running.count_denied();
    }
}

/// The `jti` that a message claims in its signature's header, unchecked: what to look up before the message is decided.
#[must_use]
pub fn claimed_jti(received: &Received) -> Option<String> {
    header(received)?["jti"].as_str().map(str::to_owned)
}

/// The header of a message's signature, unchecked.
fn header(received: &Received) -> Option<Value> {
    let header = received.message.signature()?.split('.').next()?;
    let header = data_encoding::BASE64URL_NOPAD.decode(header.as_bytes()).ok()?;
    jose::json::read_bytes(&header).ok()
}
