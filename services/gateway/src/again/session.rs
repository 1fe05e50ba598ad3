//! One session, lived through again.

use std::collections::HashMap;
use std::sync::Arc;

use admission::clarify::Answer;
use admission::decide::{
    self, Before, Books, Call, CallRuling, Declared, Dice, Finding, MessageRuling, Outcome, Ruling, Scene,
    Semantic, Status,
};
use admission::decimal::Decimal;
use admission::message::MessageType;
use admission::message::slot::{self, Carrier, Received, Unreadable};
use admission::principal::Caller;
use admission::risk::Degree;
use admission::rules::Rules;
use admission::session::{Account, ReservationId, Session};
use admission::verdict::{Trigger, VerdictKind};
use jiff::Timestamp;

use crate::config::Config;
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
    /// When.
    pub now: Timestamp,
    /// Chance.
    pub sample: u32,
    /// Its VAP message, as it came.
    pub message: Option<&'a str>,
    /// What a person said to it.
    pub answer: Option<Answer>,
    /// What came of it, as far as the judge's word has to be guessed from it.
    pub came_to: Option<VerdictKind>,
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
}

impl Again {
    /// Under the rules of a configuration.
    #[must_use]
    pub fn under(config: &Config) -> Self {
        let rules = rules_of(config);
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
        let mut before = Before { answer: said.answer, ..Before::default() };
        loop {
            let declared = Declared { message, replayed: false, before };
            let scene = scene(&rules, said);
            let books = Books { session: &mut self.session, account: &mut self.account };
            let ruling = match kind {
                MessageType::ScopeAmendment => decide::amendment(&scene, books, &declared),
                MessageType::ScopeCommitment | MessageType::IntentCall => {
                    decide::commitment(&scene, books, &declared)
                }
            };
            match ruling {
                MessageRuling::Ruled(ruling) => {
                    if self.owner.is_none() && self.session.is_some() {
                        self.owner = Some((said.route.to_owned(), said.caller.clone()));
                    }
                    return Now::Ruled(ruling);
                }
                MessageRuling::Judge { held, .. } => {
                    before = Before { held, judged: Some(judged(said.came_to)), ..before };
                }
            }
        }
    }

    /// A call. `id` is its record's, under which its outcome will come.
    pub fn call(&mut self, said: &Said<'_>, called: &Called<'_>, id: Option<&str>) -> Now {
        let Some(rules) = self.rules.get(said.route).cloned() else { return Now::NoRoute };
        let read = received(said.message, Carrier::ToolsCall);
        let envelope = read.as_ref().map(|read| read.as_ref().map_err(|unreadable| &**unreadable));
        let mut before = Before { answer: said.answer, ..Before::default() };
        loop {
            let call = Call {
                envelope,
                tool: called.tool,
                header: called.header,
                arguments: called.arguments,
                can_ask: true,
                replayed: false,
                before,
            };
            let scene = scene(&rules, said);
            let books = Books { session: &mut self.session, account: &mut self.account };
            match decide::call(&scene, books, &call) {
                CallRuling::Ruled(ruling) => {
                    if let (Some(id), Some(reservation)) = (id, ruling.reservation) {
                        self.reserved.insert(id.to_owned(), (said.route.to_owned(), reservation));
                    }
                    return Now::Ruled(ruling);
                }
                CallRuling::Wait => return Now::Waits,
                CallRuling::Judge { held, .. } => {
                    before = Before { held: Some(held), judged: Some(judged(said.came_to)), ..before };
                }
                CallRuling::Ask { asked, held } => {
                    self.give_back(&rules, held);
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

    fn give_back(&mut self, rules: &Rules, held: Option<ReservationId>) {
        if let (Some(held), Some(session)) = (held, self.session.as_mut()) {
            let _ = decide::refund(rules, session, &mut self.account, held);
        }
    }
}

fn scene<'a>(rules: &'a Rules, said: &'a Said<'_>) -> Scene<'a> {
    let dice = Dice { sample: said.sample, secret: [0; 32] };
    Scene { rules, caller: said.caller, now: said.now, dice }
}

fn received(message: Option<&str>, carrier: Carrier) -> Option<Result<Received, Box<Unreadable>>> {
    slot::read(message, None, carrier).transpose()
}

/// The judge's word, guessed from what came of it.
fn judged(came_to: Option<VerdictKind>) -> Semantic {
    let served = matches!(came_to, None | Some(VerdictKind::Served | VerdictKind::Downgraded));
    Semantic {
        finding: if served { Finding::Consistent } else { Finding::Inconsistent },
        confidence: Degree::ONE,
        trigger: Trigger::RandomSample,
        cost: Decimal::ZERO,
    }
}
