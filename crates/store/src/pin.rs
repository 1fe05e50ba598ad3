//! The pin: the newest head that a log may have signed, kept outside of the log's database.
//!
//! A database can go back: an old copy is restored, a fail-over lands on a replica that lags. The pin does not go back with it.
//! The leader raises it after each commit and before the signature, so it is never behind a signature that left; and it is
//! never lowered.
//!
//! A pin belongs to one epoch at a time. A process that takes over *claims* it for its epoch before it commits anything; from
//! then on only that epoch raises it. So a pin whose epoch is older than that of a batch in the database is not the pin under
//! which the log was led: another process signed, under another pin.

use async_trait::async_trait;
use merkle::{RootHash, TreeSize};

/// The newest head that may have been signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pin {
    /// The log's origin.
    pub origin: String,
    /// The head's size; 0 before the first batch.
    pub size: TreeSize,
    /// The head's root.
    pub root: RootHash,
    /// The epoch of the process that claimed the pin.
    pub epoch: u64,
}

impl Pin {
    /// Refuses a pin that would lower this one, or contradict it. Epochs are not compared.
    ///
    /// # Errors
    /// [`PinError::OtherLog`], [`PinError::Ahead`] or [`PinError::Disagrees`].
    pub fn allows(&self, newer: &Self) -> Result<(), PinError> {
        if self.origin != newer.origin {
            Err(PinError::OtherLog(self.origin.clone()))
        } else if self.size > newer.size {
            Err(PinError::Ahead(self.clone()))
        } else if self.size == newer.size && self.root != newer.root {
            Err(PinError::Disagrees(self.clone()))
        } else {
            Ok(())
        }
    }
}

/// Why the pin could not be read, claimed or raised.
#[derive(Debug, thiserror::Error)]
pub enum PinError {
    /// The pin is of a larger head: somebody else signs for this log.
    #[error("the pin is at size {} already", .0.size)]
    Ahead(Pin),
    /// The pin is of the same size and another root.
    #[error("the pin has another root at size {}: {}", .0.size, .0.root)]
    Disagrees(Pin),
    /// The pin is of another log.
    #[error("the pin is of the log {0}")]
    OtherLog(String),
    /// Another epoch has claimed the pin: this process does not lead any more.
    #[error("the pin is claimed for epoch {0}")]
    Superseded(u64),
    /// What is stored there is not a pin.
    #[error("{place} is not a pin: {why}")]
    Unreadable {
        /// Where.
        place: String,
        /// What is wrong with it.
        why: String,
    },
    /// The storage failed, or does not answer. Whether the pin was raised is not known.
    #[error("{place}: {why}")]
    Unavailable {
        /// Where.
        place: String,
        /// What the storage said.
        why: String,
    },
}

/// Storage for one log's pin. Several hosts share a pin only if they share this storage.
///
/// Once [`claim`](Self::claim) or [`raise`](Self::raise) is `Ok`, the pin survives power loss, and the head may be signed. A
/// caller that is paused in the middle of one, for however long, neither lowers the pin when it goes on nor keeps others from
/// claiming it meanwhile, and is then refused.
#[async_trait]
pub trait PinStore: Send + Sync + 'static {
    /// The pin as it stands; `None` if there is none.
    async fn read(&self) -> Result<Option<Pin>, PinError>;

    /// Takes the pin for `pin.epoch`, which must be newer than every epoch that claimed it before.
    async fn claim(&self, pin: &Pin) -> Result<(), PinError>;

    /// Raises the pin in the epoch that claimed it last. The same pin may be raised again.
    async fn raise(&self, pin: &Pin) -> Result<(), PinError>;

    /// Where the pin is, for messages; without secrets.
    fn place(&self) -> String;
}
