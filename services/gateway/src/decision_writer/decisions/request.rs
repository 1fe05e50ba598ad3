//! [`Request`]: the channel to the caller that every request for a decision has: a call, a message, or the refusal of
//! another request.

use admission::decide::Ruling;
use tokio::sync::oneshot;

use super::admitted_call::AdmittedCall;
use super::answer::DecisionAnswer;
use super::ruling_records::RecordedRuling;
use crate::decision_writer::DecisionWriter;
use crate::decision_writer::error::WriterError;

/// A request for a decision, with the channel for its answer.
pub struct Request<A> {
    /// The decision writer.
    pub writer: DecisionWriter,
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
    /// A request whose answer `reply` receives.
    pub fn new(writer: DecisionWriter, reply: oneshot::Sender<Result<A, WriterError>>) -> Self {
        Self { writer, reply }
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
    pub fn answer(self, writer: &DecisionWriter, admitted: Option<AdmittedCall>) -> DecisionAnswer {
        match self {
            Self::Recorded(ruling, recorded) => DecisionAnswer::of(ruling, *recorded, admitted),
            Self::Counted(ruling) => writer.deny_counted(&ruling),
        }
    }
}
