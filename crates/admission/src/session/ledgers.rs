//! The ledgers of a call: its session's, and its principal's where the operator limits all sessions of a principal
//! together (reading V-3).
//!
//! Not here: the limits, and the amounts that a call reserves (`decide::budget`).

use super::account::Spent;
use super::{Account, Meters, Reservation, ReservationId, RunningState, Session};

/// The ledgers of a session's calls. Each reservation is on the session's ledger and, if
/// [`by_principal`](Reservation::by_principal) is set, on the principal's.
pub(crate) struct Ledgers<'a> {
    session: &'a mut RunningState,
    principal: &'a mut Spent,
}

impl<'a> Ledgers<'a> {
    /// Returns the ledgers of a session and its principal's account.
    pub fn of(session: &'a mut Session, account: &'a mut Account) -> Self {
        Ledgers { session: &mut session.running, principal: &mut account.spent }
    }

    /// Adds a reservation under the session's next number, and returns that number.
    pub fn reserve(&mut self, draft: Reservation) -> ReservationId {
        if draft.by_principal {
            self.principal.reserve(&draft);
        }
        self.session.reserve(draft)
    }

    /// Removes a reservation without settling it. Returns `None` if there is none of this number.
    pub fn release(&mut self, id: ReservationId) -> Option<Reservation> {
        let held = self.session.release(id)?;
        if held.by_principal {
            self.principal.release(&held);
        }
        Some(held)
    }

    /// Settles a call whose reservation was released: counts it and adds its cost for good.
    pub fn spend(&mut self, held: &Reservation, spent: &Meters) {
        self.session.spend(held, spent);
        if held.by_principal {
            self.principal.spend(held, spent);
        }
    }
}
