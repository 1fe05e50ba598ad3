//! One session, lived through again.

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

/// A session and its principal's account, empty at first.
pub struct Again {
    rules: HashMap<String, Arc<Rules>>,
    session: Option<Session>,
    account: Account,
    /// What is reserved for decisions, by the id of their records.
    reserved: HashMap<String, (String, ReservationId)>,
    /// Who committed, and where.
    owner: Option<(String, Caller)>,
}

/// A message that is decided again.
pub struct Said<'a> {
    /// On which route.
    pub route: &'a str,
    /// Who sent it.
    pub caller: &'a Caller,
    /// When it was decided.
    pub now: Timestamp,
    /// When it was looked at first, before somebody was asked about it.
    pub first: Timestamp,
    /// The random number that says whether the judge sees it.
    pub sample: u32,
    /// Its VAP message, as it came.
    pub message: Option<&'a str>,
    /// Whether its `jti` was seen before.
    pub replayed: bool,
    /// What the judge says when it is asked.
    pub judged: Semantic,
    /// What a person says when one is asked on the open stream; none if nobody was.
    pub answer: Option<Answer>,
    /// Whether a question could be put to approvers.
    pub can_wait: bool,
    /// The question that was put to approvers, and what came of it.
    pub put: Option<Put<'a>>,
    /// What other calls of the session held meanwhile.
    pub held_for_others: &'a [Reservation],
    /// What the principal held, where that is known.
    pub account: Option<&'a Account>,
}

impl<'a> Said<'a> {
    /// A message at some time, about which nothing was asked and nothing else is known.
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

/// What is decided now.
pub enum Now {
    /// This.
    Ruled(Box<Ruling>),
    /// It would wait for the cost of another call.
    Waits,
    /// A person would be asked.
    Asks(String),
    /// There is no such route any more.
    NoRoute,
}

/// A call.
pub struct Called<'a> {
    /// The tool.
    pub tool: &'a str,
    /// Its arguments, as text.
    pub arguments: &'a str,
    /// `Mcp-Name`.
    pub header: Option<&'a str>,
    /// Whether the client can be asked something.
    pub can_ask: bool,
    /// Whether it carries an AgentROA envelope.
    pub has_roa_envelope: bool,
    /// What is wrong with its tool or its arguments.
    pub tool_fault: Option<&'a ToolFault>,
    /// The sealed state that came back with it.
    pub state: Option<&'a StateInputs>,
}

impl Again {
    /// Under the rules of a configuration.
    #[must_use]
    pub fn under(config: &Config) -> Self {
        Self::under_rules(rules_of(config))
    }

    /// Under the rules of these routes, by path.
    #[must_use]
    pub fn under_rules(rules: HashMap<String, Arc<Rules>>) -> Self {
        Self { rules, session: None, account: Account::default(), reserved: HashMap::new(), owner: None }
    }

    /// Who committed, and on which route.
    #[must_use]
    pub fn owner(&self) -> Option<&(String, Caller)> {
        self.owner.as_ref()
    }

    /// The session as it stands.
    #[must_use]
    pub fn session(&self) -> Option<&Session> {
        self.session.as_ref()
    }

    /// A commitment or an amendment.
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

    /// A call. `id` is its record's, under which its outcome will come.
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

    /// Decides a call as the desk does: as it came, then with the judge's answer, then with a person's.
    fn decide_call(&mut self, rules: &Rules, said: &Said<'_>, called: &Called<'_>) -> Now {
        let read = received(said.message, Carrier::ToolsCall);
        let envelope = read.as_ref().map(|read| read.as_ref().map_err(|unreadable| &**unreadable));
        let ticket = called.state.and_then(|state| bound_to(rules, state));
        let shown = called.state.map(|state| Shown {
            ticket: ticket.as_ref(),
            spent: state.spent,
            answer: state.answer,
        });
        // One that came again brought the state that names the question; one that was held is asked about first.
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

    /// An outcome of a call that was admitted again.
    pub fn settle(&mut self, decision: &str, status: Status, tool: &str, cost: Option<&str>) {
        let Some((route, reservation)) = self.reserved.remove(decision) else { return };
        let (Some(rules), Some(session)) = (self.rules.get(&route), self.session.as_mut()) else { return };
        let outcome = Outcome { status, tool, cost };
        let _ = decide::settle(rules, session, &mut self.account, reservation, outcome);
    }

    /// The session's end.
    pub fn close(&mut self) {
        if let Some(session) = self.session.as_mut() {
            let _ = decide::close(session, &mut self.account);
        }
    }

    /// What was so when a message was decided. Answers the reservations of other calls that it was decided beside.
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

/// Under which circumstances a message is decided: before anybody was asked, at the time when it was looked at first.
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

/// What a state was bound to. One that was bound to the rules in force then is now bound to these, for the question would have
/// been asked under them; one that was not, to none.
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

/// The judge's opinion, where none was recorded: what fits what came of the message.
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
