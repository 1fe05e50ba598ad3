//! Scope commitments and amendments whose carrier request succeeded: decided, and in force as soon as they are durable.
//!
//! A ruling may raise a question for approvers. Its id follows from its content: if the same question was put before, the
//! message is decided once more with the stored question and its answer.

use std::sync::Arc;

use admission::approval::Question;
use admission::authenticated::Authenticated;
use admission::decide::{
    self, DecisionContext, DecisionState, Declaration, EarlierResults, MessageRuling, RandomInputs,
};
use admission::principal::Caller;
use admission::rules::Rules;
use admission::session::{Account, ReservationId};
use evidence::Claim;

use super::earlier_rounds::EarlierRounds;
use super::question;
use super::request::{Request, Ruled};
use super::ruling_records::{message_id_claim, record_ruling};
use super::session_with_account::{SentMessage, SessionWithAccount, depends_on_account};
use super::undecided::{MessageAnswer, UndecidedMessage};
use crate::annex::DecisionInputs;
use crate::decision_writer::clock::timestamp;
use crate::decision_writer::error::WriterError;
use crate::decision_writer::jobs::{MessageJob, MessageKind};
use crate::decision_writer::states::StoredQuestion;
use crate::decision_writer::transactions::{Batch, DecideError, StreamNotLoaded, Work, WorkItem, WorkStep};

/// Decides a [`MessageJob`].
pub struct MessageWork {
    request: Request<MessageAnswer>,
    job: Arc<MessageJob>,
    kind: MessageKind,
    rounds: EarlierRounds,
    random: RandomInputs,
    /// The rules in force, read again for each attempt.
    rules: Arc<Rules>,
    /// The stored question to approvers, if it is still usable.
    stored_question: Option<StoredQuestion>,
    /// `true` if there is room for one more question.
    can_wait: bool,
    /// The result, which is answered once it is durable.
    result: Option<MessageResult>,
}

/// Result of a round.
enum MessageResult {
    Ruled(Ruled),
    /// The judge must be asked. The reservation is held meanwhile.
    AskJudge(Box<decide::JudgeQuestion>, Option<ReservationId>),
}

impl MessageWork {
    pub fn new(
        request: Request<MessageAnswer>,
        job: Arc<MessageJob>,
        kind: MessageKind,
        rounds: EarlierRounds,
        random: RandomInputs,
    ) -> Self {
        let rules = request.writer.rules_of(&job.route);
        let (stored_question, can_wait, result) = (None, true, None);
        Self { request, job, kind, rounds, random, rules, stored_question, can_wait, result }
    }

    fn message_id_claim(&self) -> Option<Claim> {
        message_id_claim(self.received()?)
    }

    fn received(&self) -> Option<&Authenticated> {
        self.job.message.as_ref().ok()
    }

    fn earlier_results(&self) -> EarlierResults<'_> {
        let approver_question = self.stored_question.as_ref().map(StoredQuestion::as_input);
        EarlierResults {
            held: self.rounds.held,
            judged: self.rounds.judged,
            answer: None,
            returned_state: None,
            approver_question,
        }
    }

    fn context<'a>(&'a self, caller: &'a Caller, batch: &Batch<'_>) -> DecisionContext<'a> {
        DecisionContext { rules: &self.rules, caller, now: timestamp(batch.now), random: self.random }
    }

    fn sent<'a>(&'a self, caller: &'a Caller, batch: &Batch<'_>) -> SentMessage<'a> {
        let context = self.context(caller, batch);
        SentMessage { context, received: self.received(), before: self.earlier_results() }
    }

    fn declaration(&self, batch: &Batch<'_>) -> Declaration<'_> {
        Declaration {
            message: self.job.message.as_ref().map_err(|unreadable| &**unreadable),
            replayed: self.message_id_claim().is_some_and(|claim| batch.is_used(&claim)),
            can_wait: self.can_wait,
            before: self.earlier_results(),
        }
    }

    fn decide_on(&self, batch: &Batch<'_>, working: &mut SessionWithAccount) -> MessageRuling {
        let caller = working.caller.clone();
        let (context, declared) = (self.context(&caller, batch), self.declaration(batch));
        let state = DecisionState { session: &mut working.session, account: &mut working.account };
        match self.kind {
            MessageKind::Commitment => decide::commitment(&context, state, &declared),
            MessageKind::Amendment => decide::amendment(&context, state, &declared),
        }
    }

    /// Decides the message. If it raises a question for approvers that was put before, or for which there is no room, it is
    /// decided once more with that knowledge. `account` is the principal's account before the decision.
    fn decide_with_question(
        &mut self,
        batch: &mut Batch<'_>,
        working: &mut SessionWithAccount,
        account: &Account,
    ) -> Result<MessageRuling, StreamNotLoaded> {
        let session = working.session.clone();
        (self.stored_question, self.can_wait) = (None, true);
        let ruling = self.decide_on(batch, working);
        let Some(question) = raised_question(&ruling) else { return Ok(ruling) };
        let (stored, now) = (question::read(batch, &question.id)?, timestamp(batch.now));
        self.stored_question = stored.filter(|stored| is_usable(stored, question, now));
        self.can_wait = self.stored_question.is_some() || self.has_room(question, batch);
        if self.stored_question.is_none() && self.can_wait {
            return Ok(ruling);
        }
        (working.session, working.account) = (session, account.clone());
        Ok(self.decide_on(batch, working))
    }

    fn has_room(&self, question: &Question, batch: &Batch<'_>) -> bool {
        let now = timestamp(batch.now).as_second();
        self.request.writer.questions().has_room(&question.subject.principal, now)
    }

    /// Records the ruling. `account` is the principal's account before the decision.
    fn record(
        &self,
        batch: &mut Batch<'_>,
        working: SessionWithAccount,
        account: Account,
        mut ruling: Box<decide::Ruling>,
    ) -> Result<Ruled, WriterError> {
        let (context, declared) = (self.context(&working.caller, batch), self.declaration(batch));
        let inputs = DecisionInputs::of_declaration(&self.job.route, &context, &declared);
        let account = depends_on_account(&ruling, &self.rules).then_some(account);
        let inputs = self.rounds.add_to_inputs(inputs, &working, account);
        working.write_ruled(batch, self.rounds.held);
        let recorded = record_ruling(batch, &mut ruling, self.job.invocation.as_ref(), inputs.into())?;
        if let Some(question) = ruling.approver_question.as_ref().filter(|_| self.stored_question.is_none()) {
            // Its stream is loaded: it was read when the ruling raised the question.
            let _ = question::store(batch, question);
        }
        // A refusal is not consumed: it counts until the question expires.
        if ruling.verdict.verdict.is_permit() {
            question::consumed_by(&ruling).for_each(|id| question::consume(batch, id));
        }
        Ok(Ruled::Recorded(ruling, Box::new(recorded)))
    }
}

/// Returns the question to approvers that a ruling raises, if any.
fn raised_question(ruling: &MessageRuling) -> Option<&Question> {
    match ruling {
        MessageRuling::Ruled(ruling) => ruling.approver_question.as_deref(),
        MessageRuling::Judge { .. } => None,
    }
}

/// Returns whether a stored question is about the same subject, and is open or its answer still counts.
fn is_usable(stored: &StoredQuestion, question: &Question, now: jiff::Timestamp) -> bool {
    !stored.spent && !stored.question.is_over(now) && stored.question.subject == question.subject
}

impl Work for MessageWork {
    fn streams(&self) -> Vec<String> {
        let mut streams = vec![self.request.writer.own_stream()];
        streams.extend(self.received().map(|received| received.message.session_id().to_owned()));
        streams
    }

    fn claims(&self) -> Vec<Claim> {
        self.message_id_claim().into_iter().collect()
    }

    fn is_abandoned(&self) -> bool {
        self.request.is_abandoned()
    }

    fn is_refused_while_outbox_is_full(&self) -> bool {
        true
    }

    fn decide(&mut self, batch: &mut Batch<'_>) -> Result<WorkStep, DecideError> {
        self.rules = self.request.writer.rules_of(&self.job.route);
        let sent = self.sent(&self.job.caller, batch);
        let mut working = SessionWithAccount::of_message(batch, &sent)?;
        working.release_questions(batch, &self.rules, self.rounds.held);
        let account = working.account.clone();
        match self.decide_with_question(batch, &mut working, &account)? {
            MessageRuling::Ruled(ruling) => {
                let sent = self.sent(&working.caller, batch);
                if self.request.writer.is_only_counted(batch, &sent, working.session.as_ref(), &ruling) {
                    self.result = Some(MessageResult::Ruled(Ruled::Counted(ruling)));
                    return Ok(WorkStep::OnlyCounted);
                }
                let ruled = self.record(batch, working, account, ruling)?;
                self.result = Some(MessageResult::Ruled(ruled));
            }
            MessageRuling::Judge { question, held } => {
                self.rounds.first_at.get_or_insert(timestamp(batch.now).as_millisecond());
                working.write_undecided(batch, self.rounds.held, held, 0);
                self.result = Some(MessageResult::AskJudge(question, held));
            }
        }
        Ok(WorkStep::Decided)
    }

    fn committed(self: Box<Self>) {
        let writer = &self.request.writer;
        let answer = match self.result {
            Some(MessageResult::Ruled(ruled)) => {
                if let Ruled::Recorded(ruling, _) = &ruled {
                    ruling.approver_question.iter().for_each(|question| writer.questions().insert(question));
                }
                MessageAnswer::Ruled(Box::new(ruled.answer(writer, None)))
            }
            Some(MessageResult::AskJudge(question, held)) => {
                let undecided = UndecidedMessage::new(writer.clone(), self.job, self.kind, held, self.rounds);
                MessageAnswer::Judge(question, Box::new(undecided))
            }
            None => return,
        };
        self.request.answer(answer);
    }

    fn failed(self: Box<Self>, why: &WriterError) -> Option<WorkItem> {
        self.request.fail(why);
        None
    }
}
