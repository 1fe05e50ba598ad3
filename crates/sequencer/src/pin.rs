//! The pin in this process: its storage in a state directory, and adopting a head by hand.
//!
//! What a pin is and what its storage promises is in [`store`]; a pin in a second PostgreSQL is in `store-postgres`.
//!
//! * `protocol`: how a pin is claimed and raised without a lock, so that a process that is paused in the middle keeps nobody out;
//! * `file`: the files of a state directory; `slots`: what is in them.

mod file;
pub(crate) mod protocol;
mod slots;

use merkle::{RootHash, TreeSize};
use store::{Lease, LogStore, StoreError};

pub use file::PinFile;
pub use store::{Pin, PinError, PinStore};

use crate::limits::{ADOPT_ATTEMPTS, ADOPT_PAUSE};
use crate::recover::{newest_signed, raise_epoch};

/// Why a head was not adopted.
#[derive(Debug, thiserror::Error)]
pub enum AdoptError {
    /// The database has no head of this size.
    #[error("the database has no head of size {0}")]
    NoSuchHead(TreeSize),
    /// The database has another root at this size.
    #[error("at size {size} the database has root {database}")]
    OtherRoot {
        /// The size.
        size: TreeSize,
        /// The root that the database has.
        database: RootHash,
    },
    /// The database itself shows that a larger head was signed.
    #[error("the database has a head signed at size {signed}: size {size} is not the newest")]
    NotNewest {
        /// The size that was named.
        size: TreeSize,
        /// The newest signed size in the database.
        signed: TreeSize,
    },
    /// A process leads the log.
    #[error("a process leads the log: stop every process of the log on every host, then adopt")]
    Led,
    /// The pin there does not allow it: it is never lowered.
    #[error(transparent)]
    Pin(#[from] PinError),
    /// The database could not be asked.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Takes a head as the newest that was ever signed, on the word of an operator who knows.
///
/// For a log that moved to a host without its pin. The head must be in the database as named; a pin that exists is only ever
/// raised. No process may lead meanwhile: one that has committed and is about to sign would sign a head that this pin does
/// not know. The pin is claimed in an epoch that the database gives out here, so no other pin is ever of that epoch. The store
/// must have been opened; `holder` names the caller to other processes.
///
/// # Errors
/// If a process leads the log, or the database or the pin says otherwise or cannot be asked.
pub async fn adopt(
    store: &dyn LogStore,
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
        // Nobody commits to a frozen log: its epochs stay.
        Err(StoreError::Frozen) => store.head().await?.epoch.max(claimed) + 1,
        Err(error) => return Err(error.into()),
    };
    // What was committed and signed until the epoch was raised is all there is.
    check_adoptable(store, size, root).await?;
    let pin = Pin { origin: origin.to_owned(), size, root, epoch };
    pins.claim(&pin).await?;
    tracing::warn!(size = size.get(), %root, origin, "adopted a head as the newest signed one");
    Ok(pin)
}

async fn check_adoptable(store: &dyn LogStore, size: TreeSize, root: RootHash) -> Result<(), AdoptError> {
    let found = store.head_of_size(size).await?.ok_or(AdoptError::NoSuchHead(size))?;
    if found.root != root {
        return Err(AdoptError::OtherRoot { size, database: found.root });
    }
    match newest_signed(store).await?.filter(|signed| *signed > size) {
        Some(signed) => Err(AdoptError::NotNewest { size, signed }),
        None => Ok(()),
    }
}

/// A process that may not lead holds the lease for a moment whenever it looks whether it may.
async fn lease(store: &dyn LogStore, holder: &str) -> Result<Box<dyn Lease>, AdoptError> {
    for _ in 0..ADOPT_ATTEMPTS {
        if let Some(lease) = store.lease(holder).await? {
            return Ok(lease);
        }
        tokio::time::sleep(ADOPT_PAUSE).await;
    }
    Err(AdoptError::Led)
}
