//! The error of an [`Audit`](crate::Audit).

use crate::source::SourceError;
use crate::state::AuditStateError;

/// Error that keeps an audit from starting or continuing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuditError {
    /// The source did not answer, or contradicts itself.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The stored [`AuditState`](crate::AuditState) does not belong to this log or source.
    #[error(transparent)]
    State(#[from] AuditStateError),
}
