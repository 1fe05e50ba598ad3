//! Ending a log in one database, and beginning it again in another.
//!
//! A *frozen* log takes no more entries, for ever and from nobody: the flag stands in the row that
//! every commit moves. Its newest head can still be signed, and all of it can be read.
//!
//! A database that is *filled* gets the history of a log that was written elsewhere: the same
//! batches, heads and epochs. Until that is complete it opens for nobody but whoever fills it from
//! the same source, so that half a copy is never served, sequenced or signed.
//!
//! Not here: the file between the two databases and what it must prove (`archive`), and signatures,
//! keys, holds, reports and erasures, which are written with the promises that everybody uses.

use std::ops::Range;

use async_trait::async_trait;
use merkle::{LeafIndex, TreeSize};

use crate::{
    Batch, CLOCK_CORRECTION, Collateral, CommittedHead, Cosignature, GuardKey, Head, HeadSignature,
    InboxItem, StoreError, is_tile,
};

/// Reading what else leads to an entry, freezing, and filling.
#[async_trait]
pub trait Moving: Send + Sync + 'static {
    /// Whether the log grows, is at its end, or is not all there yet.
    async fn state(&self) -> Result<State, StoreError>;

    /// Freezes the log: durably, and in one transaction with a raise of the epoch, so that the
    /// answer is the last head there will be. Waits for a commit in flight and so sees it.
    ///
    /// From then on a commit is [`NotCommitted`](crate::CommitError::NotCommitted) because of
    /// [`StoreError::Frozen`], and so are a take-over and an inbox item. A frozen log stays as it
    /// is when it is frozen again; a log that is being filled is [`StoreError::Refused`].
    async fn freeze(&self, holder: &str, at: u64) -> Result<Head, StoreError>;

    /// Up to `limit` rows of what leads to an entry by its digest or its twin's, in order of key.
    async fn seen_rows(&self, after: Option<SeenKey>, limit: usize) -> Result<Vec<SeenRow>, StoreError>;

    /// Up to `limit` guards with their holders, in order of key.
    async fn guard_rows(&self, after: Option<&GuardKey>, limit: usize) -> Result<Vec<GuardRow>, StoreError>;

    /// What came beside these entries, by entry and then in order of kind.
    async fn collateral_rows(&self, entries: Range<u64>) -> Result<Vec<(LeafIndex, Collateral)>, StoreError>;

    /// Up to `limit` statements that wait in the inbox, in the order in which they came, each with
    /// a number: where to go on.
    async fn waiting(&self, after: Option<u64>, limit: usize) -> Result<Vec<(u64, InboxItem)>, StoreError>;

    /// Makes an empty database one that is filled from this source, or goes on with one that is.
    /// Answers the head as far as it was filled.
    ///
    /// A database that holds a log, and one that is filled from another source, are
    /// [`StoreError::Refused`]. Until [`end_filling`](Self::end_filling), `open`, a take-over and a
    /// commit are refused.
    async fn begin_filling(&self, origin: &str, source: &Source) -> Result<Head, StoreError>;

    /// Appends committed history, all or nothing. Refused unless the database is filled from this
    /// source and stands where the history begins.
    async fn fill(&self, source: &Source, history: &History) -> Result<(), StoreError>;

    /// Adds what else leads to entries. A row that is there already changes nothing; one that leads
    /// to another entry is [`StoreError::Damaged`].
    async fn fill_claims(
        &self,
        source: &Source,
        seen: &[SeenRow],
        guards: &[GuardRow],
    ) -> Result<(), StoreError>;

    /// Opens the filled database for everybody. The epoch is never lower than the history's.
    async fn end_filling(&self, source: &Source, epoch: u64, policy: LeafIndex) -> Result<Head, StoreError>;
}

/// What a log is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// It grows.
    #[default]
    Open,
    /// It is at its end.
    Frozen {
        /// Unix seconds.
        at: u64,
    },
    /// It is being copied here, and not all there yet.
    Filling {
        /// From where.
        source: Source,
    },
}

/// What a database is filled from: the SHA-256 of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Source(pub [u8; 32]);

/// 128 bits of a digest, or of a twin's.
pub type SeenKey = [u8; 16];
/// A key, and the entry to which it leads.
pub type SeenRow = (SeenKey, LeafIndex);
/// A guard, and the entry that holds it.
pub type GuardRow = (GuardKey, LeafIndex);

/// Batches that were committed once, as one.
#[derive(Clone, Debug)]
pub struct History {
    /// From the head before the first of them to that after the last; without guards and twins,
    /// which [`Moving::fill_claims`] adds.
    pub batch: Batch,
    /// Their heads, one for each.
    pub heads: Vec<CommittedHead>,
    /// What was signed of those heads.
    pub signatures: Vec<HeadSignature>,
    /// What witnesses said about them.
    pub cosignatures: Vec<Cosignature>,
}

impl History {
    /// Whether the first entry after this size is a clock correction.
    fn corrects_clock_at(&self, size: TreeSize) -> bool {
        let place = size.get().checked_sub(self.batch.from.size().get());
        let entry = place.and_then(|place| self.batch.entries.get(usize::try_from(place).ok()?));
        entry.is_some_and(|entry| entry.rule == CLOCK_CORRECTION)
    }

    /// Refuses history that contradicts itself; every implementation asks first.
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
            Some("the history has not the entries that its heads cover")
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

/// What whoever opens a half filled database is told.
pub fn half_filled() -> StoreError {
    StoreError::Refused(
        "a copy of a log is being written into this database and is not complete: \
         run the command that writes it again, with the same file"
            .into(),
    )
}

/// What whoever fills a database is told when it is not, or no longer, being filled from there.
pub fn not_filling() -> StoreError {
    StoreError::Refused("this database is not being filled from this file".into())
}

/// What whoever would fill a database is told that holds a log.
pub fn not_empty(origin: &str, size: TreeSize) -> StoreError {
    StoreError::Refused(format!("the database is not empty: it holds the log {origin} with {size} entries"))
}

/// Two rows say different things of one key.
pub fn other_claim(entry: LeafIndex) -> StoreError {
    StoreError::Damaged(format!("a key of entry {entry} leads to another entry already"))
}
