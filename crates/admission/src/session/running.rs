//! The part of a session that changes with every call: spent and reserved amounts, and recent calls.

use serde::{Deserialize, Serialize};

use super::{Costs, Meters, Recent, ShortHash};
use crate::cache::Verdicts;
use crate::limits::MAX_IN_FLIGHT;
use decimal::Decimal;

/// The counters, reservations and recent calls of a session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunningState {
    next_seq: u64,
    next_reservation: u64,
    closed: bool,
    /// Settled calls, including those with an unknown outcome.
    calls: u64,
    settled: Meters,
    in_flight: Vec<Reservation>,
    /// Calls of unknown cost that ended with an unknown outcome.
    blind: u32,
    /// Denials since the last admitted call.
    denied: u64,
    /// The judge's cost so far, on the meter `vap.judge`.
    judged: Decimal,
    /// The highest cost that each tool declared.
    pub(crate) costs: Costs,
    /// The recent calls, for the risk score.
    pub(crate) recent: Recent,
    /// The cache of the judge's verdicts.
    pub(crate) verdicts: Verdicts,
}

/// The number of a [`Reservation`], unique in its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ReservationId(pub u64);

/// The amounts reserved for a call that has not ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reservation {
    /// The reservation's number in the session.
    pub id: ReservationId,
    /// The stage of the call.
    pub stage: Stage,
    /// The hash of the tool's name.
    pub tool: ShortHash,
    /// The reserved amount of each meter.
    pub amounts: Meters,
    /// `true` if the call counts towards `max_calls`. The retry after an upstream server's question does not (reading
    /// V-38).
    pub counted: bool,
    /// `true` if the tool's cost was unknown on a limited meter when the call was decided (reading V-12).
    pub blind: bool,
    /// The amount reserved for the judge.
    pub judge: Decimal,
    /// `true` if the amounts are also reserved in the principal's [`Account`](super::Account) (reading V-3).
    pub by_principal: bool,
}

/// The stage of a call with a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// The judge or a human is being asked. The call is not admitted yet; after a crash the reservation is refunded.
    Asking,
    /// The call is admitted; only its outcome ends the reservation.
    Admitted,
}

impl RunningState {
    /// Takes the next sequence number of the session's record stream.
    pub(super) fn take_seq(&mut self) -> u64 {
        let seq = self.next_seq;
        self.next_seq += 1;
        seq
    }

    /// Returns `true` if the session was closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    pub(crate) fn close(&mut self) {
        self.closed = true;
    }

    /// Returns the number of admitted calls, including those in flight.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.calls + self.in_flight.iter().map(|held| u64::from(held.counted)).sum::<u64>()
    }

    /// Returns the number of denials since the last admitted call; a loop of denials is a risk signal (reading V-11).
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

    /// Returns the settled and reserved amount of a meter, the maximum that it may have reached.
    #[must_use]
    pub fn used(&self, meter: &str) -> Decimal {
        let reserved = self.in_flight.iter().map(|held| held.amounts.of(meter));
        reserved.fold(self.settled.of(meter), Decimal::saturating_add)
    }

    /// Returns the settled amount of each meter.
    #[must_use]
    pub fn settled(&self) -> &Meters {
        &self.settled
    }

    /// Returns the settled and reserved cost of the judge.
    #[must_use]
    pub fn judge_used(&self) -> Decimal {
        let reserved = self.in_flight.iter().map(|held| held.judge);
        reserved.fold(self.judged, Decimal::saturating_add)
    }

    pub(crate) fn bill_judge(&mut self, cost: Decimal) {
        self.judged = self.judged.saturating_add(cost);
    }

    /// Returns the reservations of calls that have not ended.
    #[must_use]
    pub fn in_flight(&self) -> &[Reservation] {
        &self.in_flight
    }

    /// Returns the reservation with this number.
    #[must_use]
    pub fn reservation(&self, id: ReservationId) -> Option<&Reservation> {
        self.in_flight.iter().find(|held| held.id == id)
    }

    /// Returns `true` if fewer than [`MAX_IN_FLIGHT`] calls are in flight.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.in_flight.len() < MAX_IN_FLIGHT
    }

    /// Returns `true` if a call of the tool is in flight whose cost is unknown.
    #[must_use]
    pub fn is_blind(&self, tool: ShortHash) -> bool {
        self.in_flight.iter().any(|held| held.blind && held.tool == tool)
    }

    /// Returns the number of calls of unknown cost that ended with an unknown outcome.
    #[must_use]
    pub fn blind(&self) -> u32 {
        self.blind
    }

    /// Adds a reservation under the next number, and returns that number.
    pub(crate) fn reserve(&mut self, draft: Reservation) -> ReservationId {
        let id = ReservationId(self.next_reservation);
        self.next_reservation += 1;
        self.in_flight.push(Reservation { id, ..draft });
        id
    }

    /// Removes a reservation without settling it.
    pub(super) fn release(&mut self, id: ReservationId) -> Option<Reservation> {
        let at = self.in_flight.iter().position(|held| held.id == id)?;
        Some(self.in_flight.remove(at))
    }

    /// Settles a call: counts it and adds its cost for good.
    pub(super) fn spend(&mut self, held: &Reservation, spent: &Meters) {
        self.calls += u64::from(held.counted);
        self.settled.add(spent);
    }

    pub(crate) fn count_blind(&mut self) {
        self.blind = self.blind.saturating_add(1);
    }
}
