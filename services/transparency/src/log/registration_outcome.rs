//! The outcomes of a registration.

use std::sync::Arc;

use bytes::Bytes;
use merkle::{EntryDigest, LeafIndex};
use sequencer::{Halt, Remedy};
use store::StoreError;

use crate::log::admission::NotAdmitted;
use crate::log::policies::PolicyUnreadable;
use crate::metrics::RegistrationOutcome;
use crate::proofs::receipts::ReceiptUnavailable;

/// A statement that is in the log, or durably accepted.
#[derive(Debug)]
pub enum Registered {
    /// The statement is in the log, with a receipt.
    Receipt {
        /// The statement's leaf.
        index: LeafIndex,
        /// The receipt.
        receipt: Bytes,
    },
    /// The statement is accepted; the receipt is available later.
    Later,
}

/// Reason why a statement was not registered.
#[derive(Debug)]
pub enum RegisterError {
    /// The policy did not admit the statement.
    NotAdmitted(NotAdmitted),
    /// A guard that the statement claims is taken (code `policy` or `chain_fork`).
    GuardTaken {
        /// The refusal, by the rule that the claim violates.
        refusal: Box<registration::Refusal>,
        /// The entry that has taken the guard, if it can be read.
        by: Option<EntryDigest>,
        /// `true` if the guard is a position in a chain: then the issuer has signed two statements for one position.
        forks: bool,
    },
    /// The log's time is outside the statement's validity.
    OutsideWindow(Box<registration::Refusal>),
    /// Another encoding of the same signature is registered, as this entry.
    Twin(EntryDigest),
    /// The sequencer's queue is full (code `queue-full`).
    QueueFull {
        /// Seconds until a retry is worthwhile.
        retry_after: u64,
    },
    /// The inbox has no room for the statement (code `inbox-full`).
    InboxFull {
        /// `true` if only this issuer's part of the inbox is full.
        issuer_only: bool,
        /// Seconds until a retry is worthwhile.
        retry_after: u64,
    },
    /// The log changed during each of [`DECISIONS`](crate::limits::DECISIONS) decisions.
    KeepsMoving,
    /// The log has no policy yet (code `no-policy`).
    NoPolicy,
    /// The log is frozen (code `log-frozen`).
    Frozen,
    /// Sequencing stopped (code `sequencing-stopped` if the process continues by itself, otherwise `log-halted`).
    Halted {
        /// The cause.
        why: String,
        /// The remedy that ends the halt.
        remedy: Remedy,
    },
    /// The process is stopping (code `stopping`).
    Stopping,
    /// The policy in force cannot be read.
    Policy(PolicyUnreadable),
    /// The disk is almost full (code `storage-full`).
    LowSpace(Arc<String>),
    /// The database failed.
    Store(Arc<StoreError>),
    /// The statement is in the log, and its receipt cannot be made now.
    NoReceipt(ReceiptUnavailable),
    /// An internal error.
    Internal(String),
}

impl From<StoreError> for RegisterError {
    fn from(error: StoreError) -> Self {
        Self::Store(Arc::new(error))
    }
}

impl From<Halt> for RegisterError {
    fn from(halt: Halt) -> Self {
        match halt {
            Halt::Frozen => Self::Frozen,
            Halt::Damaged(why) => StoreError::Damaged(why).into(),
            halt => Self::Halted { why: halt.to_string(), remedy: halt.remedy() },
        }
    }
}

/// A successful registration.
#[derive(Debug)]
pub(super) struct Registration {
    /// The statement's receipt, or the promise of one.
    pub registered: Registered,
    /// `true` if the statement was in the log already.
    pub is_duplicate: bool,
}

/// Returns `true` if a statement that failed with this error may still be in the log: an older policy admitted it, or
/// nothing can enter now.
pub(super) fn may_be_known(error: &RegisterError) -> bool {
    use RegisterError::{Frozen, Halted, KeepsMoving, LowSpace, NoPolicy, NotAdmitted, OutsideWindow};
    matches!(
        error,
        NotAdmitted(_) | OutsideWindow(_) | Frozen | Halted { .. } | LowSpace(_) | NoPolicy | KeepsMoving
    )
}

/// Returns `true` if registration failed because the signature does not cover the detached payload.
pub(super) fn is_about_the_payload(error: &RegisterError) -> bool {
    matches!(error, RegisterError::NotAdmitted(refused) if does_not_fit(refused))
}

/// Returns `true` if the signature does not cover the detached payload, or the statement contains its payload already.
pub fn does_not_fit(refused: &NotAdmitted) -> bool {
    use registration::Untrusted::{PayloadTwice, Signature};
    matches!(refused, NotAdmitted::Untrusted(PayloadTwice | Signature(_)))
}

/// Returns `true` if a registration is not counted against its issuer: nothing new was registered, or the service
/// failed.
pub(super) fn costs_nothing(outcome: &Result<Registration, RegisterError>) -> bool {
    match outcome {
        Ok(registration) => registration.is_duplicate,
        Err(error) => matches!(error, RegisterError::Twin(_)) || is_our_fault(error),
    }
}

/// Returns `true` for errors after which the client may retry with the same statement.
fn is_our_fault(error: &RegisterError) -> bool {
    use RegisterError::{
        Frozen, Halted, InboxFull, Internal, KeepsMoving, LowSpace, NoPolicy, NoReceipt, NotAdmitted, Policy,
        QueueFull, Stopping, Store,
    };
    match error {
        NotAdmitted(why) => matches!(why, self::NotAdmitted::Undecided(_) | self::NotAdmitted::Store(_)),
        QueueFull { .. }
        | InboxFull { .. }
        | KeepsMoving
        | NoPolicy
        | Frozen
        | Halted { .. }
        | LowSpace(_)
        | Stopping => true,
        Policy(_) | Store(_) | NoReceipt(_) | Internal(_) => true,
        RegisterError::GuardTaken { .. } | RegisterError::OutsideWindow(_) | RegisterError::Twin(_) => false,
    }
}

/// The label of a registration in metrics.
pub(super) fn outcome_of(outcome: &Result<Registration, RegisterError>) -> RegistrationOutcome {
    match outcome {
        Ok(registration) if registration.is_duplicate => RegistrationOutcome::Duplicate,
        Ok(_) => RegistrationOutcome::Accepted,
        Err(RegisterError::NotAdmitted(NotAdmitted::Untrusted(_))) => RegistrationOutcome::Signature,
        Err(
            RegisterError::NotAdmitted(NotAdmitted::OverQuota(_))
            | RegisterError::QueueFull { .. }
            | RegisterError::InboxFull { .. },
        ) => RegistrationOutcome::Limit,
        Err(
            RegisterError::NotAdmitted(NotAdmitted::Refused(_))
            | RegisterError::GuardTaken { .. }
            | RegisterError::OutsideWindow(_)
            | RegisterError::Twin(_),
        ) => RegistrationOutcome::Policy,
        Err(_) => RegistrationOutcome::Error,
    }
}
