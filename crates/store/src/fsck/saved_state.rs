//! [`FsckState`]: the saved position of a deep check, from which a later run continues.
//!
//! The state is small: the target head, the partial tile of each level, the position in each table, and the
//! findings. It is trusted as much as the file that holds it: a person who can write that file can make a log look
//! checked.

use data_encoding::BASE64;
use merkle::{EntryDigest, RootHash, TreeSize};
use serde::{Deserialize, Serialize};

use super::deep_check::{DeepCheck, DeepCheckStage, EntriesPosition, first_entry};
use super::entries::PageSize;
use super::history::{HistoryPosition, RootComparison, WrongRoots};
use super::recomputed_tree::RecomputedTree;
use super::signatures::SignaturePosition;
use super::{CheckedHead, Fsck, FsckFacts, FsckReport, PAGE, damage};
use crate::{CommittedHead, FsckStore, LogReader, StoreError};

/// Version of the state that this release writes and reads.
const VERSION: u32 = 1;

/// Position of a deep check, for any `serde` format.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FsckState {
    version: u32,
    /// Digest (entry ID) of leaf 0, which identifies the log.
    log: Option<String>,
    /// Head that is checked.
    head: SavedHead,
    at: SavedPosition,
    entries: u64,
    heads: u64,
    signatures: u64,
    findings: Vec<String>,
    omitted: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedHead {
    batch: u64,
    epoch: u64,
    size: u64,
    root: String,
    at: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum SavedPosition {
    History { next: u64, last: Option<SavedHead> },
    Entries { next: u64, open: Vec<String>, next_batch: u64, wrong: WrongRoots },
    Signatures(SignaturePosition),
    Cosignatures(Option<u64>),
    Done,
}

/// Reason why a check cannot continue from a [`FsckState`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadState {
    /// The text is not a state, or a state of another release.
    #[error("this is not the state of a check that this release can continue: {0}")]
    Unreadable(String),
    /// The state belongs to another log.
    #[error("the state belongs to another log: its first entry is {state}, and this log's is {log}")]
    AnotherLog {
        /// First entry's ID in the state.
        state: String,
        /// First entry's ID in this log.
        log: String,
    },
    /// The log's history has no head of the size that is being checked, or another one.
    #[error("the head of size {size} that was being checked is no longer in the log's history")]
    AnotherHistory {
        /// Size of the head.
        size: TreeSize,
    },
}

impl FsckState {
    /// Returns whether the check had reached its end.
    pub fn is_done(&self) -> bool {
        self.at == SavedPosition::Done
    }
}

impl<'a> DeepCheck<'a> {
    /// Continues from the [`FsckState`] of an earlier check.
    pub async fn resume(
        store: &'a dyn FsckStore,
        facts: &'a dyn FsckFacts,
        state: &FsckState,
    ) -> Result<Result<Self, BadState>, StoreError> {
        let log = first_entry(store).await?;
        let (head, stage) = match state.read(log) {
            Ok(parsed) => parsed,
            Err(bad) => return Ok(Err(bad)),
        };
        if !is_in_history(store, &head).await? {
            return Ok(Err(BadState::AnotherHistory { size: head.size }));
        }
        let stage = match stage {
            ParsedPosition::History(history) => DeepCheckStage::History(history),
            ParsedPosition::Entries { tree, next_batch, wrong } => {
                let roots = RootComparison::from(store, next_batch, wrong).await?;
                DeepCheckStage::Entries(Box::new(EntriesPosition { tree, roots }))
            }
            ParsedPosition::Signatures(signed) => DeepCheckStage::Signatures(signed),
            ParsedPosition::Cosignatures(below) => DeepCheckStage::Cosignatures(below),
            ParsedPosition::Done => DeepCheckStage::Done,
        };
        let report = FsckReport {
            entries: state.entries,
            heads: state.heads,
            signatures: state.signatures,
            omitted: state.omitted,
            ..FsckReport::of(&head)
        };
        let (earlier, page_size) = (state.findings.clone(), PageSize::new(PAGE));
        Ok(Ok(Self {
            fsck: Fsck::new(store, facts),
            head: Some(head),
            log,
            stage,
            report,
            earlier,
            page_size,
        }))
    }

    /// Returns the position to save; `None` if the head could not be read, as there is nothing to continue from then.
    pub fn state(&self) -> Option<FsckState> {
        let head = self.head?;
        Some(FsckState {
            version: VERSION,
            log: self.log.map(|digest| digest.to_string()),
            head: SavedHead {
                batch: head.batch,
                epoch: 0,
                size: head.size.get(),
                root: head.root.to_string(),
                at: head.at,
            },
            at: self.saved_position(),
            entries: self.report.entries,
            heads: self.report.heads,
            signatures: self.report.signatures,
            findings: self.findings(),
            omitted: self.report.omitted,
        })
    }

    fn saved_position(&self) -> SavedPosition {
        match &self.stage {
            DeepCheckStage::History(HistoryPosition { next, last }) => {
                SavedPosition::History { next: *next, last: last.as_ref().map(SavedHead::of) }
            }
            DeepCheckStage::Entries(position) => {
                let EntriesPosition { tree, roots } = &**position;
                SavedPosition::Entries {
                    next: tree.size().get(),
                    open: tree.open().iter().map(|data| BASE64.encode(data)).collect(),
                    next_batch: roots.next_batch(),
                    wrong: roots.wrong,
                }
            }
            DeepCheckStage::Signatures(signed) => SavedPosition::Signatures(signed.clone()),
            DeepCheckStage::Cosignatures(below) => SavedPosition::Cosignatures(*below),
            DeepCheckStage::Done => SavedPosition::Done,
        }
    }
}

/// Position in the types of the check.
enum ParsedPosition {
    History(HistoryPosition),
    Entries { tree: RecomputedTree, next_batch: u64, wrong: WrongRoots },
    Signatures(SignaturePosition),
    Cosignatures(Option<u64>),
    Done,
}

impl FsckState {
    fn read(&self, log: Option<EntryDigest>) -> Result<(CheckedHead, ParsedPosition), BadState> {
        if self.version != VERSION {
            return Err(unreadable(format!("version {}", self.version)));
        }
        // An unreadable first entry becomes a finding; it does not mean that this is another log.
        if let (Some(state), Some(log)) = (&self.log, log.map(|log| log.to_string()))
            && *state != log
        {
            return Err(BadState::AnotherLog { state: state.clone(), log });
        }
        let CommittedHead { batch, size, root, at, .. } = self.head.read()?;
        let head = CheckedHead { batch, size, root, at };
        let position = match &self.at {
            SavedPosition::History { next, last } => {
                let last = last.as_ref().map(SavedHead::read).transpose()?;
                ParsedPosition::History(HistoryPosition { next: *next, last })
            }
            SavedPosition::Entries { next, open, next_batch, wrong } => {
                let open = open.iter().map(|text| BASE64.decode(text.as_bytes()));
                let open = open.collect::<Result<_, _>>().map_err(unreadable)?;
                let tree = RecomputedTree::restore(TreeSize::new(*next), open).map_err(unreadable)?;
                ParsedPosition::Entries { tree, next_batch: *next_batch, wrong: *wrong }
            }
            SavedPosition::Signatures(signed) => ParsedPosition::Signatures(signed.clone()),
            SavedPosition::Cosignatures(below) => ParsedPosition::Cosignatures(*below),
            SavedPosition::Done => ParsedPosition::Done,
        };
        Ok((head, position))
    }
}

impl SavedHead {
    fn of(head: &CommittedHead) -> Self {
        let CommittedHead { batch, epoch, size, root, at } = *head;
        Self { batch, epoch, size: size.get(), root: root.to_string(), at }
    }

    fn read(&self) -> Result<CommittedHead, BadState> {
        let root: RootHash = self.root.parse().map_err(unreadable)?;
        let size = TreeSize::new(self.size);
        Ok(CommittedHead { batch: self.batch, epoch: self.epoch, size, root, at: self.at })
    }
}

/// Returns whether the history still has this head. An unreadable row counts as present: the check reports it.
async fn is_in_history(store: &dyn LogReader, head: &CheckedHead) -> Result<bool, StoreError> {
    if head.size == TreeSize::EMPTY {
        return Ok(true);
    }
    Ok(match damage(store.head_of_size(head.size).await)? {
        Ok(row) => row.is_some_and(|row| (row.batch, row.root) == (head.batch, head.root)),
        Err(_) => true,
    })
}

fn unreadable(why: impl ToString) -> BadState {
    BadState::Unreadable(why.to_string())
}
