//! The answers to calls and messages. One that needs the answer of a judge or a person is undecided: it holds its
//! reservation meanwhile, and is then decided again, in another round. Dropping an undecided one releases the reservation.

use std::sync::Arc;

use admission::clarify::{HumanAnswer, HumanQuestion};
use admission::decide::{JudgeAnswer, JudgeQuestion};
use admission::session::ReservationId;
use admission::tool::CheckedArguments;
use vap::message::slot::Received;

use super::answer::DecisionAnswer;
use super::earlier_rounds::EarlierRounds;
use super::refund::RefundWork;
use crate::decision_writer::DecisionWriter;
use crate::decision_writer::error::WriterError;
use crate::decision_writer::jobs::{CallJob, MessageJob, MessageKind};
use crate::decision_writer::queue::QueuedCall;

/// The answer to a [`CallJob`]. There is no error: a call that cannot be decided durably is denied.
#[derive(Debug)]
pub enum CallAnswer {
    /// The decision is made.
    Ruled(Box<DecisionAnswer>),
    /// The tool has changed since the arguments were checked, and nobody was asked yet: a new check goes to
    /// [`UndecidedCall::checked`].
    Check(UndecidedCall),
    /// The judge must be asked; its answer goes to [`UndecidedCall::judged`].
    Judge(Box<JudgeQuestion>, UndecidedCall),
    /// A person must be asked; the answer goes to [`UndecidedCall::answered`], or to [`UndecidedCall::approved`] for an
    /// approver's.
    Ask(Box<HumanQuestion>, UndecidedCall),
}

/// The answer to a [`MessageJob`].
#[derive(Debug)]
pub enum MessageAnswer {
    /// The decision is made.
    Ruled(Box<DecisionAnswer>),
    /// The judge must be asked; its answer goes to [`UndecidedMessage::judged`].
    Judge(Box<JudgeQuestion>, Box<UndecidedMessage>),
}

/// A call that is held until a judge, a person or an approver answers.
#[derive(Debug)]
pub struct UndecidedCall {
    job: Arc<CallJob>,
    reservation: HeldReservation,
    /// The id of the question that was put to approvers about the call.
    question: Option<String>,
    /// Results of earlier rounds: when a person is asked, the judge's opinion.
    rounds: EarlierRounds,
}

/// A commitment or an amendment that is held until the judge answers.
#[derive(Debug)]
pub struct UndecidedMessage {
    job: Arc<MessageJob>,
    kind: MessageKind,
    reservation: HeldReservation,
    rounds: EarlierRounds,
}

/// A reservation that is released when it is dropped, unless a decision released it or took it over.
#[derive(Debug)]
struct HeldReservation {
    writer: DecisionWriter,
    route: String,
    /// The session's stream.
    stream: Option<String>,
    id: Option<ReservationId>,
}

impl UndecidedCall {
    /// A call that holds the reservation `held`. `question` is the id of its question to approvers.
    pub(super) fn new(
        writer: DecisionWriter,
        job: Arc<CallJob>,
        held: Option<ReservationId>,
        question: Option<String>,
        rounds: EarlierRounds,
    ) -> Self {
        let received = job.received().map(|received| &**received);
        let reservation = HeldReservation::new(writer, &job.route, received, held);
        Self { job, reservation, question, rounds }
    }

    /// Returns the job of the held call.
    pub fn job(&self) -> &CallJob {
        &self.job
    }

    /// Decides the call again, with the arguments checked against the tool as it was read for `queued`.
    pub async fn checked(
        self,
        checked: Option<CheckedArguments>,
        queued: Result<QueuedCall, WriterError>,
    ) -> CallAnswer {
        let rounds = EarlierRounds { checked, ..self.rounds.clone() };
        let answer = self.reservation.writer.decide_queued_call(self.job.clone(), rounds, queued).await;
        drop(self);
        answer
    }

    /// Decides the call again, from step C1 on, with the judge's conclusion and its wording.
    pub async fn judged(self, judged: JudgeAnswer, words: &str) -> CallAnswer {
        let rounds = self.rounds.next_judged(self.reservation.id, judged, words);
        self.decide_again(rounds).await
    }

    /// Decides the call again, from step C1 on, with the person's answer, or without one.
    pub async fn answered(self, answer: HumanAnswer) -> CallAnswer {
        let rounds = EarlierRounds { answer: Some(answer), ..self.rounds.next(self.reservation.id) };
        self.decide_again(rounds).await
    }

    /// Decides the call again, from step C1 on, with the stored state of its question to approvers, which is answered
    /// or over.
    pub async fn approved(self) -> CallAnswer {
        let question = self.question.clone();
        let rounds = EarlierRounds { question, ..self.rounds.next(self.reservation.id) };
        self.decide_again(rounds).await
    }

    async fn decide_again(self, rounds: EarlierRounds) -> CallAnswer {
        let answer = self.reservation.writer.decide_call(self.job.clone(), rounds).await;
        drop(self);
        answer
    }
}

impl Drop for UndecidedCall {
    fn drop(&mut self) {
        if let Some(question) = &self.question {
            self.reservation.writer.withdraw_question(question);
        }
    }
}

impl UndecidedMessage {
    pub(super) fn new(
        writer: DecisionWriter,
        job: Arc<MessageJob>,
        kind: MessageKind,
        held: Option<ReservationId>,
        rounds: EarlierRounds,
    ) -> Self {
        let reservation = HeldReservation::new(writer, &job.route, job.message.as_deref().ok(), held);
        Self { job, kind, reservation, rounds }
    }

    /// Decides the message again, with the judge's conclusion and its wording.
    pub async fn judged(self, judged: JudgeAnswer, words: &str) -> MessageAnswer {
        let rounds = self.rounds.next_judged(self.reservation.id, judged, words);
        let answer = self.reservation.writer.decide_message(self.job.clone(), self.kind, rounds).await;
        drop(self);
        answer
    }
}

impl HeldReservation {
    fn new(
        writer: DecisionWriter,
        route: &str,
        received: Option<&Received>,
        id: Option<ReservationId>,
    ) -> Self {
        let stream = received.map(|received| received.message.session_id().to_owned());
        Self { writer, route: route.to_owned(), stream, id }
    }
}

impl Drop for HeldReservation {
    fn drop(&mut self) {
        if let (Some(id), Some(stream)) = (self.id, self.stream.take()) {
            let refund = RefundWork::new(self.writer.rules_of(&self.route), stream, id);
            self.writer.submit(Box::new(refund));
        }
    }
}
