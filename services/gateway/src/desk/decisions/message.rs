//! A commitment or an amendment whose carrier succeeded: judged, and in force as soon as it is durable.

use std::sync::Arc;
use std::time::Instant;

use admission::decide::{self, Before, Declared, Dice, MessageRuling, Scene};
use admission::principal::Caller;
use admission::rules::Rules;
use admission::session::ReservationId;
use evidence::Claim;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::call::{Done, caller};
use super::copies::{Copies, Sent};
use super::writing::{Written, jti_of, timestamp, write};
use crate::desk::Desk;
use crate::desk::error::DeskError;
use crate::desk::held::HeldMessage;
use crate::desk::jobs::{MessageAnswer, MessageJob};
use crate::desk::told::Told;
use crate::desk::writer::{Books, Job, Step, Work};

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageKind {
    /// A scope commitment.
    Commitment,
    /// A scope amendment.
    Amendment,
}

/// A message to be decided.
pub struct MessageWork {
    desk: Desk,
    job: Arc<MessageJob>,
    kind: MessageKind,
    done: Done,
    dice: Dice,
    since: Instant,
    tell: oneshot::Sender<Result<MessageAnswer, DeskError>>,
    made: Option<Made>,
}

enum Made {
    Ruled(Box<decide::Ruling>, Written),
    Judge(Box<decide::Question>, Option<ReservationId>),
}

impl MessageWork {
    /// A message.
    pub fn new(
        desk: Desk,
        (job, kind): (Arc<MessageJob>, MessageKind),
        done: Done,
        dice: Dice,
        tell: oneshot::Sender<Result<MessageAnswer, DeskError>>,
    ) -> Self {
        Self { desk, job, kind, done, dice, since: Instant::now(), tell, made: None }
    }

    fn jti(&self) -> Option<Claim> {
        jti_of(self.job.message.as_ref().ok()?)
    }

    fn before(&self) -> Before<'static> {
        Before { held: self.done.held, judged: self.done.judged, answer: None, shown: None }
    }

    fn ruling(&self, rules: &Rules, books: &Books<'_>, copies: &mut Copies) -> MessageRuling {
        let job = &*self.job;
        let declared = Declared {
            message: job.message.as_ref().map_err(|unreadable| &**unreadable),
            replayed: self.jti().is_some_and(|claim| books.is_used(&claim)),
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

    fn beside(&self, by: &Caller) -> Value {
        let job = &*self.job;
        json!({
            "route": job.route,
            "caller": caller(by),
            "message": job.message.as_ref().ok().map(|received| &received.text),
            "judge": self.done.said,
        })
    }
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
        match self.ruling(&rules, books, &mut copies) {
            MessageRuling::Ruled(mut ruling) => {
                let beside = self.beside(&copies.caller);
                copies.hold(books, self.done.held, None);
                match write(books, &mut ruling, self.job.aside.as_ref(), beside) {
                    Ok(written) => self.made = Some(Made::Ruled(ruling, written)),
                    Err(why) => return Step::Impossible(why),
                }
            }
            MessageRuling::Judge { question, held } => {
                copies.hold(books, self.done.held, held);
                self.made = Some(Made::Judge(question, held));
            }
        }
        Step::Decided
    }

    fn committed(self: Box<Self>) {
        let answer = match self.made {
            Some(Made::Ruled(ruling, written)) => {
                MessageAnswer::Ruled(Box::new(Told::of(ruling, written, None)))
            }
            Some(Made::Judge(question, held)) => {
                let held = HeldMessage::new(self.desk.clone(), self.job.clone(), self.kind, held);
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
