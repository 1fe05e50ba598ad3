//! Tool calls: each is decided, its cost reserved and its record committed before it is forwarded.

use std::sync::Arc;
use std::time::Instant;

use admission::approval;
use admission::authenticated::Authenticated;
use admission::clarify::{Purpose, ReturnedState};
use admission::decide::{
    self, Authority, CallDecision, CallPermit, CallQuestion, DecisionContext, DecisionState, EarlierResults,
    RandomInputs, ToolCall,
};
use admission::principal::Caller;
use admission::rules::Rules;
use admission::session::{Account, ReservationId, Session};
use admission::tool::ToolFault;
use evidence::{Claim, ClaimKind};

use super::admitted_call::AdmittedCall;
use super::authority::{self, AttestedAuthority, CallAuthority};
use super::copies::{SentMessage, WorkingCopies, depends_on_others};
use super::earlier_passes::EarlierPasses;
use super::outcome::UnsettledCall;
use super::question;
use super::request::{Request, Ruled};
use super::tools::ToolsWork;
use super::undecided::{CallAnswer, UndecidedCall};
use super::writing::{CallParts, RecordedRuling, claim, jti_of, states_stream, write_call};
use crate::annex::{DecisionInputs, PutInputs};
use crate::authority::UsedEnvelope;
use crate::decision_writer::DecisionWriter;
use crate::decision_writer::clock::timestamp;
use crate::decision_writer::error::WriterError;
use crate::decision_writer::jobs::CallJob;
use crate::decision_writer::queue::QueueSlot;
use crate::decision_writer::states::{
    STATES_STREAM, StoredQuestion, StreamState, is_changed_by_others, question_stream, tool_stream,
};
use crate::decision_writer::transactions::{AwaitedSettlement, Batch, EarlyRead, Job, JobStep, Work};

/// A job that decides a [`CallJob`].
pub struct CallWork {
    request: Request<CallAnswer>,
    job: Arc<CallJob>,
    passes: EarlierPasses,
    random: RandomInputs,
    slot: Arc<QueueSlot>,
    /// What was read at the call's arrival, for the first attempt.
    early: Option<EarlyRead>,
    /// The rules in force, read again for each attempt.
    rules: Arc<Rules>,
    tool: Tool,
    /// The client stream for a call without a session; `None` if its record goes into the gateway's own stream.
    client_stream: Option<String>,
    /// The stored question to approvers, with its answer.
    put: Option<PutInputs>,
    /// `true` if the client can wait for an approver, and there is room for one more question.
    can_wait: bool,
    /// The decision of AgentROA, as VAP's stages take it.
    authority: Authority,
    /// The session after the admission.
    snapshot: Option<Box<Session>>,
    /// The amounts that the admitted call reserved under its envelope.
    envelope: Option<UsedEnvelope>,
    made: Option<DecidedCall>,
}

/// The state of a tool as it affects one call.
#[derive(Default)]
struct Tool {
    fault: Option<ToolFault>,
    /// `true` if the arguments were checked against another description than the one in force.
    is_outdated: bool,
    approval_unrecorded: bool,
}

/// A decision whose answer is sent once it is durable.
enum DecidedCall {
    Ruled(Ruled, Option<CallPermit>),
    Ask(CallQuestion, Option<ReservationId>),
    /// The arguments have to be checked again.
    Check,
}

impl CallWork {
    pub fn new(
        request: Request<CallAnswer>,
        job: Arc<CallJob>,
        passes: EarlierPasses,
        random: RandomInputs,
        slot: Arc<QueueSlot>,
        early: EarlyRead,
    ) -> Self {
        let writer = &request.writer;
        let rules = writer.rules_of(&job.route);
        let client_stream = writer.client_stream(&job.caller).filter(|_| job.envelope.is_none());
        Self {
            can_wait: job.can_wait,
            request,
            job,
            passes,
            random,
            slot,
            early: Some(early),
            rules,
            tool: Tool::default(),
            client_stream,
            put: None,
            authority: Authority::default(),
            snapshot: None,
            envelope: None,
            made: None,
        }
    }

    fn received(&self) -> Option<&Authenticated> {
        self.job.received()
    }

    fn session_id(&self) -> Option<&str> {
        session_id(&self.job)
    }

    fn before(&self, batch: &Batch<'_>) -> EarlierResults<'_> {
        let spent = state_claim(&self.job).is_some_and(|claim| batch.is_used(&claim));
        EarlierResults {
            held: self.passes.held,
            judged: self.passes.judged,
            answer: self.passes.answer,
            returned_state: self.job.state.as_ref().map(|state| ReturnedState {
                ticket: state.ticket.as_ref(),
                spent,
                answer: state.answer,
            }),
            approver_question: self.put.as_ref().map(PutInputs::put),
        }
    }

    /// The id of the question that was put to approvers about this call: kept in `passes`, or named by the returned state
    /// token.
    fn question_id(&self) -> Option<&str> {
        let of_state = || {
            let ticket = self.job.state.as_ref()?.ticket.as_ref()?;
            (ticket.purpose == Purpose::Approval).then_some(ticket.nonce.as_str())
        };
        self.passes.question.as_deref().or_else(of_state)
    }

    fn context<'a>(&'a self, caller: &'a Caller, batch: &Batch<'_>) -> DecisionContext<'a> {
        DecisionContext { rules: &self.rules, caller, now: timestamp(batch.now), random: self.random }
    }

    fn sent<'a>(&'a self, caller: &'a Caller, batch: &Batch<'_>) -> SentMessage<'a> {
        let context = self.context(caller, batch);
        SentMessage { context, received: self.received(), before: self.before(batch) }
    }

    fn call(&self, batch: &Batch<'_>) -> ToolCall<'_> {
        let job = &*self.job;
        let envelope = job.envelope.as_ref();
        ToolCall {
            envelope: envelope.map(|envelope| envelope.as_ref().map_err(|unreadable| &**unreadable)),
            tool: &job.tool,
            header: job.header.as_deref(),
            arguments: &job.arguments,
            can_ask: job.can_ask,
            can_wait: self.can_wait,
            authority: &self.authority,
            tool_fault: self.tool.fault.as_ref(),
            replayed: jti(&self.job).is_some_and(|claim| batch.is_used(&claim)),
            before: self.before(batch),
        }
    }

    /// Compares the tool and the arguments with the stored pin. `None` if the tool's stream is not loaded yet.
    fn tool_now(&self, batch: &mut Batch<'_>) -> Option<Tool> {
        let Some(checked) = self.passes.checked.as_ref().or(self.job.checked.as_ref()) else {
            return Some(Tool::default());
        };
        let pin = match batch.stream(&tool_stream(&self.job.route, &self.job.tool))?.state() {
            Some(StreamState::Tool(pin)) => Some(&**pin),
            _ => None,
        };
        Some(Tool {
            fault: self.rules.tools.fault_of(pin, checked),
            is_outdated: self.rules.tools.is_outdated(pin, checked),
            approval_unrecorded: pin.is_some_and(|pin| pin.approval_unrecorded),
        })
    }

    fn ruling(&self, batch: &Batch<'_>, copies: &mut WorkingCopies) -> CallDecision {
        let caller = copies.caller.clone();
        let state = DecisionState { session: &mut copies.session, account: &mut copies.account };
        decide::call(&self.context(&caller, batch), state, &self.call(batch))
    }

    /// Decides under AgentROA, before the stages of VAP.
    fn authorize(&mut self, batch: &mut Batch<'_>) -> Result<Option<CallAuthority>, JobStep> {
        let decided = authority::decide(&self.request.writer, batch, &self.job, &self.rules)?;
        self.authority = authority::for_stages(decided.as_ref(), &self.job);
        Ok(decided)
    }

    /// Attests AgentROA's decision, and keeps the use of the envelope by an admitted call.
    fn attest_authority(
        &mut self,
        batch: &mut Batch<'_>,
        decided: Option<CallAuthority>,
        is_admitted: bool,
    ) -> Result<AttestedAuthority, WriterError> {
        let Some(decided) = decided else { return Ok(AttestedAuthority::default()) };
        let attested = authority::attest(&self.request.writer, batch, &self.job, &self.rules, &decided)?;
        self.envelope = is_admitted.then(|| authority::keep(batch, decided)).flatten();
        Ok(attested)
    }

    /// Writes the ruling. `account` is the principal's account before the decision.
    fn rule(
        &mut self,
        batch: &mut Batch<'_>,
        copies: WorkingCopies,
        account: Account,
        mut ruling: Box<decide::Ruling>,
        permit: Option<CallPermit>,
        decided: Option<CallAuthority>,
    ) -> Result<(), WriterError> {
        let AttestedAuthority { statements, receipt } =
            self.attest_authority(batch, decided, permit.is_some())?;
        ruling.aer_id = receipt.as_ref().map(|receipt| receipt.aer_id.clone());
        let reservation = permit.as_ref().and_then(CallPermit::reservation);
        self.snapshot = reservation.and(copies.session.clone()).map(Box::new);
        let (context, call) = (self.context(&copies.caller, batch), self.call(batch));
        let inputs = DecisionInputs::of_call(&self.job.route, &context, &call);
        let account = depends_on_others(&ruling, &self.rules).then_some(account);
        let inputs = self.passes.recorded(inputs, &copies, account);
        copies.hold(batch, self.passes.held, None);
        ruling.asserted_client.clone_from(&self.job.asserted_client);
        let invocation = self.job.invocation.as_ref();
        // A denied call does not begin a client stream.
        let client_streams = &self.request.writer.inner.client_streams;
        let client = self.client_stream.as_deref();
        let client = client.filter(|stream| permit.is_none() || client_streams.take(stream));
        let parts = CallParts { permit: permit.as_ref(), client, attested: statements };
        let mut written = write_call(batch, &mut ruling, parts, invocation, inputs.into())?;
        written.receipt = receipt;
        if permit.is_some() && reservation.is_none() {
            batch.count_open(&written.stream);
        }
        question::used_up_by(&ruling).for_each(|id| question::spend(batch, id));
        self.made = Some(DecidedCall::Ruled(Ruled::Recorded(ruling, Box::new(written)), permit));
        Ok(())
    }

    /// Returns the permitted call, ready to be forwarded.
    fn admitted(&mut self, permit: CallPermit, written: &RecordedRuling) -> AdmittedCall {
        let call = UnsettledCall {
            rules: self.rules.clone(),
            stream: written.stream.clone(),
            decision: written.id,
            permit,
            tool: self.job.tool.clone(),
            snapshot: self.snapshot.take(),
            envelope: self.envelope.take(),
        };
        AdmittedCall::new(self.request.writer.clone(), call)
    }
}

/// Returns the claims that a call may use.
pub fn claims_of(job: &CallJob) -> Vec<Claim> {
    jti(job).into_iter().chain(state_claim(job)).chain(authority::proof_claim(job)).collect()
}

/// Returns the streams that hold the state of a call's tool and authority.
fn streams_of(writer: &DecisionWriter, job: &CallJob) -> Vec<String> {
    let tool = job.checked.is_some().then(|| tool_stream(&job.route, &job.tool));
    tool.into_iter().chain(authority::streams(writer, job)).collect()
}

/// Returns those of a call's streams that others change while the gateway runs.
pub fn streams_of_others(writer: &DecisionWriter, job: &CallJob) -> Vec<String> {
    streams_of(writer, job).into_iter().filter(|name| is_changed_by_others(name)).collect()
}

fn session_id(job: &CallJob) -> Option<&str> {
    job.received().map(|received| received.message.session_id())
}

fn jti(job: &CallJob) -> Option<Claim> {
    jti_of(job.received()?)
}

fn state_claim(job: &CallJob) -> Option<Claim> {
    let ticket = job.state.as_ref()?.ticket.as_ref()?;
    Some(claim(states_stream(session_id(job)), ClaimKind::Question, &ticket.nonce))
}

/// Returns the key of the account against whose limit a question about the call would count.
fn whose(copies: &WorkingCopies) -> String {
    match &copies.session {
        Some(session) => session.agreed.account().to_owned(),
        None => admission::principal::account_key(&copies.caller, None).unwrap_or_default(),
    }
}

/// The question to approvers that a decision raises, if any.
fn asked_of_approvers(decision: &CallDecision) -> Option<&approval::Question> {
    match decision {
        CallDecision::Ask { question: CallQuestion::Human(asked), .. } => asked.approver_question.as_deref(),
        CallDecision::Refuse(ruling) => ruling.pending.as_ref()?.approver_question.as_deref(),
        CallDecision::Admit(..) | CallDecision::Wait | CallDecision::Ask { .. } => None,
    }
}

impl Work for CallWork {
    fn streams(&self) -> Vec<String> {
        let mut streams = vec![self.request.writer.unbound()];
        streams.extend(self.client_stream.clone());
        streams.extend(self.session_id().map(str::to_owned));
        if self.job.state.is_some() {
            streams.push(STATES_STREAM.to_owned());
        }
        streams.extend(self.question_id().map(question_stream));
        streams.extend(streams_of(&self.request.writer, &self.job));
        streams
    }

    fn claims(&self) -> Vec<Claim> {
        claims_of(&self.job)
    }

    fn take_early_read(&mut self) -> Option<EarlyRead> {
        self.early.take()
    }

    fn is_abandoned(&self) -> bool {
        // `UndecidedCall` releases the reservation when it is dropped.
        self.request.is_abandoned()
    }

    fn may_be_refused(&self) -> bool {
        true
    }

    fn since(&self) -> Instant {
        self.request.since
    }

    fn bytes(&self) -> usize {
        self.job.bytes()
    }

    fn decide(&mut self, batch: &mut Batch<'_>) -> JobStep {
        self.slot.go_on();
        // The rules may have changed while the call waited, or since the last attempt.
        self.rules = self.request.writer.rules_of(&self.job.route);
        self.tool = match self.tool_now(batch) {
            Some(tool) => tool,
            None => return JobStep::Needs(batch.missing()),
        };
        if self.tool.is_outdated && self.passes.may_check_again() {
            self.made = Some(DecidedCall::Check);
            return JobStep::Nothing;
        }
        if let Some(id) = self.question_id() {
            let Some(stored) = question::stored(batch, id) else { return JobStep::Needs(batch.missing()) };
            self.put = stored.map(|StoredQuestion { question, answer, spent }| PutInputs {
                question,
                answer,
                spent,
            });
        }
        let authority = match self.authorize(batch) {
            Ok(authority) => authority,
            Err(step) => return step,
        };
        let sent = self.sent(&self.job.caller, batch);
        let Some(mut copies) = WorkingCopies::of_message(batch, &sent) else {
            return JobStep::Needs(batch.missing());
        };
        copies.forget_questions(batch, &self.rules);
        let account = copies.account.clone();
        let now = timestamp(batch.now);
        self.can_wait =
            self.job.can_wait && self.request.writer.questions().has_room(&whose(&copies), now.as_second());
        let decision = self.ruling(batch, &mut copies);
        // The commit of a question uses up no claim, so it would not find out that the call is a replay.
        if matches!(decision, CallDecision::Ask { .. }) && !batch.has_looked_up(&self.claims()) {
            return JobStep::NeedsClaims(self.claims());
        }
        if let Some(question) = asked_of_approvers(&decision)
            && !question::put(batch, question)
        {
            return JobStep::Needs(batch.missing());
        }
        let (ruling, permit) = match decision {
            CallDecision::Admit(permit, ruling) => (ruling, Some(permit)),
            CallDecision::Refuse(ruling) => {
                let sent = self.sent(&copies.caller, batch);
                if self.request.writer.is_only_counted(batch, &sent, copies.session.as_ref(), &ruling) {
                    self.made = Some(DecidedCall::Ruled(Ruled::Counted(ruling), None));
                    return JobStep::Nothing;
                }
                (ruling, None)
            }
            CallDecision::Wait => {
                self.slot.wait();
                let stream = copies.stream.unwrap_or_default();
                return JobStep::Wait(AwaitedSettlement { stream, tool: self.job.tool.clone() });
            }
            CallDecision::Ask { question, held } => {
                self.passes.first_at.get_or_insert(now.as_millisecond());
                match &question {
                    CallQuestion::Judge(_) => copies.hold(batch, self.passes.held, held),
                    CallQuestion::Human(asked) => {
                        let until = asked.approver_question.as_ref().map_or(0, |question| question.expires);
                        copies.hold_until(batch, self.passes.held, held, u64::try_from(until).unwrap_or(0));
                    }
                }
                self.made = Some(DecidedCall::Ask(question, held));
                return JobStep::Decided;
            }
        };
        match self.rule(batch, copies, account, ruling, permit, authority) {
            Ok(()) => JobStep::Decided,
            Err(why) => JobStep::Impossible(why),
        }
    }

    fn committed(mut self: Box<Self>) {
        let writer = self.request.writer.clone();
        if self.tool.approval_unrecorded {
            let work = ToolsWork::approved(writer.clone(), &self.job.route, &self.job.tool);
            writer.hand_in(Box::new(work));
        }
        let undecided = |held, question| {
            UndecidedCall::new(writer.clone(), self.job.clone(), (held, question), self.passes.clone())
        };
        let answer = match self.made.take() {
            Some(DecidedCall::Ruled(made, permit)) => {
                let pass = match &made {
                    Ruled::Recorded(ruling, written) => {
                        let pending =
                            ruling.pending.as_ref().and_then(|asked| asked.approver_question.as_deref());
                        pending.into_iter().for_each(|question| writer.questions().put(question));
                        question::used_up_by(ruling).for_each(|id| writer.questions().notify(id));
                        permit.map(|permit| self.admitted(permit, written))
                    }
                    Ruled::Counted(_) => None,
                };
                CallAnswer::Ruled(Box::new(made.answer(&writer, pass)))
            }
            Some(DecidedCall::Ask(CallQuestion::Judge(question), held)) => {
                CallAnswer::Judge(question, undecided(held, None))
            }
            Some(DecidedCall::Ask(CallQuestion::Human(asked), held)) => {
                let put = asked.approver_question.as_deref();
                put.into_iter().for_each(|question| writer.questions().put(question));
                let id = put.map(|question| question.id.clone());
                CallAnswer::Ask(asked, undecided(held, id))
            }
            Some(DecidedCall::Check) => CallAnswer::Check(undecided(None, None)),
            None => return,
        };
        self.request.answer(answer);
    }

    fn failed(self: Box<Self>, why: &WriterError) -> Option<Job> {
        self.request.fail(why);
        None
    }
}
