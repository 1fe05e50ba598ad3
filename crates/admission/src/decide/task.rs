//! Tasks (reading V-37): a call is admitted once, when its task is created; what follows needs the same principal.
//!
//! The reservation of the call stays in flight until the task's last result passes. A principal that is known by its signing key
//! alone shows nothing on a request without VAP: there the task's id, which is not to be guessed, is what it shows.
//!
//! Not here: where tasks are remembered (the gateway).

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::principal::{Identity, Principal};
use crate::reason::Reason;
use crate::session::ReservationId;
use crate::verdict::VerdictKind;

use super::Scene;
use super::draft::{Draft, canon, principal_bytes};
use super::policy::{Facts, Policed, police};
use super::ruling::Ruling;

/// A task that a call created.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// Whose call it was; none if nobody knows.
    pub principal: Option<Principal>,
    /// The session, if the call belonged to one.
    pub session_id: Option<String>,
    /// What its call has reserved: settled with the task's last result.
    pub reservation: Option<ReservationId>,
    /// The tool.
    pub tool: String,
}

/// A request about a task.
#[derive(Clone, Copy, Debug)]
pub struct FollowUp<'a> {
    /// The text of what it brings for the tool, if it does (`tasks/update`).
    pub inputs: Option<&'a str>,
}

/// Decides about a request that follows up a task. What goes on has no ruling of its own: its call was ruled.
pub fn follow_up(scene: &Scene<'_>, task: &Task, request: FollowUp<'_>) -> Option<Box<Ruling>> {
    let reason = refuses(scene, task, request)?;
    // Whoever it is not learns nothing of the session.
    let is_shown = reason != Reason::WrongPrincipal;
    let mut draft = Draft::of_unaware(task.session_id.as_deref().filter(|_| is_shown));
    draft.calls(&task.tool, &canon(request.inputs.unwrap_or("{}")));
    draft.said.principal = Principal::of(scene.caller, None).as_ref().map(principal_bytes);
    draft.policed = request.inputs.is_some() && !scene.rules.policy.is_empty();
    Some(Box::new(draft.rule(scene.rules, VerdictKind::Denied, Some(reason))))
}

/// Refuses a request about a task that nobody remembers: whose it is cannot be shown, and the answer is the same as for a
/// task of another's. Whether such requests are refused at all is the route's posture (V-33).
pub fn unknown_task(scene: &Scene<'_>, method: &str) -> Box<Ruling> {
    let mut draft = Draft::of_unaware(None);
    draft.calls(method, &canon("{}"));
    draft.said.principal = Principal::of(scene.caller, None).as_ref().map(principal_bytes);
    Box::new(draft.rule(scene.rules, VerdictKind::Denied, Some(Reason::WrongPrincipal)))
}

fn refuses(scene: &Scene<'_>, task: &Task, request: FollowUp<'_>) -> Option<Reason> {
    let shows = |principal: &Principal| match principal.identity() {
        Identity::SigningKey(key) => principal.is_shown_by(scene.caller, Some(key)),
        Identity::Token(_) | Identity::Certificate(_) | Identity::McpSession { .. } => {
            principal.is_shown_by(scene.caller, None)
        }
    };
    if !task.principal.as_ref().is_none_or(shows) {
        return Some(Reason::WrongPrincipal);
    }
    let facts = Facts {
        tool: &task.tool,
        arguments: request.inputs?,
        principal: json!({ "identity": task.principal.as_ref().map(Principal::identity) }),
        session: json!({ "id": task.session_id }),
    };
    match police(scene.rules, facts) {
        Policed::Allowed(_) => None,
        Policed::Confirm(..) => Some(Reason::ConfirmationRequired),
        Policed::Denied(reason) => Some(reason),
    }
}
