//! The hearing of a call: C2 to C5, in order, and the first failure wins. Nothing changes here.

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

/// One call that is being heard.
pub(super) struct Hearing<'a> {
    pub scene: &'a Scene<'a>,
    pub call: &'a Call<'a>,
    pub received: &'a Received,
    pub arguments: &'a Canon,
}

/// What a call is heard to be.
pub(super) struct Heard {
    pub reservation: Reservation,
    pub approved: Approved,
    pub marks: Marks,
    /// What the judge's answer is kept under.
    pub key: VerdictKey,
    pub found: Found,
}

/// What is remembered of a call.
#[derive(Clone, Copy)]
pub(super) struct Marks {
    pub tool: Mark,
    pub call: Mark,
    pub shape: Mark,
}

/// What C5 found.
#[derive(Clone, Copy, Default)]
pub(super) struct Found {
    /// The judge said so just now.
    pub consistent: bool,
    unsure: bool,
    /// Until when its answer may be used again.
    pub until: Option<i64>,
}

/// Why a hearing ends early.
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
    /// Hears a call that is bound to its session.
    pub fn hear(&self, draft: &mut Draft, session: &Session, account: &Account) -> Result<Heard, Stop> {
        // A client repeats its call, envelope and all, to bring an answer: the state is what is used once.
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

    /// C3.
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

    /// What came back with the call: the answer of an approver, or a state of ours.
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

    /// C4. Returns the rule that asks for a confirmation, and of whom.
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

    /// The risk of the call: computed and recorded, judge or none (reading V-28).
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

    /// C5. A call that a person was asked about was heard by the judge before.
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

    /// Until when a verdict about this call may be used again.
    fn keep_until(&self, suspect: &Suspect) -> Option<i64> {
        let judge = self.scene.rules.judge.as_ref().filter(|_| is_cacheable(suspect.sensitivity))?;
        let until = self.scene.now.checked_add(judge.cache_for).ok()?.as_second();
        Some(until).filter(|until| *until > self.scene.now.as_second())
    }

    /// Where a rule says so, or the judge is not sure, a person decides (reading V-26).
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
                    // The client was asked before its answers ceased to count.
                    return Err(Reason::ApprovalUnavailable.into());
                }
            }
            // What the client says is not what an approver signs.
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

    /// What an approver is asked about.
    pub fn subject(&self, session: &Session) -> Subject {
        let agreed = &session.agreed;
        let whose = (agreed.session_id(), agreed.account());
        call_subject(self.scene, self.call.tool, self.arguments, whose, Some(agreed.digest()))
    }

    /// What a state about this call is bound to.
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

/// The tool is what was approved, and the arguments fit it.
pub(super) fn check_tool(draft: &mut Draft, call: &Call<'_>) -> Result<(), Reason> {
    let Some(fault) = call.tool_fault else { return Ok(()) };
    draft.fault_place.clone_from(&fault.place);
    Err(fault.reason.clone())
}

impl Marks {
    /// How the call looks beside those of late.
    fn seen(self, session: &Session) -> Seen {
        let recent = &session.running.recent;
        Seen {
            repeats: recent.repeats(self.call),
            known_tool: recent.knows_tool(self.tool),
            known_shape: recent.knows_shape(self.shape),
        }
    }
}

/// The name of the agent is among them only if it was shown: what an agent calls itself is no ground for anything.
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
