//! Scope commitments and amendments whose carrier request succeeded: decided, and in force as soon as they are durable.

use std::sync::Arc;
use std::time::Instant;

use admission::approval::Question;
use admission::authenticated::Authenticated;
use admission::decide::{
    self, DecisionContext, DecisionState, Declaration, EarlierResults, MessageRuling, RandomInputs,
};
use admission::principal::Caller;
use admission::rules::Rules;
use admission::session::{Account, ReservationId};
use evidence::Claim;

use super::copies::{SentMessage, WorkingCopies, depends_on_others};
use super::earlier_passes::EarlierPasses;
use super::question;
use super::request::{Request, Ruled};
use super::undecided::{MessageAnswer, UndecidedMessage};
use super::writing::{jti_of, write};
use crate::annex::{DecisionInputs, PutInputs};
use crate::decision_writer::clock::timestamp;
use crate::decision_writer::error::WriterError;
use crate::decision_writer::jobs::{MessageJob, MessageKind};
use crate::decision_writer::states::StoredQuestion;
use crate::decision_writer::transactions::{Batch, Job, JobStep, Work};

/// A job that decides a [`MessageJob`].
pub struct MessageWork {
    request: Request<MessageAnswer>,
    job: Arc<MessageJob>,
    kind: MessageKind,
    passes: EarlierPasses,
    random: RandomInputs,
    /// The rules in force, read again for each attempt.
    rules: Arc<Rules>,
    /// The stored question to approvers, if it is still usable.
    put: Option<PutInputs>,
    /// `true` if there is room for one more question.
    can_wait: bool,
    made: Option<MessageDecision>,
}

/// A decision whose answer is sent once it is durable.
enum MessageDecision {
    Ruled(Ruled),
    Judge(Box<decide::JudgeQuestion>, Option<ReservationId>),
}

impl MessageWork {
    pub fn new(
        request: Request<MessageAnswer>,
        (job, kind): (Arc<MessageJob>, MessageKind),
        passes: EarlierPasses,
        random: RandomInputs,
    ) -> Self {
        let rules = request.writer.rules_of(&job.route);
        Self { request, job, kind, passes, random, rules, put: None, can_wait: true, made: None }
    }

    fn jti(&self) -> Option<Claim> {
        jti_of(self.received()?)
    }

    fn received(&self) -> Option<&Authenticated> {
        self.job.message.as_ref().ok()
    }

    fn before(&self) -> EarlierResults<'_> {
        let put = self.put.as_ref().map(PutInputs::put);
        EarlierResults {
            held: self.passes.held,
            judged: self.passes.judged,
            answer: None,
            returned_state: None,
            approver_question: put,
        }
    }

    fn context<'a>(&'a self, caller: &'a Caller, batch: &Batch<'_>) -> DecisionContext<'a> {
        DecisionContext { rules: &self.rules, caller, now: timestamp(batch.now), random: self.random }
    }

    fn sent<'a>(&'a self, caller: &'a Caller, batch: &Batch<'_>) -> SentMessage<'a> {
        let context = self.context(caller, batch);
        SentMessage { context, received: self.received(), before: self.before() }
    }

    fn declaration(&self, batch: &Batch<'_>) -> Declaration<'_> {
        Declaration {
            message: self.job.message.as_ref().map_err(|unreadable| &**unreadable),
            replayed: self.jti().is_some_and(|claim| batch.is_used(&claim)),
            can_wait: self.can_wait,
            before: self.before(),
        }
    }

    fn ruling(&self, batch: &Batch<'_>, copies: &mut WorkingCopies) -> MessageRuling {
        let caller = copies.caller.clone();
        let (context, declared) = (self.context(&caller, batch), self.declaration(batch));
        let state = DecisionState { session: &mut copies.session, account: &mut copies.account };
        match self.kind {
            MessageKind::Commitment => decide::commitment(&context, state, &declared),
            MessageKind::Amendment => decide::amendment(&context, state, &declared),
        }
    }

    fn has_room(&self, question: &Question, batch: &Batch<'_>) -> bool {
        let now = timestamp(batch.now).as_second();
        self.request.writer.questions().has_room(&question.subject.principal, now)
    }

    /// Writes the ruling. `account` is the principal's account before the decision.
    fn rule(
        &mut self,
        batch: &mut Batch<'_>,
        copies: WorkingCopies,
        account: Account,
        mut ruling: Box<decide::Ruling>,
    ) -> Result<(), WriterError> {
        let (context, declared) = (self.context(&copies.caller, batch), self.declaration(batch));
        let inputs = DecisionInputs::of_declaration(&self.job.route, &context, &declared);
        let account = depends_on_others(&ruling, &self.rules).then_some(account);
        let inputs = self.passes.recorded(inputs, &copies, account);
        copies.hold(batch, self.passes.held, None);
        let written = write(batch, &mut ruling, self.job.invocation.as_ref(), inputs.into())?;
        if let Some(question) = ruling.approver_question.as_ref().filter(|_| self.put.is_none()) {
            question::put(batch, question);
        }
        // A refusal is not consumed: it counts until the question expires.
        if ruling.verdict.verdict.is_permit() {
            question::used_up_by(&ruling).for_each(|id| question::spend(batch, id));
        }
        self.made = Some(MessageDecision::Ruled(Ruled::Recorded(ruling, Box::new(written))));
        Ok(())
    }
}

/// The question to approvers that a ruling raises, if any.
fn put_by(ruling: &MessageRuling) -> Option<&Question> {
    match ruling {
        MessageRuling::Ruled(ruling) => ruling.approver_question.as_deref(),
        MessageRuling::Judge { .. } => None,
    }
}

/// Returns an earlier question about the same subject, if it is open or its answer still counts.
fn usable(stored: StoredQuestion, question: &Question, now: jiff::Timestamp) -> Option<PutInputs> {
    let is_usable =
        !stored.spent && !stored.question.is_over(now) && stored.question.subject == question.subject;
    is_usable.then_some(PutInputs { question: stored.question, answer: stored.answer, spent: false })
}

impl Work for MessageWork {
    fn streams(&self) -> Vec<String> {
        let mut streams = vec![self.request.writer.unbound()];
        streams.extend(self.received().map(|received| received.message.session_id().to_owned()));
        streams
    }

    fn claims(&self) -> Vec<Claim> {
        self.jti().into_iter().collect()
    }

    fn is_abandoned(&self) -> bool {
        self.request.is_abandoned()
    }

    fn may_be_refused(&self) -> bool {
        true
    }

    fn since(&self) -> Instant {
        self.request.since
    }

    fn decide(&mut self, batch: &mut Batch<'_>) -> JobStep {
        self.rules = self.request.writer.rules_of(&self.job.route);
        let sent = self.sent(&self.job.caller, batch);
        let Some(mut copies) = WorkingCopies::of_message(batch, &sent) else {
            return JobStep::Needs(batch.missing());
        };
        copies.forget_questions(batch, &self.rules);
        let account = copies.account.clone();
        let (session, asking) = (copies.session.clone(), copies.asking.clone());
        (self.put, self.can_wait) = (None, true);
        let mut ruling = self.ruling(batch, &mut copies);
        if let Some(question) = put_by(&ruling) {
            // The question's id shows whether it was asked before, and perhaps answered meanwhile.
            let Some(stored) = question::stored(batch, &question.id) else {
                return JobStep::Needs(batch.missing());
            };
            self.put = stored.and_then(|stored| usable(stored, question, timestamp(batch.now)));
            self.can_wait = self.put.is_some() || self.has_room(question, batch);
            if self.put.is_some() || !self.can_wait {
                (copies.session, copies.asking, copies.account) = (session, asking, account.clone());
                ruling = self.ruling(batch, &mut copies);
            }
        }
        match ruling {
            MessageRuling::Ruled(ruling) => {
                let sent = self.sent(&copies.caller, batch);
                if self.request.writer.is_only_counted(batch, &sent, copies.session.as_ref(), &ruling) {
                    self.made = Some(MessageDecision::Ruled(Ruled::Counted(ruling)));
                    return JobStep::Nothing;
                }
                match self.rule(batch, copies, account, ruling) {
                    Ok(()) => JobStep::Decided,
                    Err(why) => JobStep::Impossible(why),
                }
            }
            MessageRuling::Judge { question, held } => {
                self.passes.first_at.get_or_insert(timestamp(batch.now).as_millisecond());
                copies.hold(batch, self.passes.held, held);
                self.made = Some(MessageDecision::Judge(question, held));
                JobStep::Decided
            }
        }
    }

    fn committed(self: Box<Self>) {
        let writer = &self.request.writer;
        let answer = match self.made {
            Some(MessageDecision::Ruled(made)) => {
                if let Ruled::Recorded(ruling, _) = &made {
                    ruling.approver_question.iter().for_each(|question| writer.questions().put(question));
                }
                MessageAnswer::Ruled(Box::new(made.answer(writer, None)))
            }
            Some(MessageDecision::Judge(question, held)) => {
                let undecided =
                    UndecidedMessage::new(writer.clone(), (self.job, self.kind), held, self.passes);
                MessageAnswer::Judge(question, Box::new(undecided))
            }
            None => return,
        };
        self.request.answer(answer);
    }

    fn failed(self: Box<Self>, why: &WriterError) -> Option<Job> {
        self.request.fail(why);
        None
    }
}
