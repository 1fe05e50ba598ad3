//! The requests that the rest of the gateway makes to the decision writer: deciding calls and messages, recording
//! refusals, ending sessions, registering keys.

use std::sync::Arc;

use admission::decide::{self, RandomInputs, Ruling};
use admission::principal::Caller;
use admission::principal::account_key;
use evidence::StoreError;
use serde_json::Value;
use tokio::sync::oneshot;
use vap::message::MessageType;
use vap::reason::Reason;

use super::committed_stream::CommittedStream;
use super::decisions::{
    CallAnswer, CallWork, CloseWork, Closed, DecisionAnswer, EarlierPasses, MessageAnswer, MessageWork,
    RefusalWork, Request, Slot, UnrecordedDenial, claims_of, streams_of_others,
};
use super::error::WriterError;
use super::jobs::{CallJob, MessageJob, MessageKind, RefusalJob};
use super::published::PublishKeys;
use super::queue::{QueueSlot, QueuedCall};
use super::record_outbox::NoReceipt;
use super::states::{StreamState, account_stream, is_tool_stream, random};
use super::transactions::{EarlyRead, Job};
use super::{DecisionWriter, Inner};

impl DecisionWriter {
    /// Decides a call. A call whose decision cannot be made durable is denied.
    pub async fn call(&self, job: CallJob) -> CallAnswer {
        self.decide_call(Arc::new(job), EarlierPasses::default()).await
    }

    /// Decides a call like [`call`](Self::call), with what was read for it.
    pub(crate) async fn call_with(
        &self,
        job: CallJob,
        queued: Result<QueuedCall, WriterError>,
    ) -> CallAnswer {
        self.decided_call(Arc::new(job), EarlierPasses::default(), queued).await
    }

    /// Takes a slot in the queue for a call, and reads what its decision needs from the database. The read counts towards
    /// the time of the decision.
    pub(crate) async fn read_early(&self, job: &CallJob) -> Result<QueuedCall, WriterError> {
        check_name(job.envelope.as_ref())?;
        let slot = QueueSlot::take(self, job.bytes())?;
        self.check_doubt()?;
        let needed = (streams_of_others(self, job), claims_of(job));
        let tools = self.rules_of(&job.route).tools;
        // A denial may not even be recorded, so no commit would find out that the tool was approved meanwhile.
        let is_enough = |name: &str, stream: &CommittedStream| {
            !is_tool_stream(name) || tools.fault(stream.pin()).is_none()
        };
        let Inner { context, store, .. } = &*self.inner;
        let read = EarlyRead::of(&context.recent, &**store, needed, is_enough);
        let read = tokio::time::timeout_at(slot.decide_by(), read).await;
        match read.unwrap_or_else(|_| Err(StoreError::Unavailable("no answer in time".to_owned()))) {
            Ok(early) => Ok(QueuedCall { slot, early }),
            Err(error) => {
                self.inner.alarms.store_fails(&error.to_string());
                Err(error.into())
            }
        }
    }

    /// Decides a scope commitment whose carrier request succeeded.
    pub async fn commitment(&self, job: MessageJob) -> MessageAnswer {
        self.decide_message(Arc::new(job), MessageKind::Commitment, EarlierPasses::default()).await
    }

    /// Decides a scope amendment whose carrier request succeeded.
    pub async fn amendment(&self, job: MessageJob) -> MessageAnswer {
        self.decide_message(Arc::new(job), MessageKind::Amendment, EarlierPasses::default()).await
    }

    /// Records the refusal of a request that is not a tool call (V-37), and returns the signed denial.
    pub async fn refuse(&self, job: RefusalJob) -> Box<DecisionAnswer> {
        let (reply, answer) = oneshot::channel();
        let denial = UnrecordedDenial::from(&*job.ruling);
        let work = RefusalWork::new(Request::new(self.clone(), reply), job);
        let refused = match QueueSlot::take(self, 0) {
            Ok(slot) => self.ask(Box::new(work), answer, &slot).await,
            Err(busy) => Err(busy),
        };
        Box::new(refused.unwrap_or_else(|why| {
            tracing::warn!(%why, "denied without a record");
            self.counted(None, &why.reason(), denial)
        }))
    }

    /// Ends the sessions that a caller committed to in its MCP session, which has ended: each as soon as it has no call
    /// in flight.
    pub async fn end_sessions_of(&self, caller: &Caller) {
        self.end_client_stream(caller);
        let presumed = caller.presumed();
        let key = account_key(presumed.as_ref().unwrap_or(caller), None);
        let Some(stream) = key.map(|key| account_stream(&key)) else { return };
        let account = match self.inner.store.streams(&[&stream]).await {
            Ok(stored) => stored.into_iter().next().flatten(),
            Err(error) => return tracing::warn!(%error, "sessions are left to end by themselves"),
        };
        let Some(Ok(Some(StreamState::Account(account)))) =
            account.map(|stored| StreamState::read(&stream, None, &stored.running))
        else {
            return;
        };
        for session in account.live_sessions() {
            self.end_session_of(session, caller);
        }
    }

    /// Ends a session as soon as it has no call in flight, if this caller is its principal.
    pub fn end_session_of(&self, session_id: &str, caller: &Caller) {
        self.hand_in(Box::new(CloseWork::of_caller(self.clone(), session_id.to_owned(), caller.clone())));
    }

    /// Ends a session. Returns `true` if it is closed now, and `false` if there is none or if it closes later, after
    /// its calls in flight.
    pub async fn end_session(&self, session_id: &str) -> bool {
        let (reply, answer) = oneshot::channel();
        self.hand_in(Box::new(CloseWork::new(self.clone(), session_id.to_owned(), Some(reply))));
        matches!(answer.await, Ok(Closed::Now))
    }

    /// Registers the Verdict key set (V-20) if it is not the one registered last, and returns whether it did. Errors
    /// are only logged: a gateway whose disk is full still starts, and denies.
    pub async fn publish(&self, jwk_set: &Value) -> bool {
        let (job, answer) = PublishKeys::job(jwk_set);
        self.hand_in(job);
        match answer.await {
            Ok(Ok(is_new)) => is_new,
            Ok(Err(error)) => {
                tracing::error!(%error, "the gateway's keys could not be recorded");
                false
            }
            Err(_) => false,
        }
    }

    pub(super) async fn decide_call(&self, job: Arc<CallJob>, passes: EarlierPasses) -> CallAnswer {
        let queued = self.read_early(&job).await;
        self.decided_call(job, passes, queued).await
    }

    pub(super) async fn decided_call(
        &self,
        job: Arc<CallJob>,
        passes: EarlierPasses,
        queued: Result<QueuedCall, WriterError>,
    ) -> CallAnswer {
        let decided = match self.make_call(&job, passes, queued).await {
            Ok(CallAnswer::Ruled(answer)) => {
                self.with_receipt(answer).await.map(|answer| CallAnswer::Ruled(Box::new(answer)))
            }
            other => other,
        };
        decided.unwrap_or_else(|why| {
            CallAnswer::Ruled(Box::new(self.undecided(job.envelope.as_ref(), MessageType::IntentCall, &why)))
        })
    }

    async fn make_call(
        &self,
        job: &Arc<CallJob>,
        passes: EarlierPasses,
        queued: Result<QueuedCall, WriterError>,
    ) -> Result<CallAnswer, WriterError> {
        let QueuedCall { slot, early } = queued?;
        // Computed here, since the task that decides is one for all calls.
        job.arguments.canonical();
        let (reply, answer) = oneshot::channel();
        let request = Request::new(self.clone(), reply);
        let work = CallWork::new(request, job.clone(), passes, random_inputs()?, slot.clone(), early);
        self.ask(Box::new(work), answer, &slot).await
    }

    pub(super) async fn decide_message(
        &self,
        job: Arc<MessageJob>,
        kind: MessageKind,
        passes: EarlierPasses,
    ) -> MessageAnswer {
        let response = match kind {
            MessageKind::Commitment => MessageType::ScopeCommitment,
            MessageKind::Amendment => MessageType::ScopeAmendment,
        };
        self.make_message(&job, kind, passes).await.unwrap_or_else(|why| {
            MessageAnswer::Ruled(Box::new(self.undecided(Some(&job.message), response, &why)))
        })
    }

    async fn make_message(
        &self,
        job: &Arc<MessageJob>,
        kind: MessageKind,
        passes: EarlierPasses,
    ) -> Result<MessageAnswer, WriterError> {
        check_name(Some(&job.message))?;
        let (slot, (reply, answer)) = (QueueSlot::take(self, job.bytes())?, oneshot::channel());
        let work = MessageWork::new(
            Request::new(self.clone(), reply),
            (job.clone(), kind),
            passes,
            random_inputs()?,
        );
        self.ask(Box::new(work), answer, &slot).await
    }

    /// Hands in a decision and waits for the answer. Fails once the slot's time is over, unless the job waited for the
    /// cost of another call (V-12): then it has `decide_time` more.
    async fn ask<T>(
        &self,
        job: Job,
        mut answer: oneshot::Receiver<Result<T, WriterError>>,
        slot: &QueueSlot,
    ) -> Result<T, WriterError> {
        self.check_doubt()?;
        self.hand_in(job);
        let mut decide_by = slot.decide_by();
        loop {
            match tokio::time::timeout_at(decide_by, &mut answer).await {
                Ok(Ok(answer)) => return answer,
                Ok(Err(_)) => return Err(WriterError::Stopping),
                Err(_) if slot.has_waited() => {
                    decide_by = tokio::time::Instant::now() + self.inner.context.settings.decide_time;
                }
                Err(_) => return Err(WriterError::Unavailable("no decision in time".to_owned())),
            }
        }
    }

    /// Fails while the outcome of a commit is unknown: nothing else is decided until then.
    fn check_doubt(&self) -> Result<(), WriterError> {
        match self.inner.alarms.is_doubting() {
            true => Err(WriterError::Unavailable("the database does not say what it committed".to_owned())),
            false => Ok(()),
        }
    }

    /// Waits for the log's receipt of an admitted call if `receipt_required` is set, and denies the call if none
    /// arrives.
    async fn with_receipt(&self, mut answer: Box<DecisionAnswer>) -> Result<DecisionAnswer, WriterError> {
        let required = self.inner.context.settings.receipt_required;
        let (Some(pass), Some(evidence)) = (answer.pass.take_if(|_| required), answer.evidence.as_mut())
        else {
            return Ok(*answer);
        };
        // The execution receipt is delivered in the same way: both are on the log before the call goes on.
        let execution = match &answer.receipt {
            Some(execution) => self.receipt(&execution.id).await.map(drop),
            None => Ok(()),
        };
        let receipt = match execution {
            Ok(()) => self.receipt(&evidence.id).await,
            Err(why) => Err(why),
        };
        match receipt {
            Ok(receipt) => {
                evidence.receipt = Some(receipt);
                answer.pass = Some(pass);
                Ok(*answer)
            }
            Err(why) => match answer.ruling {
                Some(permit) => {
                    let (ruling, written) = pass.deny(permit, why.into()).await?;
                    Ok(DecisionAnswer::of(ruling, written, None))
                }
                None => Err(why.into()),
            },
        }
    }

    async fn receipt(&self, id: &merkle::EntryDigest) -> Result<bytes::Bytes, NoReceipt> {
        let answer = self.inner.waiting.wait(*id);
        // The record may have been delivered before the waiter was registered.
        match self.inner.store.record(id).await.ok().flatten().map(|stored| stored.delivery) {
            Some(evidence::DeliveryState::Delivered { receipt: Some(receipt), .. }) => return Ok(receipt),
            Some(evidence::DeliveryState::Stuck(why)) => return Err(NoReceipt::Refused(why)),
            _ => {}
        }
        let wait = self.inner.context.settings.receipt_wait;
        tokio::time::timeout(wait, answer).await.ok().and_then(Result::ok).unwrap_or(Err(NoReceipt::TimedOut))
    }

    /// Denies a call without VAP, from a caller without token and certificate, if the route's rules deny it to every
    /// caller. `None` if the call is to be decided or recorded.
    ///
    /// A few such calls each minute are decided and recorded like any other. The others are denied here: they need
    /// neither the canonical form of their arguments nor a slot in the writer's queue.
    #[must_use]
    pub fn refused_at_once(&self, job: &CallJob) -> Option<DecisionAnswer> {
        let is_unidentified =
            job.envelope.is_none() && job.caller.token.is_none() && job.caller.certificate.is_none();
        if !is_unidentified || self.inner.denials.can_record_unidentified(self.inner.context.clock.seconds())
        {
            return None;
        }
        let rules = self.rules_of(&job.route);
        let reason = decide::denied_to_all(&rules, &job.tool, job.has_roa_envelope && job.chain.is_none())?;
        Some(self.counted(
            None,
            &reason,
            UnrecordedDenial::new(None, MessageType::IntentCall, reason.clone()),
        ))
    }

    /// Counts a denial instead of recording it, and returns the signed denial for its caller.
    pub(super) fn count_and_tell(&self, ruling: &Ruling) -> DecisionAnswer {
        if let Some(reason) = &ruling.reason {
            self.count_denial(None, reason.clone());
        }
        DecisionAnswer::unrecorded(&self.inner.context, ruling.into())
    }

    /// Denies a message that could not be decided.
    fn undecided(&self, slot: Option<&Slot>, response: MessageType, why: &WriterError) -> DecisionAnswer {
        let denial = UnrecordedDenial::new(slot, response, why.reason());
        tracing::warn!(%why, session_id = denial.verdict.session_id, "denied without a record");
        // Only a call that is bound to its session can fail with `Crowded`: it is counted in the session's stream.
        let session_id = Some(denial.verdict.session_id.clone()).filter(|_| *why == WriterError::Crowded);
        self.counted(session_id.as_deref(), &why.reason(), denial)
    }

    fn counted(&self, stream: Option<&str>, reason: &Reason, denial: UnrecordedDenial) -> DecisionAnswer {
        self.count_denial(stream, reason.clone());
        DecisionAnswer::unrecorded(&self.inner.context, denial)
    }
}

/// Rejects a session name with a NUL character: a database would refuse it, and with it the whole batch.
fn check_name(slot: Option<&Slot>) -> Result<(), WriterError> {
    match slot {
        Some(Ok(received)) if received.message.session_id().contains('\0') => {
            Err(WriterError::Unrecordable("the session's name holds a NUL".to_owned()))
        }
        _ => Ok(()),
    }
}

/// Draws the random inputs of one decision: the sampling number (V-28), and the secret of a new session or question.
fn random_inputs() -> Result<RandomInputs, WriterError> {
    Ok(RandomInputs { sample: u32::from_be_bytes(random()?), secret: random()? })
}
