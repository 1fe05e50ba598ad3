//! What a session agreed to, and what it has spent: a value of bounded size, however long the session lives.
//!
//! [`Agreed`] changes only with the commitment and its amendments, [`Running`] with every call; each is a blob of its own,
//! so that a call writes the small one. [`Account`] is what one principal holds across its sessions (readings V-3, V-11,
//! V-33). Nothing here decides: [`decide`](crate::decide) does, and changes these values only when it admits.
//!
//! Not here: where the blobs are kept and when they are durable (`evidence`, the gateway's desk).

mod account;
mod agreed;
mod costs;
mod meters;
mod recent;
mod running;

pub use account::Account;
pub use agreed::{Agreed, Owner};
pub use costs::Costs;
pub use meters::Meters;
pub use recent::{Mark, Recent};
pub use running::{Reservation, ReservationId, Running, Stage};

use serde::{Deserialize, Serialize};

/// One session: its state for as long as its id is remembered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// What was agreed.
    pub agreed: Agreed,
    /// What has happened since.
    pub running: Running,
}

impl Session {
    /// A session that has just been accepted.
    #[must_use]
    pub fn new(agreed: Agreed) -> Self {
        Session { agreed, running: Running::default() }
    }

    /// The number of the next record of its stream: each is given once (reading X-5).
    pub fn take_seq(&mut self) -> u64 {
        self.running.take_seq()
    }

    /// Whether the session still admits calls, but for its budget.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !self.running.is_closed()
    }
}
