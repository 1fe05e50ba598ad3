//! Types of the arguments and results of the storage traits.

use bytes::Bytes;
use merkle::{CompactRange, EntryDigest, LeafIndex, RootHash, TreeSize};

use crate::StoreError;
use crate::custody::check_case;

/// Size of a hash in a tile, in bytes.
pub const HASH_BYTES: usize = 32;
/// Size of a full tile of 256 hashes, in bytes.
pub const TILE_BYTES: usize = 256 * HASH_BYTES;

/// Current state of a log: its one mutable row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// Fencing token: raised by each take-over and by a freeze, never reused.
    pub epoch: u64,
    /// Number of committed batches.
    pub batch: u64,
    /// Right edge of the tree: its size, and the hashes that are needed to append.
    pub edge: CompactRange,
    /// Time of the last batch in whole Unix seconds. Decreases only with a batch that begins with a
    /// [`CLOCK_CORRECTION`].
    pub at: u64,
    /// Index of the newest registration policy. Zero while the log is empty, as entry 0 is a policy.
    pub policy: LeafIndex,
}

impl Head {
    /// Number of leaves that the head covers.
    pub fn size(&self) -> TreeSize {
        self.edge.size()
    }

    /// RFC 9162 root over the leaves that the head covers.
    pub fn root(&self) -> RootHash {
        self.edge.root()
    }

    /// Returns the row of the history for this head.
    pub fn committed(&self) -> CommittedHead {
        let Self { batch, epoch, at, .. } = *self;
        CommittedHead { batch, epoch, size: self.size(), root: self.root(), at }
    }

    /// Encodes the right edge for its column: the hashes one after the other.
    pub fn edge_bytes(&self) -> Vec<u8> {
        self.edge.hashes().iter().flat_map(|hash| *hash.as_bytes()).collect()
    }
}

/// Head in the history, which has one row per committed batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommittedHead {
    /// Number of the batch that produced this head, from 1.
    pub batch: u64,
    /// Epoch under which the batch was committed.
    pub epoch: u64,
    /// Number of leaves covered.
    pub size: TreeSize,
    /// RFC 9162 root over these leaves.
    pub root: RootHash,
    /// Time of the batch in Unix seconds: the `iat` of its receipts.
    pub at: u64,
}

/// Entry to be appended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewEntry {
    /// SHA-256 of [`statement`](Self::statement).
    pub digest: EntryDigest,
    /// Digest of the statement with the other encoding of the same ECDSA signature; such a statement must never
    /// enter.
    pub twin: Option<EntryDigest>,
    /// Statement with an empty unprotected header, verbatim.
    pub statement: Bytes,
    /// Index of the policy that admitted the entry.
    pub policy: LeafIndex,
    /// Name of the rule in that policy.
    pub rule: String,
    /// Facts that the decision found and the statement does not contain, as canonical JSON; `{}` for most entries.
    pub facts: String,
    /// Claims that no later entry may repeat.
    pub guards: Vec<GuardKey>,
    /// Data submitted with the statement that is needed to authenticate it again.
    pub collateral: Vec<Collateral>,
}

/// Entry as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Index of the entry in the log.
    pub index: LeafIndex,
    /// SHA-256 of the statement, which the leaf hash covers.
    pub digest: EntryDigest,
    /// Statement bytes; `None` once erased.
    pub statement: Option<Bytes>,
    /// Index of the policy that admitted the entry.
    pub policy: LeafIndex,
    /// Name of the rule in that policy.
    pub rule: String,
    /// Facts that the decision found and the statement does not contain, as canonical JSON. `{}` once erased.
    pub facts: String,
}

impl Entry {
    /// Returns the entry if its statement hashes to its digest (or is erased), and [`StoreError::Damaged`]
    /// otherwise, so that wrong bytes are not served.
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

/// Key of a claim that is unique in the log, such as a `receipt_id` of an issuer or the successor of a receipt.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GuardKey(pub Vec<u8>);

/// Bytes stored with an entry, outside its leaf hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collateral {
    /// Kind of the bytes; the caller assigns the numbers.
    pub kind: u8,
    /// Content, opaque to the store.
    pub bytes: Bytes,
}

/// Answer of [`LogReader::find`](crate::LogReader::find) for a known digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Index of the entry.
    pub index: LeafIndex,
    /// The entry's own digest; differs from the one asked for if that is a twin.
    pub digest: EntryDigest,
}

/// Address of a tile of 256 hashes (C2SP tlog-tiles).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TileAddress {
    /// Level of the tile; level 0 holds leaf hashes.
    pub level: u8,
    /// Number of the tile on its level.
    pub number: u64,
}

/// Tile after a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TileWrite {
    /// Address of the tile.
    pub address: TileAddress,
    /// 1 to 256 hashes of [`HASH_BYTES`] each.
    pub data: Bytes,
}

/// Rule of an entry that states that the log's time was ahead. If it is the first entry of a batch, the batch may
/// carry an earlier time than the batch before it.
pub const CLOCK_CORRECTION: &str = "clock-correction";

/// Rule of the entry that ends the log: no entry follows it.
pub const FREEZE: &str = "operator-freeze";

/// Effect of a batch's entry on other tables, written in the transaction that commits the batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Freezes the log; the last entry of the batch has the rule [`FREEZE`].
    Freeze,
    /// Holds an entry for a case, as [`Custody::hold`](crate::Custody::hold) does. An entry without bytes is skipped.
    Hold {
        /// Index of the entry.
        entry: LeafIndex,
        /// Name of the case.
        case: String,
    },
    /// Ends the hold of a case on an entry, if there is one.
    Release {
        /// Index of the entry.
        entry: LeafIndex,
        /// Name of the case.
        case: String,
    },
}

/// Input of one [`LogWriter::commit`](crate::LogWriter::commit).
#[derive(Clone, Debug)]
pub struct Batch {
    /// Head that must be in force: epoch, size and root are compared.
    pub from: Head,
    /// Head after the batch: same epoch, `batch + 1`.
    pub to: Head,
    /// Entries to append, from index `from.size()` on.
    pub entries: Vec<NewEntry>,
    /// Tiles that the entries change, with their new content.
    pub tiles: Vec<TileWrite>,
    /// Inbox items that the batch settles: those whose entry is in this batch or was found in the log.
    pub settled: Vec<(EntryDigest, LeafIndex)>,
    /// Effects of the entries, in order, at the time of the batch.
    pub effects: Vec<Effect>,
    /// Signatures over earlier heads, to store as [`SignatureStore::keep_signatures`](crate::SignatureStore::keep_signatures)
    /// does.
    pub signatures: Vec<HeadSignature>,
}

impl Batch {
    /// Returns whether the batch carries an earlier time than the batch before it.
    pub fn sets_time_back(&self) -> bool {
        self.to.at < self.from.at
    }

    /// Returns whether the batch freezes the log.
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

    /// Refuses a batch whose parts contradict each other, with [`StoreError::Refused`]; every implementation calls
    /// this first.
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
        let early = self.signatures.iter().any(|signature| signature.size > self.from.size());
        let complaint = complaint.or(early.then_some("a head is signed before it is committed"));
        complaint.map_or(Ok(()), |why| Err(StoreError::Refused(why.into())))
    }
}

/// Returns whether the bytes are 1 to 256 hashes.
pub(crate) fn is_tile(data: &[u8]) -> bool {
    !data.is_empty() && data.len().is_multiple_of(HASH_BYTES) && data.len() <= TILE_BYTES
}

/// Purpose of a signature over a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum SignatureKind {
    /// COSE signature that every receipt of this head carries.
    Receipt = 1,
    /// C2SP signed note.
    Checkpoint = 2,
    /// Cosignature of a witness (C2SP tlog-cosignature).
    Cosignature = 3,
}

/// Signature over a committed head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeadSignature {
    /// Size of the head.
    pub size: TreeSize,
    /// Purpose of the signature.
    pub kind: SignatureKind,
    /// Kid of the signing key.
    pub kid: Vec<u8>,
    /// Signature, with all data that its kind needs to be used alone.
    pub bytes: Bytes,
}

/// Committed head with one signature over it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedHead {
    /// The committed head.
    pub head: CommittedHead,
    /// A signature over that head.
    pub signature: HeadSignature,
}

/// Admitted statement that waits for the sequencer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InboxItem {
    /// Digest of the statement.
    pub digest: EntryDigest,
    /// Submission in the sequencer's own encoding.
    pub submission: Bytes,
}

/// State of an inbox item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Durable, not yet sequenced.
    Pending,
    /// Registered at this index.
    Registered(LeafIndex),
    /// Refused when the sequencer decided again, with the reason.
    Failed(String),
}

/// Public key that signs heads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogKey {
    /// RFC 9679 thumbprint.
    pub kid: Vec<u8>,
    /// Public key in the encoding of the service that publishes it.
    pub public: Bytes,
    /// First tree size that the key may sign.
    pub from_size: TreeSize,
    /// Time of retirement in Unix seconds; `None` while the key is in force.
    pub retired_at: Option<u64>,
    /// First tree size of the successor: the key signs no head of this size or larger.
    pub retired_size: Option<TreeSize>,
    /// Size from which on the key's signatures prove nothing, as another party may have made them.
    pub compromised_size: Option<TreeSize>,
}

impl LogKey {
    /// Makes a key in force that signs heads of `from_size` and larger.
    pub fn new(kid: Vec<u8>, public: Bytes, from_size: TreeSize) -> Self {
        Self { kid, public, from_size, retired_at: None, retired_size: None, compromised_size: None }
    }

    /// Returns whether this is the key for heads of this size. A mark as compromised does not change which heads
    /// the log itself signed with it.
    pub fn signs(&self, size: TreeSize) -> bool {
        self.from_size <= size && self.retired_size.is_none_or(|end| size < end)
    }

    /// Returns whether a signature of this key over a head of this size proves nothing.
    pub fn is_compromised_at(&self, size: TreeSize) -> bool {
        self.compromised_size.is_some_and(|since| since <= size)
    }
}
