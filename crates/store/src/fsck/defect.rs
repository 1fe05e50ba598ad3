//! [`Defect`]: the defects that a check reports, each with the row concerned.

use lookup_tree::RunId;
use merkle::{LeafIndex, RootHash, TreeSize};

use crate::{GuardKey, SignatureKind};

/// One defect of a stored log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Defect {
    /// The head's row contradicts itself; nothing else can be checked.
    #[error("log: {why}")]
    HeadUnreadable {
        /// Description of the contradiction.
        why: String,
    },
    /// The last row of the history is not the head.
    #[error("log: the head of size {size} differs from the row of batch {batch}, or that row is missing")]
    HeadNotInHistory {
        /// Batch number of the head.
        batch: u64,
        /// Size of the head.
        size: TreeSize,
    },
    /// The history has batches after the head: an older head was restored.
    #[error("batch {batch}: size {size} was committed, but the head has size {head}")]
    HistoryBeyondHead {
        /// Batch number of the row.
        batch: u64,
        /// Size of the row.
        size: TreeSize,
        /// Size of the head.
        head: TreeSize,
    },
    /// Rows of the history are missing.
    #[error("batch {first} to {last}: missing from the history")]
    HeadsLost {
        /// First missing batch.
        first: u64,
        /// Last missing batch.
        last: u64,
    },
    /// Size, time or epoch decreases from one row to the next; the time without a clock correction.
    #[error("batch {batch}: size, time or epoch is behind the row before it")]
    HistoryRunsBack {
        /// Batch number of the later row.
        batch: u64,
    },
    /// The root computed from entries or tiles is not the committed one.
    #[error("batch {batch}: the root of size {size} is stored as {stored}, but the computed one differs")]
    HeadRoot {
        /// Batch number of the row.
        batch: u64,
        /// Size of the row.
        size: TreeSize,
        /// Root that the row stores.
        stored: RootHash,
    },
    /// Heads after one with a wrong root have wrong roots as well.
    #[error("batch: later heads than batch {batch} with a wrong root: {count}")]
    LaterHeadRoots {
        /// Batch number of the first wrong head.
        batch: u64,
        /// Number of wrong heads after it.
        count: u64,
    },
    /// The right edge in the head's row is not that of the tiles.
    #[error("log: the right edge in the head differs from the stored tiles")]
    EdgeNotOfTiles,
    /// A row that the head covers is missing or unreadable.
    #[error("entry {index}: {why}")]
    EntryLost {
        /// Index of the entry.
        index: LeafIndex,
        /// Error text of the store.
        why: String,
    },
    /// The statement does not hash to the digest stored in the same row.
    #[error("entry {index}: the statement does not hash to its digest")]
    StatementNotOfDigest {
        /// Index of the entry.
        index: LeafIndex,
    },
    /// The statement is missing, and no erasure statement in the log covers it.
    #[error("entry {index}: the statement is missing without an erasure")]
    ErasedSilently {
        /// Index of the entry.
        index: LeafIndex,
    },
    /// The certificates or the detached payload beside a statement are not those that were admitted with it.
    #[error("collateral of entry {index}: {why}")]
    CollateralWrong {
        /// Index of the entry.
        index: LeafIndex,
        /// Description of the difference.
        why: String,
    },
    /// A freeze, hold or release that an entry of the operator states did not take effect in the tables.
    #[error("entry {index}: {why}")]
    EffectMissing {
        /// Index of the operator's statement.
        index: LeafIndex,
        /// Description of the difference.
        why: String,
    },
    /// The leaf hash computed from the digest is not the one in the tile of leaves.
    #[error("entry {index}: its leaf hash differs from the one in the tile")]
    LeafNotInTile {
        /// Index of the entry.
        index: LeafIndex,
    },
    /// A tile above the leaves has another hash than the tile below it implies.
    #[error(
        "tile {number} of level {level}: hash {position} differs from the one computed from the tile below"
    )]
    NodeNotOfTile {
        /// Level of the tile.
        level: u8,
        /// Number of the tile on its level.
        number: u64,
        /// Position of the hash in the tile, from 0.
        position: usize,
    },
    /// A tile is missing.
    #[error("tile {number} of level {level}: missing")]
    TileLost {
        /// Level of the tile.
        level: u8,
        /// Number of the tile on its level.
        number: u64,
    },
    /// A tile has fewer or more hashes than the head implies.
    #[error("tile {number} of level {level}: {stored} hashes, but {expected} by the head's size")]
    TileWidth {
        /// Level of the tile.
        level: u8,
        /// Number of the tile on its level.
        number: u64,
        /// Number of hashes stored.
        stored: usize,
        /// Number of hashes that the head implies.
        expected: usize,
    },
    /// The table `seen` lacks the entry's digest, or leads elsewhere: the log would accept the entry again.
    #[error("seen: the digest of entry {index} does not lead to it")]
    NotSeen {
        /// Index of the entry.
        index: LeafIndex,
    },
    /// The table `seen` lacks the entry's twin: the log would accept the other encoding of its signature.
    #[error("seen: the twin of entry {index} does not lead to it")]
    TwinNotSeen {
        /// Index of the entry.
        index: LeafIndex,
    },
    /// The look-up keys of some entries could not be read.
    #[error("seen, guard or lookup: the rows of entries from {from} on: {why}")]
    LookUpUnreadable {
        /// Index of the first of these entries.
        from: LeafIndex,
        /// Error text of the store.
        why: String,
    },
    /// The lookup index lacks postings of the entry.
    #[error("lookup: the index lacks postings of entry {index}; reindex the log")]
    LookupWrong {
        /// Index of the entry.
        index: LeafIndex,
    },
    /// The postings of a run of the lookup index are not in order, or have another root.
    #[error("lookup: run {run} of the index: {why}; reindex the log")]
    RunWrong {
        /// Level and number of the run.
        run: RunId,
        /// Description of the difference.
        why: String,
    },
    /// A guard of the entry is missing or leads elsewhere: the log would accept a second claim to the same thing.
    #[error("guard: a guard of entry {index} does not lead to it")]
    GuardNotHeld {
        /// Index of the entry.
        index: LeafIndex,
        /// Key of the guard.
        key: GuardKey,
    },
    /// A published key does not match its kid.
    #[error("log_key: the key {}: {why}", hex(kid))]
    KeyWrong {
        /// The kid on record.
        kid: Vec<u8>,
        /// Description of the difference.
        why: String,
    },
    /// Signatures of heads are missing although a later head of the same epoch has its own.
    #[error("head_signature: batch {first} to {last}: signatures are missing")]
    HeadsUnsigned {
        /// First batch without all its signatures.
        first: u64,
        /// Last batch without all its signatures.
        last: u64,
    },
    /// A witness's cosignature does not verify over the head as it is stored.
    #[error("cosignature: over size {size}, of {}: {why}", String::from_utf8_lossy(witness))]
    CosignatureWrong {
        /// Size of the cosigned head.
        size: TreeSize,
        /// Name of the witness.
        witness: Vec<u8>,
        /// Error text of [`FsckFacts::check_cosignature`](super::FsckFacts::check_cosignature).
        why: String,
    },
    /// A signature over a size that the history does not have.
    #[error("head_signature: {kind:?} over size {size}, which was never committed")]
    SignatureOverNothing {
        /// Size that was signed.
        size: TreeSize,
        /// Kind of the signature.
        kind: SignatureKind,
        /// Kid of the signing key.
        kid: Vec<u8>,
    },
    /// A signature over a head of a size at which its key is not in force: the key was replaced before, or signs
    /// from a larger size on.
    #[error("head_signature: {kind:?} over size {size}: its key {} is not in force at that size", hex(kid))]
    KeyNotInForce {
        /// Size that was signed.
        size: TreeSize,
        /// Kind of the signature.
        kind: SignatureKind,
        /// Kid of the signing key.
        kid: Vec<u8>,
    },
    /// Rows that the database cannot read; the rows after them in the same table were not checked.
    #[error("{table}: {why}")]
    Unreadable {
        /// Name of the table.
        table: &'static str,
        /// Error text of the store.
        why: String,
    },
    /// A signature that does not verify over the head as it is stored.
    #[error("head_signature: {kind:?} over size {size}: {why}")]
    SignatureWrong {
        /// Size of the signed head.
        size: TreeSize,
        /// Kind of the signature.
        kind: SignatureKind,
        /// Kid of the signing key.
        kid: Vec<u8>,
        /// Error text of [`FsckFacts::check_signature`](super::FsckFacts::check_signature).
        why: String,
    },
}

fn hex(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(bytes)
}
