//! Counts over all entries with given values: of an issuer, about an agent, or both.

use std::collections::BTreeMap;

use registration::{Lookup, LookupKind};

use super::IndexProgress;
use crate::limits::TALLY_GROUPS;

/// The kinds of values that entries are grouped by.
const KINDS: [LookupKind; 6] = [
    LookupKind::ContentType,
    LookupKind::Key,
    LookupKind::Verdict,
    LookupKind::Tier,
    LookupKind::TaskType,
    LookupKind::Issuer,
];

/// The counts over the entries with given values.
#[derive(Clone, Debug, Default)]
pub struct ReceiptTally {
    /// The size of the tree up to which entries were counted.
    pub size: u64,
    /// `true` if all indexed entries were counted.
    pub complete: bool,
    /// Number of entries.
    pub entries: u64,
    /// Numbers of entries by kind and value.
    all: BTreeMap<(LookupKind, String), u64>,
    /// Verification receipts with a verdict, by kind and value.
    receipts: BTreeMap<(LookupKind, String), ReceiptGroup>,
    /// Number of verification receipts with a verdict.
    pub receipt_count: u64,
    /// Number of receipts that an agent issued about itself. They are not in `receipts` and `receipt_count`.
    pub self_verified: u64,
    /// Number of receipts of which only the hash is registered.
    pub redacted: u64,
    /// `true` if values were left out, above `TALLY_GROUPS`.
    pub truncated: bool,
}

/// Receipts with a common value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiptGroup {
    /// Number of all receipts in the group.
    pub count: u64,
    /// Number of receipts with the verdict `"pass"`.
    pub passed: u64,
}

impl ReceiptTally {
    /// The numbers of entries by value.
    pub fn entries_by(&self, kind: LookupKind) -> BTreeMap<&str, u64> {
        self.all.iter().filter(|((of, _), _)| *of == kind).map(|((_, value), n)| (&**value, *n)).collect()
    }

    /// The verification receipts by value.
    pub fn receipts_by(&self, kind: LookupKind) -> BTreeMap<&str, ReceiptGroup> {
        self.receipts
            .iter()
            .filter(|((of, _), _)| *of == kind)
            .map(|((_, value), n)| (&**value, *n))
            .collect()
    }

    /// Returns `true` if some of the entries committed at that time are not counted yet.
    pub fn goes_on(&self, reached: IndexProgress) -> bool {
        !self.complete || self.size < reached.committed.get()
    }

    /// Counts a verification receipt with this verdict.
    #[cfg(test)]
    pub fn count_receipt(&mut self, verdict: &str) {
        self.count_receipt_of(verdict, "verifier");
    }

    /// Counts a verification receipt of this issuer.
    #[cfg(test)]
    pub fn count_receipt_of(&mut self, verdict: &str, issuer: &str) {
        let row = |kind: LookupKind, value: &str| Lookup { kind, value: value.into() };
        let rows =
            [(LookupKind::ReceiptId, "id"), (LookupKind::Verdict, verdict), (LookupKind::Issuer, issuer)];
        self.add(&rows.map(|(kind, value)| row(kind, value)));
    }

    /// Counts an entry with these values.
    pub fn add(&mut self, rows: &[Lookup]) {
        self.entries += 1;
        let has = |kind: LookupKind| rows.iter().any(|row| row.kind == kind);
        let passed = rows.iter().any(|row| row.kind == LookupKind::Verdict && row.value == "pass");
        let is_receipt = has(LookupKind::ReceiptId);
        let disclosed = is_receipt && has(LookupKind::Verdict);
        let own = disclosed && is_about_its_issuer(rows);
        self.self_verified += u64::from(own);
        self.redacted += u64::from(is_receipt && !disclosed);
        let disclosed = disclosed && !own;
        self.receipt_count += u64::from(disclosed);
        for kind in KINDS {
            for row in rows.iter().filter(|row| row.kind == kind) {
                let key = (kind, row.value.clone());
                if self.all.len() >= TALLY_GROUPS && !self.all.contains_key(&key) {
                    self.truncated = true;
                    continue;
                }
                if disclosed {
                    let group = self.receipts.entry(key.clone()).or_default();
                    group.count += 1;
                    group.passed += u64::from(passed);
                }
                *self.all.entry(key).or_default() += 1;
            }
        }
    }
}

fn is_about_its_issuer(rows: &[Lookup]) -> bool {
    let of = |kind: LookupKind| rows.iter().filter(move |row| row.kind == kind);
    of(LookupKind::Issuer).any(|issuer| of(LookupKind::Subject).any(|subject| subject.value == issuer.value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_agent_verified_about_itself_counts_in_no_share() {
        let mut tally = ReceiptTally::default();
        let count = |tally: &mut ReceiptTally, issuer: &str| {
            let row = |kind: LookupKind, value: &str| Lookup { kind, value: value.into() };
            let receipt = [row(LookupKind::ReceiptId, "id"), row(LookupKind::Verdict, "pass")];
            let names = [row(LookupKind::Issuer, issuer), row(LookupKind::Subject, "agent")];
            tally.add(&[receipt, names].concat());
        };
        count(&mut tally, "verifier");
        count(&mut tally, "agent");
        count(&mut tally, "agent");
        assert_eq!((tally.entries, tally.receipt_count, tally.self_verified), (3, 1, 2));
        let by_issuer = tally.receipts_by(LookupKind::Issuer);
        assert_eq!(by_issuer.into_keys().collect::<Vec<_>>(), ["verifier"]);
    }
}
