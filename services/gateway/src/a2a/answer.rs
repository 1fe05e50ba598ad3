//! An agent's answer as it passes to the client: the receipt is added, and the outcome is recorded.
//!
//! The answer to `message/send` is one response. That to `message/stream` is a stream of responses with the same id; it
//! ends with an error, a message, a final status, a task of A2A 1.0 that has ended, or the end of the stream. That result is
//! recorded, so a caller that gets the receipt gets no result after it. In A2A 0.3 a task alone ends no stream: an artifact or
//! the final status may follow, also once the task is shown as ended.

use admission::decide::VerdictDelivery;
use async_trait::async_trait;
use bytes::Bytes;
use jose::json::JsonError;
use vap::audit::CallStatus;

use super::RECEIPT;
use super::error_data::{self, ErrorData};
use crate::decision_writer::{AdmittedCall, CallOutcomeReport, DecisionAnswer};
use crate::frame::RawId;
use crate::frame::reply::Reply;
use crate::relay::{Over, Passing, Tap, failure_text, lost_answer};
use crate::upstream::UpstreamError;
use crate::upstream::text::may_be_message;

/// Members of a result that hold the object with the `metadata` (A2A 1.0). In A2A 0.3 the result is that object.
const WRAPPERS: [&str; 4] = ["task", "message", "statusUpdate", "artifactUpdate"];
/// Paths at which an agent could write a receipt that clients take for the gateway's.
const FORGEABLE: &[&[&str]] = &[
    &["result", "metadata"],
    &["result", "task", "metadata"],
    &["result", "message", "metadata"],
    &["result", "statusUpdate", "metadata"],
    &["result", "artifactUpdate", "metadata"],
    &["error", "data"],
];
/// The states in which a task ends (A2A 0.3 and 1.0).
const ENDED: [&str; 8] = [
    "completed",
    "canceled",
    "failed",
    "rejected",
    "TASK_STATE_COMPLETED",
    "TASK_STATE_CANCELED",
    "TASK_STATE_FAILED",
    "TASK_STATE_REJECTED",
];
/// Those of [`ENDED`] in which the agent did not do what was asked.
const FAILED: [&str; 4] = ["failed", "rejected", "TASK_STATE_FAILED", "TASK_STATE_REJECTED"];

/// A tap that adds the receipt to the first result, and settles the call with the last one.
pub struct AnswerTap {
    id: RawId,
    /// The call, until it is settled. If the tap is dropped before, the outcome is `unknown`.
    call: Option<AdmittedCall>,
    /// The receipt, until a result has taken it.
    receipt: Option<String>,
    error_data: ErrorData,
    /// `true` if the caller's answers get the receipt; otherwise they stay unchanged (V-33, advisory).
    is_annotated: bool,
    /// The outcome by the newest answer to the request.
    outcome: Option<CallOutcomeReport>,
    /// `true` if the task has ended by that answer: its outcome is then known, however the stream ends.
    has_ended: bool,
    /// `true` if the newest message was withheld, since it cannot be read.
    is_last_withheld: bool,
}

impl AnswerTap {
    /// Creates the tap for the answer to a request.
    pub fn new(id: RawId, error_data: ErrorData, call: AdmittedCall, decision: &DecisionAnswer) -> Self {
        let is_annotated = decision.delivery != VerdictDelivery::NotSent;
        let receipt = decision.receipt.as_ref().filter(|_| is_annotated).map(|receipt| receipt.json.clone());
        let (call, outcome, has_ended, is_last_withheld) = (Some(call), None, false, false);
        Self { id, call, receipt, error_data, is_annotated, outcome, has_ended, is_last_withheld }
    }

    /// Returns whether the caller's answers get the receipt; otherwise they stay unchanged (V-33, advisory).
    pub const fn is_annotated(&self) -> bool {
        self.is_annotated
    }

    /// Takes the outcome from an answer to the request, and settles the call with the last one. Any other message is none,
    /// whatever it holds.
    async fn take_outcome(&mut self, reply: &Reply) {
        if !reply.answers(&self.id) {
            return;
        }
        let result = AgentResult::of(reply);
        let mut outcome = result.report(reply);
        match (&self.outcome, result.has_state) {
            // An artifact says nothing about the state of its task.
            (Some(before), false) => outcome.status = before.status,
            _ => self.has_ended = result.has_ended,
        }
        self.is_last_withheld = false;
        self.outcome = Some(outcome);
        if result.is_last {
            self.settle().await;
        }
    }

    async fn settle(&mut self) {
        let Some(outcome) = self.outcome.take() else { return };
        if let Some(call) = self.call.take() {
            call.settle(outcome).await;
        }
    }

    /// Adds the receipt, if the result has a place for it.
    fn with_receipt(&mut self, reply: &Reply) -> Option<Bytes> {
        let receipt = self.receipt.as_deref()?;
        let added = match reply.is_error() {
            true => {
                let data = self.error_data.with_receipt(reply.error_member("data"), receipt)?;
                reply.with_error_member("data", &data)
            }
            false => {
                let metadata: Vec<&str> = metadata_holder(reply)?.into_iter().chain(["metadata"]).collect();
                match reply.result_at(&metadata) {
                    Some("null") => reply.with_result_at(&metadata, &format!("{{\"{RECEIPT}\":{receipt}}}")),
                    _ => reply.with_result_at(&[&metadata[..], &[RECEIPT]].concat(), receipt),
                }
            }
        }?;
        self.receipt = None;
        Some(added)
    }
}

#[async_trait]
impl Tap for AnswerTap {
    async fn message(&mut self, text: Bytes) -> Passing {
        let Ok(reply) = Reply::parse(text.clone()).and_then(|reply| without_receipts(&reply)) else {
            // Another reader might see a result in it.
            let is_withheld = self.is_annotated && may_be_message(&text);
            if may_be_message(&text) {
                (self.outcome, self.has_ended, self.is_last_withheld) = (None, false, is_withheld);
            }
            return if is_withheld { Passing::Withheld } else { Passing::Untouched };
        };
        // The outcome is that of another result.
        if self.is_annotated && self.call.is_none() && reply.answers(&self.id) {
            return Passing::Withheld;
        }
        self.take_outcome(&reply).await;
        if !self.is_annotated {
            return Passing::Untouched;
        }
        let receipt = if reply.answers(&self.id) { self.with_receipt(&reply) } else { None };
        let passed = receipt.unwrap_or_else(|| reply.text().clone());
        if passed == text { Passing::Untouched } else { Passing::Replaced(passed) }
    }

    async fn over(&mut self, how: Over) -> Option<Bytes> {
        if let Over::GivenUp(why) = &how {
            tracing::warn!(%why, "a request to an agent was given up");
        }
        if self.has_ended {
            self.settle().await;
            return None;
        }
        let words = match how {
            Over::Complete { .. } | Over::Resumed if self.is_last_withheld => {
                failure_text(&UpstreamError::Lost("its last message cannot be read".to_owned())).into_owned()
            }
            Over::GivenUp(why) => why.to_string(),
            Over::Complete { .. } | Over::Resumed => {
                self.settle().await;
                return None;
            }
            Over::Abandoned => return None,
            Over::Broken(error) => failure_text(&error).into_owned(),
        };
        self.call.take().map(|_unknown| lost_answer(Some(&self.id), &words))
    }
}

/// Returns the message without receipts of the agent's own.
fn without_receipts(reply: &Reply) -> Result<Reply, JsonError> {
    let reply = Reply::parse(reply.without_at(FORGEABLE, &[RECEIPT]))?;
    let data = reply.error_member("data").and_then(error_data::without_receipts);
    match data.and_then(|data| reply.with_error_member("data", &data)) {
        Some(text) => Reply::parse(text),
        None => Ok(reply),
    }
}

/// Returns the path below `result` of the object with the `metadata`; `None` if the result has none, such as a list.
fn metadata_holder(reply: &Reply) -> Option<Option<&'static str>> {
    if reply.result_member("kind").is_some() || reply.result_member("status").is_some() {
        return Some(None);
    }
    WRAPPERS.into_iter().find(|name| reply.result_member(name).is_some()).map(Some)
}

/// The state of a task as a result shows it.
struct AgentResult {
    /// `true` if no further result follows.
    is_last: bool,
    /// `true` if the result shows a state; an error and a message do.
    has_state: bool,
    has_ended: bool,
    has_failed: bool,
}

impl AgentResult {
    fn of(reply: &Reply) -> Self {
        let state = state(reply);
        let is_state = |states: &[&str]| state.as_deref().is_some_and(|state| states.contains(&state));
        let is_kind = |kind: &str| reply.result_member("kind") == Some(kind);
        let is_message = is_kind("\"message\"") || reply.result_member("message").is_some();
        let has_ended = is_state(&ENDED);
        // A2A 0.3 says of each status update whether others follow, and they may follow a task in any state.
        let is_final = match reply.result_member("final") {
            Some(is_final) => is_final == "true",
            None => has_ended && !is_kind("\"task\""),
        };
        Self {
            is_last: reply.is_error() || is_message || is_final,
            has_state: reply.is_error() || is_message || state.is_some(),
            has_ended,
            has_failed: reply.is_error() || is_state(&FAILED),
        }
    }

    fn report(&self, reply: &Reply) -> CallOutcomeReport {
        CallOutcomeReport {
            status: if self.has_failed { CallStatus::Errored } else { CallStatus::Executed },
            cost: None,
            result: reply.result().map(str::to_owned),
        }
    }
}

/// Returns the state of the task that a result is about.
fn state(reply: &Reply) -> Option<String> {
    let path: Vec<&str> = metadata_holder(reply)?.into_iter().chain(["status", "state"]).collect();
    reply.result_string_at(&path)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn result(result: &str) -> AgentResult {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#);
        AgentResult::of(&Reply::parse(text.into()).unwrap())
    }

    /// Whether a result is the last one, and whether its task has failed.
    fn view(text: &str) -> (bool, bool) {
        let result = result(text);
        (result.is_last, result.has_failed)
    }

    #[test]
    fn a_stream_ends_with_a_final_status_or_a_message_and_not_with_a_task_of_a2a_0_3() {
        assert_eq!(view(r#"{"kind":"task","id":"t","status":{"state":"working"}}"#), (false, false));
        assert_eq!(view(r#"{"kind":"task","id":"t","status":{"state":"completed"}}"#), (false, false));
        assert_eq!(view(r#"{"kind":"task","id":"t","status":{"state":"failed"}}"#), (false, true));
        let asks = r#"{"kind":"status-update","final":true,"status":{"state":"input-required"}}"#;
        assert_eq!(view(asks), (true, false));
        let goes_on = r#"{"kind":"status-update","final":false,"status":{"state":"completed"}}"#;
        assert_eq!(view(goes_on), (false, false));
        assert_eq!(view(r#"{"kind":"message","parts":[]}"#), (true, false));
        let cut = r#"{"kind":"task","id":"t","status":{"state":"failed","message":"\ud83d","n":1e400}}"#;
        assert_eq!(view(cut), (false, true), "what else the status holds is the agent's");
    }

    #[test]
    fn a_task_has_ended_by_its_state_and_an_artifact_has_none() {
        let task =
            |state: &str| result(&format!(r#"{{"kind":"task","id":"t","status":{{"state":"{state}"}}}}"#));
        assert!(task("completed").has_ended && task("canceled").has_ended);
        assert!(!task("working").has_ended && !task("input-required").has_ended);
        let artifact = result(r#"{"kind":"artifact-update","taskId":"t","artifact":{}}"#);
        assert!(!artifact.has_state && task("working").has_state);
    }

    #[test]
    fn the_wrapped_results_of_a2a_1_0_are_read_as_well() {
        assert_eq!(view(r#"{"task":{"id":"t","status":{"state":"TASK_STATE_FAILED"}}}"#), (true, true));
        assert_eq!(view(r#"{"statusUpdate":{"status":{"state":"TASK_STATE_WORKING"}}}"#), (false, false));
        assert_eq!(view(r#"{"message":{"parts":[]}}"#), (true, false));
    }

    #[test]
    fn a_result_without_metadata_has_no_place_for_a_receipt() {
        let list = Reply::parse(Bytes::from_static(br#"{"jsonrpc":"2.0","id":1,"result":[]}"#)).unwrap();
        assert_eq!(metadata_holder(&list), None);
    }
}
