//! Checks of a stored log: are its statements, digests, tiles, heads, signatures and indexes consistent with each other?
//!
//! The quick check covers the head, the history around it, the last batches and the open tiles; a service runs it
//! at every start. The deep check hashes every statement again, computes every level of tiles and the root of
//! every committed head again, and checks every key, look-up key, run of the lookup index and signature.
//!
//! A deep check is a [`DeepCheck`]: it advances step by step, and its [`FsckState`] is small and can be stored to continue
//! later. Memory is bounded, and the log may grow meanwhile: the target is the head at the start of the check.
//!
//! A log that was rewritten consistently in every table is found by the signatures over its heads, which
//! [`FsckFacts`] checks; a log that was truncated cleanly is found by the sequencer's pin.
//!
//! | module | checks, or holds |
//! |---|---|
//! | `deep_check` | the stages of a deep check, step by step |
//! | `history` | the rows of committed heads, and their roots |
//! | `entries` | statements against digests, digests against the tiles of leaves |
//! | `tiles` | every tile, against the tree that `recomputed_tree` computes from the digests |
//! | `seen_and_guards`, `lookup_index` | the keys that lead to entries |
//! | `signatures` | keys, signatures and cosignatures |
//! | `saved_state` | the position of a deep check, in a form that can be stored |
//! | `defect` | the defects that a check reports |
//!
//! Not here: what signatures and guards mean (the caller's [`FsckFacts`]), the pace (the caller calls each step),
//! files, and any repair.

mod deep_check;
mod defect;
mod entries;
mod history;
mod lookup_index;
mod recomputed_tree;
mod saved_state;
mod seen_and_guards;
mod signatures;
mod tiles;

use async_trait::async_trait;
use merkle::{EntryDigest, LeafIndex, RootHash, TreeSize};

pub use deep_check::{DeepCheck, FsckStep};
pub use defect::Defect;
pub use saved_state::{BadState, FsckState};

use crate::lookup::EntryTerms;
use crate::{
    CommittedHead, Cosignature, Entry, FsckStore, GuardKey, Head, HeadSignature, LogKey, LogReader,
    SignatureKind, StoreError,
};

/// Maximum number of findings that a [`FsckReport`] lists; more are only counted.
pub const MAX_FINDINGS: usize = 1_000;
/// Number of heads before the last one whose rows a quick check reads.
pub const QUICK_HEADS: u64 = 16;
/// Maximum number of entries before the head that a quick check hashes again.
pub const QUICK_ENTRIES: u64 = 1_024;
/// Maximum number of entries in memory at once.
pub const PAGE: usize = 64;
/// Target size of a page of statements, estimated from the size of the page before.
const PAGE_BYTES: usize = 4 << 20;
/// Maximum number of heads or signatures in memory at once.
const ROWS: usize = 256;

/// Knowledge about the stored bytes that the store itself does not have.
#[async_trait]
pub trait FsckFacts: Send + Sync {
    /// Loads the data needed to interpret these entries; called before the other methods see them.
    async fn prepare(&self, _: &dyn LogReader, _: &[&Entry]) -> Result<(), StoreError> {
        Ok(())
    }

    /// Returns the guards that these entries must hold.
    async fn guards(&self, _: &dyn LogReader, _: &[&Entry]) -> Result<DerivedGuards, StoreError> {
        Ok(DerivedGuards::default())
    }

    /// Returns the digest of the other encoding of the entry's signature, which must lead to the entry.
    fn twin(&self, entry: &Entry) -> Option<EntryDigest>;

    /// Form of the lookup index that [`terms`](Self::terms) produces; `None` if the index is not to be checked.
    fn lookup_form(&self) -> Option<u32> {
        None
    }

    /// Returns the terms of this entry; `None` if they are not known.
    async fn terms(&self, _: &dyn LogReader, _: &Entry) -> Result<Option<EntryTerms>, StoreError> {
        Ok(None)
    }

    /// Returns whether an entry of the log justifies that the time decreases from one head to the next.
    async fn explains_time(
        &self,
        _: &dyn LogReader,
        _before: &CommittedHead,
        _after: &CommittedHead,
    ) -> Result<bool, StoreError> {
        Ok(false)
    }

    /// Describes the effect of this entry (a freeze, a hold, a release) that the other tables lack; `None` if
    /// there is none.
    async fn effect_missing(&self, _: &dyn FsckStore, _: &Entry) -> Result<Option<String>, StoreError> {
        Ok(None)
    }

    /// Returns whether an entry of the log states that this entry's statement was erased.
    fn may_be_erased(&self, index: LeafIndex) -> bool;

    /// Kinds of signature that every head must have.
    fn kinds(&self) -> &[SignatureKind] {
        &[]
    }

    /// Checks that a published key matches its kid. The error describes the difference.
    fn check_key(&self, _: &LogKey) -> Result<(), String> {
        Ok(())
    }

    /// Checks a witness's cosignature of a head. The error says why it does not verify.
    fn check_cosignature(&self, _: &CommittedHead, _: &Cosignature) -> Result<(), String> {
        Ok(())
    }

    /// Checks a signature over a head by one of the log's published keys. The error says why it does not verify.
    fn check_signature(
        &self,
        head: &CommittedHead,
        signature: &HeadSignature,
        keys: &[LogKey],
    ) -> Result<(), String>;
}

/// The guards that entries must hold, derived from what is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DerivedGuards {
    /// Guards, each with the leaf of its entry, in the order of the leaves.
    pub held: Vec<(GuardKey, LeafIndex)>,
    /// Entries whose guards cannot be derived, because what is stored beside the statement is not what was admitted
    /// with it; each with a description of the difference.
    pub damaged: Vec<(LeafIndex, String)>,
}

/// [`FsckFacts`] of a log about which nothing is known: no guards, no twins, no erasures, and every signature passes.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoFacts;

impl FsckFacts for NoFacts {
    fn twin(&self, _: &Entry) -> Option<EntryDigest> {
        None
    }

    fn may_be_erased(&self, _: LeafIndex) -> bool {
        false
    }

    fn check_signature(&self, _: &CommittedHead, _: &HeadSignature, _: &[LogKey]) -> Result<(), String> {
        Ok(())
    }
}

/// Progress of a deep check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FsckProgress {
    /// Number of entries checked.
    pub entries: u64,
    /// Number of entries to check.
    pub of: u64,
}

/// Head that is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CheckedHead {
    batch: u64,
    size: TreeSize,
    root: RootHash,
    at: u64,
}

impl CheckedHead {
    fn of(head: &Head) -> Self {
        Self { batch: head.batch, size: head.size(), root: head.root(), at: head.at }
    }
}

/// Result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FsckReport {
    /// Size of the head that was checked.
    pub size: TreeSize,
    /// Root of that head, as stored.
    pub root: RootHash,
    /// Number of entries whose statement was hashed again.
    pub entries: u64,
    /// Number of heads whose root was computed again.
    pub heads: u64,
    /// Number of signatures checked.
    pub signatures: u64,
    /// Defects in the order found; at most [`MAX_FINDINGS`].
    pub findings: Vec<Defect>,
    /// Number of findings that are not listed.
    pub omitted: u64,
}

impl FsckReport {
    /// Returns whether there are no findings.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }

    fn of(head: &CheckedHead) -> Self {
        let (size, root) = (head.size, head.root);
        Self { size, root, entries: 0, heads: 0, signatures: 0, findings: Vec::new(), omitted: 0 }
    }

    fn without_head(why: String) -> Self {
        let (size, root) = (TreeSize::EMPTY, merkle::empty_root());
        let findings = vec![Defect::HeadUnreadable { why }];
        Self { size, root, entries: 0, heads: 0, signatures: 0, findings, omitted: 0 }
    }

    fn add(&mut self, finding: Defect) {
        match self.findings.len() {
            MAX_FINDINGS => self.omitted += 1,
            _ => self.findings.push(finding),
        }
    }
}

/// Checker of one store.
#[derive(Clone, Copy)]
pub struct Fsck<'a> {
    store: &'a dyn FsckStore,
    facts: &'a dyn FsckFacts,
    progress: &'a (dyn Fn(FsckProgress) + Send + Sync),
}

impl<'a> Fsck<'a> {
    /// Creates a checker that interprets the log's bytes with `facts`.
    pub fn new(store: &'a dyn FsckStore, facts: &'a dyn FsckFacts) -> Self {
        Self { store, facts, progress: &|_| () }
    }

    /// Calls `progress` from time to time during a deep check.
    pub fn reporting(self, progress: &'a (dyn Fn(FsckProgress) + Send + Sync)) -> Self {
        Self { progress, ..self }
    }

    /// Checks the rows that a start depends on, in a time that does not grow with the log.
    pub async fn quick(&self) -> Result<FsckReport, StoreError> {
        let head = match damage(self.store.head().await)? {
            Ok(head) => head,
            Err(why) => return Ok(FsckReport::without_head(why)),
        };
        let target = CheckedHead::of(&head);
        let mut report = FsckReport::of(&target);
        self.check_keys(&mut report).await?;
        self.check_history(&target, head.batch.saturating_sub(QUICK_HEADS), &mut report).await?;
        self.check_open_tiles(&head, &mut report).await?;
        self.check_nothing_beyond(&head, &mut report).await?;
        self.check_recent_roots(&head, &mut report).await?;
        self.check_recent_entries(&head, &mut report).await?;
        self.check_newest_signatures(&mut report).await?;
        Ok(report)
    }

    /// Runs a whole [`DeepCheck`].
    pub async fn deep(&self) -> Result<FsckReport, StoreError> {
        let mut check = DeepCheck::begin(self.store, self.facts).await?;
        loop {
            match check.step().await? {
                FsckStep::Checked(_) => (self.progress)(check.progress()),
                FsckStep::Done => return Ok(check.into_report()),
            }
        }
    }
}

/// Separates damage from other errors: the inner error is the text of a finding, the outer one ends the check.
fn damage<T>(outcome: Result<T, StoreError>) -> Result<Result<T, String>, StoreError> {
    match outcome {
        Ok(value) => Ok(Ok(value)),
        Err(StoreError::Damaged(why)) => Ok(Err(why)),
        Err(error) => Err(error),
    }
}
