//! Settlement of reservations at the end of a call (readings V-12 to V-14).
//!
//! A call that ran is settled with the cost that the tool declared, limited to the operator's cap, otherwise with the
//! operator's cost. If the outcome is unknown, the reserved amounts are settled. Only a call that was provably never
//! forwarded is refunded. A call that was served remains served, regardless of its cost.

use std::collections::BTreeMap;

use jose::json;
use serde_json::value::RawValue;

use crate::rules::Rules;
use crate::session::{Account, Ledgers, Meters, Reservation, ReservationId, Session, Stage};
use decimal::{Decimal, NotDecimal};
use vap::audit::CallStatus;
use vap::limits::MAX_METERS;

use super::budget::{is_metered, metered};
use super::draft::session_meters;
use super::ruling::Flag;

/// The outcome of a call.
#[derive(Clone, Copy, Debug)]
pub struct CallOutcome<'a> {
    /// The status of the call.
    pub status: CallStatus,
    /// The name of the tool under which the call was admitted.
    pub tool: &'a str,
    /// The text of the cost that the tool declared, `_meta.vap.cost` of the upstream server's result.
    pub cost: Option<&'a str>,
}

/// The result of a settlement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// The cost of the call on every declared meter, at most [`MAX_METERS`]: the record's `settled`.
    pub settled: Meters,
    /// The amounts of the session's meters.
    pub meters: Meters,
    /// `true` if the cost exceeded the reservation. Then the response waits until the settlement is durable.
    pub exceeded_reservation: bool,
    /// Irregularities of the cost.
    pub flags: Vec<Flag>,
}

/// Restores a reservation of another call as it was at an earlier decision, in order to reproduce that decision. The
/// principal's account is not changed.
pub fn restore_reservation(session: &mut Session, held: &Reservation) -> ReservationId {
    session.running.reserve(Reservation { by_principal: false, ..held.clone() })
}

/// Settles a call. Returns `None` if the reservation does not exist, because it was settled before or never made, or if
/// the call was not admitted.
pub fn settle(
    rules: &Rules,
    session: &mut Session,
    account: &mut Account,
    id: ReservationId,
    outcome: CallOutcome<'_>,
) -> Option<Settled> {
    if outcome.status == CallStatus::Refused {
        return refund(rules, session, account, id);
    }
    session.running.reservation(id).filter(|held| held.stage == Stage::Admitted)?;
    let held = Ledgers::of(session, account).release(id)?;
    let declared = DeclaredCost::read(rules, outcome.cost, |meter| is_metered(rules, session, meter));
    let cost = match outcome.status {
        CallStatus::Unknown => held.amounts.clone(),
        CallStatus::Executed | CallStatus::Errored | CallStatus::Refused => {
            declared.or_known(rules, outcome.tool)
        }
    };
    let spent = cost.only(|meter| is_metered(rules, session, meter));
    let learned = metered(rules, session)
        .filter(|meter| declared.shows_cost(outcome.status, meter))
        .map(|meter| (meter.to_owned(), cost.of(meter)))
        .collect();
    learn(session, &held, &outcome, &learned);
    Ledgers::of(session, account).spend(&held, &spent);
    let exceeded_reservation = spent.iter().any(|(meter, amount)| *amount > held.amounts.of(meter));
    let mut flags = declared.flags;
    let settled = cost.at_most(MAX_METERS, &spent);
    if settled.len() < cost.len() && !flags.contains(&Flag::CostTooManyMeters) {
        flags.push(Flag::CostTooManyMeters);
    }
    if is_overrun(session) {
        flags.push(Flag::Overrun);
    }
    Some(Settled { settled, meters: session_meters(rules, session), exceeded_reservation, flags })
}

/// The cost of an ended call on one meter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CostOnMeter {
    /// The declared cost, validated and limited to the operator's cap, otherwise the operator's.
    pub amount: Decimal,
    /// `true` if the call shows what its tool costs, so that later calls can be expected to cost as much.
    pub is_learned: bool,
}

/// Returns the cost of an ended call on one meter.
#[must_use]
pub fn cost_on(rules: &Rules, outcome: CallOutcome<'_>, meter: &str) -> CostOnMeter {
    let declared = DeclaredCost::read(rules, outcome.cost, |limited| limited == meter);
    CostOnMeter {
        amount: declared.or_known(rules, outcome.tool).of(meter),
        is_learned: declared.shows_cost(outcome.status, meter),
    }
}

/// Refunds the reservation of a call that was provably never forwarded (reading V-14); it does not count as a call.
/// Returns `None` without such a reservation.
pub fn refund(
    rules: &Rules,
    session: &mut Session,
    account: &mut Account,
    id: ReservationId,
) -> Option<Settled> {
    Ledgers::of(session, account).release(id)?;
    Some(Settled { meters: session_meters(rules, session), ..Settled::default() })
}

/// Refunds the reservations of open questions that can no longer be answered: after a crash, or when a session closes.
pub fn refund_questions(session: &mut Session, account: &mut Account) {
    let asking = session.running.in_flight().iter().filter(|held| held.stage == Stage::Asking);
    for id in asking.map(|held| held.id).collect::<Vec<_>>() {
        Ledgers::of(session, account).release(id);
    }
}

/// Closes a session: it admits nothing more, and its id stays reserved. Returns `false` while calls are in flight,
/// because their outcomes must be recorded before the end of the stream (reading X-5).
pub fn close(session: &mut Session, account: &mut Account) -> bool {
    refund_questions(session, account);
    if !session.running.in_flight().is_empty() {
        return false;
    }
    if !session.running.is_closed() {
        session.running.close();
        account.closed(&session.agreed);
    }
    true
}

/// Stores what a call shows about the cost of its tool (reading V-12). A call of unknown cost with an unknown outcome uses
/// up one of the session's [`BLIND_CALLS`](crate::limits::BLIND_CALLS). `learned` has the limited meters on which the call
/// shows a cost: a tool could declare new names without end.
fn learn(session: &mut Session, held: &Reservation, outcome: &CallOutcome<'_>, learned: &Meters) {
    if outcome.status == CallStatus::Executed || !learned.is_empty() {
        session.running.costs.learn(held.tool, learned);
    } else if outcome.status == CallStatus::Unknown && held.blind {
        session.running.count_blind();
    }
}

fn is_overrun(session: &Session) -> bool {
    let limits = &session.agreed.budget().limits;
    limits.iter().any(|(meter, ceiling)| session.running.used(meter) > *ceiling)
}

/// A declared cost after validation (reading V-13).
#[derive(Debug, Default)]
struct DeclaredCost {
    amounts: Meters,
    flags: Vec<Flag>,
}

impl DeclaredCost {
    /// Validates a declared cost. Limited meters are read first, so that many other meters cannot crowd them out.
    fn read(rules: &Rules, cost: Option<&str>, limited: impl Fn(&str) -> bool) -> DeclaredCost {
        let mut declared = DeclaredCost::default();
        let Some(cost) = cost else { return declared };
        let Some(members) = members(cost) else {
            declared.flag(Flag::CostNotANumber);
            return declared;
        };
        let (first, others): (Vec<_>, Vec<_>) = members.iter().partition(|(meter, _)| limited(meter));
        for (meter, amount) in first.into_iter().chain(others) {
            if !vap::name::is_name(meter) {
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

    /// Returns whether the end of the call shows what its tool costs on a meter: an executed call does, even if the tool
    /// declared no cost, and a failed one only if it declared one on this meter.
    fn shows_cost(&self, status: CallStatus, meter: &str) -> bool {
        match status {
            CallStatus::Executed => true,
            CallStatus::Errored => self.amounts.names(meter),
            CallStatus::Refused | CallStatus::Unknown => false,
        }
    }

    /// Returns the declared cost, completed by the operator's costs on meters without a declaration.
    fn or_known(&self, rules: &Rules, tool: &str) -> Meters {
        let mut cost = rules.costs.of(tool);
        for (meter, amount) in self.amounts.iter() {
            cost.set(meter, *amount);
        }
        cost
    }
}

/// Parses a JSON object into its members; `None` if it has duplicates.
fn members(text: &str) -> Option<BTreeMap<String, Box<RawValue>>> {
    json::read_text(text).ok()
}
