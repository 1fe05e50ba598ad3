//! Counters and findings of an audit so far.
//!
//! An erasure statement explains missing bytes, and stands later in the log than the entry that it erases. Missing
//! bytes therefore wait here for their explanation. Those still waiting at the end become findings.

use std::collections::BTreeMap;

use merkle::{EntryDigest, LeafIndex};
use serde::{Deserialize, Serialize};

use crate::claims::Unread;
use crate::entry::LostPart;
use crate::finding::{AuditFinding, LogRule};
use crate::limits::{MAX_EXPLANATIONS, MAX_FINDINGS, MAX_WAITING};
use crate::operators::Operators;

/// Counters of an audit by outcome; part of an [`AuditReport`](crate::AuditReport).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditCounts {
    /// Leaves audited.
    pub entries: u64,
    /// Entries decided again without any difference.
    pub same: u64,
    /// Entries with at least one difference.
    pub differ: u64,
    /// Entries whose statement is gone.
    pub erased: u64,
    /// Entries whose separately stored payload or certificates are gone.
    pub dropped: u64,
    /// Entries whose policy cannot be read.
    pub without_policy: u64,
    /// Entries for which a rule reached no result within its bounds.
    pub undecided: u64,
    /// Entries whose admission depends on claims of an entry whose bytes are gone.
    pub unknown: u64,
    /// Entries whose commit time is the source's unsigned statement.
    pub told_times: u64,
    /// Entries without a known commit time.
    pub untold_times: u64,
    /// Heads whose root was recomputed.
    pub heads: u64,
    /// Signatures over heads that were verified.
    pub signatures: u64,
}

/// Reason why some entries cannot be decided again; listed in
/// [`AuditReport::explained`](crate::AuditReport::explained).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LossExplanation {
    /// ID of the entry that explains the missing bytes.
    pub entry: String,
    /// Kind of explanation.
    pub kind: Explains,
    /// Number of entries explained.
    pub entries: u64,
}

/// Kinds of explanation for entries that cannot be decided again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Explains {
    /// An erasure statement lists the entry.
    Erasure,
    /// The policy in force keeps no payloads of the entry's type.
    Policy,
    /// An earlier entry's bytes are gone, and with them claims on which the decision depends.
    Unread,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UnexplainedLoss {
    leaf: u64,
    gone: LostPart,
}

/// Counters, findings and unexplained missing bytes so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AuditLedger {
    pub(crate) counts: AuditCounts,
    pub(crate) findings: Vec<AuditFinding>,
    pub(crate) omitted: u64,
    /// By the leaf of the entry that explains.
    pub(crate) explained: BTreeMap<u64, LossExplanation>,
    /// Number of entries whose explanation is not listed.
    pub(crate) explained_otherwise: u64,
    /// Unexplained missing bytes, by entry ID.
    pub(crate) waiting: BTreeMap<String, UnexplainedLoss>,
    /// Number of entries with missing bytes beyond [`MAX_WAITING`].
    pub(crate) unmatched: u64,
    /// Actions of operators so far.
    pub(crate) operators: Operators,
}

impl AuditLedger {
    /// Adds a finding. In a full list it takes the place of the newest refused receipt: a log can serve any number of
    /// these, and they must not hide what else it did.
    pub(crate) fn add(&mut self, finding: AuditFinding) {
        let is_receipt = |finding: &AuditFinding| finding.rule == LogRule::Receipt;
        if self.findings.len() == MAX_FINDINGS {
            self.omitted += 1;
            match self.findings.iter().rposition(is_receipt).filter(|_| !is_receipt(&finding)) {
                Some(receipt) => drop(self.findings.remove(receipt)),
                None => return,
            }
        }
        self.findings.push(finding);
    }

    /// Records that bytes of an entry are gone, although its policy keeps them.
    pub(crate) fn gone(&mut self, entry: EntryDigest, leaf: LeafIndex, gone: LostPart) {
        match gone {
            LostPart::Statement => self.counts.erased += 1,
            LostPart::Payload | LostPart::Certificates => self.counts.dropped += 1,
        }
        self.wait(entry, UnexplainedLoss { leaf: leaf.get(), gone });
    }

    /// Records that an entry's payload was not kept, as its policy prescribes.
    pub(crate) fn dropped(&mut self, policy: LeafIndex, policy_entry: &str) {
        self.counts.dropped += 1;
        self.explain(policy, policy_entry, Explains::Policy);
    }

    /// Records that an entry's decision depends on the unknown claims of another entry.
    pub(crate) fn unknown(&mut self, by: &Unread) {
        self.counts.unknown += 1;
        self.explain(LeafIndex::new(by.leaf), &by.entry, Explains::Unread);
    }

    /// Records an admitted erasure statement, which explains the missing bytes of the entries that it lists.
    pub(crate) fn erasure(&mut self, leaf: LeafIndex, entry: EntryDigest, erased: &[EntryDigest]) {
        for digest in erased {
            if self.waiting.remove(&digest.to_string()).is_some() {
                self.explain(leaf, &entry.to_string(), Explains::Erasure);
            }
        }
    }

    /// Adds a [`LogRule::AfterFreeze`] finding if the entry stands after a freeze.
    pub(crate) fn after_freeze(&mut self, leaf: LeafIndex, entry: EntryDigest) {
        if let Some(frozen) = self.operators.frozen {
            let detail = format!("the operator ended the log with leaf {frozen}");
            self.add(AuditFinding::of_entry(LogRule::AfterFreeze, leaf, entry, detail));
        }
    }

    /// Turns missing bytes without an explanation into findings.
    pub(crate) fn close(&mut self) {
        let mut waiting: Vec<(String, UnexplainedLoss)> =
            std::mem::take(&mut self.waiting).into_iter().collect();
        waiting.sort_by_key(|(_, gone)| gone.leaf);
        for (entry, gone) in waiting {
            let (rule, detail) = gone.gone.unexplained();
            let finding = AuditFinding::of_leaf(rule, LeafIndex::new(gone.leaf), detail);
            self.add(AuditFinding { entry: Some(entry), ..finding });
        }
    }

    fn wait(&mut self, entry: EntryDigest, gone: UnexplainedLoss) {
        match self.waiting.len() < MAX_WAITING {
            true => drop(self.waiting.insert(entry.to_string(), gone)),
            false => self.unmatched += 1,
        }
    }

    fn explain(&mut self, leaf: LeafIndex, entry: &str, kind: Explains) {
        let full = self.explained.len() >= MAX_EXPLANATIONS;
        match self.explained.get_mut(&leaf.get()) {
            Some(known) => known.entries += 1,
            None if full => self.explained_otherwise += 1,
            None => {
                let entry = entry.to_owned();
                self.explained.insert(leaf.get(), LossExplanation { entry, kind, entries: 1 });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(n: u64) -> EntryDigest {
        EntryDigest::of(&n.to_be_bytes())
    }

    #[test]
    fn what_an_erasure_lists_is_explained_by_it_and_the_rest_is_found() {
        let mut ledger = AuditLedger::default();
        (1..=3).for_each(|n| ledger.gone(digest(n), LeafIndex::new(n), LostPart::Statement));
        ledger.erasure(LeafIndex::new(9), digest(9), &[digest(1), digest(3), digest(77)]);
        ledger.close();
        assert_eq!(ledger.explained[&9].entries, 2);
        assert_eq!(ledger.findings.len(), 1);
        assert_eq!((ledger.findings[0].rule, ledger.findings[0].leaf), (LogRule::ErasedUnexplained, Some(2)));
    }

    #[test]
    fn more_findings_than_are_listed_are_counted() {
        let mut ledger = AuditLedger::default();
        (0..MAX_FINDINGS as u64 + 5)
            .for_each(|n| ledger.gone(digest(n), LeafIndex::new(n), LostPart::Statement));
        ledger.close();
        assert_eq!((ledger.findings.len(), ledger.omitted), (MAX_FINDINGS, 5));
        assert!(ledger.findings.is_sorted_by_key(|finding| finding.leaf));
    }

    #[test]
    fn refused_receipts_give_way_to_other_findings() {
        let mut ledger = AuditLedger::default();
        let finding = |rule, n| AuditFinding::of_entry(rule, LeafIndex::new(n), digest(n), "why");
        (0..MAX_FINDINGS as u64 + 5).for_each(|n| ledger.add(finding(LogRule::Receipt, n)));
        ledger.add(finding(LogRule::Refused, 7_000));
        ledger.add(AuditFinding::of_log(LogRule::Root, "another root"));
        let last: Vec<LogRule> = ledger.findings.iter().rev().take(3).map(|finding| finding.rule).collect();
        assert_eq!(last, [LogRule::Root, LogRule::Refused, LogRule::Receipt]);
        assert_eq!((ledger.findings.len(), ledger.omitted), (MAX_FINDINGS, 7));
    }
}
