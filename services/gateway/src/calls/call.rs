//! A tool call, from the request to the answer of the decision writer.

use std::sync::Arc;

use admission::clarify::Asked;
use admission::decide::{Advised, Question, Semantic};
use admission::decimal::Decimal;
use admission::message::slot::{self, Carrier, OWN_KEY, Received, Unreadable, VAP_KEY};
use admission::principal::{Caller, Era};
use jose::json::{self, Limits};
use serde_json::value::RawValue;

use super::additions::{Additions, Place};
use super::brought::Brought;
use super::{Calls, clients};
use crate::desk::{CallAnswer, CallJob, HeldCall, Told};
use crate::frame::{Frame, RawId};
use crate::front::{Aside, Client, Inbound, Response, Route};
use crate::judge::{Meter, Opinion};
use crate::limits::MAX_DEPTH;
use crate::upstream::Exchange;

/// The kind of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A tool call.
    Tool,
    /// A method that the operator gates: it is decided like a tool, under the method's name (1.4).
    Method,
}

/// A call that is being decided, with all that its answer needs.
pub struct Call {
    /// The route of the request.
    pub route: Arc<Route>,
    /// The request for the upstream.
    pub exchange: Exchange,
    /// The JSON-RPC id of the request.
    pub id: RawId,
    /// The kind of the call.
    pub subject: Subject,
    /// The caller's identity.
    pub caller: Caller,
    /// The client's connection, on which the answer is awaited.
    pub client: Client,
    /// The position of the Verdict in the answer.
    pub place: Place,
    /// `true` if the request carries a VAP message.
    pub speaks_vap: bool,
    /// The members that every answer to this call gets.
    pub echo: Additions,
}

/// An answer of the decision writer after which the judge need not be asked.
pub enum Heard {
    /// The decision is made.
    Told(Box<Told>),
    /// A person or an approver must be asked.
    Ask(Box<Asked>, HeldCall),
}

type Envelope = Option<Result<Received, Box<Unreadable>>>;

impl Calls {
    /// Decides about a call and answers it.
    pub(super) async fn call(&self, inbound: Inbound, subject: Subject) -> Response {
        // Checked before the arguments are processed: their canonical form takes time in proportion to their length.
        if inbound.frame.arguments_text().len() > self.offer.arguments_bytes {
            return super::refused::arguments_too_long(inbound.frame.id(), self.offer.arguments_bytes);
        }
        let Some((call, mut job)) = self.read(inbound, subject) else { return super::refused::no_id() };
        if let Some(told) = self.shared.desk.refused_at_once(&job) {
            return self.answer(call, Box::new(told)).await;
        }
        if let Some(response) = self.still_waits(&call, &job).await {
            return response;
        }
        if subject == Subject::Tool && self.rules.tools.watches() {
            let (tools, called) = (&self.shared.tools, (job.route.as_str(), job.tool.as_str()));
            let checked = tools.check(&self.shared.desk, self.rules.tools, called, &job.arguments).await;
            job.checked = Some(checked);
        }
        let answer = self.shared.desk.call(job).await;
        match self.heard(answer).await {
            Heard::Told(told) => self.answer(call, told).await,
            Heard::Ask(asked, held) => match asked.approval {
                Some(question) => self.wait_for_approver(call, &question, held).await,
                None => self.ask(call, *asked, held),
            },
        }
    }

    /// Answers a decided call: forwards it if there is a pass, and refuses it otherwise.
    pub(super) async fn answer(&self, call: Call, mut told: Box<Told>) -> Response {
        self.count(&told);
        match told.pass.take() {
            Some(pass) => self.forward(call, told, pass).await,
            None => self.refuse(&call, &told),
        }
    }

    /// Asks the judge as long as the answer is [`CallAnswer::Judge`].
    pub(super) async fn heard(&self, mut answer: CallAnswer) -> Heard {
        loop {
            answer = match answer {
                CallAnswer::Ruled(told) => return Heard::Told(told),
                CallAnswer::Ask(asked, held) => return Heard::Ask(asked, held),
                CallAnswer::Judge(question, held) => {
                    let (judged, words) = self.judged(&question).await;
                    held.judged(judged, &words).await
                }
            };
        }
    }

    /// Asks the judge, and returns its conclusion and its wording. Without a judge this is [`Opinion::none`].
    pub(super) async fn judged(&self, question: &Question) -> (Semantic, String) {
        let (opinion, meter, usual) = match &self.judging {
            Some(judging) => (judging.judge.ask(question).await, judging.meter, judging.usual),
            None => (Opinion::none("there is no judge"), Meter::Answers, Decimal::ZERO),
        };
        self.shared.telemetry.judged(opinion.word());
        (opinion.semantic(question.trigger, meter, usual), opinion.words)
    }

    /// Counts a Verdict in the metrics, with the advised one of an advisory route.
    pub(super) fn count(&self, told: &Told) {
        let reason = told.verdict.verification.reason.as_ref().map(|reason| reason.as_str());
        self.shared.telemetry.decided(told.verdict.verdict.as_str(), reason.as_deref());
        if let Some(Advised { verdict, reason }) =
            told.ruling.as_ref().and_then(|ruling| ruling.advised.as_ref())
        {
            let reason = reason.as_ref().map(|reason| reason.as_str());
            self.shared.telemetry.advised(verdict.as_str(), reason.as_deref());
        }
    }

    /// Builds the call and its job. `None` if the request has no id and thus cannot be answered.
    fn read(&self, inbound: Inbound, subject: Subject) -> Option<(Call, CallJob)> {
        let id = inbound.frame.id()?.clone();
        let envelope = envelope(&inbound.frame);
        let brought = Brought::read(&inbound.frame, inbound.era, &self.shared.sealer);
        let can_ask = self.can_ask(&inbound);
        let asserted_client = self.asserted_client(&inbound);
        let can_wait = can_wait(&inbound);
        let (tool, arguments) = subject.named(&inbound.frame);
        let Inbound { route, mut exchange, has_roa_envelope, aside, era, caller, client, .. } = inbound;
        brought.restore(&mut exchange);
        let job = CallJob {
            route: self.route.to_string(),
            caller: caller.clone(),
            // The front accepts the request only if the header agrees with the body.
            header: (era == Era::Modern && subject == Subject::Tool).then(|| tool.clone()),
            tool,
            arguments,
            can_ask,
            can_wait,
            has_roa_envelope,
            checked: None,
            asserted_client,
            shown: brought.shown,
            aside: None,
            envelope: None,
        };
        let mut echo = Additions::default();
        echo.echo(aside.as_ref());
        let place = place(&envelope);
        let speaks_vap = envelope.is_some();
        let job = CallJob { aside: aside.map(|Aside { invocation, .. }| invocation), envelope, ..job };
        Some((Call { route, exchange, id, subject, caller, client, place, speaks_vap, echo }, job))
    }

    /// Returns the name that the client states for itself: in each request in the modern era, in `initialize` in the
    /// legacy eras.
    fn asserted_client(&self, inbound: &Inbound) -> Option<String> {
        match (inbound.era, &inbound.caller.mcp_session) {
            (Era::Modern, _) => clients::modern_name(&inbound.frame),
            (Era::Legacy, Some(session)) => self.shared.clients.name(&self.route, session),
            (Era::Legacy, None) => None,
        }
    }

    /// Returns whether the client can be asked by a form, while it waits for this answer.
    fn can_ask(&self, inbound: &Inbound) -> bool {
        match (inbound.era, &inbound.caller.mcp_session) {
            (Era::Modern, _) => {
                inbound.frame.method().is_some_and(clients::asks)
                    && clients::modern_can_be_asked(&inbound.frame)
            }
            (Era::Legacy, Some(session)) => {
                inbound.client.reads_events() && self.shared.clients.can_be_asked(&self.route, session)
            }
            (Era::Legacy, None) => false,
        }
    }
}

/// Returns whether the request can wait for an approver: on its stream, or since its client will send it again.
fn can_wait(inbound: &Inbound) -> bool {
    inbound.era == Era::Legacy || inbound.frame.method().is_some_and(clients::asks)
}

impl Subject {
    /// Returns the name that is decided on, and the text of the arguments.
    fn named(self, frame: &Frame) -> (String, String) {
        match self {
            Subject::Tool => (frame.tool_name().unwrap_or_default(), frame.arguments_text().to_owned()),
            Subject::Method => (frame.method().unwrap_or_default().to_owned(), parameters(frame)),
        }
    }
}

/// Returns a method's parameters without `_meta`, `inputResponses` and `requestState`.
pub(super) fn parameters(frame: &Frame) -> String {
    let members = frame.params_text().and_then(|text| {
        let limits = Limits { bytes: text.len(), depth: MAX_DEPTH };
        let text = json::check(text.as_bytes(), limits).ok()?;
        text.read::<std::collections::BTreeMap<String, Box<RawValue>>>().ok()
    });
    let mut members = members.unwrap_or_default();
    for beside in ["_meta", "inputResponses", "requestState"] {
        members.remove(beside);
    }
    serde_json::to_string(&members).unwrap_or_else(|_| "{}".to_owned())
}

fn envelope(frame: &Frame) -> Envelope {
    slot::read(frame.meta(VAP_KEY), frame.meta(OWN_KEY), Carrier::ToolsCall).transpose()
}

/// Returns the position of the Verdict, which is the message's.
pub(super) fn place(envelope: &Envelope) -> Place {
    match envelope {
        Some(Ok(received)) => Place { shape: received.shape, key: received.key },
        Some(Err(unreadable)) => Place { shape: unreadable.shape, key: unreadable.key },
        None => Place::default(),
    }
}
