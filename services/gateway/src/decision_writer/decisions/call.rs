//! Tool calls: each is decided, its cost reserved and its record committed before it is forwarded.
//!
//! An attempt reads what may have changed while the call waited, decides under AgentROA and then under VAP, and records the
//! ruling. It ends without a ruling if the arguments have to be checked again, if another call must be settled first (V-12,
//! R-48), or if a judge or a person must be asked.

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
use evidence::Claim;

use super::admitted_call::AdmittedCall;
use super::authority::{self, AuthorityStatements, CallAuthority};
use super::call_needs::{call_message_id_claim, claims_of, session_id, state_claim, streams_of};
use super::earlier_rounds::EarlierRounds;
use super::outcome::UnsettledCall;
use super::question;
use super::request::{Request, Ruled};
use super::ruling_records::{CallRecordParts, RecordedRuling, record_call_ruling};
use super::session_with_account::{SentMessage, SessionWithAccount, depends_on_account};
use super::tools::ToolsWork;
use super::undecided::{CallAnswer, UndecidedCall};
use crate::annex::DecisionInputs;
use crate::authority::UsedEnvelope;
use crate::decision_writer::clock::timestamp;
use crate::decision_writer::error::WriterError;
use crate::decision_writer::jobs::CallJob;
use crate::decision_writer::queue::{QueueSlot, QueuedCall};
use crate::decision_writer::states::{
    STATES_STREAM, StoredQuestion, StreamState, question_stream, tool_stream,
};
use crate::decision_writer::transactions::{
    AwaitedSettlement, Batch, DecideError, EarlyRead, SettlementWait, StreamNotLoaded, Work, WorkItem,
    WorkStep,
};

/// Decides a [`CallJob`].
pub struct CallWork {
    request: Request<CallAnswer>,
    job: Arc<CallJob>,
    rounds: EarlierRounds,
    random: RandomInputs,
    slot: Arc<QueueSlot>,
    since: Instant,
    /// What was read at the call's arrival, for the first attempt.
    early: Option<EarlyRead>,
    /// The client stream for a call without a session; `None` if its record goes into the gateway's own stream.
    client_stream: Option<String>,
    /// The inputs of the current attempt.
    inputs: AttemptInputs,
    /// The session after the admission.
    snapshot: Option<Box<Session>>,
    /// The amounts that the admitted call reserved under its envelope.
    envelope: Option<UsedEnvelope>,
    /// The stream of the envelope if the call has waited for another one under it.
    awaited_envelope: Option<String>,
    /// The result, which is answered once it is durable.
    result: Option<CallResult>,
}

/// The inputs of a decision that are read again for each attempt.
struct AttemptInputs {
    /// The rules in force.
    rules: Arc<Rules>,
    tool: ToolState,
    /// The stored question to approvers, with its answer.
    stored_question: Option<StoredQuestion>,
    /// `true` if the client can wait for an approver, and the approver was asked or there is room for one more question.
    can_wait: bool,
    /// The decision of AgentROA, as VAP's stages take it.
    authority: Authority,
}

/// The state of a tool as it affects one call.
#[derive(Default)]
struct ToolState {
    fault: Option<ToolFault>,
    /// `true` if the arguments were checked against another description than the one in force.
    is_outdated: bool,
    approval_unrecorded: bool,
}

/// Result of a round.
enum CallResult {
    Ruled(Ruled, Option<CallPermit>),
    /// A judge or a person must be asked. The reservation is held meanwhile.
    Ask(CallQuestion, Option<ReservationId>),
    /// The arguments have to be checked again.
    CheckArguments,
}

/// A ruling that is to be recorded, with what belongs to it.
struct CallRuling {
    ruling: Box<decide::Ruling>,
    permit: Option<CallPermit>,
    /// The decision of AgentROA, if it is enforced.
    authority: Option<CallAuthority>,
    /// The principal's account before the decision.
    account: Account,
}

impl CallWork {
    pub fn new(
        request: Request<CallAnswer>,
        job: Arc<CallJob>,
        rounds: EarlierRounds,
        random: RandomInputs,
        queued: QueuedCall,
    ) -> Self {
        let (writer, QueuedCall { slot, early }) = (&request.writer, queued);
        let inputs = AttemptInputs {
            rules: writer.rules_of(&job.route),
            tool: ToolState::default(),
            stored_question: None,
            can_wait: job.can_wait,
            authority: Authority::default(),
        };
        Self {
            client_stream: writer.client_stream(&job.caller).filter(|_| job.envelope.is_none()),
            request,
            job,
            rounds,
            random,
            slot,
            since: Instant::now(),
            early: Some(early),
            inputs,
            snapshot: None,
            envelope: None,
            awaited_envelope: None,
            result: None,
        }
    }

    fn received(&self) -> Option<&Authenticated> {
        self.job.received()
    }

    fn session_id(&self) -> Option<&str> {
        session_id(&self.job)
    }

    fn earlier_results(&self, batch: &Batch<'_>) -> EarlierResults<'_> {
        let spent = state_claim(&self.job).is_some_and(|claim| batch.is_used(&claim));
        EarlierResults {
            held: self.rounds.held,
            judged: self.rounds.judged,
            answer: self.rounds.answer,
            returned_state: self.job.state.as_ref().map(|state| ReturnedState {
                ticket: state.ticket.as_ref(),
                spent,
                answer: state.answer,
            }),
            approver_question: self.inputs.stored_question.as_ref().map(StoredQuestion::as_input),
        }
    }

    /// Returns the id of the question that was put to approvers about this call: from an earlier round, or from the returned
    /// state token.
    fn question_id(&self) -> Option<&str> {
        let of_state = || {
            let ticket = self.job.state.as_ref()?.ticket.as_ref()?;
            (ticket.purpose == Purpose::Approval).then_some(ticket.nonce.as_str())
        };
        self.rounds.question.as_deref().or_else(of_state)
    }

    fn context<'a>(&'a self, caller: &'a Caller, batch: &Batch<'_>) -> DecisionContext<'a> {
        DecisionContext { rules: &self.inputs.rules, caller, now: timestamp(batch.now), random: self.random }
    }

    fn sent<'a>(&'a self, caller: &'a Caller, batch: &Batch<'_>) -> SentMessage<'a> {
        let context = self.context(caller, batch);
        SentMessage { context, received: self.received(), before: self.earlier_results(batch) }
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
            can_wait: self.inputs.can_wait,
            authority: &self.inputs.authority,
            tool_fault: self.inputs.tool.fault.as_ref(),
            replayed: call_message_id_claim(&self.job).is_some_and(|claim| batch.is_used(&claim)),
            before: self.earlier_results(batch),
        }
    }

    /// Compares the tool and the arguments with the stored pin.
    fn tool_state(&self, batch: &mut Batch<'_>) -> Result<ToolState, StreamNotLoaded> {
        let Some(checked) = self.rounds.checked.as_ref().or(self.job.checked.as_ref()) else {
            return Ok(ToolState::default());
        };
        let pin = match batch.stream(&tool_stream(&self.job.route, &self.job.tool))?.state() {
            Some(StreamState::Tool(pin)) => Some(&**pin),
            _ => None,
        };
        let rules = self.inputs.rules.tools;
        Ok(ToolState {
            fault: rules.fault_of(pin, checked),
            is_outdated: rules.is_outdated(pin, checked),
            approval_unrecorded: pin.is_some_and(|pin| pin.approval_unrecorded),
        })
    }

    /// Decides under AgentROA, before the stages of VAP.
    fn decide_authority(
        &mut self,
        batch: &mut Batch<'_>,
        working: &SessionWithAccount,
    ) -> Result<Option<CallAuthority>, StreamNotLoaded> {
        let context = self.context(&working.caller, batch);
        let is_counted = decide::repeats_counted_call(&context, working.session.as_ref(), &self.call(batch));
        let (writer, rules) = (&self.request.writer, &self.inputs.rules);
        let decided = authority::decide(writer, batch, &self.job, rules, is_counted)?;
        self.inputs.authority = authority::for_stages(decided.as_ref(), &self.job);
        Ok(decided)
    }

    /// Decides under VAP.
    fn decide_on(&self, batch: &Batch<'_>, working: &mut SessionWithAccount) -> CallDecision {
        let caller = working.caller.clone();
        let state = DecisionState { session: &mut working.session, account: &mut working.account };
        decide::call(&self.context(&caller, batch), state, &self.call(batch))
    }

    /// Returns whether a denial is counted instead of recorded. One of an agent that a proof identifies is recorded, unless
    /// the proof was used before: anyone who has seen it can send it again.
    fn is_only_counted(
        &self,
        batch: &Batch<'_>,
        working: &SessionWithAccount,
        denial: &decide::Ruling,
    ) -> bool {
        let sent = self.sent(&working.caller, batch);
        let session = working.session.as_ref();
        let is_used = authority::proof_claim(&self.job).is_some_and(|proof| batch.is_used(&proof));
        let is_proven = self.job.is_proven() && !is_used;
        !is_proven && self.request.writer.is_only_counted(batch, &sent, session, denial)
    }

    /// Returns the step with which the call waits for the settlement of another one.
    fn wait_for(&self, awaited: AwaitedSettlement) -> WorkStep {
        self.slot.free_while_waiting();
        WorkStep::Wait(SettlementWait { awaited, since: self.since, bytes: self.job.bytes() })
    }

    /// Lets the commit wake the next call that waits under the envelope, if this one has waited under it: a denial or a
    /// question reserves nothing there whose settlement would wake it. Without a commit, the writer's poll does.
    fn wake_next(&self, batch: &mut Batch<'_>) -> Result<(), WriterError> {
        if let Some(envelope) = &self.awaited_envelope {
            batch.loaded(envelope)?.mark_as_changed_if_open();
        }
        Ok(())
    }

    fn can_wait(&self, batch: &Batch<'_>, working: &SessionWithAccount) -> bool {
        let now = timestamp(batch.now).as_second();
        let has_room = || self.request.writer.questions().has_room(&question_account(working), now);
        let was_asked = self.inputs.stored_question.is_some() || self.rounds.answer.is_some();
        self.job.can_wait && (was_asked || has_room())
    }

    /// Holds the reservation for the question, until it is answered or over.
    fn ask(
        &mut self,
        batch: &mut Batch<'_>,
        working: SessionWithAccount,
        question: CallQuestion,
        held: Option<ReservationId>,
    ) -> Result<(), WriterError> {
        self.wake_next(batch)?;
        self.rounds.first_at.get_or_insert(timestamp(batch.now).as_millisecond());
        let expires = match &question {
            CallQuestion::Judge(_) => 0,
            CallQuestion::Human(human) => {
                human.approver_question.as_ref().map_or(0, |question| question.expires)
            }
        };
        working.write_undecided(batch, self.rounds.held, held, u64::try_from(expires).unwrap_or(0));
        self.result = Some(CallResult::Ask(question, held));
        Ok(())
    }

    /// Records a ruling, with the statements of AgentROA.
    fn record(
        &mut self,
        batch: &mut Batch<'_>,
        working: SessionWithAccount,
        decided: CallRuling,
    ) -> Result<(), WriterError> {
        let CallRuling { mut ruling, permit, authority, account } = decided;
        let AuthorityStatements { statements, receipt } =
            self.sign_authority_statements(batch, authority, permit.is_some())?;
        ruling.aer_id = receipt.as_ref().map(|receipt| receipt.aer_id.clone());
        self.wake_next(batch)?;
        let reservation = permit.as_ref().and_then(CallPermit::reservation);
        self.snapshot = reservation.and(working.session.clone()).map(Box::new);
        let (context, call) = (self.context(&working.caller, batch), self.call(batch));
        let inputs = DecisionInputs::of_call(&self.job.route, &context, &call);
        let account = depends_on_account(&ruling, &self.inputs.rules).then_some(account);
        let inputs = self.rounds.add_to_inputs(inputs, &working, account);
        working.write_ruled(batch, self.rounds.held);
        ruling.asserted_client.clone_from(&self.job.asserted_client);
        let client_stream = self.client_stream_of(permit.as_ref());
        let parts = CallRecordParts {
            permit: permit.as_ref(),
            envelope: self.envelope.as_ref(),
            client_stream,
            roa_statements: statements,
        };
        let invocation = self.job.invocation.as_ref();
        let mut recorded = record_call_ruling(batch, &mut ruling, parts, invocation, inputs.into())?;
        recorded.receipt = receipt;
        if permit.is_some() && reservation.is_none() {
            batch.count_open(&recorded.stream);
        }
        question::consumed_by(&ruling).for_each(|id| question::consume(batch, id));
        self.result = Some(CallResult::Ruled(Ruled::Recorded(ruling, Box::new(recorded)), permit));
        Ok(())
    }

    /// Signs the statements of AgentROA about its decision, and stores the state of the envelope after an admitted call.
    fn sign_authority_statements(
        &mut self,
        batch: &mut Batch<'_>,
        authority: Option<CallAuthority>,
        is_admitted: bool,
    ) -> Result<AuthorityStatements, WriterError> {
        let Some(decided) = authority else { return Ok(AuthorityStatements::default()) };
        let (writer, rules) = (&self.request.writer, &self.inputs.rules);
        let statements = authority::sign_statements(writer, batch, &self.job, rules, &decided)?;
        self.envelope = is_admitted.then(|| authority::store_envelope_state(batch, decided)).flatten();
        Ok(statements)
    }

    /// Returns the client stream for the record. An admitted call begins it, if there is room for one more; a denied call
    /// does not.
    fn client_stream_of(&self, permit: Option<&CallPermit>) -> Option<&str> {
        let client_streams = &self.request.writer.inner.client_streams;
        let client_stream = self.client_stream.as_deref();
        client_stream.filter(|stream| permit.is_none() || client_streams.insert(stream))
    }

    /// Returns the answer for a result that is durable.
    fn answer(&mut self, result: CallResult) -> CallAnswer {
        match result {
            CallResult::Ruled(ruled, permit) => self.ruled_answer(ruled, permit),
            CallResult::Ask(CallQuestion::Judge(question), held) => {
                CallAnswer::Judge(question, self.undecided(held, None))
            }
            CallResult::Ask(CallQuestion::Human(question), held) => {
                let to_approvers = question.approver_question.as_deref();
                to_approvers
                    .into_iter()
                    .for_each(|question| self.request.writer.questions().insert(question));
                let id = to_approvers.map(|question| question.id.clone());
                CallAnswer::Ask(question, self.undecided(held, id))
            }
            CallResult::CheckArguments => CallAnswer::Check(self.undecided(None, None)),
        }
    }

    fn ruled_answer(&mut self, ruled: Ruled, permit: Option<CallPermit>) -> CallAnswer {
        let writer = self.request.writer.clone();
        let admitted = match &ruled {
            Ruled::Recorded(ruling, recorded) => {
                let pending =
                    ruling.pending.as_ref().and_then(|pending| pending.approver_question.as_deref());
                pending.into_iter().for_each(|question| writer.questions().insert(question));
                question::consumed_by(ruling).for_each(|id| writer.questions().notify(id));
                permit.map(|permit| self.admitted(permit, recorded))
            }
            Ruled::Counted(_) => None,
        };
        CallAnswer::Ruled(Box::new(ruled.answer(&writer, admitted)))
    }

    /// Returns the permitted call, ready to be forwarded.
    fn admitted(&mut self, permit: CallPermit, recorded: &RecordedRuling) -> AdmittedCall {
        let call = UnsettledCall {
            rules: self.inputs.rules.clone(),
            stream: recorded.stream.clone(),
            decision: recorded.id,
            permit,
            tool: self.job.tool.clone(),
            snapshot: self.snapshot.take(),
            envelope: self.envelope.take(),
        };
        AdmittedCall::new(self.request.writer.clone(), call)
    }

    fn undecided(&self, held: Option<ReservationId>, question: Option<String>) -> UndecidedCall {
        let writer = self.request.writer.clone();
        UndecidedCall::new(writer, self.job.clone(), held, question, self.rounds.clone())
    }
}

/// Returns the key of the account against whose limit a question about the call would count.
fn question_account(working: &SessionWithAccount) -> String {
    match &working.session {
        Some(session) => session.agreed.account().to_owned(),
        None => admission::principal::account_key(&working.caller, None).unwrap_or_default(),
    }
}

/// Returns the question to approvers that a decision raises, if any.
fn raised_question(decision: &CallDecision) -> Option<&approval::Question> {
    match decision {
        CallDecision::Ask { question: CallQuestion::Human(human), .. } => human.approver_question.as_deref(),
        CallDecision::Refuse(ruling) => ruling.pending.as_ref()?.approver_question.as_deref(),
        CallDecision::Admit(..) | CallDecision::Wait | CallDecision::Ask { .. } => None,
    }
}

impl Work for CallWork {
    fn streams(&self) -> Vec<String> {
        let mut streams = vec![self.request.writer.own_stream()];
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

    fn is_refused_while_outbox_is_full(&self) -> bool {
        true
    }

    fn decide(&mut self, batch: &mut Batch<'_>) -> Result<WorkStep, DecideError> {
        self.slot.occupy();
        self.inputs.rules = self.request.writer.rules_of(&self.job.route);
        self.inputs.tool = self.tool_state(batch)?;
        if self.inputs.tool.is_outdated && self.rounds.may_check_again() {
            self.result = Some(CallResult::CheckArguments);
            return Ok(WorkStep::Unchanged);
        }
        self.inputs.stored_question = match self.question_id() {
            Some(id) => question::read(batch, id)?,
            None => None,
        };
        let sent = self.sent(&self.job.caller, batch);
        let mut working = SessionWithAccount::of_message(batch, &sent)?;
        let authority = self.decide_authority(batch, &working)?;
        let (rules, tool) = (&self.inputs.rules, &self.job.tool);
        let awaited = authority.as_ref().and_then(|decided| decided.awaited_settlement(rules, tool));
        if let Some(awaited) = awaited {
            self.awaited_envelope = Some(awaited.stream.clone());
            return Ok(self.wait_for(awaited));
        }
        working.release_questions(batch, &self.inputs.rules, self.rounds.held);
        let account = working.account.clone();
        self.inputs.can_wait = self.can_wait(batch, &working);
        let decision = self.decide_on(batch, &mut working);
        // The commit of a question uses up no claim, so it would not find out that the call is a replay.
        if matches!(decision, CallDecision::Ask { .. }) && !batch.has_looked_up(&self.claims()) {
            return Err(DecideError::ClaimsNotLookedUp(self.claims()));
        }
        if let Some(question) = raised_question(&decision) {
            question::store(batch, question)?;
        }
        let (ruling, permit) = match decision {
            CallDecision::Admit(permit, ruling) => (ruling, Some(permit)),
            CallDecision::Refuse(ruling) => (ruling, None),
            CallDecision::Wait => {
                let stream = working.stream.unwrap_or_default();
                return Ok(self.wait_for(AwaitedSettlement { stream, tool: self.job.tool.clone() }));
            }
            CallDecision::Ask { question, held } => {
                self.ask(batch, working, question, held)?;
                return Ok(WorkStep::Decided);
            }
        };
        if permit.is_none() && self.is_only_counted(batch, &working, &ruling) {
            self.result = Some(CallResult::Ruled(Ruled::Counted(ruling), None));
            return Ok(WorkStep::OnlyCounted);
        }
        self.record(batch, working, CallRuling { ruling, permit, authority, account })?;
        Ok(WorkStep::Decided)
    }

    fn committed(mut self: Box<Self>) {
        let writer = &self.request.writer;
        if self.inputs.tool.approval_unrecorded {
            let approval = ToolsWork::approved(writer.clone(), &self.job.route, &self.job.tool);
            writer.submit(Box::new(approval));
        }
        let Some(result) = self.result.take() else { return };
        let answer = self.answer(result);
        self.request.answer(answer);
    }

    fn failed(self: Box<Self>, why: &WriterError) -> Option<WorkItem> {
        self.request.fail(why);
        None
    }
}
