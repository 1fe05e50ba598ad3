//! Questions for approvers in the writer: asked, answered once, consumed once or withdrawn.

use std::time::Instant;

use admission::approval::{Question, SignedApproval};
use admission::decide::{ClaimKind, Ruling};
use tokio::sync::oneshot;

use super::writing::timestamp;
use crate::desk::Desk;
use crate::desk::error::DeskError;
use crate::desk::questions::NotAnswered;
use crate::desk::states::{KeptQuestion, State, question_stream};
use crate::desk::writer::{Books, Job, Step, Work};
use crate::limits::{FOR_EVER, QUESTION_SHOWN, QUESTION_SLACK};

/// Stores a question, in the same commit as the ruling that raises it. `false` if its stream is not loaded yet.
pub fn put(books: &mut Books<'_>, question: &Question) -> bool {
    let until = u64::try_from(question.expires).unwrap_or(FOR_EVER).saturating_add(QUESTION_SLACK.as_secs());
    let Some(sheet) = books.sheet(&question_stream(&question.id)) else { return false };
    let kept = KeptQuestion { question: question.clone(), answer: None, spent: false };
    sheet.put(State::Question(Box::new(kept)), false);
    sheet.reopen(until.min(FOR_EVER));
    true
}

/// The ids of the questions whose answers a ruling consumes.
pub fn used_up_by(ruling: &Ruling) -> impl Iterator<Item = &str> {
    let claims = ruling.claims.iter().filter(|claim| claim.kind == ClaimKind::Approval);
    claims.map(|claim| claim.key.as_str())
}

/// Marks a question as consumed, and closes its stream.
pub fn spend(books: &mut Books<'_>, id: &str) {
    let until = books.now / 1000 + QUESTION_SHOWN.as_secs();
    let Some(kept) = kept(books, id).flatten() else { return };
    if let Some(sheet) = books.sheet(&question_stream(id)) {
        sheet.put(State::Question(Box::new(KeptQuestion { spent: true, ..kept })), false);
        sheet.close(until);
    }
}

/// Returns the question with this id, if there is one. Outer `None`: its stream is not loaded yet.
pub fn kept(books: &mut Books<'_>, id: &str) -> Option<Option<KeptQuestion>> {
    Some(match books.sheet(&question_stream(id))?.state() {
        Some(State::Question(kept)) => Some((**kept).clone()),
        _ => None,
    })
}

/// A job that stores an approver's answer.
pub struct AnswerWork {
    desk: Desk,
    signed: SignedApproval,
    text: String,
    since: Instant,
    tell: oneshot::Sender<Result<Question, NotAnswered>>,
    answered: Result<Question, NotAnswered>,
}

impl AnswerWork {
    /// A job for the answer `signed`; `text` is the answer as received.
    pub fn new(
        desk: Desk,
        signed: SignedApproval,
        text: String,
        tell: oneshot::Sender<Result<Question, NotAnswered>>,
    ) -> Self {
        Self { desk, signed, text, since: Instant::now(), tell, answered: Err(NotAnswered::Unknown) }
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
        self.tell.is_closed()
    }

    fn decide(&mut self, books: &mut Books<'_>) -> Step {
        let now = timestamp(books.now);
        let Some(kept) = kept(books, self.id()) else { return Step::Needs(books.missing()) };
        match self.desk.check_answer(kept, &self.signed, now) {
            Ok(kept) => {
                self.answered = Ok(kept.question.clone());
                let kept = KeptQuestion { answer: Some(self.text.clone()), ..kept };
                if let Some(sheet) = books.sheet(&question_stream(&kept.question.id)) {
                    sheet.put(State::Question(Box::new(kept)), false);
                }
                Step::Decided
            }
            Err(why) => {
                self.answered = Err(why);
                Step::Nothing
            }
        }
    }

    fn committed(self: Box<Self>) {
        if self.answered.is_ok() {
            self.desk.questions().tell(self.id());
        }
        let _ = self.tell.send(self.answered);
    }

    fn failed(self: Box<Self>, why: &DeskError) -> Option<Job> {
        let _ = self.tell.send(Err(NotAnswered::Unavailable(why.to_string())));
        None
    }
}

/// A job that withdraws a question for whose answer no call waits any more.
pub struct WithdrawWork {
    desk: Desk,
    id: String,
    since: Instant,
}

impl WithdrawWork {
    pub fn new(desk: Desk, id: String) -> Self {
        Self { desk, id, since: Instant::now() }
    }
}

impl Work for WithdrawWork {
    fn streams(&self) -> Vec<String> {
        vec![question_stream(&self.id)]
    }

    fn since(&self) -> Instant {
        self.since
    }

    fn decide(&mut self, books: &mut Books<'_>) -> Step {
        match kept(books, &self.id) {
            None => Step::Needs(books.missing()),
            Some(Some(kept)) if !kept.spent => {
                spend(books, &self.id);
                Step::Decided
            }
            Some(_) => Step::Nothing,
        }
    }

    fn committed(self: Box<Self>) {
        self.desk.questions().tell(&self.id);
    }

    fn failed(self: Box<Self>, why: &DeskError) -> Option<Job> {
        match why {
            DeskError::Unrecordable(_) | DeskError::Stopping => None,
            _ => Some(self),
        }
    }
}
