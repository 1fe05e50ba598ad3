//! The requests for a decision that `calls` and `a2a` make: about calls, scope commitments and amendments, and the
//! refusal of other requests.
//!
//! A request takes a slot in the queue, reads from the database what its decision needs, submits a work item and waits for
//! the answer. There are no errors: what cannot be decided, or recorded, is denied.

use std::sync::Arc;

use admission::decide::RandomInputs;
use evidence::StoreError;
use tokio::sync::oneshot;
use vap::message::MessageType;

use super::committed_stream::CommittedStream;
use super::decisions::{
    CallAnswer, CallWork, DecisionAnswer, EarlierRounds, MessageAnswer, MessageWork, RefusalWork, Request,
    Slot, UnrecordedDenial, claims_of, streams_of_others,
};
use super::error::WriterError;
use super::jobs::{CallJob, MessageJob, MessageKind, RefusalJob};
use super::queue::{QueueSlot, QueuedCall};
use super::states::{is_tool_stream, random};
use super::transactions::{EarlyRead, NeededData, WorkItem};
use super::{DecisionWriter, Inner};

impl DecisionWriter {
    /// Decides a call. A call whose decision cannot be made durable is denied.
    pub async fn call(&self, job: CallJob) -> CallAnswer {
        self.decide_call(Arc::new(job), EarlierRounds::default()).await
    }

    /// Decides a call like [`call`](Self::call), with what [`read_early`](Self::read_early) has read for it.
    pub(crate) async fn call_with(
        &self,
        job: CallJob,
        queued: Result<QueuedCall, WriterError>,
    ) -> CallAnswer {
        self.decide_queued_call(Arc::new(job), EarlierRounds::default(), queued).await
    }

    /// Takes a slot in the queue for a call, and reads what its decision needs from the database. The read counts towards
    /// the time of the decision.
    pub(crate) async fn read_early(&self, job: &CallJob) -> Result<QueuedCall, WriterError> {
        check_session_name(job.envelope.as_ref())?;
        let slot = QueueSlot::take(self, job.bytes())?;
        self.check_no_commit_in_doubt()?;
        let needed = NeededData { streams: streams_of_others(self, job), claims: claims_of(job) };
        let tools = self.rules_of(&job.route).tools;
        // A denial may not even be recorded, so no commit would find out that the tool was approved meanwhile.
        let is_enough = |name: &str, stream: &CommittedStream| {
            !is_tool_stream(name) || tools.fault(stream.pin()).is_none()
        };
        let Inner { context, store, .. } = &*self.inner;
        let read = EarlyRead::read(&context.recent, &**store, needed, is_enough);
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
        self.decide_message(Arc::new(job), MessageKind::Commitment, EarlierRounds::default()).await
    }

    /// Decides a scope amendment whose carrier request succeeded.
    pub async fn amendment(&self, job: MessageJob) -> MessageAnswer {
        self.decide_message(Arc::new(job), MessageKind::Amendment, EarlierRounds::default()).await
    }

    /// Records the refusal of a request that is not a tool call (V-37), and returns the signed denial.
    pub async fn refuse(&self, job: RefusalJob) -> Box<DecisionAnswer> {
        let denial = UnrecordedDenial::from(&*job.ruling);
        Box::new(self.submit_refusal(job).await.unwrap_or_else(|why| {
            tracing::warn!(%why, "denied without a record");
            self.count_and_deny(None, why.reason(), denial)
        }))
    }

    /// Decides a call, or decides it again after its earlier rounds.
    pub(super) async fn decide_call(&self, job: Arc<CallJob>, rounds: EarlierRounds) -> CallAnswer {
        let queued = self.read_early(&job).await;
        self.decide_queued_call(job, rounds, queued).await
    }

    /// Decides a call like [`decide_call`](Self::decide_call), with what was read for it.
    pub(super) async fn decide_queued_call(
        &self,
        job: Arc<CallJob>,
        rounds: EarlierRounds,
        queued: Result<QueuedCall, WriterError>,
    ) -> CallAnswer {
        let decided = match self.submit_call(&job, rounds, queued).await {
            Ok(CallAnswer::Ruled(answer)) => {
                self.with_required_receipt(answer).await.map(|answer| CallAnswer::Ruled(Box::new(answer)))
            }
            other => other,
        };
        decided.unwrap_or_else(|why| {
            let denial = self.deny_undecided(job.envelope.as_ref(), MessageType::IntentCall, &why);
            CallAnswer::Ruled(Box::new(denial))
        })
    }

    /// Decides a message, or decides it again after its earlier rounds.
    pub(super) async fn decide_message(
        &self,
        job: Arc<MessageJob>,
        kind: MessageKind,
        rounds: EarlierRounds,
    ) -> MessageAnswer {
        let response = match kind {
            MessageKind::Commitment => MessageType::ScopeCommitment,
            MessageKind::Amendment => MessageType::ScopeAmendment,
        };
        self.submit_message(&job, kind, rounds).await.unwrap_or_else(|why| {
            MessageAnswer::Ruled(Box::new(self.deny_undecided(Some(&job.message), response, &why)))
        })
    }

    async fn submit_call(
        &self,
        job: &Arc<CallJob>,
        mut rounds: EarlierRounds,
        queued: Result<QueuedCall, WriterError>,
    ) -> Result<CallAnswer, WriterError> {
        let queued = queued?;
        let slot = queued.slot.clone();
        // Computed here, since the task that decides is one for all calls.
        job.arguments.canonical();
        job.arguments.is_canonical_ambiguous();
        let (reply, answer) = oneshot::channel();
        let request = Request::new(self.clone(), reply);
        let random = random_inputs(&mut rounds)?;
        let call = CallWork::new(request, job.clone(), rounds, random, queued);
        self.submit_and_wait(Box::new(call), answer, &slot).await
    }

    async fn submit_message(
        &self,
        job: &Arc<MessageJob>,
        kind: MessageKind,
        mut rounds: EarlierRounds,
    ) -> Result<MessageAnswer, WriterError> {
        check_session_name(Some(&job.message))?;
        let slot = QueueSlot::take(self, job.bytes())?;
        let (reply, answer) = oneshot::channel();
        let request = Request::new(self.clone(), reply);
        let random = random_inputs(&mut rounds)?;
        let message = MessageWork::new(request, job.clone(), kind, rounds, random);
        self.submit_and_wait(Box::new(message), answer, &slot).await
    }

    async fn submit_refusal(&self, job: RefusalJob) -> Result<DecisionAnswer, WriterError> {
        let slot = QueueSlot::take(self, 0)?;
        let (reply, answer) = oneshot::channel();
        let refusal = RefusalWork::new(Request::new(self.clone(), reply), job);
        self.submit_and_wait(Box::new(refusal), answer, &slot).await
    }

    /// Submits a decision and waits for the answer. Fails once the slot's time is over, unless the call waited for the
    /// cost of another one (V-12): then it has `decide_time` more.
    async fn submit_and_wait<T>(
        &self,
        item: WorkItem,
        mut answer: oneshot::Receiver<Result<T, WriterError>>,
        slot: &QueueSlot,
    ) -> Result<T, WriterError> {
        self.check_no_commit_in_doubt()?;
        self.submit(item);
        let mut decide_by = slot.decide_by();
        loop {
            match tokio::time::timeout_at(decide_by, &mut answer).await {
                Ok(Ok(answer)) => return answer,
                Ok(Err(_)) => return Err(WriterError::Stopping),
                Err(_) if slot.take_has_waited() => {
                    decide_by = tokio::time::Instant::now() + self.inner.context.settings.decide_time;
                }
                Err(_) => return Err(WriterError::Unavailable("no decision in time".to_owned())),
            }
        }
    }

    /// Fails while the outcome of a commit is unknown: nothing else is decided until then.
    fn check_no_commit_in_doubt(&self) -> Result<(), WriterError> {
        match self.inner.alarms.is_commit_in_doubt() {
            true => {
                Err(WriterError::Unavailable("the database does not answer whether it committed".to_owned()))
            }
            false => Ok(()),
        }
    }
}

/// Rejects a session name with a NUL character: a database would refuse it, and with it the whole batch.
fn check_session_name(slot: Option<&Slot>) -> Result<(), WriterError> {
    match slot {
        Some(Ok(received)) if received.message.session_id().contains('\0') => {
            Err(WriterError::Unrecordable("the session's name holds a NUL".to_owned()))
        }
        _ => Ok(()),
    }
}

/// Draws the random inputs of one round: the sampling number (V-28), unless an earlier round has drawn it, and the secret of
/// a new session or question.
fn random_inputs(rounds: &mut EarlierRounds) -> Result<RandomInputs, WriterError> {
    let sample = match rounds.sample {
        Some(sample) => sample,
        None => u32::from_be_bytes(random()?),
    };
    rounds.sample = Some(sample);
    Ok(RandomInputs { sample, secret: random()? })
}
