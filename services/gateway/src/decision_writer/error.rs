//! Errors of the decision writer.

use admission::approval::ApprovalError;
use evidence::StoreError;
use scitt::{BuildError, SignError};
use thiserror::Error;
use vap::reason::Reason;

use super::backlog::Backpressure;
use super::record_outbox::NoReceipt;
use crate::limits::PINNED_TOOLS;

/// Failure to make a decision, or to make it durable. Nothing may be forwarded.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WriterError {
    /// A limit of the outbox is reached.
    #[error("no more evidence can be kept: {0}")]
    Backpressure(#[from] Backpressure),
    /// The disk is full.
    #[error("no more evidence can be kept: {0}")]
    Full(String),
    /// The queue of decisions is full.
    #[error("too many decisions wait to be made")]
    Busy,
    /// Too many calls wait for the cost of another call (V-12, R-48).
    #[error("too many calls wait for the cost of another call of their tool")]
    Crowded {
        /// `true` if they wait in the call's session, to which the call is bound.
        in_session: bool,
    },
    /// The evidence could not be made durable, or not in time.
    #[error("the evidence could not be made durable: {0}")]
    Unavailable(String),
    /// The log has issued no receipt for the decision, and one is required.
    #[error(transparent)]
    NoReceipt(#[from] NoReceipt),
    /// A signature failed, or the system provides no randomness.
    #[error("nothing could be signed: {0}")]
    Unsigned(String),
    /// The content cannot be recorded: the log or the database would not accept it.
    #[error("no record could be made of it: {0}")]
    Unrecordable(String),
    /// The servers of a route have listed more tools than are pinned. Nothing is wrong with the evidence.
    #[error("the servers behind {route} have listed more than {most} tools", most = PINNED_TOOLS)]
    TooManyTools {
        /// The path of the route.
        route: String,
    },
    /// The gateway is stopping.
    #[error("the gateway is stopping")]
    Stopping,
}

impl WriterError {
    /// Returns whether an item that must become durable is given up: retrying it would fail again, or the writer stops.
    pub const fn is_permanent(&self) -> bool {
        matches!(self, Self::Unrecordable(_) | Self::TooManyTools { .. } | Self::Stopping)
    }

    /// Returns whether a server caused the error: the operator is told where the server's answer is withheld.
    pub const fn is_fault_of_server(&self) -> bool {
        matches!(self, Self::TooManyTools { .. })
    }

    /// Returns the reason that the denial states to the caller.
    pub const fn reason(&self) -> Reason {
        match self {
            Self::Backpressure(_) | Self::Full(_) | Self::Busy => Reason::EvidenceBackpressure,
            Self::Crowded { .. } => Reason::RateLimited,
            Self::NoReceipt(_) => Reason::ReceiptUnavailable,
            Self::Unavailable(_)
            | Self::Unsigned(_)
            | Self::Unrecordable(_)
            | Self::TooManyTools { .. }
            | Self::Stopping => Reason::EvidenceUnavailable,
        }
    }
}

impl From<StoreError> for WriterError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Full(why) => Self::Full(why),
            other => Self::Unavailable(other.to_string()),
        }
    }
}

impl From<SignError> for WriterError {
    fn from(error: SignError) -> Self {
        Self::Unsigned(error.to_string())
    }
}

impl From<BuildError> for WriterError {
    fn from(error: BuildError) -> Self {
        match error {
            BuildError::Sign(error) => error.into(),
            BuildError::Refused(why) => Self::Unrecordable(why.to_string()),
        }
    }
}

/// Reason why an approver's answer is not accepted.
#[derive(Debug, thiserror::Error)]
pub enum NotAnswered {
    /// There is no question with this id.
    #[error("there is no such question")]
    Unknown,
    /// The question was answered before.
    #[error("the question was answered before")]
    Answered,
    /// The question expired, or its call was withdrawn.
    #[error("the question is over: it expired, or the call was taken back")]
    Over,
    /// The answer is malformed, or not valid under the approval rules.
    #[error(transparent)]
    Approval(#[from] ApprovalError),
    /// The answer could not be made durable.
    #[error("the answer could not be kept: {0}")]
    Unavailable(String),
}
