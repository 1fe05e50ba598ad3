//! The values that cross the [`LogStore`](crate::LogStore) promise.

use bytes::Bytes;
use merkle::{CompactRange, EntryDigest, LeafIndex, RootHash, TreeSize};

use crate::custody::check_case;

/// Bytes of a hash in a tile.
pub const HASH_BYTES: usize = 32;
/// Bytes of a full tile.
pub const TILE_BYTES: usize = 256 * HASH_BYTES;

/// The log's one mutable row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// Fencing token: raised at each take-over, never reused.
    pub epoch: u64,
    /// How many batches were committed.
    pub batch: u64,
    /// The right edge of the tree: its size, and all that is needed to append.
    pub edge: CompactRange,
    /// When the last batch was committed, in whole Unix seconds; never decreases.
    pub at: u64,
    /// The newest registration policy's leaf. Zero while the log is empty: entry 0 is a policy.
    pub policy: LeafIndex,
}

impl Head {
    /// How many leaves the head covers.
    pub fn size(&self) -> TreeSize {
        self.edge.size()
    }

    /// The RFC 9162 root over those leaves.
    pub fn root(&self) -> RootHash {
        self.edge.root()
    }
}

/// A head as history keeps it: one row per committed batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommittedHead {
    /// The batch that produced this head, from 1.
    pub batch: u64,
    /// The epoch under which it was committed.
    pub epoch: u64,
    /// Leaves covered.
    pub size: TreeSize,
    /// RFC 9162 root over them.
    pub root: RootHash,
    /// Unix seconds: the receipts' `iat`.
    pub at: u64,
}

/// An entry to be appended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewEntry {
    /// SHA-256 of `statement`.
    pub digest: EntryDigest,
    /// The digest of the other encoding of the same ECDSA signature, which must never enter.
    pub twin: Option<EntryDigest>,
    /// The statement with an empty unprotected header, verbatim.
    pub statement: Bytes,
    /// The policy entry that admitted it.
    pub policy: LeafIndex,
    /// The rule of that policy.
    pub rule: String,
    /// What was read from the statement, as canonical JSON; derived, for display and look-up.
    pub facts: String,
    /// Claims that no later entry may repeat.
    pub guards: Vec<GuardKey>,
    /// What came beside the statement and is needed to authenticate it again.
    pub collateral: Vec<Collateral>,
}

/// An entry as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its position.
    pub index: LeafIndex,
    /// SHA-256 of the statement: what the leaf hash covers.
    pub digest: EntryDigest,
    /// The statement; `None` once erased.
    pub statement: Option<Bytes>,
    /// The policy entry that admitted it.
    pub policy: LeafIndex,
    /// The rule of that policy.
    pub rule: String,
    /// Derived facts, canonical JSON.
    pub facts: String,
}

impl Entry {
    /// The entry, unless its statement no longer hashes to its digest: wrong bytes are not served.
    pub fn verified(self) -> Result<Self, StoreError> {
        match &self.statement {
            Some(bytes) if EntryDigest::of(bytes) != self.digest => Err(StoreError::Damaged(format!(
                "the statement of entry {} does not hash to its digest",
                self.index
            ))),
            _ => Ok(self),
        }
    }
}

/// Something unique in the log: a receipt_id per issuer, the successor of a receipt.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GuardKey(pub Vec<u8>);

/// Bytes kept beside an entry, outside its leaf hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collateral {
    /// What the bytes are; the numbers are the caller's.
    pub kind: u8,
    /// The bytes.
    pub bytes: Bytes,
}

/// The answer to a digest that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Where the entry stands.
    pub index: LeafIndex,
    /// The entry's own digest: unequal to the one asked for when that is a twin.
    pub digest: EntryDigest,
}

/// Names a tile of 256 hashes (C2SP tlog-tiles).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TileAddress {
    /// 0 holds leaf hashes.
    pub level: u8,
    /// The tile's number on its level.
    pub number: u64,
}

/// A tile as it stands after a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TileWrite {
    /// Which tile.
    pub address: TileAddress,
    /// 1 to 256 hashes of 32 bytes.
    pub data: Bytes,
}

/// The rule of an entry that states that the log's time was ahead. If it is the first entry of a batch, the batch may
/// carry a time before that of the batch before it.
pub const CLOCK_CORRECTION: &str = "clock-correction";

/// The rule of an entry that ends the log: no entry follows it.
pub const FREEZE: &str = "operator-freeze";

/// What an entry of a batch does beside the log, in the transaction that commits it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The log is frozen; the batch ends with the entry that says so.
    Freeze,
    /// An entry is held for a case, as by [`Custody::hold`](crate::Custody::hold). Of an entry without bytes nothing is held.
    Hold {
        /// The entry.
        entry: LeafIndex,
        /// The case.
        case: String,
    },
    /// The hold of a case on an entry ends, if there is one.
    Release {
        /// The entry.
        entry: LeafIndex,
        /// The case.
        case: String,
    },
}

/// What one commit does.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The head that must be in force: epoch and size are compared.
    pub from: Head,
    /// The head after the batch: same epoch, `batch + 1`.
    pub to: Head,
    /// The entries, from index `from.size()` on.
    pub entries: Vec<NewEntry>,
    /// The tiles that those entries touched.
    pub tiles: Vec<TileWrite>,
    /// Inbox items that this batch settles: those whose entry is in this batch or was found.
    pub settled: Vec<(EntryDigest, LeafIndex)>,
    /// What its entries do beside the log, in order, at the time of the batch.
    pub effects: Vec<Effect>,
}

impl Batch {
    /// Whether the batch carries a time before that of the batch before it.
    pub fn sets_time_back(&self) -> bool {
        self.to.at < self.from.at
    }

    /// Whether the log is frozen with it.
    pub fn freezes(&self) -> bool {
        self.effects.contains(&Effect::Freeze)
    }

    /// Refuses effects that no entry of the batch can have.
    fn check_effects(&self) -> Result<(), StoreError> {
        let frozen = self.effects.iter().filter(|effect| **effect == Effect::Freeze).count();
        let ends = self.entries.last().is_some_and(|entry| entry.rule == FREEZE);
        if frozen > 0 && !(frozen == 1 && ends) {
            return Err(StoreError::Refused(
                "a batch freezes the log without ending with the entry that says so".into(),
            ));
        }
        for effect in &self.effects {
            let (Effect::Hold { entry, case } | Effect::Release { entry, case }) = effect else { continue };
            check_case(case)?;
            if !self.from.size().holds(*entry) {
                return Err(StoreError::Refused(format!("entry {entry} is not in the log before the batch")));
            }
        }
        Ok(())
    }

    /// Refuses a batch whose parts contradict each other; every implementation asks first.
    pub fn check(&self) -> Result<(), StoreError> {
        self.check_effects()?;
        let complaint = if self.entries.is_empty() {
            (self.to != self.from || !self.tiles.is_empty())
                .then_some("a batch without entries moves the head")
        } else if self.to.epoch != self.from.epoch {
            Some("a batch changes the epoch")
        } else if self.to.batch != self.from.batch + 1 {
            Some("batch numbers are not consecutive")
        } else if self.to.size().get() != self.from.size().get() + self.entries.len() as u64 {
            Some("the new size is not the old one plus the entries")
        } else if self.sets_time_back() && self.entries[0].rule != CLOCK_CORRECTION {
            Some("time runs backwards without a clock correction")
        } else if !self.to.size().holds(self.to.policy) {
            Some("the policy is not in the log")
        } else if self.tiles.iter().any(|tile| !is_tile(&tile.data)) {
            Some("a tile is not 1 to 256 hashes")
        } else {
            None
        };
        complaint.map_or(Ok(()), |why| Err(StoreError::Refused(why.into())))
    }
}

/// Whether the bytes are 1 to 256 hashes.
pub(crate) fn is_tile(data: &[u8]) -> bool {
    !data.is_empty() && data.len().is_multiple_of(HASH_BYTES) && data.len() <= TILE_BYTES
}

/// What a signature over a head is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum SignatureKind {
    /// The COSE signature that every receipt of this head carries.
    Receipt = 1,
    /// A C2SP signed note.
    Checkpoint = 2,
    /// A witness's cosignature.
    Cosignature = 3,
}

/// A signature over a committed head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeadSignature {
    /// The head's size.
    pub size: TreeSize,
    /// What it is for.
    pub kind: SignatureKind,
    /// Which key made it.
    pub kid: Vec<u8>,
    /// The signature with whatever its kind needs to be used alone.
    pub bytes: Bytes,
}

/// A committed head with one signature over it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedHead {
    /// The head.
    pub head: CommittedHead,
    /// The signature.
    pub signature: HeadSignature,
}

/// An admitted statement that waits for the sequencer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InboxItem {
    /// The statement's digest.
    pub digest: EntryDigest,
    /// The submission, in the sequencer's own encoding.
    pub submission: Bytes,
}

/// Where an inbox item stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Durable, not yet sequenced.
    Pending,
    /// In the log.
    Registered(LeafIndex),
    /// Refused when it was decided again; says why.
    Failed(String),
}

/// A key that signs heads, as it is published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogKey {
    /// RFC 9679 thumbprint.
    pub kid: Vec<u8>,
    /// The public key, in the encoding of the service that publishes it.
    pub public: Bytes,
    /// The first tree size it may sign.
    pub from_size: TreeSize,
    /// Unix seconds of its retirement.
    pub retired_at: Option<u64>,
    /// First tree size of its successor: it signs no head of this size or larger.
    pub retired_size: Option<TreeSize>,
    /// Its signatures over heads of this size or larger prove nothing: somebody else may have made them.
    pub compromised_size: Option<TreeSize>,
}

impl LogKey {
    /// A key that signs heads of `from_size` and larger.
    pub fn new(kid: Vec<u8>, public: Bytes, from_size: TreeSize) -> Self {
        Self { kid, public, from_size, retired_at: None, retired_size: None, compromised_size: None }
    }

    /// Whether it is the key for heads of this size. A mark as compromised does not change what the log itself signed.
    pub fn signs(&self, size: TreeSize) -> bool {
        self.from_size <= size && self.retired_size.is_none_or(|end| size < end)
    }
}

/// How the storage under a database fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StorageFault {
    /// There is no space left.
    #[error("the disk is full")]
    Full,
    /// Reading, writing or flushing failed.
    #[error("the disk fails with I/O errors")]
    Io,
    /// The file system, or the database server, takes no writes.
    #[error("the storage is read-only")]
    ReadOnly,
}

/// Why a read or a simple write failed. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database cannot be reached or answered too late: try again later.
    #[error("the database is not available: {0}")]
    Unavailable(String),
    /// The storage under the database fails: try again once it works; what the database said stands beside.
    #[error("{0}: {1}")]
    Storage(StorageFault, String),
    /// The log takes no more entries, for ever.
    #[error("the log is frozen: it takes no more entries")]
    Frozen,
    /// Another process has the database, and there can only be one.
    #[error("{0}")]
    InUse(String),
    /// There is no log here: no database, or none in it.
    #[error("{0}")]
    NoLog(String),
    /// The database must not be used as it is; the text says what to change.
    #[error("{0}")]
    Refused(String),
    /// Stored data contradicts itself.
    #[error("the database is damaged: {0}")]
    Damaged(String),
}

/// Why a commit did not succeed, and what is known about it.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// Another epoch or size is in force. Nothing was changed; whoever sees this must not go on.
    #[error("fenced: the head is no longer the one this process holds")]
    Fenced,
    /// A digest of the batch is in `seen` already. Nothing was changed: look up, drop, try once more.
    #[error("an entry of the batch is in the log already")]
    AlreadySeen,
    /// A guard of the batch is taken. Nothing was changed.
    #[error("a guard of the batch is taken")]
    GuardTaken,
    /// Nothing was changed.
    #[error(transparent)]
    NotCommitted(StoreError),
    /// It may have happened. Settle it with [`take_over`](crate::LogStore::take_over) before anything is signed.
    #[error("the commit's outcome is unknown: {0}")]
    Unknown(String),
}
