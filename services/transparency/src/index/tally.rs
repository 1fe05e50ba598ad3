//! Counts over all entries under one value: an issuer, an agent.
//!
//! A count is kept and goes on where it stopped, so that asking again costs what was registered since. It is thrown away
//! after a while, because entries are erased; and when the index was dropped.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use merkle::LeafIndex;
use registration::LookupKind;
use store::{LogStore, Lookup, Order, Query, StoreError};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::term;
use crate::limits::{TALLIES, TALLY_AGE, TALLY_ENTRIES, TALLY_GROUPS, TALLY_PAGE};

/// Counted by these.
const KINDS: [LookupKind; 6] = [
    LookupKind::ContentType,
    LookupKind::Key,
    LookupKind::Verdict,
    LookupKind::Tier,
    LookupKind::TaskType,
    LookupKind::Issuer,
];

/// What was counted.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Every entry below this one was looked at.
    pub size: u64,
    /// Whether that is all that was indexed.
    pub complete: bool,
    /// Entries.
    pub entries: u64,
    /// The first and the last of them.
    pub ends: Option<(LeafIndex, LeafIndex)>,
    /// Of all entries, by kind and value.
    all: BTreeMap<(LookupKind, String), u64>,
    /// Of verification receipts with a verdict, by kind and value: how many, and how many passed.
    receipts: BTreeMap<(LookupKind, String), Group>,
    /// Verification receipts with a verdict.
    pub receipt_count: u64,
    /// Those of which only the hash is here.
    pub redacted: u64,
    /// Whether values were left out because there were too many.
    pub crowded: bool,
}

/// Receipts that have a value in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// All of them.
    pub count: u64,
    /// Those whose verdict is "pass".
    pub passed: u64,
}

impl Tally {
    /// Entries by value.
    pub fn entries_by(&self, kind: LookupKind) -> BTreeMap<&str, u64> {
        self.all.iter().filter(|((of, _), _)| *of == kind).map(|((_, value), n)| (&**value, *n)).collect()
    }

    /// Verification receipts by value.
    pub fn receipts_by(&self, kind: LookupKind) -> BTreeMap<&str, Group> {
        self.receipts
            .iter()
            .filter(|((of, _), _)| *of == kind)
            .map(|((_, value), n)| (&**value, *n))
            .collect()
    }

    fn add(&mut self, entry: LeafIndex, rows: &[Lookup]) {
        self.entries += 1;
        self.ends = Some((self.ends.map_or(entry, |(first, _)| first), entry));
        let has = |kind: LookupKind| rows.iter().any(|row| row.kind == kind.number());
        let passed = rows.iter().any(|row| row.kind == LookupKind::Verdict.number() && row.value == "pass");
        let is_receipt = has(LookupKind::ReceiptId);
        let disclosed = is_receipt && has(LookupKind::Verdict);
        self.receipt_count += u64::from(disclosed);
        self.redacted += u64::from(is_receipt && !disclosed);
        for kind in KINDS {
            for row in rows.iter().filter(|row| row.kind == kind.number()) {
                let key = (kind, row.value.clone());
                if self.all.len() >= TALLY_GROUPS && !self.all.contains_key(&key) {
                    self.crowded = true;
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

/// The counts of a process. Those that are asked for at once are made one after the other.
#[derive(Default)]
pub struct Tallies(Mutex<HashMap<(LookupKind, String), Kept>>);

struct Kept {
    begun: Instant,
    form: u32,
    tally: Arc<Tally>,
}

impl Tallies {
    /// The count of this value, brought up to date as far as one request may take.
    pub async fn of(
        &self,
        store: &dyn LogStore,
        kind: LookupKind,
        value: &str,
    ) -> Result<Arc<Tally>, StoreError> {
        let mut kept = self.0.lock().await;
        let indexed = store.indexed().await?;
        kept.retain(|_, kept| {
            let dropped = kept.form != indexed.form || kept.tally.size > indexed.to.get();
            kept.begun.elapsed() < TALLY_AGE && !dropped
        });
        let key = (kind, value.to_owned());
        let (begun, before) = match kept.get(&key) {
            Some(kept) => (kept.begun, kept.tally.clone()),
            None => (Instant::now(), Arc::default()),
        };
        if before.complete && before.size == indexed.to.get() {
            return Ok(before);
        }
        let tally = Arc::new(go_on(store, kind, value, (*before).clone(), indexed.to.get()).await?);
        if kept.len() >= TALLIES {
            kept.clear();
        }
        kept.insert(key, Kept { begun, form: indexed.form, tally: tally.clone() });
        Ok(tally)
    }
}

async fn go_on(
    store: &dyn LogStore,
    kind: LookupKind,
    value: &str,
    mut tally: Tally,
    size: u64,
) -> Result<Tally, StoreError> {
    let mut looked_at = 0;
    while looked_at < TALLY_ENTRIES {
        let page = store
            .search(&Query {
                terms: vec![term(kind, value)],
                within: tally.size..size,
                order: Order::OldestFirst,
                limit: TALLY_PAGE,
            })
            .await?;
        let rows = store.lookups(&page.entries).await?;
        for entry in &page.entries {
            let start = rows.partition_point(|row| row.entry < *entry);
            let end = rows.partition_point(|row| row.entry <= *entry);
            tally.add(*entry, &rows[start..end]);
        }
        looked_at += page.entries.len();
        match page.more_after {
            Some(last) => tally.size = last.get() + 1,
            None => {
                (tally.size, tally.complete) = (size, true);
                return Ok(tally);
            }
        }
    }
    tally.complete = false;
    Ok(tally)
}
