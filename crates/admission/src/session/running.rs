//! What changes with every call: what is spent, what is reserved, and what is remembered of the calls of late.

use serde::{Deserialize, Serialize};

use super::{Costs, Mark, Meters, Recent};
use crate::cache::Verdicts;
use crate::decimal::Decimal;
use crate::limits::MAX_IN_FLIGHT;

/// What a session has spent and reserved, and what it remembers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Running {
    next_seq: u64,
    next_reservation: u64,
    closed: bool,
    /// Calls that went to the upstream and ended, or that nobody knows about.
    calls: u64,
    settled: Meters,
    in_flight: Vec<Reservation>,
    /// Calls of unknown cost that ended without telling what they cost.
    blind: u32,
    /// Calls that were denied since the last that was not.
    denied: u64,
    /// What the judge cost, on the meter `vap.judge`.
    judged: Decimal,
    /// What the tools turned out to cost.
    pub(crate) costs: Costs,
    /// The calls of late.
    pub(crate) recent: Recent,
    /// What a judge found consistent.
    pub(crate) verdicts: Verdicts,
}

/// A reservation of one session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ReservationId(pub u64);

/// What a call that is not over yet may turn out to have spent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reservation {
    /// Its number in the session.
    pub id: ReservationId,
    /// How far the call is.
    pub stage: Stage,
    /// The tool.
    pub tool: Mark,
    /// How much is reserved.
    pub amounts: Meters,
    /// Whether it counts as a call: the retry of an upstream's own question does not, a second time (reading V-38).
    pub counted: bool,
    /// Whether nobody knew what the tool costs (reading V-12).
    pub blind: bool,
    /// What is reserved for the judge.
    pub judge: Decimal,
    /// Whether it is reserved with the principal too (reading V-3).
    pub by_principal: bool,
}

/// How far a call with a reservation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// A judge or a person is being asked. Not admitted yet: after a crash it is refunded.
    Asking,
    /// Admitted: only an outcome ends it.
    Admitted,
}

impl Running {
    /// The number of the next record: each is given once.
    pub(super) fn take_seq(&mut self) -> u64 {
        let seq = self.next_seq;
        self.next_seq += 1;
        seq
    }

    /// Whether the session was closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    pub(crate) fn close(&mut self) {
        self.closed = true;
    }

    /// Calls that were admitted, those under way among them.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.calls + self.in_flight.iter().map(|held| u64::from(held.counted)).sum::<u64>()
    }

    /// Calls that were denied since the last that was not: a loop of denials is a signal (reading V-11).
    #[must_use]
    pub fn denied_in_a_row(&self) -> u64 {
        self.denied
    }

    pub(crate) fn count_denied(&mut self) {
        self.denied = self.denied.saturating_add(1);
    }

    pub(crate) fn end_denials(&mut self) {
        self.denied = 0;
    }

    /// What a meter may have reached at most: settled, and reserved.
    #[must_use]
    pub fn used(&self, meter: &str) -> Decimal {
        let reserved = self.in_flight.iter().map(|held| held.amounts.of(meter));
        reserved.fold(self.settled.of(meter), Decimal::saturating_add)
    }

    /// What is settled.
    #[must_use]
    pub fn settled(&self) -> &Meters {
        &self.settled
    }

    /// What the judge cost, and may be costing now.
    #[must_use]
    pub fn judge_used(&self) -> Decimal {
        let reserved = self.in_flight.iter().map(|held| held.judge);
        reserved.fold(self.judged, Decimal::saturating_add)
    }

    pub(crate) fn bill_judge(&mut self, cost: Decimal) {
        self.judged = self.judged.saturating_add(cost);
    }

    /// Calls that are not over.
    #[must_use]
    pub fn in_flight(&self) -> &[Reservation] {
        &self.in_flight
    }

    /// One of them.
    #[must_use]
    pub fn reservation(&self, id: ReservationId) -> Option<&Reservation> {
        self.in_flight.iter().find(|held| held.id == id)
    }

    /// Whether there is room for another call.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.in_flight.len() < MAX_IN_FLIGHT
    }

    /// Whether a call of the tool is under way of which nobody knows what it costs.
    #[must_use]
    pub fn is_blind(&self, tool: Mark) -> bool {
        self.in_flight.iter().any(|held| held.blind && held.tool == tool)
    }

    /// How many calls of unknown cost ended, or may end, without telling what they cost.
    #[must_use]
    pub fn blind(&self) -> u32 {
        self.blind
    }

    /// Adds a reservation under the next number.
    pub(crate) fn reserve(&mut self, draft: Reservation) -> ReservationId {
        let id = ReservationId(self.next_reservation);
        self.next_reservation += 1;
        self.in_flight.push(Reservation { id, ..draft });
        id
    }

    /// Takes a reservation out, as if it had never been.
    pub(crate) fn release(&mut self, id: ReservationId) -> Option<Reservation> {
        let at = self.in_flight.iter().position(|held| held.id == id)?;
        Some(self.in_flight.remove(at))
    }

    /// Ends a call: what it spent is settled for good.
    pub(crate) fn spend(&mut self, held: &Reservation, spent: &Meters) {
        self.calls += u64::from(held.counted);
        self.settled.add(spent);
    }

    pub(crate) fn count_blind(&mut self) {
        self.blind = self.blind.saturating_add(1);
    }
}
