//! The pin: the newest head that a log may have signed, stored outside of the log's database.
//!
//! A database can lose its newest state: an old copy is restored, or a fail-over selects a replica that lags. The
//! pin does not change with it. The leader raises the pin after each commit and before the signature, so the pin
//! is never behind a published signature; it is never lowered.
//!
//! A pin belongs to one epoch at a time. A process that takes over *claims* it for its epoch before it commits
//! anything; from then on only that epoch raises it. A pin whose epoch is older than that of a batch in the
//! database is therefore not the pin under which the log was led: another process signed, under another pin.

use async_trait::async_trait;
use merkle::{RootHash, TreeSize};

/// Newest head that may have been signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pin {
    /// Origin of the log.
    pub origin: String,
    /// Size of the head; 0 before the first batch.
    pub size: TreeSize,
    /// Root of the head.
    pub root: RootHash,
    /// Epoch of the process that claimed the pin.
    pub epoch: u64,
}

impl Pin {
    /// Refuses a pin that would lower this one, or contradict it. Epochs are not compared.
    ///
    /// # Errors
    ///
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

/// Reason why the pin could not be read, claimed or raised.
#[derive(Debug, thiserror::Error)]
pub enum PinError {
    /// The pin is of a larger head: another process signs for this log.
    #[error("the pin is at size {} already", .0.size)]
    Ahead(Pin),
    /// The pin has the same size and another root.
    #[error("the pin has another root at size {}: {}", .0.size, .0.root)]
    Disagrees(Pin),
    /// The pin belongs to another log.
    #[error("the pin is of the log {0}")]
    OtherLog(String),
    /// Another epoch has claimed the pin: this process no longer leads.
    #[error("the pin is claimed for epoch {0}")]
    Superseded(u64),
    /// The stored bytes are not a pin.
    #[error("{place} is not a pin: {why}")]
    Unreadable {
        /// Location of the pin.
        place: String,
        /// Description of the defect.
        why: String,
    },
    /// The storage failed or does not answer. Whether the pin was raised is not known.
    #[error("{place}: {why}")]
    Unavailable {
        /// Location of the pin.
        place: String,
        /// Error text of the storage.
        why: String,
    },
}

/// Storage for one log's pin. Several hosts share a pin only if they share this storage.
///
/// Once [`claim`](Self::claim) or [`raise`](Self::raise) is `Ok`, the pin survives power loss, and the head may be
/// signed. A caller that is paused during one of these calls, for any time, does not lower the pin when it
/// resumes; it does not prevent others from claiming the pin meanwhile, and is then refused.
#[async_trait]
pub trait PinStore: Send + Sync + 'static {
    /// Reads the pin; `None` if there is none.
    async fn read(&self) -> Result<Option<Pin>, PinError>;

    /// Claims the pin for `pin.epoch`, which must be newer than every epoch that claimed it before.
    async fn claim(&self, pin: &Pin) -> Result<(), PinError>;

    /// Raises the pin in the epoch that claimed it last. Raising to the same pin again succeeds.
    async fn raise(&self, pin: &Pin) -> Result<(), PinError>;

    /// Location of the pin for messages; without secrets.
    fn place(&self) -> String;
}
