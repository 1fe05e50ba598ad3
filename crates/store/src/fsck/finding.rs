//! What can be wrong, by the row it is wrong in.

use merkle::{LeafIndex, RootHash, TreeSize};

use crate::{GuardKey, SignatureKind};

/// One thing that is wrong with a stored log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Finding {
    /// The head's row contradicts itself; nothing else can be checked.
    #[error("log: {why}")]
    HeadUnreadable {
        /// What is wrong with it.
        why: String,
    },
    /// The last row of the history is not the head.
    #[error("log: the head of size {size} is not what batch {batch} says, or that row is missing")]
    HeadNotInHistory {
        /// The head's batch.
        batch: u64,
        /// The head's size.
        size: TreeSize,
    },
    /// The history goes on after the head: the head was put back.
    #[error("batch {batch}: size {size} was committed, and the head is at {head}")]
    HistoryBeyondHead {
        /// The row.
        batch: u64,
        /// Its size.
        size: TreeSize,
        /// The head's size.
        head: TreeSize,
    },
    /// Rows of the history are missing.
    #[error("batch {first} to {last}: missing from the history")]
    HeadsLost {
        /// The first of them.
        first: u64,
        /// The last of them.
        last: u64,
    },
    /// Size, time or epoch goes back from one row to the next; the time without a clock correction.
    #[error("batch {batch}: size, time or epoch is behind the row before it")]
    HistoryRunsBack {
        /// The later row.
        batch: u64,
    },
    /// The entries, or the tiles, do not have the root that was committed.
    #[error("batch {batch}: the root of size {size} is stored as {stored}, and computed otherwise")]
    HeadRoot {
        /// The row.
        batch: u64,
        /// Its size.
        size: TreeSize,
        /// Its root.
        stored: RootHash,
    },
    /// Heads after one whose root is wrong, with wrong roots too.
    #[error("batch: {count} heads after batch {batch} have other roots too")]
    LaterHeadRoots {
        /// The first row that is wrong.
        batch: u64,
        /// How many follow.
        count: u64,
    },
    /// The right edge in the head's row is not that of the tiles.
    #[error("log: the head's edge is not that of the stored tiles")]
    EdgeNotOfTiles,
    /// A row that the head covers is missing or unreadable.
    #[error("entry {index}: {why}")]
    EntryLost {
        /// The row.
        index: LeafIndex,
        /// What the store says.
        why: String,
    },
    /// The statement does not hash to the digest beside it.
    #[error("entry {index}: the statement does not hash to its digest")]
    StatementNotOfDigest {
        /// The row.
        index: LeafIndex,
    },
    /// The statement is gone, and the log does not say that it was erased.
    #[error("entry {index}: the statement is gone without an erasure")]
    ErasedSilently {
        /// The row.
        index: LeafIndex,
    },
    /// The log is not frozen, or an entry not held or released, as the operator's statement says.
    #[error("entry {index}: {why}")]
    EffectMissing {
        /// The statement's row.
        index: LeafIndex,
        /// What is otherwise.
        why: String,
    },
    /// The digest does not hash to what the tile of leaves has.
    #[error("entry {index}: its leaf hash is not the one in the tile")]
    LeafNotInTile {
        /// The entry.
        index: LeafIndex,
    },
    /// A tile above the leaves has another hash than the tile below it gives.
    #[error("tile {number} of level {level}: hash {position} is not that of the tile below")]
    NodeNotOfTile {
        /// The tile's level.
        level: u8,
        /// The tile's number.
        number: u64,
        /// The hash in the tile, from 0.
        position: usize,
    },
    /// A tile is missing.
    #[error("tile {number} of level {level}: missing")]
    TileLost {
        /// The tile's level.
        level: u8,
        /// The tile's number.
        number: u64,
    },
    /// A tile ends before, or after, the head does.
    #[error("tile {number} of level {level}: {stored} hashes, and the head has {expected}")]
    TileWidth {
        /// The tile's level.
        level: u8,
        /// The tile's number.
        number: u64,
        /// How many hashes it has.
        stored: usize,
        /// How many it must have.
        expected: usize,
    },
    /// The log would accept this entry again, or answer with another one.
    #[error("seen: the digest of entry {index} does not lead to it")]
    NotSeen {
        /// The entry.
        index: LeafIndex,
    },
    /// The log would accept the other encoding of the entry's signature.
    #[error("seen: the twin of entry {index} does not lead to it")]
    TwinNotSeen {
        /// The entry.
        index: LeafIndex,
    },
    /// The look-up keys of a few entries could not be read.
    #[error("seen, guard or lookup: the rows of entries from {from} on: {why}")]
    LookUpUnreadable {
        /// The first of them.
        from: LeafIndex,
        /// What the store says.
        why: String,
    },
    /// A search finds the entry by what it does not say, or does not find it by what it says.
    #[error("lookup: the index says something else of entry {index} than the entry does; reindex the log")]
    LookupWrong {
        /// The entry.
        index: LeafIndex,
    },
    /// The log would accept a second claim to what this entry claims.
    #[error("guard: a guard of entry {index} does not lead to it")]
    GuardNotHeld {
        /// The entry.
        index: LeafIndex,
        /// The guard.
        key: GuardKey,
    },
    /// A key on record is not the one that its name stands for.
    #[error("log_key: the key {}: {why}", hex(kid))]
    KeyWrong {
        /// The name on record.
        kid: Vec<u8>,
        /// What is wrong with the key.
        why: String,
    },
    /// Heads whose signatures are gone: a later one of the same epoch has its own.
    #[error("head_signature: batch {first} to {last}: signatures are missing")]
    HeadsUnsigned {
        /// The first batch.
        first: u64,
        /// The last.
        last: u64,
    },
    /// What a witness said does not verify over the head as it is stored.
    #[error("cosignature: over size {size}, of {}: {why}", String::from_utf8_lossy(witness))]
    CosignatureWrong {
        /// The size cosigned.
        size: TreeSize,
        /// Which witness.
        witness: Vec<u8>,
        /// What the caller's check says.
        why: String,
    },
    /// A signature over a head that the history does not have.
    #[error("head_signature: {kind:?} over size {size}, which was never committed")]
    SignatureOverNothing {
        /// The size signed.
        size: TreeSize,
        /// What the signature is for.
        kind: SignatureKind,
        /// The key.
        kid: Vec<u8>,
    },
    /// A signature over a head of a size at which its key is not in force: replaced before, or used from a larger size on.
    #[error("head_signature: {kind:?} over size {size}: its key {} signs no head of that size", hex(kid))]
    KeyNotInForce {
        /// The size signed.
        size: TreeSize,
        /// What the signature is for.
        kind: SignatureKind,
        /// The key.
        kid: Vec<u8>,
    },
    /// Rows that the database itself cannot read; what comes after them in the same table was not checked.
    #[error("{table}: {why}")]
    Unreadable {
        /// What was read.
        table: &'static str,
        /// What the store says.
        why: String,
    },
    /// A signature that does not verify over the head as it is stored.
    #[error("head_signature: {kind:?} over size {size}: {why}")]
    SignatureWrong {
        /// The size signed.
        size: TreeSize,
        /// What the signature is for.
        kind: SignatureKind,
        /// The key.
        kid: Vec<u8>,
        /// What the caller's check says.
        why: String,
    },
}

fn hex(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(bytes)
}
