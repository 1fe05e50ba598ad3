//! [`Walk`]: a deep check, step by step.
//!
//! ```text
//! begin: head, open tiles, keys ─▶ history of heads ─▶ entries, look-ups, tiles, roots ─▶ signatures
//! ─▶ cosignatures ─▶ done
//! ```
//!
//! A step that fails because the database did not answer changes nothing, and can be repeated.

use super::entries::Pages;
use super::history::{History, Roots, Wrong};
use super::signatures::Signed;
use super::tree::Tree;
use super::{Finding, Fsck, Meaning, PAGE, Progress, Report, Target, damage};
use crate::{LogStore, StoreError};

/// Deep check in progress.
pub struct Walk<'a> {
    pub(super) fsck: Fsck<'a>,
    /// Target head; `None` if it cannot be read, in which case nothing else is checked.
    pub(super) head: Option<Target>,
    /// Digest of entry 0, which identifies the log.
    pub(super) log: Option<merkle::EntryDigest>,
    pub(super) stage: Stage<'a>,
    pub(super) report: Report,
    /// Findings from before the walk was stored and resumed.
    pub(super) earlier: Vec<String>,
    pub(super) pages: Pages,
}

/// Stage of a walk, with the position in it.
#[derive(Clone)]
pub(super) enum Stage<'a> {
    History(History),
    /// Position: the tree's size is the next entry.
    Entries(Box<(Tree, Roots<'a>)>),
    Signatures(Signed),
    /// Checks cosignatures below this size; `None`: all.
    Cosignatures(Option<u64>),
    Done,
}

/// Outcome of [`Walk::step`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Number of rows checked.
    Looked(u64),
    /// The walk has reached its end.
    Done,
}

impl<'a> Walk<'a> {
    /// Begins a walk with the present head as target.
    pub async fn begin(store: &'a dyn LogStore, meaning: &'a dyn Meaning) -> Result<Self, StoreError> {
        let fsck = Fsck::new(store, meaning);
        let log = first_entry(store).await?;
        let (report, head) = match damage(store.head().await)? {
            Err(why) => (Report::without_head(why), None),
            Ok(head) => {
                let target = Target::of(&head);
                let mut report = Report::of(&target);
                fsck.check_keys(&mut report).await?;
                fsck.check_open_tiles(&head, &mut report).await?;
                fsck.check_nothing_beyond(&head, &mut report).await?;
                (report, Some(target))
            }
        };
        let stage = head.map_or(Stage::Done, |_| Stage::History(History::from(1)));
        Ok(Self { fsck, head, log, stage, report, earlier: Vec::new(), pages: Pages::of(PAGE) })
    }

    /// Limits the number of entries in memory at once.
    pub fn in_pages_of(self, entries: usize) -> Self {
        Self { pages: Pages::of(entries), ..self }
    }

    /// Checks the next few rows.
    pub async fn step(&mut self) -> Result<Step, StoreError> {
        let before = (self.stage.clone(), self.report.clone());
        match self.advance().await {
            Ok(step) => Ok(step),
            Err(StoreError::Damaged(why)) => {
                (self.stage, self.report) = before;
                self.report.add(Finding::Unreadable { table: self.stage.table(), why });
                self.stage = self.after().await?;
                Ok(Step::Looked(1))
            }
            Err(error) => {
                (self.stage, self.report) = before;
                Err(error)
            }
        }
    }

    async fn advance(&mut self) -> Result<Step, StoreError> {
        let Some(head) = self.head else { return Ok(Step::Done) };
        let (fsck, report) = (self.fsck, &mut self.report);
        let looked = match &mut self.stage {
            Stage::History(passed) => fsck.check_heads(&head, passed, report).await?,
            Stage::Entries(at) => {
                let (tree, roots) = &mut **at;
                fsck.check_entries(&head, tree, roots, &mut self.pages, report).await?
            }
            Stage::Signatures(signed) => fsck.check_signatures(&head, signed, report).await?,
            Stage::Cosignatures(below) => fsck.check_cosignatures(below, report).await?,
            Stage::Done => return Ok(Step::Done),
        };
        if looked.is_none() {
            self.stage = self.after().await?;
        }
        Ok(Step::Looked(looked.unwrap_or(1)))
    }

    /// Returns the next stage.
    async fn after(&self) -> Result<Stage<'a>, StoreError> {
        Ok(match &self.stage {
            Stage::History(_) => {
                let roots = Roots::from(self.fsck.store, 1, Wrong::default()).await?;
                Stage::Entries(Box::new((Tree::default(), roots)))
            }
            Stage::Entries(_) => Stage::Signatures(Signed::default()),
            Stage::Signatures(_) => Stage::Cosignatures(None),
            Stage::Cosignatures(_) | Stage::Done => Stage::Done,
        })
    }

    /// Returns whether the walk has reached its end.
    pub fn is_done(&self) -> bool {
        matches!(self.stage, Stage::Done)
    }

    /// Returns the position in the entries.
    pub fn progress(&self) -> Progress {
        let of = self.report.size.get();
        let entries = match &self.stage {
            Stage::History(_) => 0,
            Stage::Entries(at) => at.0.size().get(),
            Stage::Signatures(_) | Stage::Cosignatures(_) | Stage::Done => of,
        };
        Progress { entries, of }
    }

    /// Counts and findings since the walk began or was resumed.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// All findings as text, those from before the walk was resumed first.
    pub fn findings(&self) -> Vec<String> {
        let now = self.report.findings.iter().map(ToString::to_string);
        self.earlier.iter().cloned().chain(now).collect()
    }

    /// Returns whether there are no findings so far, also none from before the walk was resumed.
    pub fn is_clean(&self) -> bool {
        self.earlier.is_empty() && self.report.is_clean()
    }

    pub(super) fn into_report(self) -> Report {
        self.report
    }
}

impl Stage<'_> {
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
pub(super) async fn first_entry(store: &dyn LogStore) -> Result<Option<merkle::EntryDigest>, StoreError> {
    let digests = damage(store.digests(merkle::LeafIndex::new(0), 1).await)?;
    Ok(digests.ok().and_then(|digests| digests.first().copied()))
}
