//! The state of one session during its replay.

use std::collections::HashMap;
use std::sync::Arc;

use admission::clarify::{Answer, Purpose, Shown, Ticket};
use admission::decide::{
    self, Before, Books, Call, CallRuling, Declared, Dice, Finding, MessageRuling, Outcome, Put, Ruling,
    Scene, Semantic, Status,
};
use admission::decimal::Decimal;
use admission::message::MessageType;
use admission::message::slot::{self, Carrier, Received, Unreadable};
use admission::principal::Caller;
use admission::risk::Degree;
use admission::rules::Rules;
use admission::session::{Account, Reservation, ReservationId, Session};
use admission::tool::ToolFault;
use admission::verdict::{Trigger, VerdictKind};
use jiff::Timestamp;

use crate::config::Config;
use crate::decision_inputs::StateInputs;
use crate::gateway::rules_of;

/// A session and its principal's account, both empty at first.
pub struct Again {
    rules: HashMap<String, Arc<Rules>>,
    session: Option<Session>,
    account: Account,
    /// The route and the reservation of each admitted call, by the entry ID of its decision.
    reserved: HashMap<String, (String, ReservationId)>,
    /// The caller who committed, and the route.
    owner: Option<(String, Caller)>,
}

/// A message to be decided again.
pub struct Said<'a> {
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
    /// The VAP message as received.
    pub message: Option<&'a str>,
    /// `true` if the `jti` was used before.
    pub replayed: bool,
    /// The judge's conclusion, if the judge is asked.
    pub judged: Semantic,
    /// The person's answer on the open stream; `None` if no person was asked.
    pub answer: Option<Answer>,
    /// `true` if a question could be put to approvers.
    pub can_wait: bool,
    /// The question that was put to approvers, with its answer.
    pub put: Option<Put<'a>>,
    /// The reservations of other messages of the session at that time.
    pub held_for_others: &'a [Reservation],
    /// The principal's account at that time, if it is known.
    pub account: Option<&'a Account>,
}

impl<'a> Said<'a> {
    /// A message at this time, without questions, answers or other reservations.
    #[must_use]
    pub fn new(route: &'a str, caller: &'a Caller, now: Timestamp, message: Option<&'a str>) -> Self {
        Said {
            route,
            caller,
            now,
            first: now,
            sample: u32::MAX,
            message,
            replayed: false,
            judged: presumed_opinion(None),
            answer: None,
            can_wait: true,
            put: None,
            held_for_others: &[],
            account: None,
        }
    }
}

/// Result of deciding again.
pub enum Now {
    /// The decision.
    Ruled(Box<Ruling>),
    /// The call would wait for the cost of another one (V-12).
    Waits,
    /// A person would be asked this question.
    Asks(String),
    /// There is no such route.
    NoRoute,
}

/// A call to be decided again.
pub struct Called<'a> {
    /// The tool's name.
    pub tool: &'a str,
    /// The text of the arguments.
    pub arguments: &'a str,
    /// The `Mcp-Name` header.
    pub header: Option<&'a str>,
    /// `true` if the client can be asked a question.
    pub can_ask: bool,
    /// `true` if the call carries an AgentROA envelope.
    pub has_roa_envelope: bool,
    /// The fault of its tool or its arguments.
    pub tool_fault: Option<&'a ToolFault>,
    /// The sealed state that the client returned with the call.
    pub state: Option<&'a StateInputs>,
}

impl Again {
    /// An empty session under the rules of a configuration.
    #[must_use]
    pub fn under(config: &Config) -> Self {
        Self::under_rules(rules_of(config))
    }

    /// An empty session under the rules of these routes, by path.
    #[must_use]
    pub fn under_rules(rules: HashMap<String, Arc<Rules>>) -> Self {
        Self { rules, session: None, account: Account::default(), reserved: HashMap::new(), owner: None }
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

    /// Decides a commitment or an amendment.
    pub fn declare(&mut self, kind: MessageType, said: &Said<'_>) -> Now {
        let Some(rules) = self.rules.get(said.route).cloned() else { return Now::NoRoute };
        let carrier = match kind {
            MessageType::ScopeAmendment => Carrier::Amend,
            MessageType::ScopeCommitment | MessageType::IntentCall => Carrier::ToolsList,
        };
        let read = received(said.message, carrier);
        let Some(message) = &read else { return Now::NoRoute };
        let message = message.as_ref().map_err(|unreadable| &**unreadable);
        let others = self.begin(said);
        let mut before = Before { put: said.put, ..Before::default() };
        let ruling = loop {
            let declared = Declared { message, replayed: said.replayed, can_wait: said.can_wait, before };
            let scene = scene(&rules, said, &before);
            let books = Books { session: &mut self.session, account: &mut self.account };
            let ruling = match kind {
                MessageType::ScopeAmendment => decide::amendment(&scene, books, &declared),
                MessageType::ScopeCommitment | MessageType::IntentCall => {
                    decide::commitment(&scene, books, &declared)
                }
            };
            match ruling {
                MessageRuling::Ruled(ruling) => break ruling,
                MessageRuling::Judge { held, .. } => {
                    before = Before { held, judged: Some(said.judged), put: said.put, ..Before::default() };
                }
            }
        };
        self.give_back(&rules, others);
        if self.owner.is_none() && self.session.is_some() {
            self.owner = Some((said.route.to_owned(), said.caller.clone()));
        }
        Now::Ruled(ruling)
    }

    /// Decides a call. `id` is the entry ID of its record, to which its outcome refers.
    pub fn call(&mut self, said: &Said<'_>, called: &Called<'_>, id: Option<&str>) -> Now {
        let Some(rules) = self.rules.get(said.route).cloned() else { return Now::NoRoute };
        let others = self.begin(said);
        let now = self.decide_call(&rules, said, called);
        self.give_back(&rules, others);
        if let (Some(id), Now::Ruled(ruling)) = (id, &now)
            && let Some(reservation) = ruling.reservation
        {
            self.reserved.insert(id.to_owned(), (said.route.to_owned(), reservation));
        }
        now
    }

    /// Decides a call as the writer does: first as received, then with the judge's answer, then with a person's.
    fn decide_call(&mut self, rules: &Rules, said: &Said<'_>, called: &Called<'_>) -> Now {
        let read = received(said.message, Carrier::ToolsCall);
        let envelope = read.as_ref().map(|read| read.as_ref().map_err(|unreadable| &**unreadable));
        let ticket = called.state.and_then(|state| bound_to(rules, state));
        let shown = called.state.map(|state| Shown {
            ticket: ticket.as_ref(),
            spent: state.spent,
            answer: state.answer,
        });
        // A call that was sent again brought the state that names the question; a held call is first decided without
        // it.
        let put = said.put.filter(|_| called.state.is_some());
        let mut before = Before { shown, put, ..Before::default() };
        loop {
            let call = Call {
                envelope,
                tool: called.tool,
                header: called.header,
                arguments: called.arguments,
                can_ask: called.can_ask,
                can_wait: said.can_wait,
                has_roa_envelope: called.has_roa_envelope,
                tool_fault: called.tool_fault,
                replayed: said.replayed,
                before,
            };
            let scene = scene(rules, said, &before);
            let books = Books { session: &mut self.session, account: &mut self.account };
            match decide::call(&scene, books, &call) {
                CallRuling::Ruled(ruling) => return Now::Ruled(ruling),
                CallRuling::Wait => return Now::Waits,
                CallRuling::Judge { held, .. } => {
                    before =
                        Before { held: Some(held), judged: Some(said.judged), shown, ..Before::default() };
                }
                CallRuling::Ask { held, .. } if said.put.is_some() && before.put.is_none() => {
                    before = Before { held, put: said.put, shown, ..Before::default() };
                }
                CallRuling::Ask { held, .. } if said.answer.is_some() => {
                    before = Before { held, answer: said.answer, shown, ..Before::default() };
                }
                CallRuling::Ask { asked, held } => {
                    self.give_back(rules, held);
                    return Now::Asks(asked.question.to_string());
                }
            }
        }
    }

    /// Settles a call that was admitted again.
    pub fn settle(&mut self, decision: &str, status: Status, tool: &str, cost: Option<&str>) {
        let Some((route, reservation)) = self.reserved.remove(decision) else { return };
        let (Some(rules), Some(session)) = (self.rules.get(&route), self.session.as_mut()) else { return };
        let outcome = Outcome { status, tool, cost };
        let _ = decide::settle(rules, session, &mut self.account, reservation, outcome);
    }

    /// Closes the session.
    pub fn close(&mut self) {
        if let Some(session) = self.session.as_mut() {
            let _ = decide::close(session, &mut self.account);
        }
    }

    /// Restores the account and the reservations at the time of a message. Returns the reservations of other messages.
    fn begin(&mut self, said: &Said<'_>) -> Vec<ReservationId> {
        if let Some(account) = said.account {
            self.account = account.clone();
        }
        let Some(session) = self.session.as_mut() else { return Vec::new() };
        said.held_for_others.iter().map(|held| decide::hold_again(session, held)).collect()
    }

    fn give_back(&mut self, rules: &Rules, held: impl IntoIterator<Item = ReservationId>) {
        let Some(session) = self.session.as_mut() else { return };
        for held in held {
            let _ = decide::refund(rules, session, &mut self.account, held);
        }
    }
}

/// Builds the scene of a decision. Its time is that of the first pass until the last answer is known.
fn scene<'a>(rules: &'a Rules, said: &'a Said<'_>, before: &Before<'_>) -> Scene<'a> {
    let is_asked = said.answer.is_some() || said.put.is_some();
    let is_last = before.answer.is_some() || before.put.is_some() || (before.judged.is_some() && !is_asked);
    let now = if is_last { said.now } else { said.first };
    let dice = Dice { sample: said.sample, secret: [0; 32] };
    Scene { rules, caller: said.caller, now, dice }
}

fn received(message: Option<&str>, carrier: Carrier) -> Option<Result<Received, Box<Unreadable>>> {
    slot::read(message, None, carrier).transpose()
}

/// Returns the ticket of a state. One that was bound to the rules in force then is bound to these rules, since the
/// question would have been asked under them; any other is bound to none. The ticket of an approval stays as it is.
fn bound_to(rules: &Rules, state: &StateInputs) -> Option<Ticket> {
    let ticket = state.ticket.clone()?;
    if ticket.purpose == Purpose::Approval {
        return Some(ticket);
    }
    Some(match state.of_these_rules {
        true => Ticket { policy: rules.policy_digest.clone(), ..ticket },
        false => Ticket { policy: String::new(), ..ticket },
    })
}

/// The presumed opinion of a judge that was not asked: it agrees with the recorded verdict.
#[must_use]
pub fn presumed_opinion(came_to: Option<VerdictKind>) -> Semantic {
    let served = matches!(came_to, None | Some(VerdictKind::Served | VerdictKind::Downgraded));
    Semantic {
        finding: if served { Finding::Consistent } else { Finding::Inconsistent },
        confidence: Degree::ONE,
        trigger: Trigger::RandomSample,
        cost: Decimal::ZERO,
    }
}
