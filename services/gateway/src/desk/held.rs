//! A place that is held while somebody is asked. Dropped, it is given back.

use std::sync::Arc;

use admission::clarify::Answer;
use admission::decide::Semantic;
use admission::session::ReservationId;

use super::Desk;
use super::decisions::{Done, MessageKind, RefundWork};
use super::jobs::{CallAnswer, CallJob, MessageAnswer, MessageJob};
use crate::decision_inputs::JudgeOpinion;

/// A call about which somebody is asked.
#[derive(Debug)]
pub struct HeldCall {
    desk: Desk,
    job: Arc<CallJob>,
    held: Option<ReservationId>,
    /// The question that was put to approvers about it.
    question: Option<String>,
    /// What was done about it: for the person's turn, what the judge said.
    done: Done,
}

/// A commitment or an amendment about which the judge is asked.
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

    /// The call.
    pub fn job(&self) -> &CallJob {
        &self.job
    }

    /// The judge answered, in these words: the call is decided again, from C1 on.
    pub async fn judged(self, judged: Semantic, words: &str) -> CallAnswer {
        let opinion = Some(Arc::new(JudgeOpinion::new(&judged, words)));
        let first_at = self.done.first_at;
        let done = Done { held: self.held, judged: Some(judged), opinion, first_at, ..Done::default() };
        self.again(done).await
    }

    /// The person answered, or did not: the call is decided again, from C1 on.
    pub async fn answered(self, answer: Answer) -> CallAnswer {
        let Done { opinion, first_at, .. } = self.done.clone();
        let done = Done { held: self.held, answer: Some(answer), opinion, first_at, ..Done::default() };
        self.again(done).await
    }

    /// The question to approvers was answered, or is over: the call is decided again, from C1 on, with what is kept of it.
    pub async fn approved(self) -> CallAnswer {
        let (Done { opinion, first_at, .. }, question) = (self.done.clone(), self.question.clone());
        let done = Done { held: self.held, question, opinion, first_at, ..Done::default() };
        self.again(done).await
    }

    /// What is held is given back by the decision; if there is none, or nobody waits for it, by dropping this.
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

    /// The judge answered, in these words: the message is decided again.
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
