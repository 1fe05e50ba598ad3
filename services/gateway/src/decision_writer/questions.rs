//! Questions for approvers: the open ones of this process, the calls that wait for them, and the answers that approvers
//! send.
//!
//! A question is a stream of its own in the store, committed before the client learns of it. Its answer is stored once
//! and consumed once, by the decision that it permits, each under the version of the stream: neither can happen twice,
//! in any process.
//!
//! Not here: the authority of approvers and the effect of an answer (`admission`), and the HTTP listener (`approvals`).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use admission::approval::{ApprovalError, Question, SignedApproval};
use admission::decide::ApproverQuestion;
use evidence::StoreError;
use jiff::Timestamp;
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, sleep_until, timeout_at};

use super::DecisionWriter;
use super::decisions::{AnswerWork, WithdrawWork};
use super::error::{NotAnswered, WriterError};
use super::states::{QUESTIONS, StoredQuestion, StreamState, question_stream};
use crate::limits::{OPEN_QUESTIONS, PRINCIPAL_QUESTIONS, QUESTION_POLL, QUESTIONS_LISTED, UPKEEP_PAGE};

/// The open questions that this process asked.
#[derive(Default)]
pub struct Questions {
    open: Mutex<HashMap<String, OpenQuestion>>,
    waiters: Mutex<HashMap<String, Arc<Notify>>>,
}

/// An open question, as it counts against the limits.
struct OpenQuestion {
    /// The key of the principal's account.
    principal: String,
    expires: i64,
}

/// State of a question for approvers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuestionStatus {
    /// The question waits for an answer.
    Open,
    /// An approver has answered.
    Answered,
    /// The question expired or was withdrawn without an answer.
    Over,
}

impl StoredQuestion {
    /// Returns the state of the question at the time `now`.
    #[must_use]
    pub fn status(&self, now: Timestamp) -> QuestionStatus {
        match (&self.answer, self.spent || self.question.is_over(now)) {
            (Some(_), _) => QuestionStatus::Answered,
            (None, true) => QuestionStatus::Over,
            (None, false) => QuestionStatus::Open,
        }
    }

    /// Returns the question in the form that `admission` takes.
    pub(super) fn as_input(&self) -> ApproverQuestion<'_> {
        let Self { question, answer, spent } = self;
        ApproverQuestion { question, answer: answer.as_deref(), spent: *spent }
    }
}

impl Questions {
    /// Returns whether one more question fits: [`PRINCIPAL_QUESTIONS`] of this principal, and [`OPEN_QUESTIONS`] in all.
    /// `now` is in Unix seconds.
    pub fn has_room(&self, principal: &str, now: i64) -> bool {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|_, question| now < question.expires);
        open.len() < OPEN_QUESTIONS
            && open.values().filter(|question| question.principal == principal).count() < PRINCIPAL_QUESTIONS
    }

    /// Returns the number of open questions. `now` is in Unix seconds.
    pub fn count(&self, now: i64) -> u64 {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|_, question| now < question.expires);
        u64::try_from(open.len()).unwrap_or(u64::MAX)
    }

    /// Adds an open question.
    pub fn insert(&self, question: &Question) {
        let (principal, expires) = (question.subject.principal.clone(), question.expires);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.insert(question.id.clone(), OpenQuestion { principal, expires });
    }

    /// Removes a question that is answered or over, and wakes the tasks that wait for it.
    pub fn notify(&self, id: &str) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
        let waiter = self.waiters.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned();
        waiter.iter().for_each(|notify| notify.notify_waiters());
    }

    fn waiter(&self, id: &str) -> Arc<Notify> {
        let mut waiters = self.waiters.lock().unwrap_or_else(PoisonError::into_inner);
        waiters.retain(|_, notify| Arc::strong_count(notify) > 1);
        waiters.entry(id.to_owned()).or_default().clone()
    }
}

impl DecisionWriter {
    /// Reads the question with this id from the store.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer, or the stored question is damaged.
    pub async fn question(&self, id: &str) -> Result<Option<StoredQuestion>, StoreError> {
        let name = question_stream(id);
        let stored = self.inner.store.streams(&[&name]).await?.into_iter().next().flatten();
        let Some(stored) = stored else { return Ok(None) };
        match StreamState::read(&name, None, &stored.running) {
            Ok(Some(StreamState::Question(stored))) => Ok(Some(*stored)),
            Ok(_) => Ok(None),
            Err(error) => Err(StoreError::Damaged(format!("question {id}: {error}"))),
        }
    }

    /// Lists the open questions, oldest first. The search ends after the page that reaches `QUESTIONS_LISTED`.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn open_questions(&self) -> Result<Vec<Question>, StoreError> {
        let now = self.now();
        let (mut after, mut open) = (QUESTIONS.to_owned(), Vec::new());
        loop {
            let page = self.inner.store.list(Some(&after), UPKEEP_PAGE).await?;
            let ours: Vec<_> =
                page.iter().take_while(|listed| listed.stream.starts_with(QUESTIONS)).collect();
            let is_last = ours.len() < UPKEEP_PAGE;
            for listed in ours.iter().filter(|listed| !listed.closed) {
                let id = listed.stream.strip_prefix(QUESTIONS).unwrap_or_default();
                match self.question(id).await {
                    Ok(Some(stored)) if stored.status(now) == QuestionStatus::Open => {
                        open.push(stored.question)
                    }
                    Ok(_) => {}
                    Err(StoreError::Damaged(why)) => tracing::error!(why, "a question cannot be read"),
                    Err(error) => return Err(error),
                }
            }
            match ours.last() {
                Some(last) if !is_last && open.len() < QUESTIONS_LISTED => after.clone_from(&last.stream),
                _ => break,
            }
        }
        open.sort_by_key(|question| question.asked);
        Ok(open)
    }

    /// Waits until a question is answered or over, but not longer than `longest`. The answer may arrive at another
    /// process, so the database is read every `QUESTION_POLL`.
    pub async fn wait_for_answer(&self, id: &str, longest: Duration) -> QuestionStatus {
        let until = Instant::now() + longest;
        let notify = self.inner.questions.waiter(id);
        loop {
            let notified = notify.notified();
            tokio::pin!(notified);
            // Enabled before the read, so that a notification during the read is not lost.
            notified.as_mut().enable();
            let expires = match self.question(id).await {
                Ok(Some(stored)) => match stored.status(self.now()) {
                    QuestionStatus::Open => stored.question.expires,
                    status => return status,
                },
                Ok(None) => return QuestionStatus::Over,
                Err(error) => {
                    tracing::warn!(%error, "a question cannot be shown");
                    i64::MAX
                }
            };
            let left = u64::try_from(expires.saturating_sub(self.now().as_second())).unwrap_or(0);
            let next_read = Instant::now() + QUESTION_POLL.min(Duration::from_secs(left.max(1)));
            tokio::select! {
                () = &mut notified => {}
                () = sleep_until(next_read) => {}
                () = sleep_until(until) => return QuestionStatus::Open,
            }
        }
    }

    /// Stores an approver's signed answer. It is durable when this returns, and the waiting call continues.
    ///
    /// # Errors
    /// [`NotAnswered`] if the answer is not valid, the question is not open, or the answer cannot be made durable.
    pub async fn answer_question(&self, id: &str, text: &str) -> Result<Question, NotAnswered> {
        let signed = SignedApproval::parse(text)?;
        if signed.approval().question != id {
            return Err(ApprovalError::Question.into());
        }
        // A sender without an approver's key is rejected here, and costs the writer no time.
        let stored = self.question(id).await.map_err(|error| NotAnswered::Unavailable(error.to_string()))?;
        self.check_answer(stored, &signed, self.now())?;
        let (reply, answer) = oneshot::channel();
        self.submit(Box::new(AnswerWork::new(self.clone(), signed, text.to_owned(), reply)));
        let until = Instant::now() + self.inner.context.settings.decide_time;
        match timeout_at(until, answer).await {
            Ok(Ok(answered)) => answered,
            Ok(Err(_)) => Err(NotAnswered::Unavailable(WriterError::Stopping.to_string())),
            Err(_) => Err(NotAnswered::Unavailable("the database does not answer".to_owned())),
        }
    }

    /// Returns the question if it is open, and the answer is valid for it under the rules in force.
    pub(super) fn check_answer(
        &self,
        stored: Option<StoredQuestion>,
        signed: &SignedApproval,
        now: Timestamp,
    ) -> Result<StoredQuestion, NotAnswered> {
        let stored = stored.ok_or(NotAnswered::Unknown)?;
        match stored.status(now) {
            QuestionStatus::Open => {}
            QuestionStatus::Answered => return Err(NotAnswered::Answered),
            QuestionStatus::Over => return Err(NotAnswered::Over),
        }
        let rules = self.rules_of(&stored.question.subject.route);
        rules.approvals.check(signed, &stored.question, now)?;
        Ok(stored)
    }

    /// Submits the withdrawal of a question for whose answer no call waits any more.
    pub(super) fn withdraw_question(&self, id: &str) {
        self.submit(Box::new(WithdrawWork::new(self.clone(), id.to_owned())));
    }
}
