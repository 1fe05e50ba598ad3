//! Checks the history of heads during the audit: the commit time of each leaf's batch, and each head's root.

use std::collections::VecDeque;

use merkle::{CompactRange, LeafIndex, TreeSize};
use registration::clock_correction::ClockCorrection;

use crate::finding::{AuditFinding, LogRule};
use crate::ledger::AuditLedger;
use crate::limits::HEADS;
use crate::source::{AuditHead, AuditSource, EntryEvidence, HistoryHead, SourceError};
use crate::state::{Correction, HistoryState, Passed};

/// Heads that were read and that the audit has not reached yet.
#[derive(Debug, Default)]
pub(crate) struct HeadHistory {
    ahead: VecDeque<HistoryHead>,
    /// First batch number that has not been read.
    next: u64,
}

impl HeadHistory {
    pub(crate) fn from(history: &HistoryState) -> Self {
        Self { ahead: VecDeque::new(), next: history.next }
    }

    /// Reads further heads until they cover a tree of this size, or until the source has no more.
    pub(crate) async fn cover(
        &mut self,
        source: &dyn AuditSource,
        size: TreeSize,
    ) -> Result<(), SourceError> {
        while self.ahead.back().is_none_or(|last| last.head.size < size) {
            let page = source.heads(self.next, HEADS).await?;
            let Some(last) = page.last() else { return Ok(()) };
            self.next = last.head.batch + 1;
            self.ahead.extend(page);
        }
        Ok(())
    }

    /// Returns the commit time of a leaf's batch in Unix seconds, if the heads read so far cover the leaf.
    pub(crate) fn at(&self, leaf: LeafIndex) -> Option<u64> {
        self.ahead.iter().find(|ahead| ahead.head.size.holds(leaf)).map(|ahead| ahead.head.at)
    }

    /// Compares the heads of the tree's present size with the tree, and removes them. Must be called after every leaf.
    pub(crate) fn pass(&mut self, tree: &CompactRange, history: &mut HistoryState, ledger: &mut AuditLedger) {
        while let Some(ahead) = self.ahead.pop_front_if(|ahead| ahead.head.size <= tree.size()) {
            check_order(&ahead, history, ledger);
            if ahead.head.size == tree.size() {
                check_root(&ahead, tree, history, ledger);
                check_signed(&ahead, ledger);
            }
            let (batch, size, at) = (ahead.head.batch, ahead.head.size.get(), ahead.head.at);
            history.next = batch + 1;
            history.last = Some(Passed { batch, size, at });
        }
    }
}

fn check_order(ahead: &HistoryHead, history: &HistoryState, ledger: &mut AuditLedger) {
    let head = &ahead.head;
    if head.batch != history.next {
        let detail = format!("batches {} to {} are missing from the history", history.next, head.batch - 1);
        ledger.add(AuditFinding::of_batch(LogRule::History, history.next, detail));
    }
    // Before the first batch, size and time count as 0: each batch adds at least one leaf.
    let (size, at) = history.last.as_ref().map_or((0, 0), |last| (last.size, last.at));
    let explained = history.correction.is_some_and(|correction| correction.explains(size, at, head.at));
    if head.size.get() <= size || (head.at < at && !explained) {
        ledger.add(AuditFinding::of_batch(
            LogRule::History,
            head.batch,
            "size or time is behind the batch before it, and no clock correction explains it",
        ));
    }
}

fn check_root(
    ahead: &HistoryHead,
    tree: &CompactRange,
    history: &mut HistoryState,
    ledger: &mut AuditLedger,
) {
    let (stored, computed) = (ahead.head.root, tree.root());
    ledger.counts.heads += 1;
    // A wrong leaf makes every later root wrong, so that only the first wrong root is reported, until a root is right
    // again.
    if stored != computed && history.agrees {
        let detail =
            format!("the root of size {} is stored as {stored}, the leaves give {computed}", tree.size());
        ledger.add(AuditFinding::of_batch(LogRule::Root, ahead.head.batch, detail));
    }
    history.agrees = stored == computed;
}

/// Compares each signed commit time with the stored one.
fn check_signed(ahead: &HistoryHead, ledger: &mut AuditLedger) {
    let head = &ahead.head;
    for signed in &ahead.signed {
        let detail = match signed {
            Ok(at) if *at == head.at => {
                ledger.counts.signatures += 1;
                continue;
            }
            Ok(at) => format!("the time is stored as {}, and {at} was signed", head.at),
            Err(why) => format!("a signature over it: {why}"),
        };
        ledger.add(AuditFinding::of_batch(LogRule::HeadSigned, head.batch, detail));
    }
}

impl Correction {
    /// Returns `true` if the batch after the head with this size and time may be committed at time `at`.
    fn explains(self, size: u64, committed_at: u64, at: u64) -> bool {
        (self.size, self.committed_at) == (size, committed_at) && (self.time..committed_at).contains(&at)
    }
}

/// Records a clock correction. It must be the entry directly after the tree size that it names.
pub(crate) fn take_correction(
    evidence: &EntryEvidence,
    correction: &ClockCorrection,
    history: &mut HistoryState,
    ledger: &mut AuditLedger,
) {
    let ClockCorrection { size, committed_at, time, .. } = *correction;
    if size.next_leaf() != evidence.index {
        let detail = format!("it corrects the time of size {size}, and is not the entry after it");
        ledger.add(AuditFinding::of_entry(LogRule::History, evidence.index, evidence.digest, detail));
        return;
    }
    history.correction = Some(Correction { size: size.get(), committed_at, time });
}

/// Checks a commit time that the source gives with an entry. No signature covers it, so the only check is that times do
/// not decrease, except at a clock correction.
pub(crate) fn check_unsigned_time(
    evidence: &EntryEvidence,
    at: u64,
    history: &mut HistoryState,
    ledger: &mut AuditLedger,
) {
    ledger.counts.told_times += 1;
    let index = evidence.index.get();
    let is_explained = |before| history.correction.is_some_and(|it| it.explains(index, before, at));
    if let Some(before) = history.unsigned_time.filter(|before| at < *before) {
        if is_explained(before) {
            history.unsigned_time = Some(at);
            return;
        }
        let detail = format!("its reported time is {at}, but an earlier entry has {before}");
        ledger.add(AuditFinding::of_entry(LogRule::History, evidence.index, evidence.digest, detail));
    }
    history.unsigned_time = history.unsigned_time.max(Some(at));
}

/// Compares the audited head with the end of the history and the root of the tree.
pub(crate) fn check_end(
    head: &AuditHead,
    tree: &CompactRange,
    history: &HistoryState,
    ledger: &mut AuditLedger,
) {
    if history.agrees && tree.root() != head.root {
        let detail = format!(
            "the root of size {} is {} in the head, the leaves give {}",
            tree.size(),
            head.root,
            tree.root()
        );
        ledger.add(AuditFinding::of_log(LogRule::Root, detail));
    }
    let Some((batch, at)) = head.batch.filter(|(batch, _)| *batch > 0) else { return };
    let expected = Passed { batch, size: head.size.get(), at };
    if history.last != Some(expected) {
        let detail =
            format!("the history does not end in the head: batch {batch}, size {}, time {at}", head.size);
        ledger.add(AuditFinding::of_batch(LogRule::History, batch, detail));
    }
}
