//! Ending a log in one database, and continuing it in another.
//!
//! A *frozen* log takes no more entries, for ever and from every process: the flag is in the row that every commit
//! moves. Its newest head can still be signed, and all of it can be read.
//!
//! A database that is *filled* gets the history of a log that was written elsewhere: the same batches, heads and
//! epochs. Until the history is complete, only a process that fills it from the same source can open it, so that
//! half a copy is never served, sequenced or signed.
//!
//! Not here: the file between the two databases and the checks of it (`archive`), and signatures, keys, holds,
//! reports and erasures, which are written with the ordinary traits.

use std::ops::Range;

use async_trait::async_trait;
use merkle::{EntryDigest, LeafIndex, TreeSize};

use crate::{
    Batch, CLOCK_CORRECTION, Collateral, CommittedHead, Cosignature, GuardKey, Head, HeadSignature,
    StoreError, is_tile,
};

/// Listing of all keys that lead to entries, for an archive.
#[async_trait]
pub trait HistoryExport: Send + Sync + 'static {
    /// Reads up to `limit` rows that lead to an entry by its digest or its twin's, in order of key.
    async fn seen_rows(&self, after: Option<SeenKey>, limit: usize) -> Result<Vec<SeenRow>, StoreError>;

    /// Reads up to `limit` guards with the entries that hold them, in order of key.
    async fn guard_rows(&self, after: Option<&GuardKey>, limit: usize) -> Result<Vec<GuardRow>, StoreError>;

    /// Reads the collateral of these entries, by entry and then in order of kind.
    async fn collateral_rows(&self, entries: Range<u64>) -> Result<Vec<(LeafIndex, Collateral)>, StoreError>;
}

/// Filling of an empty database with the history of a log that was written elsewhere.
#[async_trait]
pub trait HistoryImport: Send + Sync + 'static {
    /// Marks an empty database as being filled from this source, or continues with one that is. Returns the head
    /// up to which it is filled.
    ///
    /// A database that holds a log, and one that is filled from another source, are [`StoreError::Refused`]. Until
    /// [`end_filling`](Self::end_filling), `open`, a take-over and a commit are refused.
    async fn begin_filling(&self, origin: &str, source: &Source) -> Result<Head, StoreError>;

    /// Appends committed history, all or nothing. Refused unless the database is being filled from this source and
    /// its head is the one where the history begins.
    async fn fill(&self, source: &Source, history: &History) -> Result<(), StoreError>;

    /// Adds the rows that lead to entries: own digests and twins (`seen`), and guards. A row that exists already
    /// changes nothing; one whose key leads to another entry is [`StoreError::Damaged`].
    async fn fill_claims(
        &self,
        source: &Source,
        seen: &[SeenRow],
        guards: &[GuardRow],
    ) -> Result<(), StoreError>;

    /// Ends the filling and opens the log for every process. The resulting epoch is never lower than the history's.
    async fn end_filling(&self, source: &Source, epoch: u64, policy: LeafIndex) -> Result<Head, StoreError>;
}

/// State of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// The log grows.
    #[default]
    Open,
    /// The log is frozen: it has its last head.
    Frozen {
        /// Time of the freeze in Unix seconds.
        at: u64,
    },
    /// A copy of a log is being written and is not complete.
    Filling {
        /// Source of the copy.
        source: Source,
    },
}

/// Identity of the file from which a database is filled: its SHA-256.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Source(pub [u8; 32]);

/// First 128 bits of an entry's digest or of its twin's.
pub type SeenKey = [u8; 16];

/// Returns the [`SeenKey`] of a digest or a twin.
pub fn seen_key(digest: &EntryDigest) -> SeenKey {
    let mut key = [0; 16];
    key.copy_from_slice(&digest.as_bytes()[..16]);
    key
}

/// A [`SeenKey`] and the entry to which it leads.
pub type SeenRow = (SeenKey, LeafIndex);
/// A guard and the entry that holds it.
pub type GuardRow = (GuardKey, LeafIndex);

/// Consecutive committed batches, joined into one.
#[derive(Clone, Debug)]
pub struct History {
    /// From the head before the first batch to the head after the last; without guards and twins, which
    /// [`HistoryImport::fill_claims`] adds.
    pub batch: Batch,
    /// Committed heads of these batches, one for each.
    pub heads: Vec<CommittedHead>,
    /// Signatures over those heads.
    pub signatures: Vec<HeadSignature>,
    /// Cosignatures of witnesses over those heads.
    pub cosignatures: Vec<Cosignature>,
}

impl History {
    /// Returns whether the first entry after this size is a clock correction.
    fn corrects_clock_at(&self, size: TreeSize) -> bool {
        let place = size.get().checked_sub(self.batch.from.size().get());
        let entry = place.and_then(|place| self.batch.entries.get(usize::try_from(place).ok()?));
        entry.is_some_and(|entry| entry.rule == CLOCK_CORRECTION)
    }

    /// Refuses a history that contradicts itself, with [`StoreError::Refused`]; every implementation calls this
    /// first.
    pub fn check(&self) -> Result<(), StoreError> {
        let Batch { from, to, entries, tiles, .. } = &self.batch;
        let mut before = (from.batch, from.size(), from.at, from.epoch);
        let goes_on = self.heads.iter().all(|head| {
            let next = (head.batch, head.size, head.at, head.epoch);
            let goes_on = next.0 == before.0 + 1
                && next.1 > before.1
                && (next.2 >= before.2 || self.corrects_clock_at(before.1))
                && next.3 >= before.3;
            before = next;
            goes_on
        });
        let ends = before == (to.batch, to.size(), to.at, to.epoch)
            && self.heads.last().is_some_and(|last| last.root == to.root());
        let mut sizes =
            self.signatures.iter().map(|it| it.size).chain(self.cosignatures.iter().map(|it| it.size));
        let complaint = if !goes_on {
            Some("a head of the history does not follow the one before it")
        } else if !ends {
            Some("the history does not end with its head")
        } else if to.size().get() != from.size().get() + entries.len() as u64 {
            Some("the history does not have all entries that its heads cover")
        } else if to.policy < from.policy || !to.size().holds(to.policy) {
            Some("the policy of the history is not in it")
        } else if !sizes.all(|size| self.heads.binary_search_by_key(&size, |head| head.size).is_ok()) {
            Some("a signature is over a head that is not in the history")
        } else if tiles.iter().any(|tile| !is_tile(&tile.data)) {
            Some("a tile is not 1 to 256 hashes")
        } else {
            None
        };
        complaint.map_or(Ok(()), |why| Err(StoreError::Refused(why.into())))
    }
}

/// Refusal of opening a database that is not completely filled.
pub fn half_filled() -> StoreError {
    StoreError::Refused(
        "a copy of a log is being written into this database and is not complete: \
         run the command that writes it again, with the same file"
            .into(),
    )
}

/// Refusal of filling a database that is not, or no longer, being filled from this source.
pub fn not_filling() -> StoreError {
    StoreError::Refused("this database is not being filled from this file".into())
}

/// Refusal of filling a database that holds a log.
pub fn not_empty(origin: &str, size: TreeSize) -> StoreError {
    StoreError::Refused(format!("the database is not empty: it holds the log {origin} with {size} entries"))
}

/// Error for two rows that lead from one key to different entries.
pub fn other_claim(entry: LeafIndex) -> StoreError {
    StoreError::Damaged(format!("a key of entry {entry} leads to another entry already"))
}
