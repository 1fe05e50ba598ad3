//! Denials in band: a tool's error result with the Verdict in `_meta`, so that the session goes on. What has no tool
//! result is a JSON-RPC error with the Verdict in its `data`.

use admission::explain::explain;
use admission::principal::Era;
use bytes::Bytes;
use http::StatusCode;
use vap::reason::Reason;
use vap::verdict::VerdictKind;

use super::Calls;
use super::additions::{AER, Additions, EVIDENCE};
use super::pending::{CallSubject, PendingCall};
use crate::decision_writer::DecisionAnswer;
use crate::frame::error_code::{INVALID_PARAMS, INVALID_REQUEST};
use crate::frame::{RawId, reply};
use crate::relay;
use crate::relay::Response;
use crate::upstream::answer::no_such_session;

/// The JSON-RPC code for a request that is refused and has no tool result.
pub const REFUSED: i32 = -31002;

impl Calls {
    /// Answers a call that is not forwarded: in band, with the status 404 in an MCP session that has ended, or with 400 if
    /// the returned state was altered.
    pub(super) fn refuse(&self, call: &PendingCall, decision: &DecisionAnswer) -> Response {
        if is_in_ended_session(call, decision) {
            return relay::pass(no_such_session(Some(call.id.text())));
        }
        let status = match is_about_altered_state(call, decision) {
            true => StatusCode::BAD_REQUEST,
            false => StatusCode::OK,
        };
        relay::json(status, self.refusal(call, decision))
    }

    /// Builds the message for a call that is not forwarded: a question for the client, a tool's error or a JSON-RPC
    /// error.
    pub(super) fn refusal(&self, call: &PendingCall, decision: &DecisionAnswer) -> Bytes {
        if let Some(message) = self.input_required(call, decision) {
            return message;
        }
        let words = words(decision);
        let error =
            |code| reply::error(Some(&call.id), code, &words, Some(&additions(call, decision).object()));
        match call.subject {
            _ if is_about_altered_state(call, decision) => error(INVALID_PARAMS),
            CallSubject::Tool => tool_error(call, decision, &words),
            CallSubject::Method => error(REFUSED),
        }
    }
}

/// Returns whether the call is denied because the state that it returns was altered. In MCP this is no failure of the
/// tool, but a request with parameters that cannot be used.
fn is_about_altered_state(call: &PendingCall, decision: &DecisionAnswer) -> bool {
    call.has_altered_state && decision.verdict.verification.reason == Some(Reason::InvalidState)
}

/// Returns whether the session under the operator's commitment has ended, which a client without VAP has through its MCP
/// session. After 404 it begins a new one; a denial in band would be the answer to each of its calls from now on.
fn is_in_ended_session(call: &PendingCall, decision: &DecisionAnswer) -> bool {
    let is_closed = matches!(decision.verdict.verification.reason, Some(Reason::SessionClosed));
    let has_session = call.client.era() == Era::Legacy && call.caller.mcp_session.is_some();
    is_closed && has_session && !call.speaks_vap
}

/// Returns the members for the answer to a call: echo, Verdict and evidence.
pub(super) fn additions(call: &PendingCall, decision: &DecisionAnswer) -> Additions {
    let mut additions = call.echo.clone();
    additions.verdict(call.place, &decision.text);
    if let Some(evidence) = &decision.evidence {
        additions.put(EVIDENCE, evidence.to_json());
    }
    if let Some(receipt) = &decision.receipt {
        additions.put(AER, receipt.json.clone());
    }
    additions
}

fn tool_error(call: &PendingCall, decision: &DecisionAnswer, words: &str) -> Bytes {
    let more: &[_] = match call.client.era() {
        Era::Modern => &[("resultType", "\"complete\"")],
        Era::Legacy => &[],
    };
    reply::tool_error(&call.id, words, more, &additions(call, decision).members())
}

/// Returns the text for a person who sees the answer, made of fixed texts (V-27).
pub fn words(decision: &DecisionAnswer) -> String {
    let reason = decision.verdict.verification.reason.as_ref();
    let decided = match decision.verdict.verdict {
        VerdictKind::Clarify => "This call has to be confirmed first",
        _ => "This call was denied",
    };
    match reason.map(|reason| (reason, explain(reason))) {
        Some((reason, why)) => {
            let place = decision.ruling.as_ref().and_then(|ruling| ruling.fault_place.as_deref());
            let place = place.map(|place| format!(" ({place}.)")).unwrap_or_default();
            format!("{decided} ({reason}). {}{place} {}", why.what, why.remedy)
        }
        None => format!("{decided}."),
    }
}

/// The error for arguments that are longer than the route allows, in bytes. There is no record of such a call.
#[derive(Clone, Copy, Debug)]
pub struct ArgumentsTooLong(pub usize);

impl ArgumentsTooLong {
    /// Returns the JSON-RPC error.
    #[must_use]
    pub fn message(self, id: Option<&RawId>) -> Bytes {
        let words = format!("the arguments are longer than {} bytes", self.0);
        reply::error(id, INVALID_PARAMS, &words, None)
    }
}

/// Refuses a request that has no id and thus cannot be answered.
pub(super) fn no_id() -> Response {
    let words = format!("{}: a request needs an id", Reason::Malformed);
    relay::error(StatusCode::BAD_REQUEST, INVALID_REQUEST, &words)
}
