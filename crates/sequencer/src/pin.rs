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
use store::{LogStore, StoreError};

pub use file::PinFile;
pub use store::{Pin, PinError, PinStore};

use crate::recover::newest_signed;

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
/// raised. A process that leads with this pin takes over again. The store must have been opened.
///
/// # Errors
/// If the database or the pin says otherwise, or cannot be asked.
pub async fn adopt(
    store: &dyn LogStore,
    pins: &dyn PinStore,
    origin: &str,
    size: TreeSize,
    root: RootHash,
) -> Result<Pin, AdoptError> {
    let found = store.head_of_size(size).await?.ok_or(AdoptError::NoSuchHead(size))?;
    if found.root != root {
        return Err(AdoptError::OtherRoot { size, database: found.root });
    }
    if let Some(signed) = newest_signed(store).await?.filter(|signed| *signed > size) {
        return Err(AdoptError::NotNewest { size, signed });
    }
    let old = pins.read().await?;
    // Newer than every epoch of the database and than every claim before: no other host has a pin of it.
    let epoch = store.head().await?.epoch.max(old.map_or(0, |old| old.epoch)) + 1;
    let pin = Pin { origin: origin.to_owned(), size, root, epoch };
    pins.claim(&pin).await?;
    tracing::warn!(%size, %root, origin, "adopted a head as the newest signed one");
    Ok(pin)
}
