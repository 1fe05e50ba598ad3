//! Tasks (reading V-37): a call is admitted once, when its task is created. Later requests about the task need the same
//! principal.
//!
//! The call's reservation stays in flight until the task's final result. A principal identified only by its signing key
//! cannot prove itself on a request without VAP; there, knowledge of the unguessable task id is the evidence.
//!
//! Not here: the storage of tasks (the gateway).

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::arguments::CallArguments;
use crate::principal::{Identity, Principal};
use crate::session::ReservationId;
use vap::reason::Reason;
use vap::verdict::VerdictKind;

use super::DecisionContext;
use super::draft::{Draft, principal_bytes};
use super::policy::{PolicyOutcome, RuleInput, evaluate};
use super::ruling::Ruling;
use super::semantic::RiskAssessment;

/// A task that a call created.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// The principal of the call; `None` if it was unknown.
    pub principal: Option<Principal>,
    /// The id of the session, if the call belonged to one.
    pub session_id: Option<String>,
    /// The reservation of the call, settled with the task's final result.
    pub reservation: Option<ReservationId>,
    /// The tool's name.
    pub tool: String,
}

/// A request about an existing task.
#[derive(Clone, Copy, Debug)]
pub struct FollowUp<'a> {
    /// The text of the inputs that the request has for the tool (`tasks/update`).
    pub inputs: Option<&'a str>,
}

/// Decides about a request for an existing task. Returns the denial, or `None` if the request may go on: then the
/// ruling of the call covers it.
pub fn follow_up(context: &DecisionContext<'_>, task: &Task, request: FollowUp<'_>) -> Option<Box<Ruling>> {
    let reason = denial_reason(context, task, request)?;
    // A caller other than the task's principal must not learn the session id.
    let is_owner = reason != Reason::WrongPrincipal;
    let mut draft = Draft::without_message(task.session_id.as_deref().filter(|_| is_owner));
    draft.set_call(&task.tool, CallArguments::new(request.inputs.unwrap_or("{}")).canonical());
    draft.texts.principal = Principal::of(context.caller, None).as_ref().map(principal_bytes);
    draft.has_rules = request.inputs.is_some() && !context.rules.policy.is_empty();
    Some(Box::new(draft.rule(context.rules, VerdictKind::Denied, Some(reason))))
}

/// Denies a request about an unknown task. Its principal cannot be checked, so the answer is the same as for a task of
/// another principal. The route's posture decides whether such requests are denied (V-33).
pub fn unknown_task(context: &DecisionContext<'_>, method: &str) -> Box<Ruling> {
    let mut draft = Draft::without_message(None);
    draft.set_call(method, CallArguments::new("{}").canonical());
    draft.texts.principal = Principal::of(context.caller, None).as_ref().map(principal_bytes);
    Box::new(draft.rule(context.rules, VerdictKind::Denied, Some(Reason::WrongPrincipal)))
}

fn denial_reason(context: &DecisionContext<'_>, task: &Task, request: FollowUp<'_>) -> Option<Reason> {
    let is_presented = |principal: &Principal| match principal.identity() {
        Identity::SigningKey(key) => principal.is_presented_by(context.caller, Some(key)),
        Identity::Token(_)
        | Identity::Certificate(_)
        | Identity::McpSession { .. }
        | Identity::Unidentified { .. } => principal.is_presented_by(context.caller, None),
    };
    if !task.principal.as_ref().is_none_or(is_presented) {
        return Some(Reason::WrongPrincipal);
    }
    let input = RuleInput {
        tool: &task.tool,
        arguments: request.inputs?,
        principal: json!({ "identity": task.principal.as_ref().map(Principal::identity) }),
        session: json!({ "id": task.session_id }),
        assessment: RiskAssessment::of_tool(context.rules, &task.tool),
    };
    match evaluate(context.rules, input) {
        PolicyOutcome::Allowed(_) => None,
        PolicyOutcome::Confirm(..) => Some(Reason::ConfirmationRequired),
        PolicyOutcome::Denied(reason) => Some(reason),
    }
}
