//! The rows that say what was committed and signed.

use std::collections::VecDeque;

use merkle::TreeSize;

use super::{Finding, Fsck, QUICK_HEADS, ROWS, Report};
use crate::proofs::{ProofError, Prover};
use crate::{CommittedHead, Head, HeadSignature, LogKey, LogStore, SignatureKind, StoreError};

impl Fsck<'_> {
    /// The rows from `first` on: none missing, none running back, the last one the head.
    pub(super) async fn check_history(
        &self,
        head: &Head,
        first: u64,
        report: &mut Report,
    ) -> Result<(), StoreError> {
        let mut rows = Rows::from(self.store, first.max(1));
        let mut before: Option<CommittedHead> = None;
        let mut expected = first.max(1);
        while let Some(row) = rows.next().await? {
            if row.batch > head.batch {
                self.check_beyond(&row, report).await?;
                break;
            }
            if row.batch > expected {
                report.add(Finding::HeadsLost { first: expected, last: row.batch - 1 });
            }
            expected = row.batch + 1;
            if before.is_some_and(|before| runs_back(&before, &row)) {
                report.add(Finding::HistoryRunsBack { batch: row.batch });
            }
            before = Some(row);
        }
        let (batch, size) = (head.batch, head.size());
        let is_head = |row: CommittedHead| {
            row.batch == batch && row.size == size && row.root == head.root() && row.at == head.at
        };
        let empty = batch == 0 && size == TreeSize::EMPTY;
        if !before.map_or(empty, is_head) {
            report.add(Finding::HeadNotInHistory { batch, size });
        }
        Ok(())
    }

    /// A row after the head that was read first is right if the log has grown meanwhile.
    async fn check_beyond(&self, row: &CommittedHead, report: &mut Report) -> Result<(), StoreError> {
        let now = self.store.head().await?;
        if row.batch > now.batch {
            report.add(Finding::HistoryBeyondHead { batch: row.batch, size: row.size, head: now.size() });
        }
        Ok(())
    }

    /// The roots of the last heads, as the tiles prove them.
    pub(super) async fn check_recent_roots(
        &self,
        head: &Head,
        report: &mut Report,
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
                Err(ProofError::Store(error @ (StoreError::Unavailable(_) | StoreError::Refused(_)))) => {
                    return Err(error);
                }
                Err(_) => report.add(Finding::HeadRoot { batch, size, stored }),
            }
        }
        Ok(())
    }

    /// The signatures that a start would serve first.
    pub(super) async fn check_newest_signatures(&self, report: &mut Report) -> Result<(), StoreError> {
        let keys = self.store.keys().await?;
        for kind in [SignatureKind::Receipt, SignatureKind::Checkpoint, SignatureKind::Cosignature] {
            if let Some(signed) = self.store.newest_signed(kind).await? {
                self.check_signature(&signed.head, &signed.signature, &keys, report);
            }
        }
        Ok(())
    }

    /// Every signature: over a head that was committed, and right.
    pub(super) async fn check_all_signatures(&self, report: &mut Report) -> Result<(), StoreError> {
        let keys = self.store.keys().await?;
        let mut after = None;
        loop {
            let page = self.store.signatures(after, ROWS).await?;
            let Some(last) = page.last() else {
                return Ok(());
            };
            after = Some(last.size);
            for signature in &page {
                match self.store.head_of_size(signature.size).await? {
                    Some(head) => self.check_signature(&head, signature, &keys, report),
                    None => report.add(Finding::SignatureOverNothing {
                        size: signature.size,
                        kind: signature.kind,
                        kid: signature.kid.clone(),
                    }),
                }
            }
        }
    }

    fn check_signature(
        &self,
        head: &CommittedHead,
        signature: &HeadSignature,
        keys: &[LogKey],
        report: &mut Report,
    ) {
        report.signatures += 1;
        if let Err(why) = self.meaning.check_signature(head, signature, keys) {
            let HeadSignature { size, kind, kid, .. } = signature.clone();
            report.add(Finding::SignatureWrong { size, kind, kid, why });
        }
    }
}

fn runs_back(before: &CommittedHead, row: &CommittedHead) -> bool {
    row.size <= before.size || row.at < before.at || row.epoch < before.epoch
}

/// The history, read page by page.
pub(super) struct Rows<'a> {
    store: &'a dyn LogStore,
    next: u64,
    page: VecDeque<CommittedHead>,
}

impl<'a> Rows<'a> {
    pub(super) fn from(store: &'a dyn LogStore, first: u64) -> Self {
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

/// Compares the roots that were committed with those of a tree that grows beside them.
pub(super) struct Roots<'a> {
    rows: Rows<'a>,
    waiting: Option<CommittedHead>,
    first_wrong: Option<u64>,
    later_wrong: u64,
}

impl<'a> Roots<'a> {
    pub(super) async fn new(store: &'a dyn LogStore) -> Result<Self, StoreError> {
        let mut rows = Rows::from(store, 1);
        let waiting = rows.next().await?;
        Ok(Self { rows, waiting, first_wrong: None, later_wrong: 0 })
    }

    /// To be asked at every size.
    pub(super) async fn compare(
        &mut self,
        tree: &merkle::CompactRange,
        report: &mut Report,
    ) -> Result<(), StoreError> {
        while let Some(row) = self.waiting.filter(|row| row.size <= tree.size()) {
            if row.size == tree.size() {
                report.heads += 1;
                if row.root != tree.root() {
                    self.wrong(&row, report);
                }
            }
            self.waiting = self.rows.next().await?;
        }
        Ok(())
    }

    fn wrong(&mut self, row: &CommittedHead, report: &mut Report) {
        if self.first_wrong.is_some() {
            self.later_wrong += 1;
            return;
        }
        self.first_wrong = Some(row.batch);
        report.add(Finding::HeadRoot { batch: row.batch, size: row.size, stored: row.root });
    }

    pub(super) fn finish(self, report: &mut Report) {
        if let Some(batch) = self.first_wrong.filter(|_| self.later_wrong > 0) {
            report.add(Finding::LaterHeadRoots { batch, count: self.later_wrong });
        }
    }
}
