//! [`DeepCheck`]: a check of the whole log, step by step.
//!
//! ```text
//! begin: head, open tiles, keys ─▶ history of heads ─▶ entries, look-ups, tiles, roots ─▶ signatures
//! ─▶ cosignatures ─▶ done
//! ```
//!
//! A step that fails because the database did not answer changes nothing, and can be repeated.

use super::entries::PageSize;
use super::history::{HistoryPosition, RootComparison, WrongRoots};
use super::recomputed_tree::RecomputedTree;
use super::signatures::SignaturePosition;
use super::{CheckedHead, Defect, Fsck, FsckFacts, FsckProgress, FsckReport, PAGE, damage};
use crate::{FsckStore, LogReader, StoreError};

/// Deep check in progress.
pub struct DeepCheck<'a> {
    pub(super) fsck: Fsck<'a>,
    /// Target head; `None` if it cannot be read, in which case nothing else is checked.
    pub(super) head: Option<CheckedHead>,
    /// Digest of entry 0, which identifies the log.
    pub(super) log: Option<merkle::EntryDigest>,
    pub(super) stage: DeepCheckStage<'a>,
    pub(super) report: FsckReport,
    /// Findings from before the check was saved and resumed.
    pub(super) earlier: Vec<String>,
    pub(super) page_size: PageSize,
}

/// Stage of a deep check, with the position in it.
#[derive(Clone)]
pub(super) enum DeepCheckStage<'a> {
    History(HistoryPosition),
    Entries(Box<EntriesPosition<'a>>),
    Signatures(SignaturePosition),
    /// Checks cosignatures below this size; `None`: all.
    Cosignatures(Option<u64>),
    Done,
}

/// Position of the check in the entries.
#[derive(Clone)]
pub(super) struct EntriesPosition<'a> {
    /// The tree of the entries so far: its size is the index of the next entry.
    pub(super) tree: RecomputedTree,
    /// The comparison of its roots with the committed ones.
    pub(super) roots: RootComparison<'a>,
}

/// Outcome of [`DeepCheck::step`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FsckStep {
    /// Number of rows checked.
    Checked(u64),
    /// The check is complete.
    Done,
}

impl<'a> DeepCheck<'a> {
    /// Begins a check up to the present head.
    pub async fn begin(store: &'a dyn FsckStore, facts: &'a dyn FsckFacts) -> Result<Self, StoreError> {
        let fsck = Fsck::new(store, facts);
        let log = first_entry(store).await?;
        let (report, head) = match damage(store.head().await)? {
            Err(why) => (FsckReport::without_head(why), None),
            Ok(head) => {
                let target = CheckedHead::of(&head);
                let mut report = FsckReport::of(&target);
                fsck.check_keys(&mut report).await?;
                fsck.check_open_tiles(&head, &mut report).await?;
                fsck.check_nothing_beyond(&head, &mut report).await?;
                (report, Some(target))
            }
        };
        let stage = head.map_or(DeepCheckStage::Done, |_| DeepCheckStage::History(HistoryPosition::from(1)));
        Ok(Self { fsck, head, log, stage, report, earlier: Vec::new(), page_size: PageSize::new(PAGE) })
    }

    /// Limits the number of entries in memory at once.
    pub fn in_pages_of(self, entries: usize) -> Self {
        Self { page_size: PageSize::new(entries), ..self }
    }

    /// Checks the next few rows.
    pub async fn step(&mut self) -> Result<FsckStep, StoreError> {
        let before = (self.stage.clone(), self.report.clone());
        match self.advance().await {
            Ok(step) => Ok(step),
            Err(StoreError::Damaged(why)) => {
                (self.stage, self.report) = before;
                self.report.add(Defect::Unreadable { table: self.stage.table(), why });
                self.stage = self.next_stage().await?;
                Ok(FsckStep::Checked(1))
            }
            Err(error) => {
                (self.stage, self.report) = before;
                Err(error)
            }
        }
    }

    async fn advance(&mut self) -> Result<FsckStep, StoreError> {
        let Some(head) = self.head else { return Ok(FsckStep::Done) };
        let (fsck, report) = (self.fsck, &mut self.report);
        let checked = match &mut self.stage {
            DeepCheckStage::History(position) => fsck.check_heads(&head, position, report).await?,
            DeepCheckStage::Entries(position) => {
                fsck.check_entries(&head, position, &mut self.page_size, report).await?
            }
            DeepCheckStage::Signatures(position) => fsck.check_signatures(&head, position, report).await?,
            DeepCheckStage::Cosignatures(below) => fsck.check_cosignatures(below, report).await?,
            DeepCheckStage::Done => return Ok(FsckStep::Done),
        };
        if checked.is_none() {
            self.stage = self.next_stage().await?;
        }
        Ok(FsckStep::Checked(checked.unwrap_or(1)))
    }

    /// Returns the next stage.
    async fn next_stage(&self) -> Result<DeepCheckStage<'a>, StoreError> {
        Ok(match &self.stage {
            DeepCheckStage::History(_) => {
                let roots = RootComparison::from(self.fsck.store, 1, WrongRoots::default()).await?;
                let tree = RecomputedTree::default();
                DeepCheckStage::Entries(Box::new(EntriesPosition { tree, roots }))
            }
            DeepCheckStage::Entries(_) => DeepCheckStage::Signatures(SignaturePosition::default()),
            DeepCheckStage::Signatures(_) => DeepCheckStage::Cosignatures(None),
            DeepCheckStage::Cosignatures(_) | DeepCheckStage::Done => DeepCheckStage::Done,
        })
    }

    /// Returns whether the check is complete.
    pub fn is_done(&self) -> bool {
        matches!(self.stage, DeepCheckStage::Done)
    }

    /// Returns the position in the entries.
    pub fn progress(&self) -> FsckProgress {
        let of = self.report.size.get();
        let entries = match &self.stage {
            DeepCheckStage::History(_) => 0,
            DeepCheckStage::Entries(position) => position.tree.size().get(),
            DeepCheckStage::Signatures(_) | DeepCheckStage::Cosignatures(_) | DeepCheckStage::Done => of,
        };
        FsckProgress { entries, of }
    }

    /// Counts and findings since the check began or was resumed.
    pub fn report(&self) -> &FsckReport {
        &self.report
    }

    /// All findings as text, those from before the check was resumed first.
    pub fn findings(&self) -> Vec<String> {
        let now = self.report.findings.iter().map(ToString::to_string);
        self.earlier.iter().cloned().chain(now).collect()
    }

    /// Returns whether there are no findings so far, also none from before the check was resumed.
    pub fn is_clean(&self) -> bool {
        self.earlier.is_empty() && self.report.is_clean()
    }

    pub(super) fn into_report(self) -> FsckReport {
        self.report
    }
}

impl DeepCheckStage<'_> {
    fn table(&self) -> &'static str {
        match self {
            Self::History(_) => "batch",
            Self::Entries(_) => "entry, tile or batch",
            Self::Signatures(_) => "head_signature",
            Self::Cosignatures(_) => "cosignature",
            Self::Done => "log",
        }
    }
}

/// Reads the digest of entry 0; `None` if it is missing or damaged.
pub(super) async fn first_entry(store: &dyn LogReader) -> Result<Option<merkle::EntryDigest>, StoreError> {
    let digests = damage(store.digests(merkle::LeafIndex::new(0), 1).await)?;
    Ok(digests.ok().and_then(|digests| digests.first().copied()))
}
