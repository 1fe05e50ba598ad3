//! The checks C2 to C5 of a call, in order; the first failure decides. Nothing is changed here.

use serde_json::{Value, json};

use crate::approval::Subject;
use crate::cache::{VerdictKey, is_cacheable};
use crate::clarify::{Purpose, Ticket};
use crate::digest::Canon;
use crate::exact;
use crate::message::slot::Received;
use crate::message::{IntentEnvelope, Message};
use crate::principal::ProvenBy;
use crate::reason::{Reason, RuleName};
use crate::rules::Decider;
use crate::session::{Account, Mark, Reservation, Session};

use super::bind::check_open;
use super::budget::{Projected, Spending, project};
use super::draft::Draft;
use super::person::{Approved, call_subject, check_approval, check_state, said_yes, ticket};
use super::policy::{Facts, Policed, police};
use super::ruling::{Confirmation, Flag};
use super::semantic::{Gate, Meaning, Question, Suspect, gate, meaning};
use super::signals::{Seen, shape, signals};
use super::{Call, Scene};

/// A call under examination, with its envelope and its canonical arguments.
pub(super) struct Hearing<'a> {
    pub scene: &'a Scene<'a>,
    pub call: &'a Call<'a>,
    pub received: &'a Received,
    pub arguments: &'a Canon,
}

/// The result of the checks for a call that passed.
pub(super) struct Heard {
    pub reservation: Reservation,
    pub approved: Approved,
    pub marks: Marks,
    /// The cache key for the judge's verdict.
    pub key: VerdictKey,
    pub found: Found,
}

/// The marks of a call for the risk score.
#[derive(Clone, Copy)]
pub(super) struct Marks {
    pub tool: Mark,
    pub call: Mark,
    pub shape: Mark,
}

/// The result of C5.
#[derive(Clone, Copy, Default)]
pub(super) struct Found {
    /// `true` if the judge has just answered "consistent".
    pub consistent: bool,
    unsure: bool,
    /// The expiry of the answer in the cache, in Unix seconds.
    pub until: Option<i64>,
}

/// The reason why the checks stop without a result.
pub(super) enum Stop {
    Denied(Reason),
    Wait,
    Judge { question: Box<Question>, reservation: Reservation },
    Ask { reason: Reason, by: Decider, reservation: Reservation },
}

impl From<Reason> for Stop {
    fn from(reason: Reason) -> Self {
        Stop::Denied(reason)
    }
}

impl Hearing<'_> {
    /// Runs C2 to C5 on a call that is bound to its session.
    pub fn hear(&self, draft: &mut Draft, session: &Session, account: &Account) -> Result<Heard, Stop> {
        // A client repeats a call with its envelope to deliver an answer: then the state is single-use, not the `jti`.
        let repeats = self.call.before.shown.as_ref().is_some_and(|shown| shown.ticket.is_some());
        check_open(self.scene, session, account, self.call.replayed && !repeats)?;
        if self.call.has_roa_envelope {
            return Err(Reason::RoaNotEnforced.into());
        }
        let envelope = self.envelope()?;
        self.check_declared(draft, envelope)?;
        self.check_scope(draft, session)?;
        check_tool(draft, self.call)?;
        let approved = self.check_answer(draft, session)?;
        if self.call.replayed && approved.nonce.is_none() && self.call.before.put.is_none() {
            return Err(Reason::Replayed.into());
        }
        let mut reservation = self.check_budget(draft, session, account, &approved)?;
        let confirm = self.check_policy(draft, session)?;
        let suspect = self.suspect(draft, session, envelope, &reservation);
        let answered = approved.by.is_some() || self.call.before.answer.is_some();
        let found = self.check_semantic(draft, session, envelope, &suspect, &mut reservation, answered)?;
        self.check_person(draft, confirm, found, &approved, &reservation)?;
        Ok(Heard { reservation, approved, marks: self.marks(), key: suspect.key, found })
    }

    fn envelope(&self) -> Result<&IntentEnvelope, Reason> {
        match &self.received.message {
            Message::IntentEnvelope(envelope) => Ok(envelope),
            Message::ScopeCommitment(_) | Message::ScopeAmendment(_) => Err(Reason::WrongCarrier),
        }
    }

    /// Checks that the declared call equals the forwarded one, as JSON values (reading V-7).
    fn check_declared(&self, draft: &mut Draft, envelope: &IntentEnvelope) -> Result<(), Reason> {
        let same_tool = envelope.call.tool == self.call.tool;
        let same_header = self.call.header.is_none_or(|header| header == self.call.tool);
        match same_tool && same_header && exact::equal(&envelope.call.arguments, self.call.arguments) {
            true => draft.passed("call_ok"),
            false => return Err(Reason::CallMismatch),
        }
        Ok(())
    }

    /// C2: checks the name that will be forwarded against the scope.
    fn check_scope(&self, draft: &mut Draft, session: &Session) -> Result<(), Reason> {
        match session.agreed.scope().allows(self.call.tool) {
            true => draft.passed("scope_ok"),
            false => return Err(Reason::ScopeEscape),
        }
        Ok(())
    }

    /// C3: checks the budget, and returns the reservation.
    fn check_budget(
        &self,
        draft: &mut Draft,
        session: &Session,
        account: &Account,
        approved: &Approved,
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

    /// Checks the answer that was returned with the call: an approver's, or a sealed state.
    fn check_answer(&self, draft: &mut Draft, session: &Session) -> Result<Approved, Reason> {
        let before = &self.call.before;
        match &before.put {
            Some(put) => check_approval(self.scene, draft, put, &self.subject(session)),
            None => {
                let shown = before.shown.as_ref();
                check_state(self.scene, draft, shown, |purpose| self.ticket(session, purpose))
            }
        }
    }

    /// C4: evaluates the operator's rules. Returns the rule that requires a confirmation, and the party to ask.
    fn check_policy(
        &self,
        draft: &mut Draft,
        session: &Session,
    ) -> Result<Option<(RuleName, Decider)>, Reason> {
        let rules = self.scene.rules;
        draft.policed = !rules.policy.is_empty();
        let facts = Facts {
            tool: self.call.tool,
            arguments: self.call.arguments,
            principal: principal_facts(session, draft.proven_by),
            session: session_facts(session),
        };
        match police(rules, facts) {
            Policed::Denied(reason) => return Err(reason),
            Policed::Confirm(name, by) => return Ok(Some((name, by))),
            Policed::Allowed(Some(name)) => draft.passed(&Reason::Policy(name).as_str()),
            Policed::Allowed(None) if draft.policed => draft.passed("policy_ok"),
            Policed::Allowed(None) => {}
        }
        Ok(None)
    }

    /// Computes the risk score of the call. It is recorded even if no judge is configured (reading V-28).
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
        let signals = signals(self.scene, session, sensitivity, self.marks().seen(session), reservation);
        let risk = signals.weigh(&rules.risk);
        draft.risk = Some(risk.score);
        let commitment = session.agreed.digest().as_str();
        let key = VerdictKey::of(commitment, self.call.tool, &self.arguments.bytes, &rules.policy_digest);
        Suspect { key, risk, sensitivity }
    }

    /// C5: asks the judge if needed. A call that a human has answered for was shown to the judge before.
    fn check_semantic(
        &self,
        draft: &mut Draft,
        session: &Session,
        envelope: &IntentEnvelope,
        suspect: &Suspect,
        reservation: &mut Reservation,
        answered: bool,
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
        if answered {
            return Ok(Found::default());
        }
        match gate(self.scene, session, suspect) {
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
                let judge = self.scene.rules.judge.as_ref();
                reservation.judge = judge.map(|judge| judge.reserve).unwrap_or_default();
                let question = Box::new(Question::about_call(trigger, session, envelope));
                Err(Stop::Judge { question, reservation: reservation.clone() })
            }
        }
    }

    /// Returns the cache expiry of a verdict about this call in Unix seconds; `None` if it must not be cached.
    fn keep_until(&self, suspect: &Suspect) -> Option<i64> {
        let judge = self.scene.rules.judge.as_ref().filter(|_| is_cacheable(suspect.sensitivity))?;
        let until = self.scene.now.checked_add(judge.cache_for).ok()?.as_second();
        Some(until).filter(|until| *until > self.scene.now.as_second())
    }

    /// Requires the answer of a human if a rule demands one or the judge is uncertain (reading V-26).
    fn check_person(
        &self,
        draft: &mut Draft,
        confirm: Option<(RuleName, Decider)>,
        found: Found,
        approved: &Approved,
        reservation: &Reservation,
    ) -> Result<(), Stop> {
        let usual = self.scene.rules.approvals.confirmations;
        let unsure = found.unsure.then_some((Reason::ConfirmationRequired, usual));
        let asked = confirm.map(|(name, by)| (Reason::Policy(name), by)).or(unsure);
        let by = asked.as_ref().map_or(usual, |(_, by)| *by);
        match (approved.by, self.call.before.answer, asked) {
            (None, None, None) => return Ok(()),
            (None, answer @ Some(said), _) => {
                draft.confirmation = Some(Confirmation::Client(said));
                said_yes(answer)?;
                if by == Decider::Approver {
                    // The rules changed while the client was asked: now an approver has to answer.
                    return Err(Reason::ApprovalUnavailable.into());
                }
            }
            // An answer of the client does not replace an approver's signature.
            (None, None, Some((reason, by))) => {
                return Err(Stop::Ask { reason, by, reservation: reservation.clone() });
            }
            (Some(Decider::Client), _, Some((reason, Decider::Approver))) => {
                let (by, reservation) = (Decider::Approver, reservation.clone());
                return Err(Stop::Ask { reason, by, reservation });
            }
            (Some(_), _, _) => {}
        }
        draft.passed("confirmed");
        Ok(())
    }

    /// Returns the subject of a question to an approver about this call.
    pub fn subject(&self, session: &Session) -> Subject {
        let agreed = &session.agreed;
        let whose = (agreed.session_id(), agreed.account());
        call_subject(self.scene, self.call.tool, self.arguments, whose, Some(agreed.digest()))
    }

    /// Returns the content of a sealed state about this call.
    pub fn ticket(&self, session: &Session, purpose: Purpose) -> Ticket {
        let agreed = &session.agreed;
        ticket(self.scene, self.call.tool, self.arguments, purpose, agreed.session_id(), agreed.account())
    }

    fn marks(&self) -> Marks {
        let tool = self.call.tool.as_bytes();
        Marks {
            tool: Mark::of(&[tool]),
            call: Mark::of(&[tool, &self.arguments.bytes]),
            shape: Mark::of(&[tool, shape(self.call.arguments).as_bytes()]),
        }
    }
}

/// Denies a call with a faulty tool or faulty arguments.
pub(super) fn check_tool(draft: &mut Draft, call: &Call<'_>) -> Result<(), Reason> {
    let Some(fault) = call.tool_fault else { return Ok(()) };
    draft.fault_place.clone_from(&fault.place);
    Err(fault.reason.clone())
}

impl Marks {
    /// Compares the call with the recent ones of the session.
    fn seen(self, session: &Session) -> Seen {
        let recent = &session.running.recent;
        Seen {
            repeats: recent.repeats(self.call),
            known_tool: recent.knows_tool(self.tool),
            known_shape: recent.knows_shape(self.shape),
        }
    }
}

/// Returns the `input.principal` of rules. `agent_id` is included only if there is evidence for it: a mere claim must
/// not decide anything.
fn principal_facts(session: &Session, proven_by: ProvenBy) -> Value {
    let agreed = &session.agreed;
    let mut facts = json!({
        "proven_by": proven_by.as_str(),
        "delegated_by": agreed.effective().principal.delegated_by,
        "identity": agreed.principal().identity(),
    });
    if proven_by != ProvenBy::Asserted {
        facts["agent_id"] = agreed.agent_id().into();
    }
    facts
}

fn session_facts(session: &Session) -> Value {
    let budget = session.agreed.budget();
    let used = |meter: &String| Value::from(session.running.used(meter).to_f64());
    let meters = budget.limits.keys().map(|meter| (meter.clone(), used(meter)));
    let limits = budget.limits.iter().map(|(meter, ceiling)| (meter.clone(), Value::from(ceiling.to_f64())));
    json!({
        "id": session.agreed.session_id(),
        "calls": session.running.calls(),
        "max_calls": budget.max_calls,
        "meters": meters.collect::<serde_json::Map<_, _>>(),
        "limits": limits.collect::<serde_json::Map<_, _>>(),
    })
}
