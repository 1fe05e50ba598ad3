//! Questions for approvers in the writer: asked, answered once, consumed once or withdrawn.

use std::time::Instant;

use admission::approval::{Question, SignedApproval};
use admission::decide::{ClaimKind, Ruling};
use tokio::sync::oneshot;

use crate::decision_writer::DecisionWriter;
use crate::decision_writer::clock::timestamp;
use crate::decision_writer::error::{NotAnswered, WriterError};
use crate::decision_writer::states::{StoredQuestion, StreamState, question_stream};
use crate::decision_writer::transactions::{Batch, Job, JobStep, Work};
use crate::limits::{FOR_EVER, QUESTION_SHOWN, QUESTION_SLACK};

/// Stores a question, in the same commit as the ruling that raises it. `false` if its stream is not loaded yet.
pub fn put(batch: &mut Batch<'_>, question: &Question) -> bool {
    let until = u64::try_from(question.expires).unwrap_or(FOR_EVER).saturating_add(QUESTION_SLACK.as_secs());
    let Some(copy) = batch.stream(&question_stream(&question.id)) else { return false };
    let stored = StoredQuestion { question: question.clone(), answer: None, spent: false };
    copy.put(StreamState::Question(Box::new(stored)), false);
    copy.reopen(until.min(FOR_EVER));
    true
}

/// The ids of the questions whose answers a ruling consumes.
pub fn used_up_by(ruling: &Ruling) -> impl Iterator<Item = &str> {
    let claims = ruling.claims.iter().filter(|claim| claim.kind == ClaimKind::Approval);
    claims.map(|claim| claim.key.as_str())
}

/// Marks a question as consumed, and closes its stream.
pub fn spend(batch: &mut Batch<'_>, id: &str) {
    let until = batch.now / 1000 + QUESTION_SHOWN.as_secs();
    let Some(stored) = stored(batch, id).flatten() else { return };
    if let Some(copy) = batch.stream(&question_stream(id)) {
        copy.put(StreamState::Question(Box::new(StoredQuestion { spent: true, ..stored })), false);
        copy.close(until);
    }
}

/// Returns the question with this id, if there is one. Outer `None`: its stream is not loaded yet.
pub fn stored(batch: &mut Batch<'_>, id: &str) -> Option<Option<StoredQuestion>> {
    Some(match batch.stream(&question_stream(id))?.state() {
        Some(StreamState::Question(stored)) => Some((**stored).clone()),
        _ => None,
    })
}

/// A job that stores an approver's answer.
pub struct AnswerWork {
    writer: DecisionWriter,
    signed: SignedApproval,
    text: String,
    since: Instant,
    reply: oneshot::Sender<Result<Question, NotAnswered>>,
    answered: Result<Question, NotAnswered>,
}

impl AnswerWork {
    /// A job for the answer `signed`; `text` is the answer as received.
    pub fn new(
        writer: DecisionWriter,
        signed: SignedApproval,
        text: String,
        reply: oneshot::Sender<Result<Question, NotAnswered>>,
    ) -> Self {
        Self { writer, signed, text, since: Instant::now(), reply, answered: Err(NotAnswered::Unknown) }
    }

    fn id(&self) -> &str {
        &self.signed.approval().question
    }
}

impl Work for AnswerWork {
    fn streams(&self) -> Vec<String> {
        vec![question_stream(self.id())]
    }

    fn since(&self) -> Instant {
        self.since
    }

    fn is_abandoned(&self) -> bool {
        self.reply.is_closed()
    }

    fn decide(&mut self, batch: &mut Batch<'_>) -> JobStep {
        let now = timestamp(batch.now);
        let Some(stored) = stored(batch, self.id()) else { return JobStep::Needs(batch.missing()) };
        match self.writer.check_answer(stored, &self.signed, now) {
            Ok(stored) => {
                self.answered = Ok(stored.question.clone());
                let stored = StoredQuestion { answer: Some(self.text.clone()), ..stored };
                if let Some(copy) = batch.stream(&question_stream(&stored.question.id)) {
                    copy.put(StreamState::Question(Box::new(stored)), false);
                }
                JobStep::Decided
            }
            Err(why) => {
                self.answered = Err(why);
                JobStep::Nothing
            }
        }
    }

    fn committed(self: Box<Self>) {
        if self.answered.is_ok() {
            self.writer.questions().notify(self.id());
        }
        let _ = self.reply.send(self.answered);
    }

    fn failed(self: Box<Self>, why: &WriterError) -> Option<Job> {
        let _ = self.reply.send(Err(NotAnswered::Unavailable(why.to_string())));
        None
    }
}

/// A job that withdraws a question for whose answer no call waits any more.
pub struct WithdrawWork {
    writer: DecisionWriter,
    id: String,
    since: Instant,
}

impl WithdrawWork {
    pub fn new(writer: DecisionWriter, id: String) -> Self {
        Self { writer, id, since: Instant::now() }
    }
}

impl Work for WithdrawWork {
    fn streams(&self) -> Vec<String> {
        vec![question_stream(&self.id)]
    }

    fn since(&self) -> Instant {
        self.since
    }

    fn decide(&mut self, batch: &mut Batch<'_>) -> JobStep {
        match stored(batch, &self.id) {
            None => JobStep::Needs(batch.missing()),
            Some(Some(stored)) if !stored.spent => {
                spend(batch, &self.id);
                JobStep::Decided
            }
            Some(_) => JobStep::Nothing,
        }
    }

    fn committed(self: Box<Self>) {
        self.writer.questions().notify(&self.id);
    }

    fn failed(self: Box<Self>, why: &WriterError) -> Option<Job> {
        match why {
            WriterError::Unrecordable(_) | WriterError::Stopping => None,
            _ => Some(self),
        }
    }
}
