//! What an admitted call still owes, whoever brings its answer: an outcome, and the Verdict in the answer.

use std::collections::BTreeMap;
use std::sync::Arc;

use admission::clarify::Ticket;
use admission::decide::{Settled, Status, Telling};
use admission::message::slot::VAP_KEY;
use admission::principal::{Caller, Era};
use admission::session::Meters;
use bytes::Bytes;
use serde_json::Value;
use serde_json::value::RawValue;

use super::Shared;
use super::additions::{Additions, COST};
use super::call::{Call, Subject};
use super::refused::additions;
use super::strays::clean;
use super::tasks;
use crate::clarify::state::Sealed;
use crate::desk::{Came, Pass, Told};
use crate::frame::RawId;
use crate::frame::reply::{self, Reply};
use crate::front::UPSTREAM_FAILED;
use crate::relay::Passing;
use crate::upstream::UpstreamError;

/// A call that was forwarded. Dropped, its outcome is `unknown`.
pub struct Ending {
    /// The route it came in on.
    pub route: Arc<str>,
    /// The call's id.
    pub id: RawId,
    /// Who calls.
    pub caller: Caller,
    /// The tool, as it was admitted.
    pub tool: String,
    shared: Arc<Shared>,
    subject: Subject,
    pass: Pass,
    additions: Additions,
    /// The Verdict, for the data of an error, if the caller speaks VAP.
    verdict: Option<String>,
    told: bool,
    ticket: Option<Box<Ticket>>,
    session_id: Option<String>,
}

impl Ending {
    /// Of a call that is about to be forwarded.
    pub fn of(
        call: &Call,
        (route, mut told): (Arc<str>, Box<Told>),
        mut pass: Pass,
        shared: Arc<Shared>,
    ) -> Self {
        pass.forwarding();
        let is_told = told.telling != Telling::Silent;
        let additions = if is_told { additions(call, &told) } else { Additions::default() };
        let verdict = call.speaks_vap.then(|| call.place.shape.dress(&told.text));
        let session_id = told.evidence.as_ref().map(|_| told.verdict.session_id.clone());
        Self {
            route,
            id: call.id.clone(),
            caller: call.caller.clone(),
            tool: told.ruling.as_ref().and_then(|ruling| ruling.tool.clone()).unwrap_or_default(),
            shared,
            subject: call.subject,
            pass,
            additions,
            verdict,
            told: is_told,
            ticket: told.ruling.as_mut().and_then(|ruling| ruling.ticket.take()),
            session_id,
        }
    }

    /// Which revisions the caller speaks.
    pub const fn era(&self) -> Era {
        self.caller.era
    }

    /// Whether the caller is told anything: else its answers stay untouched (V-33, advisory).
    pub const fn is_told(&self) -> bool {
        self.told
    }

    /// The session that the call belongs to.
    pub fn session_id(&self) -> Option<&str> {
        self.session_id.as_deref()
    }

    /// The answer came.
    pub async fn end(self, reply: &Reply) -> Passing {
        match tasks::created(reply).filter(|_| self.subject == Subject::Tool) {
            Some(task_id) => self.goes_on_as(task_id, reply),
            None => self.over(reply).await,
        }
    }

    /// The call goes on as a task: it is settled with the task's last result (V-37).
    fn goes_on_as(self, task_id: String, reply: &Reply) -> Passing {
        let (shared, told) = (self.shared.clone(), self.told);
        let spliced = reply.with_meta(&self.additions.members(), Additions::dropped());
        if told {
            shared.unanswered.remember(&self.route, &self.caller, &self.id, self.additions.clone());
        }
        shared.tasks.keep(task_id, self);
        if told { Passing::Replaced(spliced) } else { Passing::Untouched }
    }

    async fn over(self, reply: &Reply) -> Passing {
        let Self { shared, pass, mut additions, verdict, told, ticket, route, caller, id, .. } = self;
        let settled = pass.settle(came(reply)).await;
        if !told {
            return Passing::Untouched;
        }
        cost(&mut additions, &settled);
        if reply.is_error() {
            return failed(reply, verdict.as_deref());
        }
        let state = question_of(reply).and_then(|theirs| wrapped(&shared, *ticket?, theirs));
        let changes: &[_] = match &state {
            Some(state) => &[("requestState", Some(state.as_str()))],
            None => &[],
        };
        let spliced = reply.edited(changes, &additions.members(), Additions::dropped());
        shared.unanswered.remember(&route, &caller, &id, additions);
        Passing::Replaced(spliced)
    }

    /// The task is over. What its call cost is told with the task's last result.
    pub async fn settle_task(self, came: Came) -> Additions {
        let settled = self.pass.settle(came).await;
        let mut additions = Additions::default();
        cost(&mut additions, &settled);
        additions
    }

    /// The error that stands for an answer that never came, if nothing else was sent (X-2).
    pub fn lost(&self, error: &UpstreamError) -> Bytes {
        lost(&self.id, error, self.verdict.as_deref())
    }

    /// Nothing was sent after all: the reservation is given back (V-14).
    pub async fn never_sent(self) {
        self.pass.settle(Came { status: Status::Refused, cost: None, result: None }).await;
    }
}

/// What became of a call, by its answer.
pub fn came(reply: &Reply) -> Came {
    let failed = reply.is_error() || reply.is_tool_error();
    Came {
        status: if failed { Status::Errored } else { Status::Executed },
        cost: reply.meta(VAP_KEY).and_then(declared_cost),
        result: reply.result_without_meta(),
    }
}

/// What a tool declares (V-5): `_meta.vap.cost`, as it wrote it.
fn declared_cost(vap: &str) -> Option<String> {
    let members: BTreeMap<String, Box<RawValue>> = jose::json::read_text(vap).ok()?;
    members.get("cost").map(|cost| cost.get().to_owned())
}

fn cost(additions: &mut Additions, settled: &Settled) {
    if !settled.settled.is_empty() {
        additions.put(COST, numbers(&settled.settled));
    }
}

/// Meters as JSON numbers, each as its exact decimal text.
fn numbers(meters: &Meters) -> String {
    let members: Vec<_> =
        meters.iter().map(|(meter, amount)| format!("{}:{amount}", Value::from(meter))).collect();
    format!("{{{}}}", members.join(","))
}

/// An error, with the Verdict in its data if the caller speaks VAP, and without what an upstream said in its place (V-5).
fn failed(reply: &Reply, verdict: Option<&str>) -> Passing {
    let Passing::Replaced(cleaned) = clean(reply) else {
        let spliced = verdict.and_then(|verdict| reply.with_error_data(VAP_KEY, verdict));
        return spliced.map_or(Passing::Untouched, Passing::Replaced);
    };
    let reply = Reply::parse(cleaned.clone()).ok();
    let spliced = reply.and_then(|reply| reply.with_error_data(VAP_KEY, verdict?));
    Passing::Replaced(spliced.unwrap_or(cleaned))
}

/// The upstream asks something of its own (modern): the state that it wants back, if it wants any.
fn question_of(reply: &Reply) -> Option<Option<String>> {
    let asks = reply.result_member("resultType") == Some(r#""input_required""#);
    asks.then(|| reply.result_member("requestState").and_then(|text| jose::json::read_text(text).ok()))
}

/// Its state in ours, so that the retry is known for what it is (V-38).
fn wrapped(shared: &Shared, ticket: Ticket, theirs: Option<String>) -> Option<String> {
    let sealed = Sealed { ticket, upstream: theirs };
    shared.sealer.seal(&sealed).ok().map(|state| Value::from(state).to_string())
}

/// The error in place of an answer.
pub fn lost(id: &RawId, error: &UpstreamError, verdict: Option<&str>) -> Bytes {
    let words = match error {
        UpstreamError::NeverSent(_) => "the upstream cannot be reached; the call was not sent",
        UpstreamError::Lost(_) => "the upstream's answer is lost; what came of the call is unknown",
        UpstreamError::TimedOut => "the upstream gave no answer in time; what came of the call is unknown",
    };
    let data = verdict.map(|verdict| format!("{{\"vap\":{verdict}}}"));
    reply::error(Some(id), UPSTREAM_FAILED, words, data.as_deref())
}
