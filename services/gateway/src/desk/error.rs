//! Why the desk did not decide.

use admission::reason::Reason;
use evidence::StoreError;
use scitt::{BuildError, SignError};
use thiserror::Error;

use super::outbox::{Backpressure, NoReceipt};

/// Why there is no decision, or none that counts. Nothing may be forwarded.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DeskError {
    /// Too much waits for the log.
    #[error("no more evidence can be kept: {0}")]
    Backpressure(#[from] Backpressure),
    /// The disk is full.
    #[error("no more evidence can be kept: {0}")]
    Full(String),
    /// More decisions are asked for than are made.
    #[error("too many decisions wait to be made")]
    Busy,
    /// More calls wait for what another one costs than may.
    #[error("too many calls wait for what another call of their tool costs")]
    Crowded,
    /// The evidence could not be made durable, or not in time.
    #[error("the evidence could not be made durable: {0}")]
    Unavailable(String),
    /// The log has not got the decision, and must.
    #[error(transparent)]
    NoReceipt(#[from] NoReceipt),
    /// A key did not sign.
    #[error("nothing could be signed: {0}")]
    Unsigned(String),
    /// What there is to record is nothing that the log takes.
    #[error("no record could be made of it: {0}")]
    Unrecordable(String),
    /// The desk closes.
    #[error("the gateway is stopping")]
    Stopping,
}

impl DeskError {
    /// What the caller is told.
    pub const fn reason(&self) -> Reason {
        match self {
            Self::Backpressure(_) | Self::Full(_) | Self::Busy => Reason::EvidenceBackpressure,
            Self::Crowded => Reason::RateLimited,
            Self::NoReceipt(_) => Reason::ReceiptUnavailable,
            Self::Unavailable(_) | Self::Unsigned(_) | Self::Unrecordable(_) | Self::Stopping => {
                Reason::EvidenceUnavailable
            }
        }
    }
}

impl From<StoreError> for DeskError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Full(why) => Self::Full(why),
            other => Self::Unavailable(other.to_string()),
        }
    }
}

impl From<SignError> for DeskError {
    fn from(error: SignError) -> Self {
        Self::Unsigned(error.to_string())
    }
}

impl From<BuildError> for DeskError {
    fn from(error: BuildError) -> Self {
        match error {
            BuildError::Sign(error) => error.into(),
            BuildError::Refused(why) => Self::Unrecordable(why.to_string()),
        }
    }
}
