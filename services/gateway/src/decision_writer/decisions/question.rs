//! Questions for approvers in the database: stored with the ruling that raises them, answered once, and consumed once or
//! withdrawn.

use admission::approval::{Question, SignedApproval};
use admission::decide::{ClaimKind, Ruling};
use tokio::sync::oneshot;

use crate::decision_writer::DecisionWriter;
use crate::decision_writer::clock::timestamp;
use crate::decision_writer::error::{NotAnswered, WriterError};
use crate::decision_writer::states::{StoredQuestion, StreamState, question_stream};
use crate::decision_writer::transactions::{Batch, DecideError, StreamNotLoaded, Work, WorkItem, WorkStep};
use crate::limits::{FOR_EVER, QUESTION_SHOWN, QUESTION_SLACK};

/// Stores a question, in the same commit as the ruling that raises it.
///
/// # Errors
/// [`StreamNotLoaded`].
pub fn store(batch: &mut Batch<'_>, question: &Question) -> Result<(), StreamNotLoaded> {
    let until = u64::try_from(question.expires).unwrap_or(FOR_EVER).saturating_add(QUESTION_SLACK.as_secs());
    let copy = batch.stream(&question_stream(&question.id))?;
    let stored = StoredQuestion { question: question.clone(), answer: None, spent: false };
    copy.set_state(StreamState::Question(Box::new(stored)));
    copy.reopen(until.min(FOR_EVER));
    Ok(())
}

/// Returns the ids of the questions whose answers a ruling consumes.
pub fn consumed_by(ruling: &Ruling) -> impl Iterator<Item = &str> {
    let claims = ruling.claims.iter().filter(|claim| claim.kind == ClaimKind::Approval);
    claims.map(|claim| claim.key.as_str())
}

/// Marks a question as consumed, and closes its stream.
pub fn consume(batch: &mut Batch<'_>, id: &str) {
    let until = batch.now / 1000 + QUESTION_SHOWN.as_secs();
    let Ok(Some(stored)) = read(batch, id) else { return };
    if let Ok(copy) = batch.stream(&question_stream(id)) {
        copy.set_state(StreamState::Question(Box::new(StoredQuestion { spent: true, ..stored })));
        copy.close(until);
    }
}

/// Returns the question with this id, if there is one.
///
/// # Errors
/// [`StreamNotLoaded`].
pub fn read(batch: &mut Batch<'_>, id: &str) -> Result<Option<StoredQuestion>, StreamNotLoaded> {
    Ok(match batch.stream(&question_stream(id))?.state() {
        Some(StreamState::Question(stored)) => Some((**stored).clone()),
        _ => None,
    })
}

/// Stores an approver's answer.
pub struct AnswerWork {
    writer: DecisionWriter,
    signed: SignedApproval,
    text: String,
    reply: oneshot::Sender<Result<Question, NotAnswered>>,
    answered: Result<Question, NotAnswered>,
}

impl AnswerWork {
    /// The work item for the answer `signed`; `text` is the answer as received.
    pub fn new(
        writer: DecisionWriter,
        signed: SignedApproval,
        text: String,
        reply: oneshot::Sender<Result<Question, NotAnswered>>,
    ) -> Self {
        Self { writer, signed, text, reply, answered: Err(NotAnswered::Unknown) }
    }

    fn id(&self) -> &str {
        &self.signed.approval().question
    }
}

impl Work for AnswerWork {
    fn streams(&self) -> Vec<String> {
        vec![question_stream(self.id())]
    }

    fn is_abandoned(&self) -> bool {
        self.reply.is_closed()
    }

    fn decide(&mut self, batch: &mut Batch<'_>) -> Result<WorkStep, DecideError> {
        let now = timestamp(batch.now);
        let stored = read(batch, self.id())?;
        let stored = match self.writer.check_answer(stored, &self.signed, now) {
            Ok(stored) => stored,
            Err(why) => {
                self.answered = Err(why);
                return Ok(WorkStep::Unchanged);
            }
        };
        self.answered = Ok(stored.question.clone());
        let stored = StoredQuestion { answer: Some(self.text.clone()), ..stored };
        let copy = batch.stream(&question_stream(self.id()))?;
        copy.set_state(StreamState::Question(Box::new(stored)));
        Ok(WorkStep::Decided)
    }

    fn committed(self: Box<Self>) {
        if self.answered.is_ok() {
            self.writer.questions().notify(self.id());
        }
        let _ = self.reply.send(self.answered);
    }

    fn failed(self: Box<Self>, why: &WriterError) -> Option<WorkItem> {
        let _ = self.reply.send(Err(NotAnswered::Unavailable(why.to_string())));
        None
    }
}

/// Withdraws a question for whose answer no call waits any more.
pub struct WithdrawWork {
    writer: DecisionWriter,
    id: String,
}

impl WithdrawWork {
    pub fn new(writer: DecisionWriter, id: String) -> Self {
        Self { writer, id }
    }
}

impl Work for WithdrawWork {
    fn streams(&self) -> Vec<String> {
        vec![question_stream(&self.id)]
    }

    fn decide(&mut self, batch: &mut Batch<'_>) -> Result<WorkStep, DecideError> {
        if read(batch, &self.id)?.is_none_or(|stored| stored.spent) {
            return Ok(WorkStep::Unchanged);
        }
        consume(batch, &self.id);
        Ok(WorkStep::Decided)
    }

    fn committed(self: Box<Self>) {
        self.writer.questions().notify(&self.id);
    }

    fn failed(self: Box<Self>, _: &WriterError) -> Option<WorkItem> {
        Some(self)
    }
}
