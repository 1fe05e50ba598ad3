//! Counts over all entries with given values: of an issuer, about an agent, or both.
//!
//! A count is cached and continued, so that a repeated request only counts new entries. It is discarded after
//! `TALLY_AGE`, because entries are erased meanwhile, and when the index was dropped.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError};

use merkle::LeafIndex;
use registration::{Lookup, LookupKind};
use store::{Indexed, Order, StoreError};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::{Index, IndexProgress, term};
use crate::limits::{TALLIES, TALLY_AGE, TALLY_ENTRIES, TALLY_GROUPS, TALLY_PAGE};

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
    /// The first and the last of them.
    pub ends: Option<(LeafIndex, LeafIndex)>,
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
    pub crowded: bool,
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
    pub fn count_receipt(&mut self, entry: u64, verdict: &str) {
        self.count_receipt_of(entry, verdict, "verifier");
    }

    /// Counts a verification receipt of this issuer.
    #[cfg(test)]
    pub fn count_receipt_of(&mut self, entry: u64, verdict: &str, issuer: &str) {
        let entry = LeafIndex::new(entry);
        let row = |kind: LookupKind, value: &str| Lookup { kind, value: value.into() };
        let rows =
            [(LookupKind::ReceiptId, "id"), (LookupKind::Verdict, verdict), (LookupKind::Issuer, issuer)];
        self.add(entry, &rows.map(|(kind, value)| row(kind, value)));
    }

    fn add(&mut self, entry: LeafIndex, rows: &[Lookup]) {
        self.entries += 1;
        self.ends = Some((self.ends.map_or(entry, |(first, _)| first), entry));
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

fn is_about_its_issuer(rows: &[Lookup]) -> bool {
    let of = |kind: LookupKind| rows.iter().filter(move |row| row.kind == kind);
    of(LookupKind::Issuer).any(|issuer| of(LookupKind::Subject).any(|subject| subject.value == issuer.value))
}

/// The values that all counted entries have.
type Values = Vec<(LookupKind, String)>;

/// The cached counts of a process. The same values are counted by one request at a time; different ones are counted
/// concurrently.
#[derive(Default)]
pub struct Tallies(std::sync::Mutex<HashMap<Values, Arc<Mutex<CachedTally>>>>);

struct CachedTally {
    begun: Instant,
    form: u32,
    tally: Arc<ReceiptTally>,
}

impl Tallies {
    /// Continues the count of the entries with these values by at most [`TALLY_ENTRIES`] entries, and returns it.
    pub async fn of(
        &self,
        index: &Index,
        values: &[(LookupKind, &str)],
    ) -> Result<Arc<ReceiptTally>, StoreError> {
        let kept = self.kept(values.iter().map(|(kind, value)| (*kind, (*value).to_owned())).collect());
        let mut kept = kept.lock().await;
        let indexed = index.indexed();
        if !kept.is_of(indexed) {
            *kept = CachedTally::begin(indexed.form);
        }
        if !kept.tally.complete || kept.tally.size != indexed.to.get() {
            let before = (*kept.tally).clone();
            kept.tally = Arc::new(go_on(index, values, before, indexed.to.get()).await?);
        }
        Ok(kept.tally.clone())
    }

    /// The cache slot of these values. Slots in use stay. Unused ones are removed if they are empty or older than
    /// [`TALLY_AGE`], and the oldest ones above [`TALLIES`].
    fn kept(&self, values: Values) -> Arc<Mutex<CachedTally>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, kept| idle(kept).is_none_or(|kept| kept.tally.entries > 0 && kept.is_fresh()));
        while all.len() > TALLIES {
            let idle = all.iter_mut().filter_map(|(values, kept)| Some((idle(kept)?.begun, values)));
            let idle: Vec<(Instant, &Values)> = idle.collect();
            if idle.len() <= TALLIES {
                break;
            }
            let Some(oldest) = idle.into_iter().min_by_key(|(begun, _)| *begun) else { break };
            let oldest = oldest.1.clone();
            all.remove(&oldest);
        }
        all.entry(values).or_insert_with(|| Arc::new(Mutex::new(CachedTally::begin(0)))).clone()
    }
}

/// The slot's content, if no request uses it now.
fn idle(kept: &mut Arc<Mutex<CachedTally>>) -> Option<&mut CachedTally> {
    Arc::get_mut(kept).map(Mutex::get_mut)
}

impl CachedTally {
    fn begin(form: u32) -> Self {
        Self { begun: Instant::now(), form, tally: Arc::default() }
    }

    fn is_fresh(&self) -> bool {
        self.begun.elapsed() < TALLY_AGE
    }

    /// Returns `true` if the count can be continued with this index, which was not dropped since, as far as can be
    /// seen.
    fn is_of(&self, indexed: Indexed) -> bool {
        self.is_fresh() && self.form == indexed.form && self.tally.size <= indexed.to.get()
    }
}

async fn go_on(
    index: &Index,
    values: &[(LookupKind, &str)],
    mut tally: ReceiptTally,
    size: u64,
) -> Result<ReceiptTally, StoreError> {
    let mut looked_at = 0;
    while looked_at < TALLY_ENTRIES {
        let terms = values.iter().map(|(kind, value)| term(*kind, value)).collect();
        let page = index.search(terms, tally.size..size, Order::OldestFirst, TALLY_PAGE).await?;
        for entry in &page.entries {
            tally.add(*entry, &index.values_of(*entry).await?);
        }
        looked_at += page.entries.len();
        match page.more_after {
            Some(last) => tally.size = last.get() + 1,
            None => {
                // If the index was dropped meanwhile, the count ends where the index does.
                let indexed = page.indexed.to.get();
                tally.complete = indexed >= size;
                tally.size = tally.size.max(size.min(indexed));
                return Ok(tally);
            }
        }
    }
    tally.complete = false;
    Ok(tally)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_an_agent_verified_about_itself_counts_in_no_share() {
        let mut tally = ReceiptTally::default();
        let count = |tally: &mut ReceiptTally, n: u64, issuer: &str| {
            let entry = LeafIndex::new(n);
            let row = |kind: LookupKind, value: &str| Lookup { kind, value: value.into() };
            let receipt = [row(LookupKind::ReceiptId, "id"), row(LookupKind::Verdict, "pass")];
            let names = [row(LookupKind::Issuer, issuer), row(LookupKind::Subject, "agent")];
            tally.add(entry, &[receipt, names].concat());
        };
        count(&mut tally, 0, "verifier");
        count(&mut tally, 1, "agent");
        count(&mut tally, 2, "agent");
        assert_eq!((tally.entries, tally.receipt_count, tally.self_verified), (3, 1, 2));
        let by_issuer = tally.receipts_by(LookupKind::Issuer);
        assert_eq!(by_issuer.into_keys().collect::<Vec<_>>(), ["verifier"]);
    }

    /// Continues the n-th requested count.
    fn counted(tallies: &Tallies, n: usize) {
        let kept = tallies.kept(vec![(LookupKind::Issuer, format!("{n:04}"))]);
        let mut tally = ReceiptTally::default();
        tally.count_receipt(7, "pass");
        let begun = Instant::now() + Duration::from_millis(n as u64);
        *kept.try_lock().unwrap() = CachedTally { begun, form: 1, tally: Arc::new(tally) };
    }

    fn names(tallies: &Tallies) -> Vec<String> {
        let mut names: Vec<String> =
            tallies.0.lock().unwrap().keys().map(|values| values[0].1.clone()).collect();
        names.sort();
        names
    }

    #[test]
    fn names_that_nobody_has_push_no_count_out() {
        let tallies = Tallies::default();
        for n in 0..TALLIES {
            counted(&tallies, n);
        }
        for n in 0..2 * TALLIES {
            drop(tallies.kept(vec![(LookupKind::Issuer, format!("junk {n}"))]));
        }
        assert_eq!(names(&tallies).len(), TALLIES + 1, "all that count, and the last one of the junk");
    }

    #[test]
    fn the_oldest_count_that_nobody_goes_on_with_makes_room() {
        let tallies = Tallies::default();
        for n in 0..TALLIES + 2 {
            counted(&tallies, n);
        }
        let busy = tallies.kept(vec![(LookupKind::Issuer, "0000".into())]);
        counted(&tallies, TALLIES + 2);
        counted(&tallies, TALLIES + 3);
        let left = names(&tallies);
        assert!(left.contains(&"0000".into()), "who counts keeps what it counts");
        assert!(!left.contains(&"0001".into()), "the oldest of the others went");
        assert!(left.contains(&format!("{:04}", TALLIES + 3)));
        drop(busy);
    }
}
