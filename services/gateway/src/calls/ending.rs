//! The settlement of a forwarded call by its answer, on any stream: the outcome, and the Verdict in the answer.

use std::collections::BTreeMap;
use std::sync::Arc;

use admission::clarify::SealedCall;
use admission::decide::{Settled, VerdictDelivery};
use admission::principal::{Caller, Era};
use admission::session::Meters;
use bytes::Bytes;
use serde_json::Value;
use serde_json::value::RawValue;
use vap::audit::CallStatus;
use vap::message::slot::VAP_KEY;

use super::Shared;
use super::additions::{Additions, COST};
use super::answer_stream::clean;
use super::pending::{CallSubject, PendingCall};
use super::refused::additions;
use crate::clarify::state::Sealed;
use crate::decision_writer::{AdmittedCall, CallOutcomeReport, DecisionAnswer, HeldRequest};
use crate::frame::RawId;
use crate::frame::reply::{self, Reply};
use crate::relay::{GivenUp, Passing, UPSTREAM_FAILED};
use crate::upstream::{Exchange, UpstreamError};

/// An admitted call that is not settled. Dropping it records the outcome `unknown`, or `refused` if nothing was sent.
pub struct Ending {
    /// The path of the route.
    pub route: Arc<str>,
    /// The call's JSON-RPC id.
    pub id: RawId,
    /// The caller.
    pub caller: Caller,
    /// The tool's name, as it was admitted.
    pub tool: String,
    shared: Arc<Shared>,
    subject: CallSubject,
    pass: AdmittedCall,
    additions: Additions,
    /// The Verdict for the data of an error, if the caller speaks VAP.
    verdict: Option<String>,
    annotated: bool,
    ticket: Option<Box<SealedCall>>,
    session_id: Option<String>,
}

impl Ending {
    /// The settlement of a call that is about to be forwarded.
    pub fn of(
        call: &PendingCall,
        (route, mut decision): (Arc<str>, Box<DecisionAnswer>),
        pass: AdmittedCall,
        shared: Arc<Shared>,
    ) -> Self {
        let is_annotated = decision.delivery != VerdictDelivery::NotSent;
        let additions = if is_annotated { additions(call, &decision) } else { Additions::default() };
        let verdict = call.speaks_vap.then(|| call.place.shape.dress(&decision.text));
        let session_id = decision.evidence.as_ref().map(|_| decision.verdict.session_id.clone());
        Self {
            route,
            id: call.id.clone(),
            caller: call.caller.clone(),
            tool: decision.ruling.as_ref().and_then(|ruling| ruling.tool.clone()).unwrap_or_default(),
            shared,
            subject: call.subject,
            pass,
            additions,
            verdict,
            annotated: is_annotated,
            ticket: decision.ruling.as_mut().and_then(|ruling| ruling.ticket.take()),
            session_id,
        }
    }

    /// Gives out the request of the call, to be sent once.
    pub fn release(&mut self, request: HeldRequest) -> Exchange {
        self.pass.release(request)
    }

    /// Returns the caller's era.
    pub const fn era(&self) -> Era {
        self.caller.era
    }

    /// Returns whether the caller's answers get the gateway's `_meta` members; otherwise they stay unchanged (V-33,
    /// advisory).
    pub const fn is_annotated(&self) -> bool {
        self.annotated
    }

    /// Returns the id of the session that the call belongs to.
    pub fn session_id(&self) -> Option<&str> {
        self.session_id.as_deref()
    }

    /// Handles the answer: settles the call, or keeps it as a task.
    pub async fn end(self, reply: &Reply) -> Passing {
        match created_task(reply).filter(|_| self.subject == CallSubject::Tool) {
            Some(task_id) => self.goes_on_as(task_id, reply),
            None => self.over(reply, outcome_of(reply)).await,
        }
    }

    /// Handles the gateway's own answer to a call of which nothing was sent: the reservation is released (V-14).
    pub async fn refused(self, reply: &Reply) -> Passing {
        self.over(reply, unsent()).await
    }

    /// Keeps the call as a task; it is settled with the task's last result (V-37).
    fn goes_on_as(self, task_id: String, reply: &Reply) -> Passing {
        let (shared, annotated) = (self.shared.clone(), self.annotated);
        let spliced = reply.with_meta(&self.additions.members(), Additions::dropped());
        if annotated {
            let answer = (&self.id, reply);
            shared.unanswered.remember(&self.route, &self.caller, answer, self.additions.clone());
        }
        shared.tasks.keep(task_id, self);
        if annotated { Passing::Replaced(spliced) } else { Passing::Untouched }
    }

    async fn over(self, reply: &Reply, outcome: CallOutcomeReport) -> Passing {
        let Self { shared, pass, mut additions, verdict, annotated, ticket, route, caller, id, .. } = self;
        let settled = pass.settle(outcome).await;
        if !annotated {
            return Passing::Untouched;
        }
        cost(&mut additions, &settled);
        let passing = if reply.is_error() {
            failed(reply, verdict.as_deref())
        } else {
            let state = question_of(reply).and_then(|theirs| wrapped(&shared, *ticket?, theirs));
            let changes: &[_] = match &state {
                Some(state) => &[("requestState", Some(state.as_str()))],
                None => &[],
            };
            Passing::Replaced(reply.edited(changes, &additions.members(), Additions::dropped()))
        };
        shared.unanswered.remember(&route, &caller, (&id, reply), additions);
        passing
    }

    /// Settles the call of a finished task, and returns its cost for the task's last result.
    pub async fn settle_task(self, outcome: CallOutcomeReport) -> Additions {
        let settled = self.pass.settle(outcome).await;
        let mut additions = Additions::default();
        cost(&mut additions, &settled);
        additions
    }

    /// Builds the error for an answer that did not arrive, if no other was sent (X-2).
    pub fn lost(&self, error: &UpstreamError) -> Bytes {
        self.without_answer(words(error))
    }

    /// Builds the error for an answer that is not awaited any longer.
    pub fn given_up(&self, why: GivenUp) -> Bytes {
        self.without_answer(&why.to_string())
    }

    /// Builds the error in place of an answer.
    pub fn without_answer(&self, words: &str) -> Bytes {
        lost(&self.id, words, self.verdict.as_deref())
    }

    /// Settles a call of which nothing was sent: the reservation is released (V-14).
    pub async fn never_sent(self) {
        self.pass.settle(unsent()).await;
    }
}

/// The result of a call of which nothing was sent.
pub const fn unsent() -> CallOutcomeReport {
    CallOutcomeReport { status: CallStatus::Refused, cost: None, result: None }
}

/// Derives the result of a call from its answer.
pub fn outcome_of(reply: &Reply) -> CallOutcomeReport {
    let failed = reply.is_error() || reply.is_tool_error();
    CallOutcomeReport {
        status: if failed { CallStatus::Errored } else { CallStatus::Executed },
        cost: reply.meta(VAP_KEY).and_then(declared_cost),
        result: reply.result_without_meta(),
    }
}

/// Returns the cost that a tool declares in `_meta.vap.cost`, as written (V-5).
fn declared_cost(vap: &str) -> Option<String> {
    let members: BTreeMap<String, Box<RawValue>> = jose::json::read_text(vap).ok()?;
    members.get("cost").map(|cost| cost.get().to_owned())
}

fn cost(additions: &mut Additions, settled: &Settled) {
    if !settled.settled.is_empty() {
        additions.put(COST, numbers(&settled.settled));
    }
}

/// Serializes meters as JSON numbers, each in its exact decimal form.
fn numbers(meters: &Meters) -> String {
    let members: Vec<_> =
        meters.iter().map(|(meter, amount)| format!("{}:{amount}", Value::from(meter))).collect();
    format!("{{{}}}", members.join(","))
}

/// Adds the Verdict to the data of an error if the caller speaks VAP, and removes an upstream's members under the
/// gateway's names (V-5).
fn failed(reply: &Reply, verdict: Option<&str>) -> Passing {
    let Passing::Replaced(cleaned) = clean(reply) else {
        let spliced = verdict.and_then(|verdict| reply.with_error_data(VAP_KEY, verdict));
        return spliced.map_or(Passing::Untouched, Passing::Replaced);
    };
    let reply = Reply::parse(cleaned.clone()).ok();
    let spliced = reply.and_then(|reply| reply.with_error_data(VAP_KEY, verdict?));
    Passing::Replaced(spliced.unwrap_or(cleaned))
}

/// Returns the state of an upstream that asks a question of its own (modern era). Inner `None`: it wants no state back.
fn question_of(reply: &Reply) -> Option<Option<String>> {
    let asks = reply.result_member("resultType") == Some(r#""input_required""#);
    asks.then(|| reply.result_member("requestState").and_then(|text| jose::json::read_text(text).ok()))
}

/// Wraps the upstream's state in a sealed one, so that the retry is recognized (V-38).
fn wrapped(shared: &Shared, ticket: SealedCall, theirs: Option<String>) -> Option<String> {
    let sealed = Sealed { ticket, upstream: theirs };
    shared.sealer.seal(&sealed).ok().map(|state| Value::from(state).to_string())
}

/// Returns the text of the error for a call without an answer.
pub const fn words(error: &UpstreamError) -> &'static str {
    match error {
        UpstreamError::NeverSent(_) => "the upstream cannot be reached; the call was not sent",
        UpstreamError::Lost(_) => "the upstream's answer is lost; the outcome of the call is unknown",
        UpstreamError::TimedOut | UpstreamError::Overdue { .. } => {
            "the upstream gave no answer in time; the outcome of the call is unknown"
        }
    }
}

/// Builds the error in place of an answer.
pub fn lost(id: &RawId, words: &str, verdict: Option<&str>) -> Bytes {
    let data = verdict.map(|verdict| format!("{{\"vap\":{verdict}}}"));
    reply::error(Some(id), UPSTREAM_FAILED, words, data.as_deref())
}

/// Returns the id of the task that a call became. An error is not a task, nor is an answer with a tool's result, even if it
/// names one.
fn created_task(reply: &Reply) -> Option<String> {
    if reply.is_error() {
        return None;
    }
    if ["content", "structuredContent", "isError"].iter().any(|of| reply.result_member(of).is_some()) {
        return None;
    }
    let of = |text: &str| jose::json::parse_text(text).ok()?.get("taskId")?.as_str().map(str::to_owned);
    match (reply.result_member("task"), reply.result_member("resultType")) {
        (Some(task), _) => of(task),
        (None, Some(r#""task""#)) => of(reply.result()?),
        (None, _) => None,
    }
}
