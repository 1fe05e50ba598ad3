//! What the sequencer answers: places, refusals, its role, and why it stopped.

use std::sync::Arc;
use std::time::Duration;

use merkle::{EntryDigest, Hash, LeafIndex, RootHash, TreeSize};
use store::{CommittedHead, GuardKey, HeadSignature, SignatureKind, StoreError};

use crate::TimeWindow;

/// A committed head with the signatures made over it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishedHead {
    /// The head.
    pub head: CommittedHead,
    /// One of each kind that the log's signer makes; more when read from a database that has them.
    pub signatures: Vec<HeadSignature>,
}

impl PublishedHead {
    /// The first signature of a kind.
    pub fn signature(&self, kind: SignatureKind) -> Option<&HeadSignature> {
        self.signatures.iter().find(|signature| signature.kind == kind)
    }
}

/// Where a statement stands in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Its leaf.
    pub index: LeafIndex,
    /// Whether it was in the log, or in the queue, before this submission.
    pub already_there: bool,
    /// A signed head that covers the leaf. `None` only if no head has been signed yet by or for
    /// this process: read the newest signed one.
    pub head: Option<Arc<PublishedHead>>,
    /// The inclusion path under `head`; `None` when it must be made from the tiles.
    pub path: Option<Vec<Hash>>,
}

/// Why a submission got no place now.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SubmitError {
    /// Too much waits already. Nothing was kept.
    #[error("the queue is full")]
    QueueFull {
        /// When to try again.
        retry_after: Duration,
    },
    /// The inbox has no room for it.
    #[error("{}", if *issuer_only { "the issuer's share of the inbox is used up" } else { "the inbox is full" })]
    InboxFull {
        /// Whether it has room for statements of other issuers.
        issuer_only: bool,
        /// When to try again.
        retry_after: Duration,
    },
    /// Decided under a policy that is no longer in force: decide again.
    #[error("the policy in force is now entry {policy}")]
    PolicyMoved {
        /// The policy in force.
        policy: LeafIndex,
    },
    /// The log is empty: its first entry must be a registration policy.
    #[error("the log has no registration policy yet")]
    NoPolicy,
    /// The decision relied on the absence of a statement or a claim that is in the log: decide again.
    #[error("entry {index} is in the log, and the decision relied on its absence")]
    RelyOnAbsent {
        /// The entry that is the statement, or makes the claim.
        index: LeafIndex,
    },
    /// A claim that must be unique is taken by an earlier entry. Final.
    #[error("entry {index} makes a claim that only one entry may make")]
    GuardTaken {
        /// The claim.
        key: GuardKey,
        /// Who made it first.
        index: LeafIndex,
    },
    /// Another encoding of the same signature is registered. Final.
    #[error("the twin of this statement, {digest}, is entry {index}")]
    Twin {
        /// Where the registered one stands.
        index: LeafIndex,
        /// Its digest.
        digest: EntryDigest,
    },
    /// The decision does not hold at the time of the batch, or of the submission if nothing was sequenced. Final.
    #[error("the log's time is {at}, the decision holds from {} to {}", window.from, window.until)]
    OutsideWindow {
        /// The batch's time, Unix seconds.
        at: u64,
        /// When the decision holds.
        window: TimeWindow,
    },
    /// The bytes do not hash to the digest they came with. Nothing was stored.
    #[error("the statement does not hash to its digest {digest}")]
    DigestMismatch {
        /// The digest claimed.
        digest: EntryDigest,
    },
    /// The clock correction does not apply to the log as it is.
    #[error("the clock correction does not apply: {0}")]
    NoCorrection(&'static str),
    /// Sequencing stopped; reads go on.
    #[error("sequencing stopped: {0}")]
    Halted(Halt),
    /// The process is about to end.
    #[error("the log is stopping")]
    Stopping,
    /// Not an error: the statement is durable in the inbox and will be placed or refused (202).
    #[error("accepted; not yet placed")]
    Accepted,
    /// The database did not do its part. Whether the statement was stored is not known to the
    /// caller, and handing it in again is always safe.
    #[error(transparent)]
    Store(Arc<StoreError>),
}

impl From<StoreError> for SubmitError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Frozen => Self::Halted(Halt::Frozen),
            error => Self::Store(Arc::new(error)),
        }
    }
}

/// What ends a [`Halt`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// An operator: going on could sign a second history, or the log has reached its end.
    Operator,
    /// Time: the process retries with back-off and goes on by itself once the cause is gone.
    Retry,
    /// A new process: the memory of this one is not to be trusted.
    Restart,
}

/// Why this process does not sequence. It signs nothing meanwhile; reads go on. [`Halt::remedy`] says what ends it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Halt {
    /// The database went back: an old copy was restored, or a fail-over lost commits.
    #[error("the database is at {}, this log has signed {}", grouped(*database), grouped(*signed))]
    DatabaseBehind {
        /// The committed size.
        database: TreeSize,
        /// The pinned size.
        signed: TreeSize,
    },
    /// The database has another history than the one signed.
    #[error(
        "at size {} this log has signed root {signed}, the database has {}",
        grouped(*size),
        database.map_or_else(|| "no head of that size".to_owned(), |root| format!("root {root}"))
    )]
    DatabaseDisagrees {
        /// The pinned size.
        size: TreeSize,
        /// The pinned root.
        signed: RootHash,
        /// The committed root of that size, if there is one.
        database: Option<RootHash>,
    },
    /// The database has heads, and no pin says that they are the newest that were signed.
    #[error(
        "the database has heads up to size {}, and there is no pin at {path}: a process leads only with the pin under which the \
         log was led last. Let this host use that pin; if it is lost, adopt the size and root that you know to be the newest \
         signed (witnesses would do as well: {witnesses})",
        grouped(*size)
    )]
    NoPin {
        /// The newest size that the database knows.
        size: TreeSize,
        /// Where the pin should be.
        path: String,
        /// Why the witnesses did not confirm that size.
        witnesses: String,
    },
    /// The log was led under another pin since this one was raised.
    #[error(
        "the pin at {path} is at size {}, and the log was led under another pin since, to size {} or beyond: let this host use \
         that pin; if it is lost, adopt the size and root that you know to be the newest signed (witnesses would do as well: \
         {witnesses})",
        grouped(*pinned),
        grouped(*size)
    )]
    PinTooOld {
        /// The pinned size.
        pinned: TreeSize,
        /// The newest size that the database knows.
        size: TreeSize,
        /// Where the pin is.
        path: String,
        /// Why the witnesses did not confirm that size.
        witnesses: String,
    },
    /// The database went back, as only a witness knows.
    #[error(
        "the database is at {}, this log has signed {}: the witness {witness} has seen it",
        grouped(*database),
        grouped(*signed)
    )]
    WitnessAhead {
        /// The witness's name.
        witness: String,
        /// The newest signed size in the database.
        database: TreeSize,
        /// The size that the witness has seen.
        signed: TreeSize,
    },
    /// The database has another history than the one that a witness has seen.
    #[error("the database has another tree than the one of size {} that the witness {witness} has seen", grouped(*size))]
    WitnessDisagrees {
        /// The witness's name.
        witness: String,
        /// The size of the tree that it has seen.
        size: TreeSize,
    },
    /// The pin belongs to another log.
    #[error("the pin at {path} is of the log {pinned}, not {origin}")]
    OtherLog {
        /// Where the pin is.
        path: String,
        /// The log that it names.
        pinned: String,
        /// The log that this process serves.
        origin: String,
    },
    /// The pin cannot be read or written.
    #[error("the pin cannot be kept: {0}")]
    Pin(String),
    /// The wall clock jumped.
    #[error(
        "the clock says {found} where {expected} was expected ({} s off): once it is set right, sequencing goes on",
        found.abs_diff(*expected)
    )]
    ClockStepped {
        /// The last reading plus the time that passed, Unix seconds.
        expected: u64,
        /// What the clock says.
        found: u64,
    },
    /// The wall clock is behind what the log has already committed to.
    #[error(
        "the clock says {now}, {} s before the newest entry's time {last}: once it is set right, sequencing goes on. If it is \
         right, and was ahead before, run `tabellion log clock`",
        last.saturating_sub(*now)
    )]
    ClockBehind {
        /// What the clock says, Unix seconds.
        now: u64,
        /// The last committed time.
        last: u64,
    },
    /// The wall clock is not that of the database's server and the witnesses.
    #[error(
        "the clock is {} s {} {by}: set it right",
        ahead.unsigned_abs(),
        if *ahead < 0 { "behind" } else { "ahead of" }
    )]
    ClockDiffers {
        /// By how many seconds the clock is ahead; behind if negative.
        ahead: i64,
        /// Whose clocks say so.
        by: String,
    },
    /// The signer failed again and again.
    #[error("the head of size {} is committed but cannot be signed: {why}", grouped(*size))]
    Signer {
        /// The head's size.
        size: TreeSize,
        /// What the signer said.
        why: String,
    },
    /// What the database holds, or what it answered, contradicts itself.
    #[error("the database contradicts itself: {0}")]
    Damaged(String),
    /// The log has reached its end: its newest head is signed, and there will be no other.
    #[error("the log is frozen: it takes no more entries")]
    Frozen,
    /// The database must not be used as it is.
    #[error("{0}")]
    Refused(String),
    /// The sequencer or one of its background tasks panicked.
    #[error("a task of this process failed; its log says where")]
    Panicked,
    /// The head computed is not an extension of the last one: memory is not to be trusted.
    #[error("the next head would not extend the last one: {0}")]
    Inconsistent(String),
}

impl Halt {
    /// What ends this halt.
    pub fn remedy(&self) -> Remedy {
        match self {
            // The history here may not be the one that was signed: a person has to compare them.
            Self::DatabaseBehind { .. }
            | Self::DatabaseDisagrees { .. }
            | Self::NoPin { .. }
            | Self::PinTooOld { .. }
            | Self::WitnessAhead { .. }
            | Self::WitnessDisagrees { .. }
            | Self::OtherLog { .. }
            | Self::Damaged(_)
            | Self::Frozen => Remedy::Operator,
            // The state is not known, or a part does not work at present: looking again tells.
            Self::Pin(_)
            | Self::ClockStepped { .. }
            | Self::ClockBehind { .. }
            | Self::ClockDiffers { .. }
            | Self::Signer { .. }
            | Self::Refused(_) => Remedy::Retry,
            Self::Panicked | Self::Inconsistent(_) => Remedy::Restart,
        }
    }

    /// The same for a process whose pin does not do, with the reason why the witnesses did not stand for it.
    pub(crate) fn unconfirmed(mut self, why: String) -> Self {
        if let Self::NoPin { witnesses, .. } | Self::PinTooOld { witnesses, .. } = &mut self {
            *witnesses = why;
        }
        self
    }
}

/// Digits in groups of three, as people read them.
fn grouped(size: TreeSize) -> String {
    let digits = size.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// What this process does for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// Hands submissions over through the inbox and waits for the lease.
    Following,
    /// Sequences.
    Leading {
        /// Its fencing token.
        epoch: u64,
    },
    /// Neither, for this reason; [`Halt::remedy`] says what ends it.
    Halted(Halt),
    /// The process is ending.
    Stopped,
}

impl Role {
    /// The role in one word.
    pub const fn name(&self) -> &'static str {
        match self {
            Role::Following => "following",
            Role::Leading { .. } => "leading",
            Role::Halted(_) => "halted",
            Role::Stopped => "stopped",
        }
    }

    /// The fencing token of a leader.
    pub const fn epoch(&self) -> Option<u64> {
        match self {
            Role::Leading { epoch } => Some(*epoch),
            _ => None,
        }
    }
}

/// What the sequencer shows of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// What this process does.
    pub role: Role,
    /// Why a process that follows may not lead, if nobody else does. It looks again by itself.
    pub ineligible: Option<Halt>,
    /// The newest signed head known here.
    pub published: Option<Arc<PublishedHead>>,
    /// The policy in force, as far as this process knows. Zero while the log is empty.
    pub policy: LeafIndex,
    /// How many leaves are committed, as far as this process knows.
    pub size: TreeSize,
}

impl Status {
    /// Why nothing is registered here: this process is halted, or may not lead and nobody else does.
    pub fn obstacle(&self) -> Option<&Halt> {
        match &self.role {
            Role::Halted(halt) => Some(halt),
            Role::Following => self.ineligible.as_ref(),
            _ => None,
        }
    }
}
