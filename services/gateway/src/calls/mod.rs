//! Tool calls and declarations, from the request to the answer.
//!
//! A call is read and handed to the decision writer (`call`), and then takes one of three ways: it is refused in band
//! (`refused`), a person is asked (`ask`), or it is forwarded and settled by its answer (`outcome`). A declaration is
//! decided when the request that carried it has succeeded (`declare`, X-1). This module neither decides nor records:
//! `decision_writer` does.
//!
//! | file | contents |
//! |---|---|
//! | `call` | a call, from the request to the decision |
//! | `pending` | a call while it is decided |
//! | `unsent` | calls of which nothing was sent, and their cancellation (legacy era) |
//! | `request_state` | the `requestState` that a client returned with it |
//! | `ask` | a question on an open stream, or in an `input_required` result |
//! | `approve` | a call that waits for an approver outside of the client |
//! | `refused` | denials, and questions that the client cannot be asked |
//! | `outcome` | the answer of an upstream as it passes: cost, result, Verdict |
//! | `ending` | the settlement of a forwarded call by its answer |
//! | `unanswered` | answers that a legacy server sends on another stream |
//! | `resumable` | the same for other requests than calls |
//! | `answer_stream` | messages that are not the awaited answer |
//! | `tasks` | calls that go on as tasks (V-37) |
//! | `task_error` | the errors of refused requests about tasks |
//! | `declare` | commitments and amendments |
//! | `receipt_header` | the response header that refers to the execution receipt |
//! | `additions` | members that are spliced into an answer's `_meta` |
//! | `clients` | known legacy sessions, and whether their clients can be asked |
//! | `operator_session` | calls of clients without VAP under the operator's commitment |
//! | `list` | `tools/list`: noted before it passes, and filtered by the caller's scopes (V-36) |
//!
//! Not here: transport (`front`, `relay`), admission rules (`admission`), durability (`decision_writer`).

mod additions;
mod answer_stream;
mod approve;
mod ask;
mod call;
mod clients;
mod declare;
mod ending;
mod list;
mod operator_session;
mod outcome;
mod pending;
mod receipt_header;
mod refused;
mod request_state;
mod resumable;
mod task_error;
mod tasks;
mod unanswered;
mod unsent;

use std::sync::Arc;
use std::time::Duration;

use admission::principal::{Caller, Era};
use admission::rules::{Posture, Rules};
use async_trait::async_trait;
use bytes::Bytes;
use decimal::Decimal;
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::clarify::asked::OpenQuestions;
use crate::clarify::state::Sealer;
use crate::decision_writer::DecisionWriter;
use crate::frame::reply::Reply;
use crate::frame::{Frame, Kind, RawId, TOOLS_LIST};
use crate::judge::{Judge, Meter};
use crate::limits::{CANCELLED_TIME, FAILED_RESULT_TIME, LATE_ANSWER_TIME, QUESTION_TIME};
use crate::mcp::{ClientMessages, Inbound, Late, Opening, RequestKind, ServerMessages, SessionEvents};
use crate::posture;
use crate::relay::{CallLimit, Passing, Response, Tap};
use crate::telemetry::Telemetry;
use crate::tools::Tools;
use crate::upstream::UpstreamAnswer;

use answer_stream::AnswerStream;
use clients::Clients;
use operator_session::OpenSessions;
use pending::CallSubject;
use resumable::ResumableRequests;
use tasks::Tasks;
use unanswered::UnansweredCalls;
use unsent::UnsentCalls;

pub use receipt_header::{receipt_header, with_receipt_header};
pub use refused::{ArgumentsTooLong, REFUSED, words as refusal_words};

/// The state that all routes share, and that outlives a configuration.
pub struct Shared {
    /// The decision writer.
    pub writer: DecisionWriter,
    /// Seals and opens `requestState`.
    pub sealer: Sealer,
    /// The metrics.
    pub telemetry: Arc<Telemetry>,
    /// The time limits for answers.
    pub patience: Patience,
    asked: OpenQuestions,
    clients: Clients,
    tasks: Tasks,
    unsent: UnsentCalls,
    unanswered: UnansweredCalls,
    resumable: ResumableRequests,
    tools: Tools,
    operator_sessions: OpenSessions,
}

/// Time limits for answers from others.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Longest wait for a person's answer (V-26).
    pub question: Duration,
    /// Wait for an answer that a legacy server may send on another stream, unless the limit of the call is later.
    pub late_answer: Duration,
    /// Longest wait for the answer to a call that its client cancelled (legacy era).
    pub cancelled: Duration,
    /// Longest wait until a legacy client fetches the result of a failed task.
    pub failed_result: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            question: QUESTION_TIME,
            late_answer: LATE_ANSWER_TIME,
            cancelled: CANCELLED_TIME,
            failed_result: FAILED_RESULT_TIME,
        }
    }
}

/// The settings of a route that its clients see.
#[derive(Clone, Debug)]
pub struct Offer {
    /// The gateway's description of itself on this route, as JSON (V-34).
    pub posture: Arc<str>,
    /// `true` if `tools/list` shows a caller with a commitment only the tools that this permits (V-36).
    pub filter_tools: bool,
    /// The longest arguments that a call may have, in bytes.
    pub arguments_bytes: usize,
    /// The longest time from when a call is sent to the end of its answer.
    pub call_time: Duration,
    /// The same for any other request.
    pub request_time: Duration,
}

/// The judge of a route, and the price of its answers.
#[derive(Clone)]
pub struct Judging {
    /// The judge.
    pub judge: Arc<dyn Judge>,
    /// The unit in which its answers are counted.
    pub meter: Meter,
    /// The price of an answer; if tokens are counted, of one that does not state their number.
    pub usual: Decimal,
}

/// The request handlers of one route, under one configuration.
#[derive(Clone)]
pub struct Calls {
    route: Arc<str>,
    rules: Arc<Rules>,
    offer: Offer,
    judging: Option<Judging>,
    shared: Arc<Shared>,
}

/// Returns the MCP session in which a caller's ids name its calls. The modern era has no sessions.
fn legacy_session(caller: &Caller) -> Option<&str> {
    caller.mcp_session.as_deref().filter(|_| caller.era == Era::Legacy)
}

impl Shared {
    /// The shared state of a gateway that starts.
    #[must_use]
    pub fn new(
        writer: DecisionWriter,
        sealer: Sealer,
        telemetry: Arc<Telemetry>,
        patience: Patience,
    ) -> Arc<Self> {
        let (asked, clients) = (OpenQuestions::default(), Clients::default());
        let (tasks, unanswered) =
            (Tasks::default(), UnansweredCalls::new(patience.late_answer, patience.cancelled));
        let (tools, operator_sessions) = (Tools::default(), OpenSessions::default());
        Arc::new(Self {
            writer,
            sealer,
            telemetry,
            patience,
            asked,
            clients,
            tasks,
            unsent: UnsentCalls::default(),
            unanswered,
            resumable: ResumableRequests::new(patience.late_answer),
            tools,
            operator_sessions,
        })
    }
}

impl Calls {
    /// The handlers for the route of these rules.
    #[must_use]
    pub fn new(rules: Rules, offer: Offer, judging: Option<Judging>, shared: Arc<Shared>) -> Self {
        let route = rules.route.as_str().into();
        Self { route, rules: Arc::new(rules), offer, judging, shared }
    }

    /// Returns the path of the route.
    #[must_use]
    pub fn route(&self) -> &str {
        &self.route
    }

    /// The limit of a call that is sent now, and that `cancelled` cancels.
    #[must_use]
    pub fn limit(&self, cancelled: CancellationToken) -> CallLimit {
        CallLimit::new(self.offer.call_time, cancelled)
    }

    fn is_gated_by_operator(&self, method: &str) -> bool {
        self.rules.gated_methods.iter().any(|gated| gated == method)
    }

    /// Returns whether requests of this method are decided like calls of a tool, and limited like them.
    fn decides_as_call(&self, method: &str) -> bool {
        self.is_gated_by_operator(method) && !method.starts_with(tasks::METHODS) && method != TOOLS_LIST
    }

    /// Returns the passage for a caller whose answers get the gateway's `_meta` members. `own` is the request that is
    /// answered there.
    fn passage(&self, caller: &Caller, own: Option<RawId>) -> AnswerStream {
        let (shared, route) = (self.shared.clone(), self.route.clone());
        let caller = caller.clone();
        AnswerStream { shared, route, caller, own, annotated: true, is_refusal: false, is_resumed: false }
    }

    /// Adds the gateway's capability to the answer of `initialize` or `server/discover`.
    fn advertised(&self, era: Era, reply: &Reply) -> Bytes {
        let message = reply.text().clone();
        let path = match era {
            Era::Legacy => ["capabilities", "experimental", posture::EXPERIMENTAL],
            Era::Modern => ["capabilities", "extensions", posture::EXTENSION],
        };
        match reply.result() {
            Some(_) => reply.with_result_at(&path, &self.offer.posture).unwrap_or(message),
            None => message,
        }
    }
}

impl ClientMessages for Calls {
    fn gates(&self, method: &str) -> bool {
        method.starts_with(tasks::METHODS)
            || self.filters(method)
            || self.watches(method)
            || self.is_gated_by_operator(method)
    }

    fn request(self: Arc<Self>, kind: RequestKind, inbound: Inbound) -> BoxFuture<'static, Response> {
        let subject = match (kind, inbound.frame.method()) {
            (RequestKind::ToolCall, _) => CallSubject::Tool,
            (RequestKind::Amendment, _) => return Box::pin(async move { self.amend_only(inbound).await }),
            (RequestKind::Gated, Some(method)) if method.starts_with(tasks::METHODS) => {
                return Box::pin(async move { self.task(inbound).await });
            }
            (RequestKind::Gated, Some(TOOLS_LIST)) | (RequestKind::Carrier, _) => {
                return Box::pin(async move { self.carry(inbound).await });
            }
            (RequestKind::Gated, _) => CallSubject::Method,
        };
        let Some(id) = inbound.frame.id().cloned() else { return Box::pin(async { refused::no_id() }) };
        let unsent = self.shared.unsent.list(&self.route, &inbound.caller, &id);
        Box::pin(async move { self.call(inbound, id, subject, unsent).await })
    }

    fn time_limit(&self, method: &str) -> Option<Duration> {
        match method {
            // The result of a call: a server of 2025-11-25 answers once there is one.
            tasks::RESULT => Some(self.offer.call_time),
            _ if self.decides_as_call(method) => None,
            _ => Some(self.offer.request_time),
        }
    }

    fn takes(&self, inbound: &Inbound) -> bool {
        let (frame, session) = (&inbound.frame, inbound.caller.mcp_session.as_deref());
        match frame.kind() {
            Kind::Response => {
                frame.id().is_some_and(|id| self.shared.asked.take(session, id, frame.member("result")))
            }
            _ => self.withdrawn(inbound),
        }
    }
}

#[async_trait]
impl ServerMessages for Calls {
    fn advertise(&self, opening: &Opening, message: Bytes) -> Bytes {
        let Ok(reply) = Reply::parse(message.clone()) else { return message };
        let is_issued = opening.caller.is_session_issued && opening.frame.method() == Some("initialize");
        if let Some(session) = opening.caller.mcp_session.as_ref().filter(|_| is_issued) {
            self.shared.clients.met(&self.route, session, &opening.frame, &reply);
        }
        self.advertised(opening.caller.era, &reply)
    }

    fn resumable(
        &self,
        caller: &Caller,
        request: &Frame,
        answer: &UpstreamAnswer,
        tap: Box<dyn Tap>,
    ) -> Box<dyn Tap> {
        self.shared.resumable.wrap((&self.route, caller), request, answer, tap)
    }

    async fn late(&self, late: Late<'_>) -> Passing {
        let Ok(reply) = Reply::parse(late.message) else { return Passing::Withheld };
        let annotated = self.rules.posture != Posture::Advisory;
        let is_resumed = late.is_resumed;
        AnswerStream { annotated, is_resumed, ..self.passage(late.caller, None) }.unrelated(&reply).await
    }
}

#[async_trait]
impl SessionEvents for Calls {
    fn gave(&self, mcp_session: &str) -> bool {
        self.shared.clients.knows(&self.route, mcp_session)
    }

    async fn ended(&self, caller: &Caller) {
        if let Some(session) = &caller.mcp_session {
            self.shared.clients.gone(&self.route, session);
            self.shared.unsent.gone(&self.route, session);
            self.shared.unanswered.gone(&self.route, caller);
            self.shared.resumable.gone(&self.route, session);
        }
        self.end_operator_session(caller);
        self.shared.writer.end_sessions_of(caller).await;
    }
}
