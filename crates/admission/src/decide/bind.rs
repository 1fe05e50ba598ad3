//! C1: the binding of a message to its principal and its session (readings V-2, V-20).

use jiff::Timestamp;
use serde_json::Value;

use crate::authenticated::{Authenticated, Signed};
use crate::principal::ProvenBy;
use crate::session::{Account, Session};
use crate::signature::Holder;
use vap::message::Message;
use vap::message::slot::Received;
use vap::reason::Reason;

use super::draft::Draft;
use super::ruling::ClaimKind;
use super::{DecisionContext, EarlierResults};

/// Binds a message to its session, after checking that the session is committed, of this route and of this caller.
/// Until then the ruling contains no data of the session, and its record does not go into the session's stream, since
/// an agent can send the id of any session.
pub(super) fn bind<'s>(
    context: &DecisionContext<'_>,
    received: &Authenticated,
    before: &EarlierResults<'_>,
    draft: &mut Draft,
    session: Option<&'s mut Session>,
) -> Result<&'s mut Session, Reason> {
    received.check_author()?;
    let session = session.filter(|session| session.agreed.route() == context.rules.route);
    let session = session.ok_or(Reason::NoCommitment)?;
    let signed = check_signature(context, received, session.agreed.agent_id(), before)?;
    let signed_by = signed.as_ref().map(|signed| signed.thumbprint.as_str());
    if !session.agreed.principal().is_presented_by(context.caller, signed_by) {
        return Err(Reason::WrongPrincipal);
    }
    let by_token =
        context.rules.keyring.check_token(session.agreed.agent_id(), context.caller.token.as_ref())?;
    let proven_by = session.agreed.proven_by(stronger(signed.as_ref(), by_token));
    check_evidence(context, session, proven_by)?;
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

/// Checks that the commitment's evidence for the agent's name still counts, if the message itself has none: the agent may
/// have got keys since then, or the operator may have withdrawn the key that signed the commitment, or the assignment of the
/// access token that came with it.
fn check_evidence(
    context: &DecisionContext<'_>,
    session: &Session,
    proven_by: ProvenBy,
) -> Result<(), Reason> {
    let (keyring, agent_id) = (&context.rules.keyring, session.agreed.agent_id());
    match (proven_by, session.agreed.signed_by()) {
        (ProvenBy::Asserted, _) if keyring.has_keys_of(agent_id) => Err(Reason::SignatureRequired),
        // While a token is assigned to the agent, each message needs one, and is then proven by it.
        (ProvenBy::Session, _) if session.agreed.is_opened_by_token() => Err(Reason::TokenNotOfAgent),
        (ProvenBy::Session, Some(thumbprint)) => keyring.check_key(thumbprint, agent_id, context.now),
        _ => Ok(()),
    }
}

/// Returns the stronger evidence for the agent's name: its key, otherwise its access token.
pub(super) fn stronger(signed: Option<&Signed>, by_token: ProvenBy) -> ProvenBy {
    match signed.map(Signed::proves) {
        Some(ProvenBy::Key) => ProvenBy::Key,
        _ => by_token,
    }
}

/// Returns a message's verified signature. A signature that was fresh when the gateway asked about the message does not
/// become stale while the answer is awaited: the time of the question counts.
pub(super) fn check_signature(
    context: &DecisionContext<'_>,
    received: &Authenticated,
    agent_id: &str,
    before: &EarlierResults<'_>,
) -> Result<Option<Signed>, Reason> {
    let check = |at| received.signer(agent_id, &context.rules.keyring, &context.rules.demands, at);
    match (check(context.now), question_time(context, received, before)) {
        (Err(Reason::Stale), Some(time)) => check(time),
        (checked, _) => checked,
    }
}

/// Returns the thumbprint of the key that signed a message, if the signature verifies, as C1 and S1 do. The caller uses
/// it to find the account before the decision. `session` is the session with the message's id.
#[must_use]
pub fn signed_by(
    context: &DecisionContext<'_>,
    received: &Authenticated,
    before: &EarlierResults<'_>,
    session: Option<&Session>,
) -> Option<String> {
    let agent_id = match (&received.message, session) {
        (Message::ScopeCommitment(commitment), _) => &commitment.principal.agent_id,
        (_, Some(session)) => session.agreed.agent_id(),
        (_, None) => return None,
    };
    let signed = check_signature(context, received, agent_id, before);
    signed.ok().flatten().map(|signed| signed.thumbprint)
}

/// Returns the time of the first decision about the message, if there was one: the signature's own time if the gateway
/// holds the request, or the time of the returned state.
fn question_time(
    context: &DecisionContext<'_>,
    received: &Authenticated,
    before: &EarlierResults<'_>,
) -> Option<Timestamp> {
    // A commitment or an amendment that waits for an approver is sent again, and needs a fresh signature then.
    let is_call = matches!(received.message, Message::IntentEnvelope(_));
    let second = match before.returned_state.as_ref().and_then(|state| state.ticket) {
        Some(ticket) if context.now.as_second() < ticket.expires && !is_spent(before) => ticket.issued,
        Some(_) => return None,
        None if before.judged.is_some()
            || before.answer.is_some()
            || (is_call && before.approver_question.is_some()) =>
        {
            header(received)?["iat"].as_i64()?
        }
        None => return None,
    };
    Timestamp::from_second(second).ok()
}

fn is_spent(before: &EarlierResults<'_>) -> bool {
    before.returned_state.as_ref().is_some_and(|state| state.spent)
}

/// Checks that the session is open, the message is not a replay, and the principal is not rate-limited.
pub(super) fn check_open(
    context: &DecisionContext<'_>,
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
    match account.is_rate_limited(context.now) {
        true => Err(Reason::RateLimited),
        false => Ok(()),
    }
}

/// Counts a denial in the principal's account for the rate limit (reading V-11). Only an identified principal is
/// counted, otherwise a stranger could exhaust another one's limit. Denials by the rate limit itself do not prolong it.
pub(super) fn count_denied(
    context: &DecisionContext<'_>,
    session: Option<&mut Session>,
    account: &mut Account,
    reason: &Reason,
) {
    let is_identified = session.is_some() || crate::principal::account_key(context.caller, None).is_some();
    if *reason == Reason::RateLimited || !is_identified {
        return;
    }
    account.count_denied(context.now);
    if let Some(session) = session {
        session.running.count_denied();
    }
}

/// Returns the unverified `jti` in the header of a message's signature, for the replay lookup before the decision.
#[must_use]
pub fn claimed_jti(received: &Received) -> Option<String> {
    header(received)?["jti"].as_str().map(str::to_owned)
}

/// Decodes the header of a message's signature without verifying it.
fn header(received: &Received) -> Option<Value> {
    let header = received.message.signature()?.split('.').next()?;
    let header = data_encoding::BASE64URL_NOPAD.decode(header.as_bytes()).ok()?;
    jose::json::read_bytes(&header).ok()
}
