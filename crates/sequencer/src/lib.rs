//! The sequencer orders submissions, commits them and publishes heads. It is the one place where a log's history
//! could fork, and the only writer of its tree.
//!
//! A [`Handle`] takes submissions that were admitted. One process at a time leads: it makes batches of the queued
//! submissions, commits each in one transaction that moves the head by compare-and-swap, raises the pin, signs the
//! head once for each kind, and answers with each leaf's path, all from memory. The other processes store admitted
//! submissions in a durable inbox and answer once they are placed.
//!
//! Modules:
//! * `machine`: events in, effects out; the only way to a signature is through a commit and the pin. No time, no
//!   tasks, no I/O.
//! * `lead`, `follow`, `driver`: the task that performs the effects, for each role.
//! * `recover`: the checks before leading, and taking over, which reads a few rows, at most one tile per level and
//!   the pin.
//! * [`pin`]: the newest signed head, stored outside of the database, so that a database that was restored from an
//!   old copy is noticed; `outside`: the witnesses, who notice it too; `clock`: checks of the wall clock.
//!
//! Not here: the format of statements and the policy (`scitt`, `registration`), the format of signatures (the
//! given [`HeadSigner`]), SQL (`store-*`), HTTP.

mod activity;
mod answer;
mod budget;
mod clock;
mod command;
mod context;
mod crash;
mod draft;
mod driver;
mod end_of_leading;
mod follow;
mod handle;
mod inbox;
mod lead;
mod leftover;
mod limits;
mod machine;
mod outside;
mod parts;
pub mod pin;
mod pool;
mod recover;
mod signature_writer;
#[cfg(test)]
mod simulation;
mod spans;
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
pub use parts::{HeadSigner, Observer, Redecide, Redecision, RefuseOutdated, SequencerParts, SignFailed};
pub use pin::{PinFile, PinStore};
pub use spans::SPAN_TARGET;
pub use submission::{ClockCorrection, Submission, TimeWindow, UndecodableSubmission};
pub use supervision::Supervisor;

/// Entry point: starts sequencers.
pub struct Sequencer;

impl Sequencer {
    /// Opens the log and starts to follow or to lead. Returns once the first role is settled and, when leading,
    /// the newest head is published.
    ///
    /// A database that must not be sequenced is not an error: the role is then [`Role::Halted`], and reads continue.
    pub async fn start(parts: SequencerParts) -> Result<Handle, StartError> {
        driver::start(parts).await
    }
}
