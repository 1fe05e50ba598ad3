//! The parts that the requests for a decision share: calls, messages, and refusals of other requests.

use std::time::Instant;

use admission::decide::Ruling;
use tokio::sync::oneshot;

use super::admitted_call::AdmittedCall;
use super::answer::DecisionAnswer;
use super::writing::RecordedRuling;
use crate::decision_writer::DecisionWriter;
use crate::decision_writer::error::WriterError;

/// A request for a decision, with the channel for its answer.
pub struct Request<A> {
    /// The decision writer.
    pub writer: DecisionWriter,
    /// When the request was made.
    pub since: Instant,
    reply: oneshot::Sender<Result<A, WriterError>>,
}

/// A ruling whose answer is sent once it is durable.
pub enum Ruled {
    /// A ruling with a record.
    Recorded(Box<Ruling>, Box<RecordedRuling>),
    /// A denial of an unidentified caller that is counted and not recorded.
    Counted(Box<Ruling>),
}

impl<A> Request<A> {
    /// A request that is made now; `reply` receives its answer.
    pub fn new(writer: DecisionWriter, reply: oneshot::Sender<Result<A, WriterError>>) -> Self {
        Self { writer, since: Instant::now(), reply }
    }

    /// Returns whether the caller has gone.
    pub fn is_abandoned(&self) -> bool {
        self.reply.is_closed()
    }

    /// Sends the answer. If the caller has gone, the answer is dropped, and with it the permission to forward a call or
    /// the undecided call, which releases the reservation.
    pub fn answer(self, answer: A) {
        let _ = self.reply.send(Ok(answer));
    }

    /// Reports that the decision could not be made.
    pub fn fail(self, why: &WriterError) {
        let _ = self.reply.send(Err(why.clone()));
    }
}

impl Ruled {
    /// Returns the answer, with the permission to forward an admitted call.
    pub fn answer(self, writer: &DecisionWriter, pass: Option<AdmittedCall>) -> DecisionAnswer {
        match self {
            Self::Recorded(ruling, written) => DecisionAnswer::of(ruling, *written, pass),
            Self::Counted(ruling) => writer.count_and_tell(&ruling),
        }
    }
}
