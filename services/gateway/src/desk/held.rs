//! Calls and messages whose reservation is held while a judge or a person is asked. Dropping one releases the
//! reservation.

use std::sync::Arc;

use admission::clarify::Answer;
use admission::decide::Semantic;
use admission::session::ReservationId;

use super::Desk;
use super::decisions::{Done, MessageKind, RefundWork};
use super::jobs::{CallAnswer, CallJob, MessageAnswer, MessageJob};
use crate::decision_inputs::JudgeOpinion;

/// A call that is held until a judge, a person or an approver answers.
#[derive(Debug)]
pub struct HeldCall {
    desk: Desk,
    job: Arc<CallJob>,
    held: Option<ReservationId>,
    /// The id of the question that was put to approvers about the call.
    question: Option<String>,
    /// Results of earlier passes: when a person is asked, the judge's opinion.
    done: Done,
}

/// A commitment or an amendment that is held until the judge answers.
#[derive(Debug)]
pub struct HeldMessage {
    desk: Desk,
    job: Arc<MessageJob>,
    kind: MessageKind,
    held: Option<ReservationId>,
    first_at: Option<i64>,
}

impl HeldCall {
    pub(super) fn new(
        desk: Desk,
        job: Arc<CallJob>,
        (held, question): (Option<ReservationId>, Option<String>),
        done: Done,
    ) -> Self {
        Self { desk, job, held, question, done }
    }

    /// Returns the job of the held call.
    pub fn job(&self) -> &CallJob {
        &self.job
    }

    /// Decides the call again, from step C1 on, with the judge's conclusion and its wording.
    pub async fn judged(self, judged: Semantic, words: &str) -> CallAnswer {
        let opinion = Some(Arc::new(JudgeOpinion::new(&judged, words)));
        let first_at = self.done.first_at;
        let done = Done { held: self.held, judged: Some(judged), opinion, first_at, ..Done::default() };
        self.again(done).await
    }

    /// Decides the call again, from step C1 on, with the person's answer, or without one.
    pub async fn answered(self, answer: Answer) -> CallAnswer {
        let Done { opinion, first_at, .. } = self.done.clone();
        let done = Done { held: self.held, answer: Some(answer), opinion, first_at, ..Done::default() };
        self.again(done).await
    }

    /// Decides the call again, from step C1 on, with the stored state of its question to approvers, which is answered
    /// or over.
    pub async fn approved(self) -> CallAnswer {
        let (Done { opinion, first_at, .. }, question) = (self.done.clone(), self.question.clone());
        let done = Done { held: self.held, question, opinion, first_at, ..Done::default() };
        self.again(done).await
    }

    /// Decides again. The decision releases or takes over the reservation; if there is none, dropping `self` releases
    /// it.
    async fn again(self, done: Done) -> CallAnswer {
        let answer = self.desk.decide_call(self.job.clone(), done).await;
        drop(self);
        answer
    }
}

impl Drop for HeldCall {
    fn drop(&mut self) {
        if let Some(question) = &self.question {
            self.desk.withdraw_question(question);
        }
        let stream = self.job.envelope.as_ref().and_then(|envelope| envelope.as_ref().ok());
        if let (Some(held), Some(received)) = (self.held, stream) {
            let stream = received.message.session_id().to_owned();
            self.desk.hand_in(Box::new(RefundWork::new(self.desk.rules_of(&self.job.route), stream, held)));
        }
    }
}

impl HeldMessage {
    pub(super) fn new(
        desk: Desk,
        job: Arc<MessageJob>,
        kind: MessageKind,
        held: Option<ReservationId>,
        first_at: Option<i64>,
    ) -> Self {
        Self { desk, job, kind, held, first_at }
    }

    /// Decides the message again, with the judge's conclusion and its wording.
    pub async fn judged(self, judged: Semantic, words: &str) -> MessageAnswer {
        let (opinion, first_at) = (Some(Arc::new(JudgeOpinion::new(&judged, words))), self.first_at);
        let done = Done { held: self.held, judged: Some(judged), opinion, first_at, ..Done::default() };
        let answer = self.desk.decide_message(self.job.clone(), self.kind, done).await;
        drop(self);
        answer
    }
}

impl Drop for HeldMessage {
    fn drop(&mut self) {
        if let (Some(held), Ok(received)) = (self.held, &self.job.message) {
            let stream = received.message.session_id().to_owned();
            self.desk.hand_in(Box::new(RefundWork::new(self.desk.rules_of(&self.job.route), stream, held)));
        }
    }
}
