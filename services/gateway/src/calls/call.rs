//! A tool call, from the request to the answer of the decision writer.

use std::collections::BTreeMap;

use admission::arguments::CallArguments;
use admission::authenticated::Authenticated;
use admission::clarify::HumanAnswer;
use admission::decide::{Advised, JudgeAnswer, JudgeQuestion};
use admission::principal::{Caller, Era};
use admission::rules::AuthorityDemand;
use admission::tool::CheckedArguments;
use decimal::Decimal;
use http::StatusCode;
use jose::json;
use serde_json::value::RawValue;
use vap::message::slot::{self, Carrier, OWN_KEY, Received, Unreadable, VAP_KEY};

use super::additions::{Additions, VerdictSlot};
use super::pending::{CallSubject, NextStep, PendingCall};
use super::receipt_header::{receipt_header, with_receipt_header};
use super::refused::ArgumentsTooLong;
use super::request_state::RequestState;
use super::unsent::UnsentCall;
use super::{Calls, clients};
use crate::authority::{ChainMaterial, PresentedChain, PresentedFor, capability_of};
use crate::decision_writer::{CallAnswer, CallJob, DecisionAnswer, HeldRequest, QueuedCall, WriterError};
use crate::frame::{Frame, RawId};
use crate::judge::{Meter, Opinion};
use crate::mcp::{Inbound, InvocationMember};
use crate::relay::{self, Response};

type Envelope = Option<Result<Authenticated, Box<Unreadable>>>;

impl Calls {
    /// Decides about a call and answers it.
    pub(super) async fn call(
        &self,
        inbound: Inbound,
        id: RawId,
        subject: CallSubject,
        unsent: UnsentCall,
    ) -> Response {
        // Checked before the arguments are processed: their canonical form takes time in proportion to their length.
        if let Err(too_long) = self.check_length(inbound.frame.arguments_text().len()) {
            return relay::json(StatusCode::OK, too_long.message(inbound.frame.id()));
        }
        let (call, mut job) = self.read(inbound, id, subject, unsent);
        if job.envelope.is_none() {
            job.envelope = self.operator_envelope(&job).await;
        }
        if let Some(decision) = self.shared.writer.refused_at_once(&job) {
            return self.answer(call, Box::new(decision)).await;
        }
        if let Some(response) = self.still_waits(&call, &job).await {
            return response;
        }
        let is_watched = subject == CallSubject::Tool && self.rules.tools.watches();
        job.checked = is_watched.then(CheckedArguments::default);
        let queued = self.shared.writer.read_early(&job).await;
        job.checked = self.checked(&job, &queued).await;
        let answer = self.shared.writer.call_with(job, queued).await;
        match self.next_step(answer).await {
            NextStep::Answer(decision) => self.answer(call, decision).await,
            NextStep::Ask(asked, held) => match asked.approver_question {
                Some(question) => self.wait_for_approver(call, &question, *held).await,
                None => self.ask(call, *asked, *held),
            },
        }
    }

    /// Checks the length of arguments, in bytes.
    ///
    /// # Errors
    /// [`ArgumentsTooLong`] if they are longer than the route allows.
    pub fn check_length(&self, bytes: usize) -> Result<(), ArgumentsTooLong> {
        match bytes > self.offer.arguments_bytes {
            true => Err(ArgumentsTooLong(self.offer.arguments_bytes)),
            false => Ok(()),
        }
    }

    /// Decides about a call whose client cannot be asked a question.
    pub async fn decided(&self, job: CallJob) -> Box<DecisionAnswer> {
        let answer = match self.shared.writer.refused_at_once(&job) {
            Some(refused) => Box::new(refused),
            None => self.unasked(self.shared.writer.call(job).await).await,
        };
        self.count(&answer);
        answer
    }

    /// Decides a call to its end, without an answer to any question.
    async fn unasked(&self, mut answer: CallAnswer) -> Box<DecisionAnswer> {
        loop {
            match self.next_step(answer).await {
                NextStep::Answer(decision) => return decision,
                NextStep::Ask(_, held) => answer = held.answered(HumanAnswer::Unanswered).await,
            }
        }
    }

    /// Answers a decided call: forwards it if there is a pass, and refuses it otherwise.
    pub(super) async fn answer(&self, call: PendingCall, mut decision: Box<DecisionAnswer>) -> Response {
        self.count(&decision);
        let receipt = receipt_header(&decision);
        let response = match decision.pass.take() {
            Some(pass) => self.forward(call, decision, pass).await,
            None => self.refuse(&call, &decision),
        };
        with_receipt_header(response, receipt)
    }

    /// Checks the arguments of a call against its tool as it was read, if they are to be checked.
    async fn checked(
        &self,
        job: &CallJob,
        queued: &Result<QueuedCall, WriterError>,
    ) -> Option<CheckedArguments> {
        match queued {
            Ok(queued) if job.checked.is_some() => {
                Some(self.shared.tools.check(self.rules.tools, job, &queued.early).await)
            }
            _ => job.checked.clone(),
        }
    }

    /// Asks the judge as long as the answer is [`CallAnswer::Judge`], and checks the arguments again if it is
    /// [`CallAnswer::Check`].
    pub(super) async fn next_step(&self, mut answer: CallAnswer) -> NextStep {
        loop {
            answer = match answer {
                CallAnswer::Check(held) => {
                    let queued = self.shared.writer.read_early(held.job()).await;
                    let checked = self.checked(held.job(), &queued).await;
                    held.checked(checked, queued).await
                }
                CallAnswer::Ruled(decision) => return NextStep::Answer(decision),
                CallAnswer::Ask(asked, held) => return NextStep::Ask(asked, Box::new(held)),
                CallAnswer::Judge(question, held) => {
                    let (judged, words) = self.judged(&question).await;
                    held.judged(judged, &words).await
                }
            };
        }
    }

    /// Asks the judge, and returns its conclusion and its wording. Without a judge this is [`Opinion::none`].
    pub(super) async fn judged(&self, question: &JudgeQuestion) -> (JudgeAnswer, String) {
        let (opinion, meter, usual) = match &self.judging {
            Some(judging) => (judging.judge.ask(question).await, judging.meter, judging.usual),
            None => (Opinion::none("there is no judge"), Meter::Answers, Decimal::ZERO),
        };
        self.shared.telemetry.judged(opinion.word());
        (opinion.semantic(question.trigger, meter, usual), opinion.words)
    }

    /// Counts a Verdict in the metrics, with the advised one of an advisory route.
    pub(super) fn count(&self, decision: &DecisionAnswer) {
        let reason = decision.verdict.verification.reason.as_ref().map(|reason| reason.as_str());
        self.shared.telemetry.decided(decision.verdict.verdict.as_str(), reason.as_deref());
        if let Some(Advised { verdict, reason }) =
            decision.ruling.as_ref().and_then(|ruling| ruling.advised.as_ref())
        {
            let reason = reason.as_ref().map(|reason| reason.as_str());
            self.shared.telemetry.advised(verdict.as_str(), reason.as_deref());
        }
    }

    /// Builds the call and its job.
    fn read(
        &self,
        inbound: Inbound,
        id: RawId,
        subject: CallSubject,
        unsent: UnsentCall,
    ) -> (PendingCall, CallJob) {
        let envelope = self.message(&inbound.frame, Carrier::ToolsCall);
        let returned = RequestState::read(&inbound.frame, inbound.era, &self.shared.sealer);
        let can_ask = self.can_ask(&inbound);
        let asserted_client = self.asserted_client(&inbound);
        let can_wait = can_wait(&inbound);
        let (tool, arguments) = subject.named(&inbound.frame);
        let Inbound { endpoint, mut exchange, chain: material, invocation, era, caller, client, .. } =
            inbound;
        let has_altered_state = returned.is_altered();
        returned.restore(&mut exchange);
        let arguments = CallArguments::new(arguments);
        let chain = self.presented(&material, &tool, &arguments, &caller);
        let job = CallJob {
            route: self.route.to_string(),
            caller: caller.clone(),
            // The front accepts the request only if the header agrees with the body.
            header: (era == Era::Modern && subject == CallSubject::Tool).then(|| tool.clone()),
            tool,
            arguments,
            can_ask,
            can_wait,
            has_roa_envelope: material.is_present(),
            chain,
            checked: None,
            asserted_client,
            state: returned.opened,
            invocation: None,
            envelope: None,
        };
        let mut echo = Additions::default();
        echo.echo(invocation.as_ref());
        let place = place(&envelope);
        let speaks_vap = envelope.is_some();
        let job = CallJob {
            invocation: invocation.map(|InvocationMember { invocation, .. }| invocation),
            envelope,
            ..job
        };
        let request = HeldRequest::new(exchange);
        let call = PendingCall {
            endpoint,
            request,
            id,
            unsent,
            subject,
            caller,
            client,
            place,
            speaks_vap,
            has_altered_state,
            echo,
        };
        (call, job)
    }

    /// Verifies the chain of a call. `None` if the route does not enforce AgentROA.
    pub fn presented(
        &self,
        material: &ChainMaterial,
        tool: &str,
        arguments: &CallArguments,
        caller: &Caller,
    ) -> Option<PresentedChain> {
        let agent_roa = self.shared.writer.agent_roa()?;
        if self.rules.authority.demand == AuthorityDemand::Off {
            return None;
        }
        let capability = capability_of(&self.rules, tool);
        let call = PresentedFor { capability: capability.as_ref(), arguments, caller };
        Some(agent_roa.presented(material, call))
    }

    /// Reads the VAP message of a request, and checks its signature, once for all decisions about it.
    pub(super) fn message(&self, frame: &Frame, carrier: Carrier) -> Envelope {
        self.authenticated(slot::read(frame.meta(VAP_KEY), frame.meta(OWN_KEY), carrier))
    }

    pub(super) fn authenticated(&self, read: Result<Option<Received>, Box<Unreadable>>) -> Envelope {
        let read = read.transpose()?;
        Some(read.map(|received| Authenticated::new(received, &self.rules.keyring)))
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

impl CallSubject {
    /// Returns the name that is decided on, and the text of the arguments.
    fn named(self, frame: &Frame) -> (String, String) {
        match self {
            CallSubject::Tool => (frame.tool_name().unwrap_or_default(), frame.arguments_text().to_owned()),
            CallSubject::Method => (frame.method().unwrap_or_default().to_owned(), parameters(frame)),
        }
    }
}

/// Returns a method's parameters without `_meta`, `inputResponses` and `requestState`; parameters that are not strict JSON,
/// but for the size of their numbers, are returned as they are.
pub(super) fn parameters(frame: &Frame) -> String {
    let Some(text) = frame.params_text() else { return "{}".to_owned() };
    let members =
        json::check_any_numbers(text).and_then(|text| text.read::<BTreeMap<String, Box<RawValue>>>());
    // The record has what the server gets, and rules refuse what they cannot read.
    let Ok(mut members) = members else { return text.to_owned() };
    for name in ["_meta", "inputResponses", "requestState"] {
        members.remove(name);
    }
    serde_json::to_string(&members).unwrap_or_else(|_| "{}".to_owned())
}

/// Returns the position of the Verdict, which is the message's.
pub(super) fn place(envelope: &Envelope) -> VerdictSlot {
    match envelope {
        Some(Ok(received)) => VerdictSlot { shape: received.shape, key: received.key },
        Some(Err(unreadable)) => VerdictSlot { shape: unreadable.shape, key: unreadable.key },
        None => VerdictSlot::default(),
    }
}
