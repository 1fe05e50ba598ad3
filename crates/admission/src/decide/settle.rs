//! What became of a call: its reservation is settled, or given back (readings V-12 to V-14).
//!
//! What ran is settled with the cost that the tool declared, capped by the operator, or else with what the operator knows. Of
//! what nobody knows, the reservation stays spent for good. Only a call that provably never left is given back. A call that
//! was served stays served, whatever it cost.

use std::collections::BTreeMap;

use jose::json;
use serde_json::value::RawValue;

use crate::decimal::{Decimal, NotDecimal};
use crate::limits::MAX_METERS;
use crate::rules::Rules;
use crate::session::{Account, Meters, Reservation, ReservationId, Session, Stage};

use super::budget::{is_metered, metered};
use super::draft::standing;
use super::ruling::Flag;

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It ran.
    Executed,
    /// It ran, and failed.
    Errored,
    /// It was not forwarded after all.
    Refused,
    /// Nobody knows.
    Unknown,
}

impl Status {
    /// The record's word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Status::Executed => "executed",
            Status::Errored => "errored",
            Status::Refused => "refused",
            Status::Unknown => "unknown",
        }
    }
}

/// What came of a call.
#[derive(Clone, Copy, Debug)]
pub struct Outcome<'a> {
    /// How it ended.
    pub status: Status,
    /// The tool, by the name under which it was admitted.
    pub tool: &'a str,
    /// The text of the cost that the tool declared: `result._meta.vap.cost` of the upstream.
    pub cost: Option<&'a str>,
}

/// What a settlement changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// What the call cost, on every meter that it declared, as far as a record holds them: the record's `settled`.
    pub settled: Meters,
    /// What the session's meters stand at.
    pub meters: Meters,
    /// Whether it cost more than was reserved: then the answer waits until that is durable.
    pub exceeded_reservation: bool,
    /// What is odd about the cost.
    pub flags: Vec<Flag>,
}

/// Puts a reservation of another call, as it was when a decision was made, into the session: for making that decision again.
/// What the principal holds stays as it is.
pub fn hold_again(session: &mut Session, held: &Reservation) -> ReservationId {
    session.running.reserve(Reservation { by_principal: false, ..held.clone() })
}

/// Settles a call. None if there is no such reservation: it was settled before, or never was.
pub fn settle(
    rules: &Rules,
    session: &mut Session,
    account: &mut Account,
    id: ReservationId,
    outcome: Outcome<'_>,
) -> Option<Settled> {
    if outcome.status == Status::Refused {
        return refund(rules, session, account, id);
    }
    session.running.reservation(id).filter(|held| held.stage == Stage::Admitted)?;
    let held = session.running.release(id)?;
    if held.by_principal {
        account.spent.release(&held);
    }
    let declared = Declared::read(rules, outcome.cost, |meter| is_metered(rules, session, meter));
    let cost = match outcome.status {
        Status::Unknown => held.amounts.clone(),
        Status::Executed | Status::Errored | Status::Refused => declared.or_known(rules, outcome.tool),
    };
    let spent = cost.only(|meter| is_metered(rules, session, meter));
    let learned = metered(rules, session).map(|meter| (meter.to_owned(), cost.of(meter))).collect();
    learn(session, &held, &outcome, &declared, &learned);
    session.running.spend(&held, &spent);
    if held.by_principal {
        account.spent.spend(&held, &spent);
    }
    let exceeded_reservation = spent.iter().any(|(meter, amount)| *amount > held.amounts.of(meter));
    let mut flags = declared.flags;
    let settled = cost.at_most(MAX_METERS, &spent);
    if settled.len() < cost.len() && !flags.contains(&Flag::CostTooManyMeters) {
        flags.push(Flag::CostTooManyMeters);
    }
    if is_overrun(session) {
        flags.push(Flag::Overrun);
    }
    Some(Settled { settled, meters: standing(rules, session), exceeded_reservation, flags })
}

/// Gives back the reservation of a call that provably never left (reading V-14): it was no call.
pub fn refund(
    rules: &Rules,
    session: &mut Session,
    account: &mut Account,
    id: ReservationId,
) -> Option<Settled> {
    give_back(session, account, id)?;
    Some(Settled { meters: standing(rules, session), ..Settled::default() })
}

/// Gives back what is held for questions that nobody will answer any more: after a crash, or at a close.
pub fn refund_questions(session: &mut Session, account: &mut Account) {
    let asking = session.running.in_flight().iter().filter(|held| held.stage == Stage::Asking);
    for id in asking.map(|held| held.id).collect::<Vec<_>>() {
        give_back(session, account, id);
    }
}

/// Closes a session: it admits nothing any more, and its id stays taken. False while calls are under way, for their outcomes
/// belong before the end of the stream (reading X-5); their answers have to be recorded first.
pub fn close(session: &mut Session, account: &mut Account) -> bool {
    refund_questions(session, account);
    if !session.running.in_flight().is_empty() {
        return false;
    }
    if !session.running.is_closed() {
        session.running.close();
        account.closed(session.agreed.session_id());
    }
    true
}

pub(super) fn give_back(session: &mut Session, account: &mut Account, id: ReservationId) -> Option<()> {
    let held = session.running.release(id)?;
    if held.by_principal {
        account.spent.release(&held);
    }
    Some(())
}

/// A tool that answered has told what it costs. One that failed without a word about it has not, and one of which nobody knows how
/// the call ended has used up a bit of our patience (reading V-12). What is remembered is what is metered, and nothing else: a
/// tool can declare new names for ever.
fn learn(
    session: &mut Session,
    held: &Reservation,
    outcome: &Outcome<'_>,
    declared: &Declared,
    learned: &Meters,
) {
    let told = !declared.amounts.is_empty();
    match outcome.status {
        Status::Executed => session.running.costs.learn(held.tool, learned),
        Status::Errored if told => session.running.costs.learn(held.tool, learned),
        Status::Errored | Status::Refused => {}
        Status::Unknown if held.blind => session.running.count_blind(),
        Status::Unknown => {}
    }
}

fn is_overrun(session: &Session) -> bool {
    let limits = &session.agreed.budget().limits;
    limits.iter().any(|(meter, ceiling)| session.running.used(meter) > *ceiling)
}

/// A declared cost that was looked at (reading V-13).
#[derive(Debug, Default)]
struct Declared {
    amounts: Meters,
    flags: Vec<Flag>,
}

impl Declared {
    /// Reads a cost. The meters that somebody limits are looked at first, so that no crowd of others hides them.
    fn read(rules: &Rules, cost: Option<&str>, limited: impl Fn(&str) -> bool) -> Declared {
        let mut declared = Declared::default();
        let Some(cost) = cost else { return declared };
        let Some(members) = members(cost) else {
            declared.flag(Flag::CostNotANumber);
            return declared;
        };
        let (first, others): (Vec<_>, Vec<_>) = members.iter().partition(|(meter, _)| limited(meter));
        for (meter, amount) in first.into_iter().chain(others) {
            if !crate::record::is_name(meter) {
                declared.flag(Flag::CostNotANumber);
            } else if declared.amounts.len() == MAX_METERS {
                declared.flag(Flag::CostTooManyMeters);
            } else {
                declared.add(rules, meter, amount.get());
            }
        }
        declared
    }

    fn add(&mut self, rules: &Rules, meter: &str, amount: &str) {
        let amount = match Decimal::read_rounding_up(amount) {
            Ok((amount, true)) => amount,
            Ok((amount, false)) => {
                self.flag(Flag::CostRounded);
                amount
            }
            Err(NotDecimal::Negative) => {
                self.flag(Flag::CostNegative);
                Decimal::ZERO
            }
            Err(_) => return self.flag(Flag::CostNotANumber),
        };
        let capped = rules.costs.cap.names(meter) && amount > rules.costs.cap.of(meter);
        if capped {
            self.flag(Flag::CostCapped);
        }
        self.amounts.set(meter, if capped { rules.costs.cap.of(meter) } else { amount });
    }

    fn flag(&mut self, flag: Flag) {
        if !self.flags.contains(&flag) {
            self.flags.push(flag);
        }
    }

    /// What the tool declared; on the meters of which it says nothing, what the operator knows.
    fn or_known(&self, rules: &Rules, tool: &str) -> Meters {
        let mut cost = rules.costs.of(tool);
        for (meter, amount) in self.amounts.iter() {
            cost.set(meter, *amount);
        }
        cost
    }
}

/// The members of an object without duplicates.
fn members(text: &str) -> Option<BTreeMap<String, Box<RawValue>>> {
    json::read_text(text).ok()
}
