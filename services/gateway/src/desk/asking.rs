//! The requests that the rest of the gateway makes to the decision writer: deciding calls and messages, recording
//! refusals, ending sessions, registering keys.

use std::sync::Arc;

use admission::decide::{Dice, Ruling, Telling, account_key};
use admission::message::slot::{Key, Received, Shape, Unreadable};
use admission::message::{MessageType, NO_SESSION};
use admission::principal::Caller;
use admission::verdict::{Verdict, VerdictKind, Verification};
use serde_json::Value;
use tokio::sync::oneshot;

use super::Desk;
use super::decisions::{CallWork, CloseWork, Closed, Done, MessageKind, MessageWork, RefusalWork};
use super::error::DeskError;
use super::jobs::{CallAnswer, CallJob, MessageAnswer, MessageJob, RefusalJob};
use super::outbox::NoReceipt;
use super::place::Place;
use super::published::PublishKeys;
use super::states::{State, account_stream, random};
use super::told::{Told, unrecorded};
use super::writer::Job;

/// The content of a VAP slot: a message, or the reason why it cannot be read.
type Slot = Result<Received, Box<Unreadable>>;

impl Desk {
    /// Decides a call. A call whose decision cannot be made durable is denied.
    pub async fn call(&self, job: CallJob) -> CallAnswer {
        self.decide_call(Arc::new(job), Done::default()).await
    }

    /// Decides a scope commitment whose carrier request succeeded.
    pub async fn commitment(&self, job: MessageJob) -> MessageAnswer {
        self.decide_message(Arc::new(job), MessageKind::Commitment, Done::default()).await
    }

    /// Decides a scope amendment whose carrier request succeeded.
    pub async fn amendment(&self, job: MessageJob) -> MessageAnswer {
        self.decide_message(Arc::new(job), MessageKind::Amendment, Done::default()).await
    }

    /// Records the refusal of a request that is not a tool call (V-37), and returns the signed denial.
    pub async fn refuse(&self, job: RefusalJob) -> Box<Told> {
        let (tell, told) = oneshot::channel();
        let (verdict, telling) = (job.ruling.verdict.clone(), job.ruling.telling);
        let work = RefusalWork::new(self.clone(), Arc::new(job), tell);
        let refused = match Place::take(self, 0) {
            Ok(place) => self.ask(Box::new(work), told, &place).await,
            Err(busy) => Err(busy),
        };
        Box::new(refused.unwrap_or_else(|why| {
            tracing::warn!(%why, "denied without a record");
            self.count_denial(None, why.reason());
            unrecorded(&self.inner.house, verdict, telling, None)
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
            Ok(kept) => kept.into_iter().next().flatten(),
            Err(error) => return tracing::warn!(%error, "sessions are left to end by themselves"),
        };
        let Some(Ok(Some(State::Account(account)))) =
            account.map(|kept| State::read(&stream, None, &kept.running))
        else {
            return;
        };
        for session in account.live_sessions() {
            self.hand_in(Box::new(CloseWork::of_caller(self.clone(), session.clone(), caller.clone())));
        }
    }

    /// Ends a session. Returns `true` if it is closed now, and `false` if there is none or if it closes later, after
    /// its calls in flight.
    pub async fn end_session(&self, session_id: &str) -> bool {
        let (tell, told) = oneshot::channel();
        self.hand_in(Box::new(CloseWork::new(self.clone(), session_id.to_owned(), Some(tell))));
        matches!(told.await, Ok(Closed::Now))
    }

    /// Registers the Verdict key set (V-20) if it is not the one registered last, and returns whether it did. Errors
    /// are only logged: a gateway whose disk is full still starts, and denies.
    pub async fn publish(&self, jwk_set: &Value) -> bool {
        let (job, told) = PublishKeys::job(jwk_set);
        self.hand_in(job);
        match told.await {
            Ok(Ok(said)) => said,
            Ok(Err(error)) => {
                tracing::error!(%error, "the gateway's keys could not be recorded");
                false
            }
            Err(_) => false,
        }
    }

    pub(super) async fn decide_call(&self, job: Arc<CallJob>, done: Done) -> CallAnswer {
        let decided = match self.make_call(&job, done).await {
            Ok(CallAnswer::Ruled(told)) => {
                self.with_receipt(told).await.map(|told| CallAnswer::Ruled(Box::new(told)))
            }
            other => other,
        };
        decided.unwrap_or_else(|why| {
            CallAnswer::Ruled(Box::new(self.unrecorded(job.envelope.as_ref(), MessageType::IntentCall, &why)))
        })
    }

    async fn make_call(&self, job: &Arc<CallJob>, done: Done) -> Result<CallAnswer, DeskError> {
        check_name(job.envelope.as_ref())?;
        let (place, (tell, told)) = (Place::take(self, job.bytes())?, oneshot::channel());
        let work = CallWork::new(self.clone(), job.clone(), done, dice()?, place.clone(), tell);
        self.ask(Box::new(work), told, &place).await
    }

    pub(super) async fn decide_message(
        &self,
        job: Arc<MessageJob>,
        kind: MessageKind,
        done: Done,
    ) -> MessageAnswer {
        let response = match kind {
            MessageKind::Commitment => MessageType::ScopeCommitment,
            MessageKind::Amendment => MessageType::ScopeAmendment,
        };
        self.make_message(&job, kind, done).await.unwrap_or_else(|why| {
            MessageAnswer::Ruled(Box::new(self.unrecorded(Some(&job.message), response, &why)))
        })
    }

    async fn make_message(
        &self,
        job: &Arc<MessageJob>,
        kind: MessageKind,
        done: Done,
    ) -> Result<MessageAnswer, DeskError> {
        check_name(Some(&job.message))?;
        let (place, (tell, told)) = (Place::take(self, job.bytes())?, oneshot::channel());
        let work = MessageWork::new(self.clone(), (job.clone(), kind), done, dice()?, tell);
        self.ask(Box::new(work), told, &place).await
    }

    /// Hands in a decision and waits for the answer. Fails after `decide_time`, unless the job waited during that time
    /// for the cost of another call (V-12).
    async fn ask<T>(
        &self,
        job: Job,
        mut told: oneshot::Receiver<Result<T, DeskError>>,
        place: &Place,
    ) -> Result<T, DeskError> {
        if self.inner.alarms.is_doubting() {
            return Err(DeskError::Unavailable("the database does not say what it committed".to_owned()));
        }
        self.hand_in(job);
        loop {
            match tokio::time::timeout(self.inner.house.settings.decide_time, &mut told).await {
                Ok(Ok(answer)) => return answer,
                Ok(Err(_)) => return Err(DeskError::Stopping),
                Err(_) if place.has_waited() => {}
                Err(_) => return Err(DeskError::Unavailable("no decision in time".to_owned())),
            }
        }
    }

    /// Waits for the log's receipt of an admitted call if `receipt_required` is set, and denies the call if none
    /// arrives.
    async fn with_receipt(&self, mut told: Box<Told>) -> Result<Told, DeskError> {
        let required = self.inner.house.settings.receipt_required;
        let (Some(pass), Some(evidence)) = (told.pass.take_if(|_| required), told.evidence.as_mut()) else {
            return Ok(*told);
        };
        match self.receipt(&evidence.id).await {
            Ok(receipt) => {
                evidence.receipt = Some(receipt);
                told.pass = Some(pass);
                Ok(*told)
            }
            Err(why) => pass.deny(why.into()).await,
        }
    }

    async fn receipt(&self, id: &merkle::EntryDigest) -> Result<bytes::Bytes, NoReceipt> {
        let told = self.inner.waiting.wait(*id);
        // The record may have been delivered before the waiter was registered.
        match self.inner.store.record(id).await.ok().flatten().map(|stored| stored.standing) {
            Some(evidence::Standing::Delivered { receipt: Some(receipt), .. }) => return Ok(receipt),
            Some(evidence::Standing::Stuck(why)) => return Err(NoReceipt::Refused(why)),
            _ => {}
        }
        let wait = self.inner.house.settings.receipt_wait;
        tokio::time::timeout(wait, told).await.ok().and_then(Result::ok).unwrap_or(Err(NoReceipt::TimedOut))
    }

    /// Returns whether the denial of an unidentified caller gets a record of its own, and counts it
    /// (`Denials::takes_a_stranger`).
    pub(super) fn takes_a_stranger(&self, now: u64) -> bool {
        self.inner.denials.takes_a_stranger(now)
    }

    /// Counts a denial instead of recording it, and returns the signed denial for its caller.
    pub(super) fn count_and_tell(&self, ruling: Box<Ruling>) -> Told {
        if let Some(reason) = &ruling.reason {
            self.count_denial(None, reason.clone());
        }
        unrecorded(&self.inner.house, ruling.verdict.clone(), ruling.telling, ruling.req.clone())
    }

    fn unrecorded(&self, slot: Option<&Slot>, response: MessageType, why: &DeskError) -> Told {
        let (session_id, telling, req) = match slot {
            Some(Ok(received)) => {
                let telling = Telling::Told(received.shape, received.key);
                (Some(received.message.session_id()), telling, Some(received.digest.clone()))
            }
            Some(Err(unreadable)) => {
                let telling = Telling::Told(unreadable.shape, unreadable.key);
                (unreadable.session_id.as_deref(), telling, Some(unreadable.digest.clone()))
            }
            None => (None, Telling::Told(Shape::default(), Key::default()), None),
        };
        // Only a call that is bound to its session can fail with `Crowded`: it is counted in the session's stream.
        self.count_denial(session_id.filter(|_| *why == DeskError::Crowded), why.reason());
        let verification = Verification { reason: Some(why.reason()), ..Verification::default() };
        let session_id = session_id.unwrap_or(NO_SESSION);
        let verdict = Verdict::new(session_id, Some(response), VerdictKind::Denied, verification);
        tracing::warn!(%why, session_id, "denied without a record");
        unrecorded(&self.inner.house, verdict, telling, req)
    }
}

/// Rejects a session name with a NUL character: a database would refuse it, and with it the whole batch.
fn check_name(slot: Option<&Slot>) -> Result<(), DeskError> {
    match slot {
        Some(Ok(received)) if received.message.session_id().contains('\0') => {
            Err(DeskError::Unrecordable("the session's name holds a NUL".to_owned()))
        }
        _ => Ok(()),
    }
}

/// Draws the random inputs of one decision: the sampling number (V-28), and the secret of a new session or question.
fn dice() -> Result<Dice, DeskError> {
    Ok(Dice { sample: u32::from_be_bytes(random()?), secret: random()? })
}
