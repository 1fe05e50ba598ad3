//! The pin in this process: its storage in a state directory, and [`adopt`], which sets it by hand.
//!
//! [`store`] defines the pin and the promises of its storage ([`PinStore`]); a pin in a second PostgreSQL is in
//! `store-postgres`.
//!
//! * `protocol`: claims and raises a pin without a lock, so that a process that is paused meanwhile does not block
//!   the others;
//! * `file`: the files of a state directory; `slots`: their content.

mod file;
pub(crate) mod protocol;
mod slots;

use merkle::{RootHash, TreeSize};
use store::{Lease, Lifecycle, SequencerStore, StoreError};

pub use file::PinFile;
pub use store::{Pin, PinError, PinStore};

use crate::limits::{ADOPT_ATTEMPTS, ADOPT_PAUSE};
use crate::recover::{newest_signed, raise_epoch};

/// Reason why a head was not adopted.
#[derive(Debug, thiserror::Error)]
pub enum AdoptError {
    /// The database has no head of this size.
    #[error("the database has no head of size {0}")]
    NoSuchHead(TreeSize),
    /// The database has another root at this size.
    #[error("at size {size} the database has root {database}")]
    OtherRoot {
        /// Size of the named head.
        size: TreeSize,
        /// Root in the database.
        database: RootHash,
    },
    /// The database has a signature over a larger head.
    #[error("the database has a head signed at size {signed}: size {size} is not the newest")]
    NotNewest {
        /// Size of the named head.
        size: TreeSize,
        /// Newest signed size in the database.
        signed: TreeSize,
    },
    /// A process leads the log, as its lease could not be acquired in `ADOPT_ATTEMPTS` attempts.
    #[error("a process leads the log: stop every process of the log on every host, then adopt")]
    Led,
    /// The existing pin does not allow it ([`Pin::allows`]): a pin is never lowered.
    #[error(transparent)]
    Pin(#[from] PinError),
    /// The database could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Makes a head the pin, on the statement of an operator that no newer head was ever signed.
///
/// For a log that moved to a host without its pin. The head must be in the database as named; an existing pin is
/// only ever raised. No process may lead meanwhile: one that has committed and is about to sign would sign a head
/// that this pin does not cover. The pin is claimed in an epoch that the database issues for this call, so no
/// other pin ever has that epoch. The store must have been opened; `holder` names the caller to other processes.
///
/// # Errors
///
/// If a process leads the log, if the database or the pin contradicts the named head, or if one of them fails.
pub async fn adopt(
    store: &dyn SequencerStore,
    pins: &dyn PinStore,
    origin: &str,
    holder: &str,
    size: TreeSize,
    root: RootHash,
) -> Result<Pin, AdoptError> {
    check_adoptable(store, size, root).await?;
    let _lease = lease(store, holder).await?;
    let claimed = pins.read().await?.map_or(0, |old| old.epoch);
    let epoch = match raise_epoch(store, holder, claimed).await {
        Ok(head) => head.epoch,
        // No process commits to a frozen log, so its epoch need not be raised.
        Err(StoreError::Frozen) => store.head().await?.epoch.max(claimed) + 1,
        Err(error) => return Err(error.into()),
    };
    // After the epoch was raised no other process commits, so this check covers all heads.
    check_adoptable(store, size, root).await?;
    let pin = Pin { origin: origin.to_owned(), size, root, epoch };
    pins.claim(&pin).await?;
    tracing::warn!(size = size.get(), %root, origin, "adopted a head as the newest signed one");
    Ok(pin)
}

async fn check_adoptable(
    store: &dyn SequencerStore,
    size: TreeSize,
    root: RootHash,
) -> Result<(), AdoptError> {
    let found = store.head_of_size(size).await?.ok_or(AdoptError::NoSuchHead(size))?;
    if found.root != root {
        return Err(AdoptError::OtherRoot { size, database: found.root });
    }
    match newest_signed(store).await?.filter(|signed| *signed > size) {
        Some(signed) => Err(AdoptError::NotNewest { size, signed }),
        None => Ok(()),
    }
}

/// Acquires the lease, with retries: a process that may not lead holds it for a moment during its checks.
async fn lease(store: &dyn Lifecycle, holder: &str) -> Result<Box<dyn Lease>, AdoptError> {
    for _ in 0..ADOPT_ATTEMPTS {
        if let Some(lease) = store.lease(holder).await? {
            return Ok(lease);
        }
        tokio::time::sleep(ADOPT_PAUSE).await;
    }
    Err(AdoptError::Led)
}
