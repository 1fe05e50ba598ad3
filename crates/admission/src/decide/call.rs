//! A call with an envelope: C1 to C5, in order, and the first failure wins.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::cache::{VerdictKey, is_cacheable};
use crate::clarify::{self, Answer, Asked, Purpose, Ticket};
use crate::digest::Canon;
use crate::exact;
use crate::message::slot::Received;
use crate::message::{Deadline, IntentEnvelope, Message};
use crate::principal::Era;
use crate::reason::{Reason, RuleName};
use crate::session::{Account, Mark, Reservation, Session, Stage};
use crate::verdict::{Clarification, VerdictKind};

use super::bind::{bind, check_open, count_denied};
use super::budget::{Projected, Spending, project};
use super::draft::{Draft, canon, standing};
use super::policy::{Facts, Policed, police};
use super::ruling::{CallRuling, ClaimKind, Flag, Ruling};
use super::semantic::{Gate, Meaning, Question, Suspect, gate, meaning};
use super::{Books, Call, Scene, principal_key};

/// Decides about a call. What an earlier decision about it held is given back first, and everything is checked again.
pub fn call(scene: &Scene<'_>, books: Books<'_>, call: &Call<'_>) -> CallRuling {
    let Books { session, account } = books;
    resume(session.as_mut(), account, call);
    match call.envelope {
        None => super::unaware::unaware(scene, account, call),
        Some(Err(unreadable)) => {
            let mut draft = Draft::of_unreadable(unreadable, account.only_session());
            draft.calls(call.tool, &canon(call.arguments));
            count_denied(scene, None, account, &unreadable.reason);
            ruled(draft.rule(scene.rules, VerdictKind::Denied, Some(unreadable.reason.clone())))
        }
        Some(Ok(received)) => with_envelope(scene, session.as_mut(), account, call, received),
    }
}

/// Gives back what was held while somebody was asked, and bills the judge for its answer.
fn resume(session: Option<&mut Session>, account: &mut Account, call: &Call<'_>) {
    let Some(session) = session else { return };
    if let Some(held) = call.before.held {
        super::settle::give_back(session, account, held);
    }
    if let Some(judged) = &call.before.judged {
        session.running.bill_judge(judged.cost);
    }
}

fn with_envelope(
    scene: &Scene<'_>,
    session: Option<&mut Session>,
    account: &mut Account,
    call: &Call<'_>,
    received: &Received,
) -> CallRuling {
    let arguments = canon(call.arguments);
    let mut draft = Draft::of(received);
    draft.calls(call.tool, &arguments);
    let hearing = Hearing { scene, call, received, arguments: &arguments };
    let session = match bind(scene, received, &mut draft, session) {
        Ok(session) => session,
        Err(reason) => {
            count_denied(scene, None, account, &reason);
            return ruled(draft.rule(scene.rules, VerdictKind::Denied, Some(reason)));
        }
    };
    match hearing.hear(&mut draft, session, account) {
        Ok(heard) => hearing.admit(draft, session, account, heard),
        Err(Stop::Denied(reason)) => {
            draft.standing(scene.rules, session);
            count_denied(scene, Some(session), account, &reason);
            ruled(draft.rule(scene.rules, VerdictKind::Denied, Some(reason)))
        }
        Err(Stop::Wait) => CallRuling::Wait,
        Err(Stop::Judge { question, reservation }) => {
            let held = hold(session, account, reservation, scene);
            CallRuling::Judge { question, held }
        }
        Err(Stop::Ask { reason, reservation }) => hearing.ask(draft, session, account, reason, reservation),
    }
}

pub(super) fn ruled(ruling: Ruling) -> CallRuling {
    CallRuling::Ruled(Box::new(ruling))
}

/// Puts a reservation into the session, and with the principal.
fn hold(
    session: &mut Session,
    account: &mut Account,
    reservation: Reservation,
    scene: &Scene<'_>,
) -> crate::session::ReservationId {
    if let Some(ceiling) = scene.rules.principal_ceiling.as_ref().filter(|_| reservation.by_principal) {
        account.spent = account.spent.within(ceiling.window, scene.now);
        account.spent.reserve(&reservation);
    }
    session.running.reserve(reservation)
}

/// One call that is being heard.
struct Hearing<'a> {
    scene: &'a Scene<'a>,
    call: &'a Call<'a>,
    received: &'a Received,
    arguments: &'a Canon,
}

/// What a call is heard to be.
struct Heard {
    reservation: Reservation,
    suspect: Suspect,
    /// Whether a verdict of the judge is to be kept.
    consistent: bool,
    until: Option<i64>,
    marks: Marks,
}

/// What is remembered of a call.
#[derive(Clone, Copy)]
struct Marks {
    tool: Mark,
    call: Mark,
    shape: Mark,
}

/// Why a hearing ends early.
enum Stop {
    Denied(Reason),
    Wait,
    Judge { question: Box<Question>, reservation: Reservation },
    Ask { reason: Reason, reservation: Reservation },
}

impl From<Reason> for Stop {
    fn from(reason: Reason) -> Self {
        Stop::Denied(reason)
    }
}

/// What a sealed state that came back is good for.
#[derive(Clone, Copy, Default)]
struct Approved {
    /// A person said yes, or was asked before the upstream asked its own.
    person: bool,
    /// The call was counted already.
    counted: bool,
}

impl Hearing<'_> {
    fn hear(&self, draft: &mut Draft, session: &Session, account: &Account) -> Result<Heard, Stop> {
        check_open(self.scene, session, account, self.call.replayed)?;
        let envelope = self.envelope()?;
        self.check_declared(draft, envelope)?;
        self.check_scope(draft, session)?;
        let approved = self.check_state(draft, session)?;
        let mut reservation = self.check_budget(draft, session, account, approved)?;
        let confirm = self.check_policy(draft, session)?;
        let suspect = self.suspect(draft, session, envelope, &reservation);
        let asked = approved.person || self.call.before.answer.is_some();
        let semantic = self.check_semantic(draft, session, envelope, &suspect, &mut reservation, asked)?;
        self.check_person(confirm, &semantic, approved, &reservation)?;
        let marks = self.marks();
        Ok(Heard { reservation, suspect, consistent: semantic.consistent, until: semantic.until, marks })
    }

    fn envelope(&self) -> Result<&IntentEnvelope, Reason> {
        match &self.received.message {
            Message::IntentEnvelope(envelope) => Ok(envelope),
            Message::ScopeCommitment(_) | Message::ScopeAmendment(_) => Err(Reason::WrongCarrier),
        }
    }

    /// The declared call is the call that will run, byte for byte and number for number (reading V-7).
    fn check_declared(&self, draft: &mut Draft, envelope: &IntentEnvelope) -> Result<(), Reason> {
        let same_tool = envelope.call.tool == self.call.tool;
        let same_header = self.call.header.is_none_or(|header| header == self.call.tool);
        match same_tool && same_header && exact::equal(&envelope.call.arguments, self.call.arguments) {
            true => draft.passed("call_ok"),
            false => return Err(Reason::CallMismatch),
        }
        Ok(())
    }

    /// C2, of the name that will be forwarded.
    fn check_scope(&self, draft: &mut Draft, session: &Session) -> Result<(), Reason> {
        match session.agreed.scope().allows(self.call.tool) {
            true => draft.passed("scope_ok"),
            false => return Err(Reason::ScopeEscape),
        }
        Ok(())
    }

    /// A state of ours that came back (readings V-26, V-38). One that fails any binding consumes nothing. The upstream's
    /// question answered twice is a new call.
    fn check_state(&self, draft: &mut Draft, session: &Session) -> Result<Approved, Reason> {
        let Some(shown) = &self.call.before.shown else { return Ok(Approved::default()) };
        let ticket = shown.ticket.ok_or(Reason::InvalidState)?;
        let expected = self.ticket(session, ticket.purpose);
        if !expected.is_met_by(ticket, self.scene.now) {
            return Err(Reason::InvalidState);
        }
        match (ticket.purpose, shown.spent) {
            (Purpose::Upstream, true) => return Ok(Approved::default()),
            (Purpose::Question, true) => return Err(Reason::InvalidState),
            (_, false) => draft.claim(ClaimKind::State, &ticket.nonce),
        }
        match ticket.purpose {
            Purpose::Upstream => Ok(Approved { person: true, counted: true }),
            Purpose::Question => said_yes(shown.answer).map(|()| Approved { person: true, counted: false }),
        }
    }

    /// C3.
    fn check_budget(
        &self,
        draft: &mut Draft,
        session: &Session,
        account: &Account,
        approved: Approved,
    ) -> Result<Reservation, Stop> {
        let spending = Spending { tool: self.call.tool, counted: !approved.counted };
        match project(self.scene, session, account, spending) {
            Projected::Fits(reservation) => {
                draft.passed("budget_ok");
                Ok(reservation)
            }
            Projected::Waits => Err(Stop::Wait),
            Projected::Denied(reason) => Err(Stop::Denied(reason)),
        }
    }

    /// C4. Returns the rule that asks for a confirmation.
    fn check_policy(&self, draft: &mut Draft, session: &Session) -> Result<Option<RuleName>, Reason> {
        let rules = self.scene.rules;
        draft.policed = !rules.policy.is_empty();
        let facts = Facts {
            tool: self.call.tool,
            arguments: self.call.arguments,
            principal: principal_facts(session),
            session: session_facts(session),
        };
        match police(rules, facts) {
            Policed::Denied(reason) => Err(reason),
            Policed::Confirm(name) => Ok(Some(name)),
            Policed::Allowed(name) => {
                if draft.policed {
                    draft.passed(
                        &name.map_or("policy_ok".to_owned(), |name| format!("policy:{}", name.as_str())),
                    );
                }
                Ok(None)
            }
        }
    }

    /// The risk of the call: computed and recorded, judge or none.
    fn suspect(
        &self,
        draft: &mut Draft,
        session: &Session,
        envelope: &IntentEnvelope,
        reservation: &Reservation,
    ) -> Suspect {
        let rules = self.scene.rules;
        let declared = envelope.intent.sensitivity;
        let sensitivity = rules.sensitivities.of(self.call.tool, declared);
        if declared.is_some() && declared != sensitivity {
            draft.flags.push(Flag::SensitivityRaised);
        }
        let marks = self.marks();
        let signals =
            super::signals::signals(self.scene, session, sensitivity, marks.seen(session), reservation);
        let risk = signals.weigh(&rules.risk);
        draft.risk = Some(risk.score);
        let commitment = session.agreed.digest().as_str();
        let key = VerdictKey::of(commitment, self.call.tool, &self.arguments.bytes, &rules.policy_digest);
        Suspect { key, risk, sensitivity }
    }

    /// C5. Returns what the judge found, if it was asked.
    fn check_semantic(
        &self,
        draft: &mut Draft,
        session: &Session,
        envelope: &IntentEnvelope,
        suspect: &Suspect,
        reservation: &mut Reservation,
        asked: bool,
    ) -> Result<Found, Stop> {
        if let Some(judged) = self.call.before.judged {
            draft.judged = Some(judged);
            return match meaning(self.scene.rules.judge.as_ref(), &judged) {
                Meaning::Denied(reason) => Err(Stop::Denied(reason)),
                Meaning::Unsure => Ok(Found { unsure: true, ..Found::default() }),
                Meaning::Consistent => {
                    draft.passed("intent_consistent");
                    Ok(Found { consistent: true, until: self.keep_until(suspect), ..Found::default() })
                }
            };
        }
        match gate(self.scene, session, suspect) {
            _ if asked => Ok(Found::default()),
            Gate::Closed => Ok(Found::default()),
            Gate::Remembered(until) => {
                draft.remembered = true;
                draft.passed("intent_remembered");
                Ok(Found { until: Some(until), ..Found::default() })
            }
            Gate::Unaffordable(trigger) => {
                draft.trigger = Some(trigger);
                Err(Stop::Denied(Reason::JudgeBudget))
            }
            Gate::Open(trigger) => {
                reservation.judge =
                    self.scene.rules.judge.as_ref().map(|judge| judge.reserve).unwrap_or_default();
                let question = Box::new(Question::about_call(trigger, session, envelope));
                Err(Stop::Judge { question, reservation: reservation.clone() })
            }
        }
    }

    /// Until when a verdict about this call may be used again.
    fn keep_until(&self, suspect: &Suspect) -> Option<i64> {
        let judge = self.scene.rules.judge.as_ref().filter(|_| is_cacheable(suspect.sensitivity))?;
        let until = self.scene.now.checked_add(judge.cache_for).ok()?.as_second();
        Some(until).filter(|until| *until > self.scene.now.as_second())
    }

    /// Where a rule says so, or the judge is not sure, a person decides (reading V-26).
    fn check_person(
        &self,
        confirm: Option<RuleName>,
        found: &Found,
        approved: Approved,
        reservation: &Reservation,
    ) -> Result<(), Stop> {
        let unsure = found.unsure.then_some(Reason::ConfirmationRequired);
        let reason = confirm.map(Reason::Policy).or(unsure);
        match (reason, self.call.before.answer) {
            _ if approved.person => Ok(()),
            (_, Some(answer)) => said_yes(Some(answer)).map_err(Stop::Denied),
            (None, None) => Ok(()),
            (Some(reason), None) => Err(Stop::Ask { reason, reservation: reservation.clone() }),
        }
    }

    /// The question for a person: held open (legacy), taken along (modern), or not to be asked at all.
    fn ask(
        &self,
        draft: Draft,
        session: &mut Session,
        account: &mut Account,
        reason: Reason,
        reservation: Reservation,
    ) -> CallRuling {
        let asked = Asked {
            question: clarify::question(self.call.tool, self.call.arguments),
            ticket: self.ticket(session, Purpose::Question),
        };
        if self.call.can_ask && self.scene.caller.era == Era::Legacy {
            let held = hold(session, account, reservation, self.scene);
            return CallRuling::Ask { asked: Box::new(asked), held: Some(held) };
        }
        ruled(pending(self.scene, draft, asked, self.call.can_ask, reason, Some(session)))
    }

    /// What a state about this call is bound to.
    fn ticket(&self, session: &Session, purpose: Purpose) -> Ticket {
        ticket(
            self.scene,
            self.call.tool,
            self.arguments,
            purpose,
            session.agreed.session_id(),
            &principal_key(session.agreed.principal()),
        )
    }

    fn marks(&self) -> Marks {
        let tool = self.call.tool.as_bytes();
        let shape = super::signals::shape(self.call.arguments);
        Marks {
            tool: Mark::of(&[tool]),
            call: Mark::of(&[tool, &self.arguments.bytes]),
            shape: Mark::of(&[tool, shape.as_bytes()]),
        }
    }

    /// The call is admitted: reserved, remembered, and forwarded.
    fn admit(
        &self,
        mut draft: Draft,
        session: &mut Session,
        account: &mut Account,
        heard: Heard,
    ) -> CallRuling {
        let reservation = Reservation { stage: Stage::Admitted, ..heard.reservation };
        let id = hold(session, account, reservation, self.scene);
        let running = &mut session.running;
        running.recent.remember(heard.marks.tool, heard.marks.call, heard.marks.shape);
        running.end_denials();
        if let Some(until) = heard.until.filter(|_| heard.consistent) {
            running.verdicts.keep(heard.suspect.key, until, self.scene.now);
        }
        draft.standing(self.scene.rules, session);
        let mut ruling = draft.rule(self.scene.rules, VerdictKind::Served, None);
        ruling.verdict.expires_at =
            heard.until.and_then(|until| Timestamp::from_second(until).ok()).map(Deadline::from);
        ruling.forward = true;
        ruling.reservation = Some(id);
        ruling.ticket = Some(Box::new(self.ticket(session, Purpose::Upstream)));
        ruled(ruling)
    }
}

/// What C5 found.
#[derive(Default)]
struct Found {
    consistent: bool,
    unsure: bool,
    until: Option<i64>,
}

impl Marks {
    /// How the call looks beside those of late.
    fn seen(self, session: &Session) -> super::signals::Seen {
        let recent = &session.running.recent;
        super::signals::Seen {
            repeats: recent.repeats(self.call),
            known_tool: recent.knows_tool(self.tool),
            known_shape: recent.knows_shape(self.shape),
        }
    }
}

/// Only a yes is a yes.
pub(super) fn said_yes(answer: Option<Answer>) -> Result<(), Reason> {
    match answer {
        Some(Answer::Confirmed) => Ok(()),
        Some(Answer::Declined) | None => Err(Reason::Declined),
        Some(Answer::Unanswered) => Err(Reason::Unanswered),
    }
}

/// A decision that waits for a person: no call is admitted, and nothing reserved (reading V-26).
pub(super) fn pending(
    scene: &Scene<'_>,
    mut draft: Draft,
    asked: Asked,
    can_ask: bool,
    reason: Reason,
    session: Option<&Session>,
) -> Ruling {
    if let Some(session) = session {
        draft.meters = standing(scene.rules, session);
    }
    let reason = if can_ask { reason } else { Reason::ConfirmationRequired };
    let mut ruling = draft.rule(scene.rules, VerdictKind::Clarify, Some(reason));
    let schema = serde_json::from_str(clarify::SCHEMA).ok();
    ruling.verdict.clarification = Some(Clarification { question: asked.question.clone(), schema });
    ruling.pending = can_ask.then(|| Box::new(asked));
    ruling
}

/// What a state about a call is bound to.
pub(super) fn ticket(
    scene: &Scene<'_>,
    tool: &str,
    arguments: &Canon,
    purpose: Purpose,
    session_id: &str,
    account: &str,
) -> Ticket {
    Ticket {
        purpose,
        route: scene.rules.route.clone(),
        session_id: session_id.to_owned(),
        account: account.to_owned(),
        tool: tool.to_owned(),
        arguments: arguments.digest().to_string(),
        policy: scene.rules.policy_digest.clone(),
        expires: clarify::expiry(scene.now),
        nonce: data_encoding::BASE64URL_NOPAD.encode(&scene.dice.secret),
    }
}

fn principal_facts(session: &Session) -> Value {
    let agreed = &session.agreed;
    let mut facts =
        json!({ "agent_id": agreed.agent_id(), "delegated_by": agreed.effective().principal.delegated_by });
    facts["identity"] = json!(agreed.principal().identity());
    facts
}

fn session_facts(session: &Session) -> Value {
    let limits = &session.agreed.budget().limits;
    let meters: serde_json::Map<String, Value> =
        limits.keys().map(|meter| (meter.clone(), session.running.used(meter).to_f64().into())).collect();
    let ceilings: serde_json::Map<String, Value> =
        limits.iter().map(|(meter, ceiling)| (meter.clone(), ceiling.to_f64().into())).collect();
    json!({
        "id": session.agreed.session_id(),
        "calls": session.running.calls(),
        "max_calls": session.agreed.budget().max_calls,
        "meters": meters,
        "limits": ceilings,
    })
}
