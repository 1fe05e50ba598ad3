//! The state of one session during its replay.

use std::collections::HashMap;
use std::sync::Arc;

use admission::authenticated::Authenticated;
use admission::clarify::{HumanAnswer, Purpose, ReturnedState, SealedCall};
use admission::decide::{
    self, ApproverQuestion, CallDecision, CallOutcome, CallQuestion, DecisionContext, DecisionState,
    Declaration, EarlierResults, JudgeAnswer, JudgeFinding, MessageRuling, RandomInputs, Ruling, ToolCall,
};
use admission::principal::Caller;
use admission::risk::Degree;
use admission::rules::Rules;
use admission::session::{Account, Reservation, ReservationId, Session};
use decimal::Decimal;
use jiff::Timestamp;
use vap::audit::CallStatus;
use vap::message::MessageType;
use vap::message::slot::Received;
use vap::verdict::Trigger;

use crate::config::Config;
use crate::current_rules::rules_of;

/// A session and its principal's account, both empty at first.
pub struct ReplayedSession {
    rules: HashMap<String, Arc<Rules>>,
    session: Option<Session>,
    account: Account,
    /// The route and the reservation of each admitted call, by the entry ID of its decision.
    reserved: HashMap<String, (String, ReservationId)>,
    /// The caller who committed, and the route.
    owner: Option<(String, Caller)>,
    /// The number of the first record that changed the session and cannot be decided again: the state after it is not known.
    unknown_after: Option<u64>,
}

/// The rounds of a recorded decision: their sender, their times, and the answers between them.
pub struct RecordedRounds<'a> {
    /// The path of the route.
    pub route: &'a str,
    /// The sender.
    pub caller: &'a Caller,
    /// Time of the decision.
    pub now: Timestamp,
    /// Time of the first pass, before a judge or a person was asked.
    pub first: Timestamp,
    /// The random number that determines whether the judge sees the message (V-28).
    pub sample: u32,
    /// The judge's recorded conclusion; `None` if the judge was not asked.
    pub opinion: Option<JudgeAnswer>,
    /// The presumed finding of a judge that was not asked and would be asked now.
    pub presumed: JudgeFinding,
    /// The digest of the rules of the recorded decision.
    pub policy_digest: &'a str,
    /// The person's answer on the open stream; `None` if no person was asked.
    pub answer: Option<HumanAnswer>,
    /// The question to approvers, with its answer.
    pub put: Option<ApproverQuestion<'a>>,
    /// `true` if the state that the client returned was bound to the rules then in force.
    pub of_these_rules: bool,
    /// The reservations of other messages of the session at that time.
    pub held_for_others: &'a [Reservation],
    /// The principal's account at that time, if it is known.
    pub account: Option<&'a Account>,
}

impl<'a> RecordedRounds<'a> {
    /// One pass at this time, without questions, answers or other reservations.
    #[must_use]
    pub fn new(route: &'a str, caller: &'a Caller, now: Timestamp) -> Self {
        RecordedRounds {
            route,
            caller,
            now,
            first: now,
            sample: u32::MAX,
            opinion: None,
            presumed: JudgeFinding::Consistent,
            policy_digest: "",
            answer: None,
            put: None,
            of_these_rules: false,
            held_for_others: &[],
            account: None,
        }
    }

    /// Returns the judge's conclusion for the first pass: the recorded one, if the rules are the same. Whether the judge is
    /// asked depends on the calls before, and calls that overlap are recorded in the order of their decisions, not of their
    /// questions.
    fn known_opinion(&self, rules: &Rules) -> Option<JudgeAnswer> {
        self.opinion.filter(|_| rules.judge.is_some() && rules.policy_digest == self.policy_digest)
    }

    /// Returns the judge's conclusion if the first pass asks the judge.
    fn judged(&self) -> JudgeAnswer {
        self.opinion.unwrap_or(JudgeAnswer {
            finding: self.presumed,
            confidence: Degree::ONE,
            trigger: Trigger::RandomSample,
            cost: Decimal::ZERO,
        })
    }
}

/// Result of deciding again.
pub enum ReplayResult {
    /// The decision.
    Ruled(Box<Ruling>),
    /// The call would wait for the cost of another one (V-12).
    Waits,
    /// A person would be asked this question.
    Asks(String),
    /// There is no such route.
    NoRoute,
}

impl ReplayedSession {
    /// An empty session under the rules of a configuration.
    #[must_use]
    pub fn under(config: &Config) -> Self {
        Self::under_rules(rules_of(config))
    }

    /// An empty session under the rules of these routes, by path.
    #[must_use]
    pub fn under_rules(rules: HashMap<String, Arc<Rules>>) -> Self {
        Self {
            rules,
            session: None,
            account: Account::default(),
            reserved: HashMap::new(),
            owner: None,
            unknown_after: None,
        }
    }

    /// Returns the number of the first record that changed the session and cannot be decided again.
    #[must_use]
    pub fn unknown_after(&self) -> Option<u64> {
        self.unknown_after
    }

    /// Declares the session's state unknown after this record, which cannot be decided again.
    pub(super) fn set_unknown_after(&mut self, seq: u64) {
        self.unknown_after.get_or_insert(seq);
    }

    /// Returns the route and the caller who committed.
    #[must_use]
    pub fn owner(&self) -> Option<&(String, Caller)> {
        self.owner.as_ref()
    }

    /// Returns the session in its current state.
    #[must_use]
    pub fn session(&self) -> Option<&Session> {
        self.session.as_ref()
    }

    /// Returns the rules of a route.
    pub(super) fn rules(&self, route: &str) -> Option<Arc<Rules>> {
        self.rules.get(route).cloned()
    }

    /// Checks the signature of a message, as on its arrival at a route.
    #[must_use]
    pub fn authenticated(&self, route: &str, received: Received) -> Authenticated {
        let keyring = self.rules.get(route).map(|rules| rules.keyring.clone()).unwrap_or_default();
        Authenticated::new(received, &keyring)
    }

    /// Decides a commitment or an amendment.
    pub fn declare(
        &mut self,
        kind: MessageType,
        rounds: &RecordedRounds<'_>,
        declared: &Declaration<'_>,
    ) -> ReplayResult {
        let Some(rules) = self.rules.get(rounds.route).cloned() else { return ReplayResult::NoRoute };
        let others = self.begin(rounds);
        let mut before = EarlierResults { judged: rounds.known_opinion(&rules), ..declared.before };
        let ruling = loop {
            let declared = Declaration { before, ..*declared };
            let context = context(&rules, rounds, &before);
            let state = DecisionState { session: &mut self.session, account: &mut self.account };
            let ruling = match kind {
                MessageType::ScopeAmendment => decide::amendment(&context, state, &declared),
                MessageType::ScopeCommitment | MessageType::IntentCall => {
                    decide::commitment(&context, state, &declared)
                }
            };
            match ruling {
                MessageRuling::Ruled(ruling) => break ruling,
                MessageRuling::Judge { held, .. } => {
                    before = EarlierResults { held, judged: Some(rounds.judged()), ..declared.before };
                }
            }
        };
        self.release(&rules, others);
        if self.owner.is_none() && self.session.is_some() {
            self.owner = Some((rounds.route.to_owned(), rounds.caller.clone()));
        }
        ReplayResult::Ruled(ruling)
    }

    /// Decides a call. `id` is the entry ID of its record, to which its outcome refers.
    pub fn call(
        &mut self,
        rounds: &RecordedRounds<'_>,
        call: &ToolCall<'_>,
        id: Option<&str>,
    ) -> ReplayResult {
        let Some(rules) = self.rules.get(rounds.route).cloned() else { return ReplayResult::NoRoute };
        let others = self.begin(rounds);
        let now = self.decide_call(&rules, rounds, call, id);
        self.release(&rules, others);
        now
    }

    /// Decides a call as the writer does: first as received, then with the judge's answer, then with a person's.
    fn decide_call(
        &mut self,
        rules: &Rules,
        rounds: &RecordedRounds<'_>,
        call: &ToolCall<'_>,
        id: Option<&str>,
    ) -> ReplayResult {
        let ticket = call.before.returned_state.and_then(|state| state.ticket);
        let ticket = ticket.map(|ticket| bound_to(rules, ticket, rounds.of_these_rules));
        let returned_state =
            call.before.returned_state.map(|state| ReturnedState { ticket: ticket.as_ref(), ..state });
        let judged = rounds.known_opinion(rules);
        let mut before = EarlierResults { returned_state, judged, ..call.before };
        let asked = EarlierResults { returned_state, ..EarlierResults::default() };
        loop {
            let call = ToolCall { before, ..*call };
            let context = context(rules, rounds, &before);
            let state = DecisionState { session: &mut self.session, account: &mut self.account };
            before = match decide::call(&context, state, &call) {
                CallDecision::Admit(permit, ruling) => {
                    if let (Some(id), Some(reservation)) = (id, permit.reservation()) {
                        self.reserved.insert(id.to_owned(), (rounds.route.to_owned(), reservation));
                    }
                    return ReplayResult::Ruled(ruling);
                }
                CallDecision::Refuse(ruling) => return ReplayResult::Ruled(ruling),
                CallDecision::Wait => return ReplayResult::Waits,
                CallDecision::Ask { question: CallQuestion::Judge(_), held } => {
                    EarlierResults { held, judged: Some(rounds.judged()), ..asked }
                }
                CallDecision::Ask { held, .. }
                    if rounds.put.is_some() && before.approver_question.is_none() =>
                {
                    EarlierResults { held, approver_question: rounds.put, ..asked }
                }
                CallDecision::Ask { held, .. } if rounds.answer.is_some() => {
                    EarlierResults { held, answer: rounds.answer, ..asked }
                }
                CallDecision::Ask { question: CallQuestion::Human(asked), held } => {
                    self.release(rules, held);
                    return ReplayResult::Asks(asked.question.to_string());
                }
            };
        }
    }

    /// Settles a call that was admitted again.
    pub fn settle(&mut self, decision: &str, status: CallStatus, tool: &str, cost: Option<&str>) {
        let Some((route, reservation)) = self.reserved.remove(decision) else { return };
        let (Some(rules), Some(session)) = (self.rules.get(&route), self.session.as_mut()) else { return };
        let outcome = CallOutcome { status, tool, cost };
        let _ = decide::settle(rules, session, &mut self.account, reservation, outcome);
    }

    /// Closes the session.
    pub fn close(&mut self) {
        if let Some(session) = self.session.as_mut() {
            let _ = decide::close(session, &mut self.account);
        }
    }

    /// Restores the account and the reservations at the time of a message. Returns the reservations of other messages.
    fn begin(&mut self, rounds: &RecordedRounds<'_>) -> Vec<ReservationId> {
        if let Some(account) = rounds.account {
            self.account = account.clone();
        }
        let Some(session) = self.session.as_mut() else { return Vec::new() };
        rounds.held_for_others.iter().map(|held| decide::restore_reservation(session, held)).collect()
    }

    fn release(&mut self, rules: &Rules, held: impl IntoIterator<Item = ReservationId>) {
        let Some(session) = self.session.as_mut() else { return };
        for held in held {
            let _ = decide::refund(rules, session, &mut self.account, held);
        }
    }
}

/// Builds the context of a decision. Its time is that of the first pass until the last answer is known.
fn context<'a>(
    rules: &'a Rules,
    rounds: &'a RecordedRounds<'_>,
    before: &EarlierResults<'_>,
) -> DecisionContext<'a> {
    let is_asked = rounds.answer.is_some() || rounds.put.is_some();
    let is_last = before.answer.is_some()
        || before.approver_question.is_some()
        || (before.judged.is_some() && !is_asked);
    let now = if is_last { rounds.now } else { rounds.first };
    let random = RandomInputs { sample: rounds.sample, secret: [0; 32] };
    DecisionContext { rules, caller: rounds.caller, now, random }
}

/// Returns the ticket of a state. One that was bound to the rules in force then is bound to these rules, since the
/// question would have been asked under them; any other is bound to none. The ticket of an approval stays as it is.
fn bound_to(rules: &Rules, ticket: &SealedCall, of_these_rules: bool) -> SealedCall {
    let policy = match (ticket.purpose, of_these_rules) {
        (Purpose::Approval, _) => return ticket.clone(),
        (_, true) => rules.policy_digest.clone(),
        (_, false) => String::new(),
    };
    SealedCall { policy, ..ticket.clone() }
}
