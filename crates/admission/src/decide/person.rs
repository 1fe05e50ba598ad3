//! Where a person decides (reading V-26): a state that comes back, and a question that goes out.

use crate::clarify::{self, Answer, Asked, Purpose, Shown, Ticket};
use crate::digest::Canon;
use crate::reason::Reason;
use crate::session::Session;
use crate::verdict::{Clarification, VerdictKind};

use super::Scene;
use super::draft::{Draft, standing};
use super::ruling::{ClaimKind, Ruling};

/// What a sealed state that came back is good for.
#[derive(Clone, Debug, Default)]
pub(super) struct Approved {
    /// A person said yes, or was asked before the upstream asked its own.
    pub person: bool,
    /// The call was counted already (reading V-38).
    pub counted: bool,
    /// What the admitted call uses up.
    pub nonce: Option<String>,
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
        (Purpose::Upstream, false) => Ok(Approved { person: true, counted: true, nonce }),
        (Purpose::Question, true) => Err(Reason::InvalidState),
        (Purpose::Question, false) => {
            let said = said_yes(shown.answer);
            if said.is_err() {
                draft.claim(ClaimKind::State, &ticket.nonce);
            }
            said.map(|()| Approved { person: true, counted: false, nonce })
        }
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
    let schema = jose::json::parse_text(clarify::SCHEMA).ok();
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
        policy: scene.rules.policy_digest.clone(),
        issued: scene.now.as_second(),
        expires: clarify::expiry(purpose, scene.now),
        nonce: data_encoding::BASE64URL_NOPAD.encode(&scene.dice.secret),
    }
}
