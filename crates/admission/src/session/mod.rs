//! Session state: the agreed commitment and the amounts spent. Its size is bounded for the whole life of a session.
//!
//! [`AgreedTerms`] changes only with the commitment and its amendments, [`RunningState`] with every call. Each is stored as a
//! blob of its own, so that a call writes only the small one. [`Account`] is the state of one principal across its
//! sessions (readings V-3, V-11, V-33). Nothing here decides: [`decide`](crate::decide) does, and changes these values
//! only when it admits a call or message.
//!
//! Not here: the storage of the blobs and their durability (the `evidence` crate and the gateway).

mod account;
mod agreed;
mod costs;
mod ledgers;
mod meters;
mod recent;
mod running;

pub use account::Account;
pub use agreed::{AgreedTerms, Owner};
pub use costs::Costs;
pub(crate) use ledgers::Ledgers;
pub use meters::Meters;
pub use recent::{Recent, ShortHash};
pub use running::{Reservation, ReservationId, RunningState, Stage};

use serde::{Deserialize, Serialize};

/// The state of one session, kept as long as its id is remembered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// The commitment in force and its owner.
    pub agreed: AgreedTerms,
    /// The counters and reservations that change with every call.
    pub running: RunningState,
}

impl Session {
    /// Creates the state of a session whose commitment was just accepted.
    #[must_use]
    pub fn new(agreed: AgreedTerms) -> Self {
        Session { agreed, running: RunningState::default() }
    }

    /// Takes the next sequence number of the session's record stream; each is used once (reading X-5).
    pub fn take_seq(&mut self) -> u64 {
        self.running.take_seq()
    }

    /// Returns `true` if the session is not closed. Its budget may still be used up.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !self.running.is_closed()
    }
}
