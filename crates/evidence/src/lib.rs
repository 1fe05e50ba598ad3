//! What a gateway's database promises, in words that bind every implementation.
//!
//! To this crate a *stream* is a name with a state that moves by compare-and-swap, and a sequence of *records*
//! numbered from 0 without gaps. A record is a signed statement with what belongs to it; it waits in the
//! *outbox* until the log has it. State, records and outbox move together, in [`EvidenceStore::commit`] and nowhere
//! else: what was answered `Ok` survives power loss, so a call may be forwarded and a verdict given.
//!
//! One handle is one *instance*: one run of one gateway process. What an instance decided and has not yet settled is
//! its own while its lease lasts, and afterwards anybody's to settle as unknown.
//!
//! Not here: what a state means and whether a call is admitted (`admission`), signatures, the log, and SQL
//! (`evidence-sqlite`, `evidence-postgres`).

mod beside;
#[cfg(feature = "contract")]
#[allow(clippy::unwrap_used)]
pub mod contract;
mod error;
mod failing;
mod group;
pub mod limits;
mod memory;
mod model;

use std::time::Duration;

use async_trait::async_trait;
use merkle::EntryDigest;

pub use beside::Beside;
pub use error::{CommitError, StoreError};
pub use failing::{Call, Failing, Fault};
pub use group::{Group, Move};
pub use memory::Memory;
pub use model::*;

/// One gateway's evidence in one database. A handle is bound to an instance when it is opened.
///
/// Every method may be called concurrently from many tasks. An `Err` means that nothing was changed, with one
/// exception: a connection that dies can swallow the answer of a write that happened. A commit says so with
/// [`CommitError::MayHaveHappened`]; every other write may be repeated. What a call costs does not grow with the number
/// of streams, of records or of what waits in the outbox.
#[async_trait]
pub trait EvidenceStore: Send + Sync + 'static {
    /// The instance that this handle is: a name that no earlier run has had.
    fn instance(&self) -> &str;

    /// The states of these streams: one answer per name, in order. `None`: there is no such stream, or no longer.
    async fn streams(&self, names: &[&str]) -> Result<Vec<Option<Kept>>, StoreError>;

    /// Which of these were claimed before: one answer per claim, in order.
    async fn claimed(&self, claims: &[Claim]) -> Result<Vec<bool>, StoreError>;

    /// Moves streams, adds records to them and to the outbox, takes claims, opens and settles decisions: all of it or
    /// nothing. Once `Ok`, all of it survives power loss.
    ///
    /// Several changes of one stream are taken in the order given, each from the version that the one before it made.
    /// [`CommitError::Conflict`] names every stream that is at another version or holds one of the claims: load it and
    /// decide again. Changes that contradict themselves ([`Group::of`]), records out of sequence and records that are
    /// there already are [`StoreError::Refused`].
    async fn commit(&self, changes: &[Change]) -> Result<(), CommitError>;

    /// After [`CommitError::MayHaveHappened`], with the same changes: waits until the commit in doubt has ended, and
    /// says whether it happened. Once this answers, it can no longer happen by itself, and may be sent again if it did not.
    async fn happened(&self, changes: &[Change]) -> Result<bool, StoreError>;

    /// Up to `limit` records that this instance has yet to deliver to the log, oldest first, without the stuck ones.
    ///
    /// They are this instance's own, in the order in which they were committed (so a stream's in order of `seq`), and
    /// those of instances whose lease is over.
    async fn pending(&self, limit: usize) -> Result<Vec<Pending>, StoreError>;

    /// Takes records out of the outbox, and keeps where they are in the log. What is unknown or was delivered before is
    /// passed over, but for a receipt, which is kept if there was none. A crash may undo this: a record is delivered at
    /// least once.
    async fn delivered(&self, deliveries: &[Delivered]) -> Result<(), StoreError>;

    /// The log refuses this record for good: it stays in the outbox, counted, and is not pending until
    /// [`unstick`](Self::unstick).
    async fn stuck(&self, id: &EntryDigest, why: &str) -> Result<(), StoreError>;

    /// Up to `limit` of the stuck records, oldest first, with the reason.
    async fn stuck_records(&self, limit: usize) -> Result<Vec<Stuck>, StoreError>;

    /// Lets every stuck record be pending again, once its cause is gone; answers how many there were. They wait as they did,
    /// but the backlog's age leaves them out: it passes over as many of them as there are.
    async fn unstick(&self) -> Result<u64, StoreError>;

    /// What waits in the outbox, of all instances.
    async fn backlog(&self) -> Result<Backlog, StoreError>;

    /// Up to `limit` decisions that were served, have no outcome, and belong to an instance whose lease is over: oldest
    /// first. Their outcome is unknown; committing it with `settled` takes them off this list.
    async fn orphans(&self, limit: usize) -> Result<Vec<Open>, StoreError>;

    /// A record by its id.
    async fn record(&self, id: &EntryDigest) -> Result<Option<Stored>, StoreError>;

    /// Up to `limit` records of a stream from `from` on, in order of `seq`.
    async fn records(&self, stream: &str, from: u64, limit: usize) -> Result<Vec<Stored>, StoreError>;

    /// Up to `limit` streams that are not closed and whose `keep_until` is `at` or earlier, in order of that time.
    async fn due(&self, at: u64, limit: usize) -> Result<Vec<Listed>, StoreError>;

    /// Up to `limit` streams whose names come after `after`, in order of name.
    async fn list(&self, after: Option<&str>, limit: usize) -> Result<Vec<Listed>, StoreError>;

    /// Forgets what may be forgotten, at most `limit` of each kind, and answers how many of each.
    ///
    /// A record goes when it is delivered, was made before `horizon.records`, and is settled or needs no outcome; the
    /// oldest are looked at first, and what comes after a younger one may wait for it. A stream goes when it is closed,
    /// its `keep_until` is before `horizon.streams`, and none of its records is left: a name never numbers its records
    /// anew while older ones are there. Its claims go with it. Once `Ok`, the database no longer shows what went; the file
    /// system may keep its bytes until they are written over.
    async fn prune(&self, horizon: Horizon, limit: usize) -> Result<Pruned, StoreError>;

    /// Says that this instance lives, for as long as `lasts` from now by the database's clock.
    async fn renew(&self, lasts: Duration) -> Result<(), StoreError>;

    /// Ends this instance's lease: what it left open is anybody's at once.
    async fn leave(&self) -> Result<(), StoreError>;

    /// Refuses a database that would forget a commit it acknowledged (fsync off and the like).
    async fn check_durability(&self) -> Result<(), StoreError>;
}
