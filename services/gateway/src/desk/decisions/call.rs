//! Tool calls: each is decided, its cost reserved and its record committed before it is forwarded.

use std::sync::Arc;
use std::time::Instant;

use admission::approval;
use admission::clarify::{Answer, Purpose, Shown};
use admission::decide::{self, Before, Call, CallRuling, Dice, Scene, Semantic};
use admission::message::slot::Received;
use admission::rules::Rules;
use admission::session::{Account, ReservationId, Session};
use admission::tool::ToolFault;
use admission::verdict::VerdictKind;
use evidence::{Claim, ClaimKind};
use serde_json::json;
use tokio::sync::oneshot;

use super::copies::{Copies, Sent};
use super::question;
use super::tools::ToolsWork;
use super::writing::{Written, claim, jti_of, milliseconds, states_stream, timestamp, write_for};
use crate::decision_inputs::{DecisionInputs, JudgeOpinion, PutInputs, StateInputs, Text};
use crate::desk::Desk;
use crate::desk::error::DeskError;
use crate::desk::held::HeldCall;
use crate::desk::jobs::{CallAnswer, CallJob};
use crate::desk::pass::{Pass, Ticket};
use crate::desk::place::Place;
use crate::desk::states::{KeptQuestion, STATES_STREAM, State, question_stream, tool_stream};
use crate::desk::told::Told;
use crate::desk::writer::{Books, Job, Step, Turn, Work};

/// Results of earlier passes over a call or a message: its reservation and the answers of a judge, a person or an
/// approver.
#[derive(Clone, Debug, Default)]
pub struct Done {
    /// The reservation made in an earlier pass.
    pub held: Option<ReservationId>,
    /// The judge's conclusion.
    pub judged: Option<Semantic>,
    /// The answer of the person at the client.
    pub answer: Option<Answer>,
    /// The id of the question that was put to approvers.
    pub question: Option<String>,
    /// The judge's opinion with its wording, for the annex (V-27).
    pub opinion: Option<Arc<JudgeOpinion>>,
    /// Time of the first pass, in milliseconds since the Unix epoch.
    pub first_at: Option<i64>,
}

/// A job that decides a [`CallJob`].
pub struct CallWork {
    desk: Desk,
    job: Arc<CallJob>,
    done: Done,
    dice: Dice,
    since: Instant,
    place: Arc<Place>,
    tell: oneshot::Sender<Result<CallAnswer, DeskError>>,
    /// The rules in force, read again for each attempt.
    rules: Arc<Rules>,
    tool: Tool,
    /// The client stream for a call without a session; `None` if its record goes into the gateway's own stream.
    client_stream: Option<String>,
    /// The stored question to approvers, with its answer.
    put: Option<PutInputs>,
    /// `true` if the client can wait for an approver, and there is room for one more question.
    can_wait: bool,
    made: Option<Made>,
}

/// The state of a tool as it affects one call.
#[derive(Default)]
struct Tool {
    fault: Option<ToolFault>,
    approval_unrecorded: bool,
}

/// A decision whose answer is sent once it is durable.
enum Made {
    Ruled(Box<decide::Ruling>, Written, Option<Box<Session>>),
    /// A denial of an unidentified caller that is counted and not recorded.
    Counted(Box<decide::Ruling>),
    Judge(Box<decide::Question>, Option<ReservationId>),
    Ask(Box<admission::clarify::Asked>, Option<ReservationId>),
}

impl CallWork {
    pub fn new(
        desk: Desk,
        job: Arc<CallJob>,
        done: Done,
        dice: Dice,
        place: Arc<Place>,
        tell: oneshot::Sender<Result<CallAnswer, DeskError>>,
    ) -> Self {
        let rules = desk.rules_of(&job.route);
        let client_stream = desk.client_stream(&job.caller).filter(|_| job.envelope.is_none());
        Self {
            can_wait: job.can_wait,
            desk,
            job,
            done,
            dice,
            since: Instant::now(),
            place,
            tell,
            rules,
            tool: Tool::default(),
            client_stream,
            put: None,
            made: None,
        }
    }

    fn received(&self) -> Option<&Received> {
        self.job.envelope.as_ref()?.as_ref().ok()
    }

    fn session_id(&self) -> Option<&str> {
        self.received().map(|received| received.message.session_id())
    }

    fn jti(&self) -> Option<Claim> {
        jti_of(self.received()?)
    }

    fn state(&self) -> Option<Claim> {
        let ticket = self.job.shown.as_ref()?.ticket.as_ref()?;
        Some(claim(states_stream(self.session_id()), ClaimKind::Question, &ticket.nonce))
    }

    fn before(&self, books: &Books<'_>) -> Before<'_> {
        let spent = self.state().is_some_and(|claim| books.is_used(&claim));
        let shown = self.job.shown.as_ref();
        Before {
            held: self.done.held,
            judged: self.done.judged,
            answer: self.done.answer,
            shown: shown.map(|state| Shown { ticket: state.ticket.as_ref(), spent, answer: state.answer }),
            put: self.put.as_ref().map(PutInputs::put),
        }
    }

    /// The id of the question that was put to approvers about this call: kept in `done`, or named by the returned state
    /// token.
    fn question_id(&self) -> Option<&str> {
        let shown = || {
            let ticket = self.job.shown.as_ref()?.ticket.as_ref()?;
            (ticket.purpose == Purpose::Approval).then_some(ticket.nonce.as_str())
        };
        self.done.question.as_deref().or_else(shown)
    }

    fn is_replayed(&self, books: &Books<'_>) -> bool {
        self.jti().is_some_and(|claim| books.is_used(&claim))
    }

    /// Compares the tool and the arguments with the stored pin. `None` if the tool's stream is not loaded yet.
    fn tool_now(&self, books: &mut Books<'_>) -> Option<Tool> {
        let Some(checked) = &self.job.checked else { return Some(Tool::default()) };
        let pin = match books.sheet(&tool_stream(&self.job.route, &self.job.tool))?.state() {
            Some(State::Tool(pin)) => Some(&**pin),
            _ => None,
        };
        Some(Tool {
            fault: self.rules.tools.fault_of(pin, checked),
            approval_unrecorded: pin.is_some_and(|pin| pin.approval_unrecorded),
        })
    }

    fn ruling(&self, books: &Books<'_>, copies: &mut Copies) -> CallRuling {
        let job = &*self.job;
        let replayed = self.is_replayed(books);
        let call = Call {
            envelope: job
                .envelope
                .as_ref()
                .map(|envelope| envelope.as_ref().map_err(|unreadable| &**unreadable)),
            tool: &job.tool,
            header: job.header.as_deref(),
            arguments: &job.arguments,
            can_ask: job.can_ask,
            can_wait: self.can_wait,
            has_roa_envelope: job.has_roa_envelope,
            tool_fault: self.tool.fault.as_ref(),
            replayed,
            before: self.before(books),
        };
        let caller = copies.caller.clone();
        let scene = Scene { rules: &self.rules, caller: &caller, now: timestamp(books.now), dice: self.dice };
        let admission_books = decide::Books { session: &mut copies.session, account: &mut copies.account };
        decide::call(&scene, admission_books, &call)
    }

    fn rule(
        &mut self,
        books: &mut Books<'_>,
        copies: Copies,
        account: Account,
        mut ruling: Box<decide::Ruling>,
    ) -> Step {
        let snapshot = ruling.reservation.and(copies.session.clone()).map(Box::new);
        let inputs = self.inputs(books, &copies, depends_on_others(&ruling, &self.rules).then_some(account));
        copies.hold(books, self.done.held, None);
        ruling.asserted_client.clone_from(&self.job.asserted_client);
        let aside = self.job.aside.as_ref();
        // A denied call does not begin a client stream.
        let has_place = |stream: &&str| !ruling.forward || self.desk.inner.client_streams.take(stream);
        let client = self.client_stream.as_deref().filter(has_place);
        let written = match write_for(books, &mut ruling, aside, json!(inputs), client) {
            Ok(written) => written,
            Err(why) => return Step::Impossible(why),
        };
        if ruling.forward && ruling.reservation.is_none() {
            books.count_open(&written.stream);
        }
        question::used_up_by(&ruling).for_each(|id| question::spend(books, id));
        self.made = Some(Made::Ruled(ruling, written, snapshot));
        Step::Decided
    }

    fn is_only_counted(&self, books: &Books<'_>, copies: &Copies, ruling: &decide::Ruling) -> bool {
        let before = self.before(books);
        let sent = Sent { rules: &self.rules, caller: &copies.caller, received: self.received(), before };
        is_only_counted(&self.desk, books, &sent, copies.session.as_ref(), ruling)
    }

    /// The decision inputs for the annex, sufficient to replay the decision. `copies` are from after the decision,
    /// `account` is from before it.
    fn inputs(&self, books: &Books<'_>, copies: &Copies, account: Option<Account>) -> DecisionInputs {
        let job = &*self.job;
        let before = self.before(books);
        let state = before.shown.map(|shown| StateInputs {
            ticket: shown.ticket.cloned(),
            of_these_rules: shown.ticket.is_some_and(|ticket| ticket.policy == self.rules.policy_digest),
            spent: shown.spent,
            answer: shown.answer,
        });
        DecisionInputs {
            first_at: self.done.first_at,
            message: self.received().map(|received| Text::whole(&received.text)),
            unreadable: matches!(job.envelope, Some(Err(_))),
            tool: Some(Text::whole(&job.tool)),
            header: job.header.as_deref().map(Text::whole),
            sample: self.dice.sample,
            can_ask: job.can_ask,
            can_wait: self.can_wait,
            put: self.put.clone(),
            has_roa_envelope: job.has_roa_envelope,
            tool_fault: self.tool.fault.clone(),
            replayed: self.is_replayed(books),
            judge: self.done.opinion.as_deref().cloned(),
            answer: self.done.answer,
            state,
            held_for_others: copies.held_for_others(self.done.held),
            account,
            ..DecisionInputs::of(&job.route, &copies.caller, milliseconds(books.now))
        }
    }
}

/// Returns the key of the account against whose limit a question about the call would count.
fn whose(copies: &Copies) -> String {
    match &copies.session {
        Some(session) => session.agreed.account().to_owned(),
        None => decide::account_key(&copies.caller, None).unwrap_or_default(),
    }
}

/// The question to approvers that a decision raises, if any.
fn asked_of_approvers(ruling: &CallRuling) -> Option<&approval::Question> {
    match ruling {
        CallRuling::Ask { asked, .. } => asked.approval.as_deref(),
        CallRuling::Ruled(ruling) => ruling.pending.as_ref()?.approval.as_deref(),
        CallRuling::Wait | CallRuling::Judge { .. } => None,
    }
}

/// Returns whether a denial is counted instead of recorded: its sender is not identified, and this minute's records of
/// such denials are used up. A denial that consumes a claim other than a `jti` is always recorded.
pub fn is_only_counted(
    desk: &Desk,
    books: &Books<'_>,
    sent: &Sent<'_>,
    session: Option<&Session>,
    ruling: &decide::Ruling,
) -> bool {
    let is_denied = ruling.verdict.verdict == VerdictKind::Denied && ruling.stream == decide::Stream::Unbound;
    let uses_up = ruling.claims.iter().any(|claim| claim.kind != decide::ClaimKind::Jti);
    is_denied && !uses_up && is_stranger(books, sent, session) && !desk.takes_a_stranger(books.now / 1000)
}

/// Returns whether neither a token nor a certificate nor a signature identifies the sender of a message.
fn is_stranger(books: &Books<'_>, sent: &Sent<'_>, session: Option<&Session>) -> bool {
    if sent.caller.token.is_some() || sent.caller.certificate.is_some() {
        return false;
    }
    let Some(received) = sent.received.filter(|received| received.message.signature().is_some()) else {
        return true;
    };
    let (now, dice) = (timestamp(books.now), Dice::default());
    let scene = Scene { rules: sent.rules, caller: sent.caller, now, dice };
    decide::signed_by(&scene, received, &sent.before, session).is_none()
}

/// Returns whether a decision depends on the principal's account beyond the session: always outside a session, and
/// wherever the operator limits all sessions together (`principal_ceiling`).
pub fn depends_on_others(ruling: &decide::Ruling, rules: &Rules) -> bool {
    ruling.stream == decide::Stream::Unbound || rules.principal_ceiling.is_some()
}

impl Work for CallWork {
    fn streams(&self) -> Vec<String> {
        let mut streams = vec![self.desk.unbound().to_owned()];
        streams.extend(self.client_stream.clone());
        streams.extend(self.session_id().map(str::to_owned));
        if self.job.shown.is_some() {
            streams.push(STATES_STREAM.to_owned());
        }
        if self.job.checked.is_some() {
            streams.push(tool_stream(&self.job.route, &self.job.tool));
        }
        streams.extend(self.question_id().map(question_stream));
        streams
    }

    fn claims(&self) -> Vec<Claim> {
        self.jti().into_iter().chain(self.state()).collect()
    }

    fn is_abandoned(&self) -> bool {
        // `HeldCall` releases the reservation when it is dropped.
        self.tell.is_closed()
    }

    fn may_be_turned_away(&self) -> bool {
        true
    }

    fn since(&self) -> Instant {
        self.since
    }

    fn bytes(&self) -> usize {
        self.job.bytes()
    }

    fn decide(&mut self, books: &mut Books<'_>) -> Step {
        self.place.go_on();
        // The rules may have changed while the call waited, or since the last attempt.
        self.rules = self.desk.rules_of(&self.job.route);
        self.tool = match self.tool_now(books) {
            Some(tool) => tool,
            None => return Step::Needs(books.missing()),
        };
        let (job, rules) = (self.job.clone(), self.rules.clone());
        if let Some(id) = self.question_id().map(str::to_owned) {
            let Some(kept) = question::kept(books, &id) else { return Step::Needs(books.missing()) };
            self.put =
                kept.map(|KeptQuestion { question, answer, spent }| PutInputs { question, answer, spent });
        }
        let before = self.before(books);
        let sent = Sent { rules: &rules, caller: &job.caller, received: self.received(), before };
        let Some(mut copies) = Copies::of_message(books, &sent) else {
            return Step::Needs(books.missing());
        };
        copies.forget_questions(books, &rules);
        let account = copies.account.clone();
        self.can_wait =
            job.can_wait && self.desk.questions().has_room(&whose(&copies), timestamp(books.now).as_second());
        let ruling = self.ruling(books, &mut copies);
        if let Some(question) = asked_of_approvers(&ruling)
            && !question::put(books, question)
        {
            return Step::Needs(books.missing());
        }
        if matches!(ruling, CallRuling::Judge { .. } | CallRuling::Ask { .. }) {
            self.done.first_at.get_or_insert(milliseconds(books.now));
        }
        match ruling {
            CallRuling::Ruled(ruling) if self.is_only_counted(books, &copies, &ruling) => {
                self.made = Some(Made::Counted(ruling));
                Step::Nothing
            }
            CallRuling::Ruled(ruling) => self.rule(books, copies, account, ruling),
            CallRuling::Wait => {
                self.place.wait();
                Step::Wait(Turn { stream: copies.stream.unwrap_or_default(), tool: job.tool.clone() })
            }
            CallRuling::Judge { question, held } => {
                copies.hold(books, self.done.held, Some(held));
                self.made = Some(Made::Judge(question, Some(held)));
                Step::Decided
            }
            CallRuling::Ask { asked, held } => {
                let until = asked.approval.as_ref().map_or(0, |question| question.expires);
                copies.hold_until(books, self.done.held, held, u64::try_from(until).unwrap_or(0));
                self.made = Some(Made::Ask(asked, held));
                Step::Decided
            }
        }
    }

    fn committed(self: Box<Self>) {
        if self.tool.approval_unrecorded {
            let work = ToolsWork::approved(self.desk.clone(), &self.job.route, &self.job.tool);
            self.desk.hand_in(Box::new(work));
        }
        let held = |held, question| {
            HeldCall::new(self.desk.clone(), self.job.clone(), (held, question), self.done.clone())
        };
        let answer = match self.made {
            Some(Made::Ruled(ruling, written, snapshot)) => {
                let pending = ruling.pending.as_ref().and_then(|asked| asked.approval.as_deref());
                pending.into_iter().for_each(|question| self.desk.questions().put(question));
                question::used_up_by(&ruling).for_each(|id| self.desk.questions().tell(id));
                let pass = ruling.forward.then(|| {
                    let ticket = Ticket {
                        rules: self.rules.clone(),
                        stream: written.stream.clone(),
                        decision: written.id,
                        reservation: ruling.reservation,
                        tool: self.job.tool.clone(),
                        snapshot,
                        ruling: ruling.clone(),
                    };
                    Pass::new(self.desk.clone(), ticket)
                });
                CallAnswer::Ruled(Box::new(Told::of(ruling, written, pass)))
            }
            Some(Made::Counted(ruling)) => CallAnswer::Ruled(Box::new(self.desk.count_and_tell(ruling))),
            Some(Made::Judge(question, reservation)) => CallAnswer::Judge(question, held(reservation, None)),
            Some(Made::Ask(asked, reservation)) => {
                let put = asked.approval.as_deref();
                put.into_iter().for_each(|question| self.desk.questions().put(question));
                let id = put.map(|question| question.id.clone());
                CallAnswer::Ask(asked, held(reservation, id))
            }
            None => return,
        };
        // If the caller has gone, the answer is dropped, and with it the pass or the held call, which releases the
        // reservation.
        let _ = self.tell.send(Ok(answer));
    }

    fn failed(self: Box<Self>, why: &DeskError) -> Option<Job> {
        let _ = self.tell.send(Err(why.clone()));
        None
    }
}
