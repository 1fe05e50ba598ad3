//! Results of the sequencer: placements, refusals ([`SubmitError`]), its [`Role`], and why it stopped ([`Halt`]).

use std::sync::Arc;
use std::time::Duration;

use merkle::{EntryDigest, Hash, LeafIndex, RootHash, TreeSize};
use store::{CommittedHead, GuardKey, HeadSignature, SignatureKind, StoreError};

use crate::TimeWindow;

/// A committed head with the signatures made over it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishedHead {
    /// The committed head.
    pub head: CommittedHead,
    /// One signature of each kind that [`HeadSigner`](crate::HeadSigner) makes; more if read from a database that
    /// has more.
    pub signatures: Vec<HeadSignature>,
}

impl PublishedHead {
    /// Returns the first signature of a kind.
    pub fn signature(&self, kind: SignatureKind) -> Option<&HeadSignature> {
        self.signatures.iter().find(|signature| signature.kind == kind)
    }
}

/// Position of a statement in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Index of the leaf.
    pub index: LeafIndex,
    /// `true` if the statement was in the log before, or the submission that was placed is another caller's.
    pub already_there: bool,
    /// Signed head that covers the leaf. `None` only if no head has been signed yet by or for this process: read
    /// the newest signed head from the store then.
    pub head: Option<Arc<PublishedHead>>,
    /// Inclusion path under `head`; `None` if it must be computed from the tiles.
    pub path: Option<Vec<Hash>>,
}

/// Reason why [`Handle::submit`](crate::Handle::submit) returned no position.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SubmitError {
    /// The queue is at its bound ([`Limits::queue_entries`](crate::Limits::queue_entries),
    /// [`Limits::queue_bytes`](crate::Limits::queue_bytes)). The submission was not stored.
    #[error("the queue is full")]
    QueueFull {
        /// Time after which to retry ([`Limits::retry_after`](crate::Limits::retry_after)).
        retry_after: Duration,
    },
    /// The inbox has no room for the submission ([`Limits::inbox`](crate::Limits::inbox)).
    #[error("{}", if *issuer_only { "the issuer's share of the inbox is used up" } else { "the inbox is full" })]
    InboxFull {
        /// `true` if it has room for statements of other issuers.
        issuer_only: bool,
        /// Time after which to retry ([`Limits::retry_after`](crate::Limits::retry_after)).
        retry_after: Duration,
    },
    /// [`Submission::decided_under`](crate::Submission::decided_under) is no longer the policy in force: decide
    /// again.
    #[error("the policy in force is now entry {policy}")]
    PolicyMoved {
        /// Index of the policy in force.
        policy: LeafIndex,
    },
    /// The log is empty: its first entry must be a registration policy.
    #[error("the log has no registration policy yet")]
    NoPolicy,
    /// The log has one of [`Submission::relied_absent`](crate::Submission::relied_absent) or
    /// [`Submission::relied_free`](crate::Submission::relied_free): decide again.
    #[error("entry {index} is in the log, and the decision relied on its absence")]
    RelyOnAbsent {
        /// Index of the entry that is that statement, or makes that claim.
        index: LeafIndex,
    },
    /// A claim that must be unique is held by an earlier entry. Final.
    #[error("entry {index} makes a claim that only one entry may make")]
    GuardTaken {
        /// Guard of the claim.
        key: GuardKey,
        /// Index of the entry that holds it.
        index: LeafIndex,
    },
    /// The statement with the other encoding of the same signature is registered. Final.
    #[error("the twin of this statement, {digest}, is entry {index}")]
    Twin {
        /// Index of the registered entry.
        index: LeafIndex,
        /// Digest of the registered entry.
        digest: EntryDigest,
    },
    /// The decision does not hold at the time of the batch, or at the time of submission if the statement was not
    /// sequenced. Final.
    #[error("the log's time is {at}, the decision holds from {} to {}", window.from, window.until)]
    OutsideWindow {
        /// Time of the batch in Unix seconds.
        at: u64,
        /// Times at which the decision holds ([`Submission::valid`](crate::Submission::valid)).
        window: TimeWindow,
    },
    /// The log has as many entries as the decision allows
    /// ([`Submission::largest_tree`](crate::Submission::largest_tree)). Final.
    #[error("the log has {size} entries, the decision holds up to {largest}")]
    LogFull {
        /// Committed size of the log.
        size: TreeSize,
        /// Number of entries that the decision allows.
        largest: TreeSize,
    },
    /// The bytes do not hash to the digest submitted with them. Nothing was stored.
    #[error("the statement does not hash to its digest {digest}")]
    DigestMismatch {
        /// Digest submitted.
        digest: EntryDigest,
    },
    /// The [`ClockCorrection`](crate::ClockCorrection) does not fit the log's present state.
    #[error("the clock correction does not apply: {0}")]
    NoCorrection(&'static str),
    /// Sequencing stopped; reads continue.
    #[error("sequencing stopped: {0}")]
    Halted(Halt),
    /// The process is about to end ([`Handle::stop`](crate::Handle::stop) was called).
    #[error("the log is stopping")]
    Stopping,
    /// The statement is durable in the inbox and will be placed or refused later (202); this is not a failure.
    #[error("accepted; not yet placed")]
    Accepted,
    /// The database failed. The caller does not know whether the statement was stored; submitting it again is
    /// always safe.
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

/// Remedy of a [`Halt`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// An operator must act: to continue could sign a second history, or the log has reached its end.
    Operator,
    /// The process retries with back-off, and continues once the cause is gone.
    Retry,
    /// A new process must be started: the memory of this one cannot be trusted.
    Restart,
}

/// Reason why this process does not sequence. It signs nothing meanwhile; reads continue. [`Halt::remedy`] tells
/// what ends the halt.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Halt {
    /// The database is older than the pin: an old copy was restored, or a fail-over lost commits.
    #[error("the database is at {}, this log has signed {}", grouped(*database), grouped(*signed))]
    DatabaseBehind {
        /// Committed size.
        database: TreeSize,
        /// Pinned size.
        signed: TreeSize,
    },
    /// The database has another history than the signed one.
    #[error(
        "at size {} this log has signed root {signed}, the database has {}",
        grouped(*size),
        database.map_or_else(|| "no head of that size".to_owned(), |root| format!("root {root}"))
    )]
    DatabaseDisagrees {
        /// Pinned size.
        size: TreeSize,
        /// Pinned root.
        signed: RootHash,
        /// Committed root of the pinned size, if there is one.
        database: Option<RootHash>,
    },
    /// The database has heads, and there is no pin to prove that they are the newest signed ones; see
    /// [`adopt`](crate::pin::adopt).
    #[error(
        "the database has heads up to size {}, and there is no pin at {path}: a process leads only with the pin under which the \
         log was led last. Let this host use that pin; if it is lost, adopt the size and root that you know to be the newest \
         signed (witnesses would do as well: {witnesses})",
        grouped(*size)
    )]
    NoPin {
        /// Newest size in the database.
        size: TreeSize,
        /// Location where the pin is expected ([`PinStore::place`](store::PinStore::place)).
        path: String,
        /// Reason why the witnesses did not confirm that size.
        witnesses: String,
    },
    /// The log was led under another pin after this one was last raised; see [`adopt`](crate::pin::adopt).
    #[error(
        "the pin at {path} is at size {}, and the log was led under another pin since, to size {} or beyond: let this host use \
         that pin; if it is lost, adopt the size and root that you know to be the newest signed (witnesses would do as well: \
         {witnesses})",
        grouped(*pinned),
        grouped(*size)
    )]
    PinTooOld {
        /// Pinned size.
        pinned: TreeSize,
        /// Newest size in the database.
        size: TreeSize,
        /// Location of the pin ([`PinStore::place`](store::PinStore::place)).
        path: String,
        /// Reason why the witnesses did not confirm that size.
        witnesses: String,
    },
    /// The database is older than a head that a witness has seen.
    #[error(
        "the database is at {}, this log has signed {}: the witness {witness} has seen it",
        grouped(*database),
        grouped(*signed)
    )]
    WitnessAhead {
        /// Name of the witness.
        witness: String,
        /// Committed size.
        database: TreeSize,
        /// Size that the witness has seen.
        signed: TreeSize,
    },
    /// The database has another history than the one that a witness has seen.
    #[error("the database's tree contradicts the one of size {} that the witness {witness} has cosigned", grouped(*size))]
    WitnessDisagrees {
        /// Name of the witness.
        witness: String,
        /// Size of the tree that the witness has seen.
        size: TreeSize,
    },
    /// The pin belongs to another log.
    #[error("the pin at {path} is of the log {pinned}, not {origin}")]
    OtherLog {
        /// Location of the pin ([`PinStore::place`](store::PinStore::place)).
        path: String,
        /// Origin in the pin.
        pinned: String,
        /// Origin of the log that this process serves.
        origin: String,
    },
    /// The pin cannot be read or written ([`PinError`](store::PinError)).
    #[error("the pin cannot be kept: {0}")]
    Pin(String),
    /// The wall clock was set while the process ran, by more than
    /// [`CLOCK_TOLERANCE`](crate::CLOCK_TOLERANCE).
    #[error(
        "the clock says {found} where {expected} was expected ({} s off): once it is set right, sequencing continues. If it is \
         right now and was wrong when the process started, start the process again",
        found.abs_diff(*expected)
    )]
    ClockStepped {
        /// Expected Unix seconds: the reference reading plus the time since by the monotonic clock.
        expected: u64,
        /// Unix seconds by the wall clock.
        found: u64,
    },
    /// The wall clock is earlier than the newest committed time ([`Head::at`](store::Head::at)).
    #[error(
        "the clock says {now}, {} s before the newest entry's time {last}: once it is set right, sequencing continues. If it is \
         right, and was ahead before, run `tabellion log clock`",
        last.saturating_sub(*now)
    )]
    ClockBehind {
        /// Unix seconds by the wall clock.
        now: u64,
        /// Newest committed time in Unix seconds.
        last: u64,
    },
    /// The wall clock disagrees with those of the database's server and the witnesses.
    #[error(
        "the clock is {} s {} {by}: set it right",
        ahead.unsigned_abs(),
        if *ahead < 0 { "behind" } else { "ahead of" }
    )]
    ClockDiffers {
        /// Seconds by which this host's clock is ahead; negative if behind.
        ahead: i64,
        /// Names of the clocks that disagree.
        by: String,
    },
    /// The signer failed [`Limits::sign_attempts`](crate::Limits::sign_attempts) times.
    #[error("the head of size {} is committed but cannot be signed: {why}", grouped(*size))]
    Signer {
        /// Size of the head.
        size: TreeSize,
        /// Error text of the signer.
        why: String,
    },
    /// The content or the answers of the database contradict each other.
    #[error("the database contradicts itself: {0}")]
    Damaged(String),
    /// The log has reached its end: its newest head is signed, and there will be no other.
    #[error("the log is frozen: no more entries are added")]
    Frozen,
    /// The database must not be used in its present state ([`StoreError::Refused`]).
    #[error("{0}")]
    Refused(String),
    /// The sequencer or one of its background tasks panicked.
    #[error("a task of this process failed; its log says where")]
    Panicked,
    /// The computed head is not an extension of the last one: the memory of this process cannot be trusted.
    #[error("the next head would not extend the last one: {0}")]
    Inconsistent(String),
}

impl Halt {
    /// Remedy that ends this halt.
    pub fn remedy(&self) -> Remedy {
        match self {
            // The history here may not be the signed one: a person has to compare them.
            Self::DatabaseBehind { .. }
            | Self::DatabaseDisagrees { .. }
            | Self::NoPin { .. }
            | Self::PinTooOld { .. }
            | Self::WitnessAhead { .. }
            | Self::WitnessDisagrees { .. }
            | Self::OtherLog { .. }
            | Self::Damaged(_)
            | Self::Frozen => Remedy::Operator,
            // The state is unknown, or a part does not work at present: a later attempt can succeed.
            Self::Pin(_)
            | Self::ClockStepped { .. }
            | Self::ClockBehind { .. }
            | Self::ClockDiffers { .. }
            | Self::Signer { .. }
            | Self::Refused(_) => Remedy::Retry,
            Self::Panicked | Self::Inconsistent(_) => Remedy::Restart,
        }
    }

    /// Adds the reason why the witnesses did not confirm the head, to a halt because of the pin.
    pub(crate) fn unconfirmed(mut self, why: String) -> Self {
        if let Self::NoPin { witnesses, .. } | Self::PinTooOld { witnesses, .. } = &mut self {
            *witnesses = why;
        }
        self
    }
}

/// Formats a number with its digits in groups of three.
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

/// Role of this process for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// Follows: passes submissions on through the inbox and waits for the lease.
    Following,
    /// Leads: sequences the log.
    Leading {
        /// Fencing token of the leader ([`Head::epoch`](store::Head::epoch)).
        epoch: u64,
    },
    /// Neither follows nor leads, for this reason; [`Halt::remedy`] tells what ends it.
    Halted(Halt),
    /// The process is ending.
    Stopped,
}

impl Role {
    /// Name of the role in one word.
    pub const fn name(&self) -> &'static str {
        match self {
            Role::Following => "following",
            Role::Leading { .. } => "leading",
            Role::Halted(_) => "halted",
            Role::Stopped => "stopped",
        }
    }

    /// Fencing token of a leader.
    pub const fn epoch(&self) -> Option<u64> {
        match self {
            Role::Leading { epoch } => Some(*epoch),
            _ => None,
        }
    }
}

/// State of a sequencer, as shown to its service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Role of this process.
    pub role: Role,
    /// Reason why a follower may not lead, while no other process leads. The follower checks again with back-off.
    pub ineligible: Option<Halt>,
    /// Newest signed head known here.
    pub published: Option<Arc<PublishedHead>>,
    /// Index of the policy in force, as far as this process knows. Zero while the log is empty.
    pub policy: LeafIndex,
    /// Number of committed leaves, as far as this process knows.
    pub size: TreeSize,
}

impl Status {
    /// Reason why nothing is registered here: this process is halted, or may not lead and no other process does.
    pub fn obstacle(&self) -> Option<&Halt> {
        match &self.role {
            Role::Halted(halt) => Some(halt),
            Role::Following => self.ineligible.as_ref(),
            _ => None,
        }
    }
}
