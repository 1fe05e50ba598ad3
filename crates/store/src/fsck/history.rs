//! Checks of the history: the rows of committed heads, their order and their roots.

use std::collections::VecDeque;

use merkle::TreeSize;
use serde::{Deserialize, Serialize};

use super::recomputed_tree::RecomputedTree;
use super::{CheckedHead, Defect, Fsck, FsckReport, QUICK_HEADS, ROWS};
use crate::proofs::{Prover, TileProofError};
use crate::{CommittedHead, Head, LogReader, StoreError};

impl Fsck<'_> {
    /// Checks the rows from batch `first` on: none is missing, none runs back, and the last one is the head.
    pub(super) async fn check_history(
        &self,
        head: &CheckedHead,
        first: u64,
        report: &mut FsckReport,
    ) -> Result<(), StoreError> {
        let mut position = HistoryPosition::from(first);
        while self.check_heads(head, &mut position, report).await?.is_some() {}
        Ok(())
    }

    /// Checks the next page of rows; returns their number, or `None` once the last row was compared with the head.
    pub(super) async fn check_heads(
        &self,
        head: &CheckedHead,
        position: &mut HistoryPosition,
        report: &mut FsckReport,
    ) -> Result<Option<u64>, StoreError> {
        let rows = self.store.heads(position.next, ROWS).await?;
        let checked = rows.len() as u64;
        let last_page = rows.len() < ROWS;
        for row in rows {
            if row.batch > head.batch {
                self.check_beyond(&row, report).await?;
                check_last(head, position, report);
                return Ok(None);
            }
            if row.batch > position.next {
                report.add(Defect::HeadsLost { first: position.next, last: row.batch - 1 });
            }
            position.next = row.batch + 1;
            if let Some(before) = position.last
                && self.runs_back(&before, &row).await?
            {
                report.add(Defect::HistoryRunsBack { batch: row.batch });
            }
            position.last = Some(row);
        }
        if !last_page {
            return Ok(Some(checked));
        }
        check_last(head, position, report);
        Ok(None)
    }

    async fn runs_back(&self, before: &CommittedHead, row: &CommittedHead) -> Result<bool, StoreError> {
        if row.size <= before.size || row.epoch < before.epoch {
            return Ok(true);
        }
        Ok(row.at < before.at && !self.facts.explains_time(self.store, before, row).await?)
    }

    /// Checks a row beyond the target head, which is right if the log has grown since the check began.
    async fn check_beyond(&self, row: &CommittedHead, report: &mut FsckReport) -> Result<(), StoreError> {
        let now = self.store.head().await?;
        if row.batch > now.batch {
            report.add(Defect::HistoryBeyondHead { batch: row.batch, size: row.size, head: now.size() });
        }
        Ok(())
    }

    /// Checks the roots of the last [`QUICK_HEADS`] heads with consistency proofs from the tiles.
    pub(super) async fn check_recent_roots(
        &self,
        head: &Head,
        report: &mut FsckReport,
    ) -> Result<(), StoreError> {
        let first = head.batch.saturating_sub(QUICK_HEADS);
        let mut rows = self.store.heads(first, QUICK_HEADS as usize + 1).await?;
        rows.retain(|row| row.batch <= head.batch && row.size <= head.size());
        let newest =
            CommittedHead { batch: head.batch, epoch: 0, size: head.size(), root: head.root(), at: head.at };
        for row in rows {
            let (batch, size, stored) = (row.batch, row.size, row.root);
            match Prover::new(self.store).consistency(&row, &newest).await {
                Ok(_) => report.heads += 1,
                Err(TileProofError::Store(error)) if !matches!(error, StoreError::Damaged(_)) => {
                    return Err(error);
                }
                Err(_) => report.add(Defect::HeadRoot { batch, size, stored }),
            }
        }
        Ok(())
    }
}

fn check_last(head: &CheckedHead, position: &HistoryPosition, report: &mut FsckReport) {
    let is_head = |row: CommittedHead| {
        (row.batch, row.size, row.root, row.at) == (head.batch, head.size, head.root, head.at)
    };
    let empty = head.batch == 0 && head.size == TreeSize::EMPTY;
    if !position.last.map_or(empty, is_head) {
        report.add(Defect::HeadNotInHistory { batch: head.batch, size: head.size });
    }
}

/// Position of the check in the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HistoryPosition {
    /// Next batch to read.
    pub(super) next: u64,
    /// Last row that was read.
    pub(super) last: Option<CommittedHead>,
}

impl HistoryPosition {
    /// Starts at `first`, and at 1 at the least: batch numbers begin at 1.
    pub(super) fn from(first: u64) -> Self {
        Self { next: first.max(1), last: None }
    }
}

/// Iterator over the history that reads page by page.
#[derive(Clone)]
pub(super) struct HistoryRows<'a> {
    store: &'a dyn LogReader,
    next: u64,
    page: VecDeque<CommittedHead>,
}

impl<'a> HistoryRows<'a> {
    pub(super) fn from(store: &'a dyn LogReader, first: u64) -> Self {
        Self { store, next: first, page: VecDeque::new() }
    }

    pub(super) async fn next(&mut self) -> Result<Option<CommittedHead>, StoreError> {
        if self.page.is_empty() {
            self.page = self.store.heads(self.next, ROWS).await?.into();
        }
        let row = self.page.pop_front();
        self.next = row.map_or(self.next, |row| row.batch + 1);
        Ok(row)
    }
}

/// Compares the committed roots with those of a [`RecomputedTree`].
#[derive(Clone)]
pub(super) struct RootComparison<'a> {
    rows: HistoryRows<'a>,
    /// The next head to compare.
    next: Option<CommittedHead>,
    pub(super) wrong: WrongRoots,
}

/// Heads with a wrong root: the first is reported, the later ones are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct WrongRoots {
    first: Option<u64>,
    later: u64,
}

impl<'a> RootComparison<'a> {
    pub(super) async fn from(
        store: &'a dyn LogReader,
        batch: u64,
        wrong: WrongRoots,
    ) -> Result<Self, StoreError> {
        let mut rows = HistoryRows::from(store, batch);
        let next = rows.next().await?;
        Ok(Self { rows, next, wrong })
    }

    /// First batch that was not compared.
    pub(super) fn next_batch(&self) -> u64 {
        self.next.map_or(self.rows.next, |row| row.batch)
    }

    /// Compares the heads up to the tree's size; must be called after every appended leaf.
    pub(super) async fn compare(
        &mut self,
        tree: &RecomputedTree,
        report: &mut FsckReport,
    ) -> Result<(), StoreError> {
        while let Some(row) = self.next.filter(|row| row.size <= tree.size()) {
            if row.size == tree.size() {
                report.heads += 1;
                if row.root != tree.root() {
                    self.record_wrong(&row, report);
                }
            }
            self.next = self.rows.next().await?;
        }
        Ok(())
    }

    fn record_wrong(&mut self, row: &CommittedHead, report: &mut FsckReport) {
        if self.wrong.first.is_some() {
            self.wrong.later += 1;
            return;
        }
        self.wrong.first = Some(row.batch);
        report.add(Defect::HeadRoot { batch: row.batch, size: row.size, stored: row.root });
    }
}

impl WrongRoots {
    /// Reports the number of the later ones.
    pub(super) fn finish(self, report: &mut FsckReport) {
        if let Some(batch) = self.first.filter(|_| self.later > 0) {
            report.add(Defect::LaterHeadRoots { batch, count: self.later });
        }
    }
}
