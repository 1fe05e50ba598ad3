//! Calls without VAP, by the operator's posture (reading V-33).
//!
//! Omitting the envelope must not be an easy way around the checks. So, while the principal has a live session, a call
//! without an envelope is denied under every posture. A principal identified only by its signing key is unknown without
//! a message, so this does not apply to it.

use serde_json::{Value, json};

use crate::approval::Subject;
use crate::clarify::{self, Asked, Purpose, Ticket};
use crate::digest::Canon;
use crate::message::NO_SESSION;
use crate::principal::{Era, Principal, ProvenBy};
use crate::reason::Reason;
use crate::rules::{Decider, Posture, Rules};
use crate::session::Account;
use crate::verdict::{Downgrade, VerdictKind};

use super::bind::count_denied;
use super::call::ruled;
use super::draft::{Draft, canon, principal_bytes};
use super::hearing::check_tool;
use super::person::{
    approval_question, call_subject, check_approval, check_state, pending, said_yes, ticket,
};
use super::policy::{Facts, Policed, police};
use super::ruling::{Advised, CallRuling, Confirmation, Telling};
use super::{Call, Scene, account_key};

/// Decides about a call without VAP.
pub(super) fn unaware(scene: &Scene<'_>, account: &mut Account, call: &Call<'_>) -> CallRuling {
    let arguments = canon(call.arguments);
    let mut draft = Draft::of_unaware(account.only_session());
    draft.calls(call.tool, &arguments);
    draft.said.principal = Principal::of(scene.caller, None).as_ref().map(principal_bytes);
    if let Some(agent) = agent_of(scene) {
        (draft.agent_id, draft.proven_by) = (Some(agent.to_owned()), ProvenBy::Token);
    }
    let to_all = denied_to_all(scene.rules, call.tool, call.has_roa_envelope);
    let stop = match (account.is_rate_limited(scene.now), account.is_committed(), to_all, scene.rules.posture)
    {
        (true, _, _, _) => Reason::RateLimited,
        (false, _, Some(Reason::RoaNotEnforced), _) => Reason::RoaNotEnforced,
        (false, true, _, _) => Reason::NoEnvelope,
        (false, false, Some(reason), _) => reason,
        (false, false, None, Posture::Restricted) => match restricted(scene, &mut draft, call, &arguments) {
            Ok(None) => return served(scene, draft, call, &arguments),
            Ok(Some(ruling)) => return ruling,
            Err(reason) => reason,
        },
        (false, false, None, Posture::Advisory | Posture::Deny) => return advisory(scene, draft, call),
    };
    count_denied(scene, None, account, &stop);
    ruled(draft.rule(scene.rules, VerdictKind::Denied, Some(stop)))
}

/// Returns the reason why a call of this tool without VAP is denied for every caller, if there is one. The arguments
/// are irrelevant, so the gateway need not parse them.
#[must_use]
pub fn denied_to_all(rules: &Rules, tool: &str, has_roa_envelope: bool) -> Option<Reason> {
    match rules.posture {
        Posture::Advisory => None,
        Posture::Deny | Posture::Restricted if has_roa_envelope => Some(Reason::RoaNotEnforced),
        Posture::Deny => Some(Reason::NoEnvelope),
        Posture::Restricted => (!rules.is_restricted_tool(tool)).then_some(Reason::Restricted),
    }
}

/// Forwards and records a call without changing the response. The decision that the operator's rules would have made is
/// recorded too.
fn advisory(scene: &Scene<'_>, mut draft: Draft, call: &Call<'_>) -> CallRuling {
    draft.policed = !scene.rules.policy.is_empty();
    draft.telling = Telling::Silent;
    let mut ruling = draft.rule(scene.rules, VerdictKind::Served, None);
    ruling.advised = Some(advised(scene, call));
    ruling.forward = true;
    ruled(ruling)
}

fn advised(scene: &Scene<'_>, call: &Call<'_>) -> Advised {
    let denied = |reason| Advised { verdict: VerdictKind::Denied, reason: Some(reason) };
    if call.has_roa_envelope {
        return denied(Reason::RoaNotEnforced);
    }
    if let Some(fault) = call.tool_fault {
        return denied(fault.reason.clone());
    }
    match police(scene.rules, facts(scene, call)) {
        Policed::Allowed(_) => Advised { verdict: VerdictKind::Served, reason: None },
        Policed::Confirm(name, _) => {
            Advised { verdict: VerdictKind::Clarify, reason: Some(Reason::Policy(name)) }
        }
        Policed::Denied(reason) => denied(reason),
    }
}

/// Checks a call that restricted mode allows against the tool's pin and the operator's rules.
fn restricted(
    scene: &Scene<'_>,
    draft: &mut Draft,
    call: &Call<'_>,
    arguments: &Canon,
) -> Result<Option<CallRuling>, Reason> {
    draft.passed("restricted_ok");
    check_tool(draft, call)?;
    draft.policed = !scene.rules.policy.is_empty();
    match police(scene.rules, facts(scene, call)) {
        Policed::Denied(reason) => Err(reason),
        Policed::Allowed(_) => Ok(None),
        Policed::Confirm(name, by) => confirm(scene, draft, call, arguments, (Reason::Policy(name), by)),
    }
}

/// Asks a human about a call without a session. Nothing is reserved.
fn confirm(
    scene: &Scene<'_>,
    draft: &mut Draft,
    call: &Call<'_>,
    arguments: &Canon,
    (reason, by): (Reason, Decider),
) -> Result<Option<CallRuling>, Reason> {
    let ticket = |purpose| bound(scene, call, arguments, purpose);
    let approved = match &call.before.put {
        Some(put) => check_approval(scene, draft, put, &subject(scene, call, arguments))?,
        None => check_state(scene, draft, call.before.shown.as_ref(), ticket)?,
    };
    let is_approved = approved.by == Some(Decider::Approver);
    if is_approved || (by == Decider::Client && approved.by.is_some()) {
        draft.approved = is_approved;
        approved.claim(draft);
        draft.passed("confirmed");
        return Ok(None);
    }
    if let Some(answer) = call.before.answer {
        draft.confirmation = Some(Confirmation::Client(answer));
        said_yes(Some(answer))?;
        // The rules changed while the client was asked: now an approver has to answer.
        return if by == Decider::Client { Ok(None) } else { Err(Reason::ApprovalUnavailable) };
    }
    if by == Decider::Approver {
        return wait_for_approver(scene, draft, call, arguments, reason).map(Some);
    }
    let asked = Asked {
        question: clarify::question(call.tool, call.arguments),
        ticket: ticket(Purpose::Question),
        approval: None,
    };
    if call.can_ask && scene.caller.era == Era::Legacy {
        return Ok(Some(CallRuling::Ask { asked: Box::new(asked), held: None }));
    }
    let draft = std::mem::replace(draft, Draft::of_unaware(None));
    Ok(Some(ruled(pending(scene, draft, asked, call.can_ask, reason, None))))
}

/// Asks an approver about a call without a session.
fn wait_for_approver(
    scene: &Scene<'_>,
    draft: &mut Draft,
    call: &Call<'_>,
    arguments: &Canon,
    reason: Reason,
) -> Result<CallRuling, Reason> {
    if !call.can_wait || call.before.put.is_some() {
        return Err(Reason::ApprovalUnavailable);
    }
    let ticket = bound(scene, call, arguments, Purpose::Approval);
    let (subject, id) = (subject(scene, call, arguments), ticket.nonce.clone());
    let question = approval_question(scene, draft, subject, id, &reason)?;
    let asked = Asked {
        question: clarify::question(call.tool, call.arguments),
        ticket: Ticket { expires: question.expires, ..ticket },
        approval: Some(question),
    };
    if scene.caller.era == Era::Legacy {
        return Ok(CallRuling::Ask { asked: Box::new(asked), held: None });
    }
    let draft = std::mem::replace(draft, Draft::of_unaware(None));
    Ok(ruled(pending(scene, draft, asked, true, reason, None)))
}

/// Creates the subject of a question to an approver, with the caller's principal as far as it is known.
fn subject(scene: &Scene<'_>, call: &Call<'_>, arguments: &Canon) -> Subject {
    let holder = account_key(scene.caller, None).unwrap_or_default();
    call_subject(scene, call.tool, arguments, (NO_SESSION, &holder), None)
}

/// Creates the content of a sealed state for a call without a session, bound to the caller's principal as far as it is
/// known.
fn bound(scene: &Scene<'_>, call: &Call<'_>, arguments: &Canon, purpose: Purpose) -> Ticket {
    let holder = account_key(scene.caller, None).unwrap_or_default();
    ticket(scene, call.tool, arguments, purpose, NO_SESSION, &holder)
}

fn served(scene: &Scene<'_>, draft: Draft, call: &Call<'_>, arguments: &Canon) -> CallRuling {
    let approved = draft.approved;
    let mut ruling = draft.rule(scene.rules, VerdictKind::Downgraded, Some(Reason::Restricted));
    let note = Some("served in restricted mode: the call carried no VAP".to_owned());
    ruling.verdict.downgrade = Some(Downgrade { applied_scope: None, note });
    ruling.forward = true;
    let ticket = bound(scene, call, arguments, Purpose::Upstream);
    ruling.ticket = Some(Box::new(Ticket { approved, ..ticket }));
    ruled(ruling)
}

fn facts<'a>(scene: &Scene<'_>, call: &Call<'a>) -> Facts<'a> {
    let identity = Principal::of(scene.caller, None).map_or(Value::Null, |who| json!(who.identity()));
    let mut principal = json!({ "identity": identity });
    if let Some(agent) = agent_of(scene) {
        principal["agent_id"] = agent.into();
        principal["proven_by"] = ProvenBy::Token.as_str().into();
    }
    Facts {
        tool: call.tool,
        arguments: call.arguments,
        principal,
        session: json!({ "calls": 0, "meters": {}, "limits": {} }),
    }
}

/// Returns the id of the agent that the caller's access token belongs to.
fn agent_of<'a>(scene: &Scene<'a>) -> Option<&'a str> {
    scene.rules.keyring.agent_of(scene.caller.token.as_ref()?)
}
