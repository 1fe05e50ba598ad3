//! Order, commit, publish: the one place where a log's history could fork, and the only writer of
//! its tree.
//!
//! A [`Handle`] takes submissions that were admitted. One process at a time leads: it makes
//! batches of what queued, commits each in one transaction that moves the head by compare-and-swap,
//! raises the pin, signs the head once for each kind, and answers with each leaf's path, all out of
//! memory. The others put what they admit into a durable inbox and tell when it has its place.
//!
//! What holds it together, and where to read it:
//! * `machine`: events in, effects out; the only road to a signature leads through a commit and the
//!   pin. No time, no tasks, no I/O.
//! * `lead`, `follow`, `driver`: the task that performs the effects, for each role.
//! * `recover`: who may lead, and taking over, which reads a few rows, at most one tile per level and the pin.
//! * [`pin`]: what was signed, outside of the database, so that a database that went back is noticed;
//!   `outside`: the witnesses, who notice it too; `clock`: whether the wall clock is right.
//!
//! Not here: what a statement is and who may enter (`scitt`, `registration`), what the signatures
//! look like ([`HeadSigner`] is given), SQL (`store-*`), HTTP.

mod activity;
mod answer;
mod budget;
mod clock;
mod crash;
mod draft;
mod driver;
mod follow;
mod handle;
mod inbox;
mod keeper;
mod lead;
mod leftover;
mod limits;
mod machine;
mod outside;
mod parts;
pub mod pin;
mod pool;
mod recover;
#[cfg(test)]
mod simulation;
mod submission;
mod supervision;

pub use activity::Step;
pub use answer::{Halt, Placement, PublishedHead, Remedy, Role, Status, SubmitError};
pub use clock::{Clock, ClockOpinion, Now, SystemClock};
pub use driver::StartError;
pub use handle::Handle;
pub use inbox::Delay;
pub use limits::{CLOCK_REFERENCE, CLOCK_TOLERANCE, INBOX_BOUNDS, Limits};
pub use outside::{Confirmation, Witnesses};
pub use parts::{HeadSigner, NeverAgain, Observer, Parts, Redecide, Redecision, SignFailed};
pub use pin::{PinFile, PinStore};
pub use submission::{ClockCorrection, Submission, TimeWindow, Unreadable};
pub use supervision::Supervisor;

/// Starts sequencers.
pub struct Sequencer;

impl Sequencer {
    /// Opens the log and starts to follow or to lead. Answers once the first role is settled and,
    /// when leading, the newest head is published.
    ///
    /// A database that must not be sequenced is not an error: the role is then [`Role::Halted`],
    /// and reads can go on.
    pub async fn start(parts: Parts) -> Result<Handle, StartError> {
        driver::start(parts).await
    }
}
