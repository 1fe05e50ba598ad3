//! Questions for approvers: which are open in this process, who waits for one, and how one is answered from outside.
//!
//! A question is a stream of its own in the store, written in the transaction after which the client first hears of it. Its answer
//! is written once, and used by the decision that it lets through, each under the version of the stream: neither happens twice,
//! whatever process it reaches.
//!
//! Not here: who may answer, and what an answer is good for (`admission`), and the listener (`approvals`).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use admission::approval::{ApprovalError, Question, SignedApproval};
use evidence::StoreError;
use jiff::Timestamp;
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, sleep_until, timeout_at};

use super::Desk;
use super::decisions::{AnswerWork, WithdrawWork};
use super::error::DeskError;
use super::states::{KeptQuestion, QUESTIONS, State, question_stream};
use crate::limits::{
    OPEN_QUESTIONS, PRINCIPAL_QUESTIONS, QUESTION_LOOK_EVERY, QUESTIONS_LISTED, UPKEEP_PAGE,
};

/// The questions that this process put and that are open.
#[derive(Default)]
pub struct Questions {
    open: Mutex<HashMap<String, Open>>,
    told: Mutex<HashMap<String, Arc<Notify>>>,
}

/// What counts against the bounds.
struct Open {
    whose: String,
    expires: i64,
}

/// How a question stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Nobody has answered it yet.
    Open,
    /// It was answered.
    Answered,
    /// It cannot be answered any more.
    Over,
}

/// Why an answer is not taken.
#[derive(Debug, thiserror::Error)]
pub enum NotAnswered {
    /// There is no such question.
    #[error("there is no such question")]
    Unknown,
    /// It was answered before.
    #[error("the question was answered before")]
    Answered,
    /// Nobody waits for an answer any more.
    #[error("the question is over: it expired, or the call was taken back")]
    Over,
    /// The answer is none.
    #[error(transparent)]
    Approval(#[from] ApprovalError),
    /// It could not be made durable.
    #[error("the answer could not be kept: {0}")]
    Unavailable(String),
}

impl KeptQuestion {
    /// How it stands.
    #[must_use]
    pub fn standing(&self, now: Timestamp) -> Standing {
        match (&self.answer, self.spent || self.question.is_over(now)) {
            (Some(_), _) => Standing::Answered,
            (None, true) => Standing::Over,
            (None, false) => Standing::Open,
        }
    }
}

impl Questions {
    /// Whether one more fits: of this principal, and in all.
    pub fn has_room(&self, whose: &str, now: i64) -> bool {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|_, question| now < question.expires);
        open.len() < OPEN_QUESTIONS
            && open.values().filter(|question| question.whose == whose).count() < PRINCIPAL_QUESTIONS
    }

    /// How many are open.
    pub fn count(&self, now: i64) -> u64 {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|_, question| now < question.expires);
        u64::try_from(open.len()).unwrap_or(u64::MAX)
    }

    /// One was put.
    pub fn put(&self, question: &Question) {
        let (whose, expires) = (question.subject.principal.clone(), question.expires);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.insert(question.id.clone(), Open { whose, expires });
    }

    /// One is over, or answered: whoever waits looks at it.
    pub fn tell(&self, id: &str) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned();
        told.iter().for_each(|notify| notify.notify_waiters());
    }

    fn listen(&self, id: &str) -> Arc<Notify> {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.retain(|_, notify| Arc::strong_count(notify) > 1);
        told.entry(id.to_owned()).or_default().clone()
    }
}

impl Desk {
    /// The question of this id, as it is kept.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn question(&self, id: &str) -> Result<Option<KeptQuestion>, StoreError> {
        let name = question_stream(id);
        let kept = self.inner.store.streams(&[&name]).await?.into_iter().next().flatten();
        let Some(kept) = kept else { return Ok(None) };
        match State::read(&name, None, &kept.running) {
            Ok(Some(State::Question(kept))) => Ok(Some(*kept)),
            Ok(_) => Ok(None),
            Err(error) => Err(StoreError::Damaged(format!("question {id}: {error}"))),
        }
    }

    /// The questions that wait for an answer.
    ///
    /// # Errors
    /// If the database does not answer.
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
                    Ok(Some(kept)) if kept.standing(now) == Standing::Open => open.push(kept.question),
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

    /// Waits until a question is answered or over, and no longer than that. Another process may be told the answer, so the
    /// database is looked at from time to time.
    pub async fn wait_for_answer(&self, id: &str, longest: Duration) -> Standing {
        let until = Instant::now() + longest;
        let notify = self.inner.questions.listen(id);
        loop {
            let told = notify.notified();
            tokio::pin!(told);
            // What is told from here on is heard, however long the look takes.
            told.as_mut().enable();
            let expires = match self.question(id).await {
                Ok(Some(kept)) => match kept.standing(self.now()) {
                    Standing::Open => kept.question.expires,
                    standing => return standing,
                },
                Ok(None) => return Standing::Over,
                Err(error) => {
                    tracing::warn!(%error, "a question cannot be looked at");
                    i64::MAX
                }
            };
            let left = u64::try_from(expires.saturating_sub(self.now().as_second())).unwrap_or(0);
            let look = Instant::now() + QUESTION_LOOK_EVERY.min(Duration::from_secs(left.max(1)));
            tokio::select! {
                () = &mut told => {}
                () = sleep_until(look) => {}
                () = sleep_until(until) => return Standing::Open,
            }
        }
    }

    /// Takes an approver's signed answer. It is durable once this returns, and whoever waits for it goes on.
    ///
    /// # Errors
    /// If it is none, or the question is not open.
    pub async fn answer_question(&self, id: &str, text: &str) -> Result<Question, NotAnswered> {
        let signed = SignedApproval::parse(text)?;
        if signed.approval().question != id {
            return Err(ApprovalError::Question.into());
        }
        // Whoever has no key keeps the writer from nothing.
        let kept = self.question(id).await.map_err(|error| NotAnswered::Unavailable(error.to_string()))?;
        self.check_answer(kept, &signed, self.now())?;
        let (tell, told) = oneshot::channel();
        self.hand_in(Box::new(AnswerWork::new(self.clone(), signed, text.to_owned(), tell)));
        let until = Instant::now() + self.inner.house.settings.decide_time;
        match timeout_at(until, told).await {
            Ok(Ok(answered)) => answered,
            Ok(Err(_)) => Err(NotAnswered::Unavailable(DeskError::Stopping.to_string())),
            Err(_) => Err(NotAnswered::Unavailable("the database does not answer".to_owned())),
        }
    }

    /// The question that this answers, if it is open, and the answer is one under the rules in force.
    pub(super) fn check_answer(
        &self,
        kept: Option<KeptQuestion>,
        signed: &SignedApproval,
        now: Timestamp,
    ) -> Result<KeptQuestion, NotAnswered> {
        let kept = kept.ok_or(NotAnswered::Unknown)?;
        match kept.standing(now) {
            Standing::Open => {}
            Standing::Answered => return Err(NotAnswered::Answered),
            Standing::Over => return Err(NotAnswered::Over),
        }
        let rules = self.rules_of(&kept.question.subject.route);
        rules.approvals.check(signed, &kept.question, now)?;
        Ok(kept)
    }

    /// Nobody waits for the answer any more.
    pub(super) fn withdraw_question(&self, id: &str) {
        self.hand_in(Box::new(WithdrawWork::new(self.clone(), id.to_owned())));
    }
}
