//! Checking a stored log against itself.
//!
//! Quick: the head, the history around it, the last batches and the open tiles; a service does it
//! at every start. Deep: every statement is hashed again, every level of tiles and the root of
//! every head ever committed are computed again, and every key, look-up key, row of the lookup
//! index and signature is checked.
//!
//! A deep check is a [`Walk`]: it goes step by step, and its [`State`] is small and can be kept to
//! go on another time. Memory is bounded, and the log may grow meanwhile: what is checked is the
//! head at the start of the walk.
//!
//! A log that was rewritten in every table, consistently, is found by the signatures over its
//! heads, which [`Meaning`] checks; one that was cut off cleanly is found by the sequencer's pin.
//!
//! Not here: what signatures and guards mean (the caller's [`Meaning`]), how fast (the caller goes
//! from step to step), files, and any repair.

mod entries;
mod finding;
mod history;
mod lookups;
mod signatures;
mod state;
mod tree;
mod walk;

use async_trait::async_trait;
use merkle::{EntryDigest, LeafIndex, RootHash, TreeSize};

pub use finding::Finding;
pub use state::{BadState, State};
pub use walk::{Step, Walk};

use crate::{
    CommittedHead, Cosignature, Entry, GuardKey, Head, HeadSignature, LogKey, LogStore, Lookup,
    SignatureKind, StoreError,
};

/// Findings that a report lists; more are only counted.
pub const MAX_FINDINGS: usize = 1_000;
/// Heads before the last one whose rows a quick check reads.
pub const QUICK_HEADS: u64 = 16;
/// Entries before the head that a quick check hashes again, at most.
pub const QUICK_ENTRIES: u64 = 1_024;
/// Entries that are in memory at once.
pub const PAGE: usize = 64;
/// Bytes of statements that are read at once, if statements are as large as those before.
const PAGE_BYTES: usize = 4 << 20;
/// Heads or signatures that are in memory at once.
const ROWS: usize = 256;

/// What the store cannot know about its own bytes.
#[async_trait]
pub trait Meaning: Send + Sync {
    /// Learns what it takes to tell what these entries mean; asked before they are shown.
    async fn prepare(&self, _: &dyn LogStore, _: &[&Entry]) -> Result<(), StoreError> {
        Ok(())
    }

    /// The guards that this entry must hold.
    fn guards(&self, entry: &Entry) -> Vec<GuardKey>;

    /// The digest of the other encoding of the entry's signature, which must lead to it.
    fn twin(&self, entry: &Entry) -> Option<EntryDigest>;

    /// The form of the lookup index that is known here, if any.
    fn lookup_form(&self) -> Option<u32> {
        None
    }

    /// The rows that the lookup index must have of this entry; `None` if that cannot be told.
    async fn lookups(&self, _: &dyn LogStore, _: &Entry) -> Result<Option<Vec<Lookup>>, StoreError> {
        Ok(None)
    }

    /// Whether the log itself says why the time runs back from one head to the next.
    async fn explains_time(
        &self,
        _: &dyn LogStore,
        _before: &CommittedHead,
        _after: &CommittedHead,
    ) -> Result<bool, StoreError> {
        Ok(false)
    }

    /// What the tables beside the log lack of what this entry did (a freeze, a hold, a release), if anything.
    async fn effect_missing(&self, _: &dyn LogStore, _: &Entry) -> Result<Option<String>, StoreError> {
        Ok(None)
    }

    /// Whether the log itself says that this entry's statement was erased.
    fn may_be_erased(&self, index: LeafIndex) -> bool;

    /// The kinds of signature that every head gets.
    fn kinds(&self) -> &[SignatureKind] {
        &[]
    }

    /// Checks that a published key is the one that it is called, or says what is wrong.
    fn check_key(&self, _: &LogKey) -> Result<(), String> {
        Ok(())
    }

    /// Checks what a witness said about a head, or says what is wrong.
    fn check_cosignature(&self, _: &CommittedHead, _: &Cosignature) -> Result<(), String> {
        Ok(())
    }

    /// Checks a signature over a head by one of the log's published keys, or says what is wrong.
    fn check_signature(
        &self,
        head: &CommittedHead,
        signature: &HeadSignature,
        keys: &[LogKey],
    ) -> Result<(), String>;
}

/// Knows nothing: no guards, no twins, no erasures, and every signature passes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Opaque;

impl Meaning for Opaque {
    fn guards(&self, _: &Entry) -> Vec<GuardKey> {
        Vec::new()
    }

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

/// How far a check is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Entries checked.
    pub entries: u64,
    /// Entries to check.
    pub of: u64,
}

/// The head that is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Target {
    batch: u64,
    size: TreeSize,
    root: RootHash,
    at: u64,
}

impl Target {
    fn of(head: &Head) -> Self {
        Self { batch: head.batch, size: head.size(), root: head.root(), at: head.at }
    }
}

/// What a check saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The size of the head that was checked.
    pub size: TreeSize,
    /// Its root, as stored.
    pub root: RootHash,
    /// Entries whose statement was hashed again.
    pub entries: u64,
    /// Heads whose root was computed again.
    pub heads: u64,
    /// Signatures that were checked.
    pub signatures: u64,
    /// What is wrong, in the order found; at most [`MAX_FINDINGS`].
    pub findings: Vec<Finding>,
    /// Findings that are not listed.
    pub omitted: u64,
}

impl Report {
    /// Whether nothing is wrong.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }

    fn of(head: &Target) -> Self {
        let (size, root) = (head.size, head.root);
        Self { size, root, entries: 0, heads: 0, signatures: 0, findings: Vec::new(), omitted: 0 }
    }

    fn without_head(why: String) -> Self {
        let (size, root) = (TreeSize::EMPTY, merkle::empty_root());
        let findings = vec![Finding::HeadUnreadable { why }];
        Self { size, root, entries: 0, heads: 0, signatures: 0, findings, omitted: 0 }
    }

    fn add(&mut self, finding: Finding) {
        match self.findings.len() {
            MAX_FINDINGS => self.omitted += 1,
            _ => self.findings.push(finding),
        }
    }
}

/// A check of one store.
#[derive(Clone, Copy)]
pub struct Fsck<'a> {
    store: &'a dyn LogStore,
    meaning: &'a dyn Meaning,
    progress: &'a (dyn Fn(Progress) + Send + Sync),
}

impl<'a> Fsck<'a> {
    /// A check that knows what the log's bytes mean.
    pub fn new(store: &'a dyn LogStore, meaning: &'a dyn Meaning) -> Self {
        Self { store, meaning, progress: &|_| () }
    }

    /// Says now and then how far a deep check is.
    pub fn reporting(self, progress: &'a (dyn Fn(Progress) + Send + Sync)) -> Self {
        Self { progress, ..self }
    }

    /// Checks what a start depends on, in a time that does not grow with the log.
    pub async fn quick(&self) -> Result<Report, StoreError> {
        let head = match damage(self.store.head().await)? {
            Ok(head) => head,
            Err(why) => return Ok(Report::without_head(why)),
        };
        let target = Target::of(&head);
        let mut report = Report::of(&target);
        self.check_keys(&mut report).await?;
        self.check_history(&target, head.batch.saturating_sub(QUICK_HEADS), &mut report).await?;
        self.check_open_tiles(&head, &mut report).await?;
        self.check_nothing_beyond(&head, &mut report).await?;
        self.check_recent_roots(&head, &mut report).await?;
        self.check_recent_entries(&head, &mut report).await?;
        self.check_newest_signatures(&mut report).await?;
        Ok(report)
    }

    /// Checks everything, at once.
    pub async fn deep(&self) -> Result<Report, StoreError> {
        let mut walk = Walk::begin(self.store, self.meaning).await?;
        loop {
            match walk.step().await? {
                Step::Looked(_) => (self.progress)(walk.progress()),
                Step::Done => return Ok(walk.into_report()),
            }
        }
    }
}

/// A damaged row becomes a finding; anything else ends the check.
fn damage<T>(outcome: Result<T, StoreError>) -> Result<Result<T, String>, StoreError> {
    match outcome {
        Ok(value) => Ok(Ok(value)),
        Err(StoreError::Damaged(why)) => Ok(Err(why)),
        Err(error) => Err(error),
    }
}
