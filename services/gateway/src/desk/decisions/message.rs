//! Scope commitments and amendments whose carrier request succeeded: decided, and in force as soon as they are durable.

use std::sync::Arc;
use std::time::Instant;

use admission::approval::Question;
use admission::decide::{self, Before, Declared, Dice, MessageRuling, Scene};
use admission::rules::Rules;
use admission::session::{Account, ReservationId};
use evidence::Claim;
use serde_json::json;
use tokio::sync::oneshot;

use super::call::{Done, depends_on_others, is_only_counted};
use super::copies::{Copies, Sent};
use super::question;
use super::writing::{Written, jti_of, milliseconds, timestamp, write};
use crate::decision_inputs::{DecisionInputs, PutInputs, Text};
use crate::desk::Desk;
use crate::desk::error::DeskError;
use crate::desk::held::HeldMessage;
use crate::desk::jobs::{MessageAnswer, MessageJob};
use crate::desk::states::KeptQuestion;
use crate::desk::told::Told;
use crate::desk::writer::{Books, Job, Step, Work};

/// The kind of a [`MessageJob`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageKind {
    /// A scope commitment, decided by [`decide::commitment`].
    Commitment,
    /// A scope amendment, decided by [`decide::amendment`].
    Amendment,
}

/// A job that decides a [`MessageJob`].
pub struct MessageWork {
    desk: Desk,
    job: Arc<MessageJob>,
    kind: MessageKind,
    done: Done,
    dice: Dice,
    since: Instant,
    tell: oneshot::Sender<Result<MessageAnswer, DeskError>>,
    /// The stored question to approvers, if it is still usable.
    put: Option<PutInputs>,
    /// `true` if there is room for one more question.
    can_wait: bool,
    made: Option<Made>,
}

enum Made {
    Ruled(Box<decide::Ruling>, Written),
    /// A denial of an unidentified caller that is counted and not recorded.
    Counted(Box<decide::Ruling>),
    Judge(Box<decide::Question>, Option<ReservationId>),
}

impl MessageWork {
    pub fn new(
        desk: Desk,
        (job, kind): (Arc<MessageJob>, MessageKind),
        done: Done,
        dice: Dice,
        tell: oneshot::Sender<Result<MessageAnswer, DeskError>>,
    ) -> Self {
        Self {
            desk,
            job,
            kind,
            done,
            dice,
            since: Instant::now(),
            tell,
            put: None,
            can_wait: true,
            made: None,
        }
    }

    fn jti(&self) -> Option<Claim> {
        jti_of(self.job.message.as_ref().ok()?)
    }

    fn before(&self) -> Before<'_> {
        let put = self.put.as_ref().map(PutInputs::put);
        Before { held: self.done.held, judged: self.done.judged, answer: None, shown: None, put }
    }

    fn ruling(&self, rules: &Rules, books: &Books<'_>, copies: &mut Copies) -> MessageRuling {
        let job = &*self.job;
        let declared = Declared {
            message: job.message.as_ref().map_err(|unreadable| &**unreadable),
            replayed: self.is_replayed(books),
            can_wait: self.can_wait,
            before: self.before(),
        };
        let caller = copies.caller.clone();
        let scene = Scene { rules, caller: &caller, now: timestamp(books.now), dice: self.dice };
        let admission_books = decide::Books { session: &mut copies.session, account: &mut copies.account };
        match self.kind {
            MessageKind::Commitment => decide::commitment(&scene, admission_books, &declared),
            MessageKind::Amendment => decide::amendment(&scene, admission_books, &declared),
        }
    }

    fn is_replayed(&self, books: &Books<'_>) -> bool {
        self.jti().is_some_and(|claim| books.is_used(&claim))
    }

    fn has_room(&self, question: &Question, books: &Books<'_>) -> bool {
        self.desk.questions().has_room(&question.subject.principal, timestamp(books.now).as_second())
    }

    fn is_only_counted(
        &self,
        rules: &Rules,
        books: &Books<'_>,
        copies: &Copies,
        ruling: &decide::Ruling,
    ) -> bool {
        let received = self.job.message.as_ref().ok();
        let sent = Sent { rules, caller: &copies.caller, received, before: self.before() };
        is_only_counted(&self.desk, books, &sent, copies.session.as_ref(), ruling)
    }

    /// The decision inputs for the annex, sufficient to replay the decision. `account` is from before the decision.
    fn inputs(&self, books: &Books<'_>, copies: &Copies, account: Option<Account>) -> DecisionInputs {
        let job = &*self.job;
        DecisionInputs {
            first_at: self.done.first_at,
            message: job.message.as_ref().ok().map(|received| Text::whole(&received.text)),
            unreadable: job.message.is_err(),
            replayed: self.is_replayed(books),
            judge: self.done.opinion.as_deref().cloned(),
            can_wait: self.can_wait,
            put: self.put.clone(),
            held_for_others: copies.held_for_others(self.done.held),
            account,
            ..DecisionInputs::of(&job.route, &copies.caller, milliseconds(books.now))
        }
    }
}

/// The question to approvers that a ruling raises, if any.
fn put_by(ruling: &MessageRuling) -> Option<&Question> {
    match ruling {
        MessageRuling::Ruled(ruling) => ruling.put.as_deref(),
        MessageRuling::Judge { .. } => None,
    }
}

/// Returns an earlier question about the same subject, if it is open or its answer still counts.
fn usable(kept: KeptQuestion, question: &Question, now: jiff::Timestamp) -> Option<PutInputs> {
    let is_usable = !kept.spent && !kept.question.is_over(now) && kept.question.subject == question.subject;
    is_usable.then_some(PutInputs { question: kept.question, answer: kept.answer, spent: false })
}

impl Work for MessageWork {
    fn streams(&self) -> Vec<String> {
        let mut streams = vec![self.desk.unbound().to_owned()];
        streams.extend(self.job.message.iter().map(|received| received.message.session_id().to_owned()));
        streams
    }

    fn claims(&self) -> Vec<Claim> {
        self.jti().into_iter().collect()
    }

    fn is_abandoned(&self) -> bool {
        self.tell.is_closed()
    }

    fn may_be_turned_away(&self) -> bool {
        true
    }

    fn since(&self) -> Instant {
        self.since
    }

    fn decide(&mut self, books: &mut Books<'_>) -> Step {
        let job = self.job.clone();
        let rules = self.desk.rules_of(&job.route);
        let received = job.message.as_ref().ok();
        let sent = Sent { rules: &rules, caller: &job.caller, received, before: self.before() };
        let Some(mut copies) = Copies::of_message(books, &sent) else {
            return Step::Needs(books.missing());
        };
        copies.forget_questions(books, &rules);
        let account = copies.account.clone();
        let (session, asking) = (copies.session.clone(), copies.asking.clone());
        (self.put, self.can_wait) = (None, true);
        let mut ruling = self.ruling(&rules, books, &mut copies);
        if let Some(question) = put_by(&ruling) {
            // The question's id shows whether it was asked before, and perhaps answered meanwhile.
            let Some(kept) = question::kept(books, &question.id) else { return Step::Needs(books.missing()) };
            self.put = kept.and_then(|kept| usable(kept, question, timestamp(books.now)));
            self.can_wait = self.put.is_some() || self.has_room(question, books);
            if self.put.is_some() || !self.can_wait {
                (copies.session, copies.asking, copies.account) = (session, asking, account.clone());
                ruling = self.ruling(&rules, books, &mut copies);
            }
        }
        match ruling {
            MessageRuling::Ruled(ruling) if self.is_only_counted(&rules, books, &copies, &ruling) => {
                self.made = Some(Made::Counted(ruling));
                return Step::Nothing;
            }
            MessageRuling::Ruled(mut ruling) => {
                let account = depends_on_others(&ruling, &rules).then_some(account);
                let inputs = self.inputs(books, &copies, account);
                copies.hold(books, self.done.held, None);
                let written = match write(books, &mut ruling, self.job.aside.as_ref(), json!(inputs)) {
                    Ok(written) => written,
                    Err(why) => return Step::Impossible(why),
                };
                if let Some(question) = ruling.put.as_ref().filter(|_| self.put.is_none()) {
                    question::put(books, question);
                }
                // A refusal is not consumed: it counts until the question expires.
                if ruling.verdict.verdict.is_permit() {
                    question::used_up_by(&ruling).for_each(|id| question::spend(books, id));
                }
                self.made = Some(Made::Ruled(ruling, written));
            }
            MessageRuling::Judge { question, held } => {
                self.done.first_at.get_or_insert(milliseconds(books.now));
                copies.hold(books, self.done.held, held);
                self.made = Some(Made::Judge(question, held));
            }
        }
        Step::Decided
    }

    fn committed(self: Box<Self>) {
        let answer = match self.made {
            Some(Made::Ruled(ruling, written)) => {
                ruling.put.iter().for_each(|question| self.desk.questions().put(question));
                MessageAnswer::Ruled(Box::new(Told::of(ruling, written, None)))
            }
            Some(Made::Counted(ruling)) => MessageAnswer::Ruled(Box::new(self.desk.count_and_tell(ruling))),
            Some(Made::Judge(question, held)) => {
                let first_at = self.done.first_at;
                let held = HeldMessage::new(self.desk.clone(), self.job.clone(), self.kind, held, first_at);
                MessageAnswer::Judge(question, held)
            }
            None => return,
        };
        let _ = self.tell.send(Ok(answer));
    }

    fn failed(self: Box<Self>, why: &DeskError) -> Option<Job> {
        let _ = self.tell.send(Err(why.clone()));
        None
    }
}
