//! The index as one process sees it: the complete runs of the database, and the newest leaves in memory.
//!
//! Not here: which other runs are written (`writer`), and reading the terms of entries (the service).

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use lookup_tree::RunId;
use lookup_tree::limits::LEVEL_0_LEAVES;
use merkle::{LeafIndex, TreeSize};

use super::LookupIndex;
use super::catalog::{RunCatalog, StoredRun, leaves_of};
use super::head::HeadSnapshot;
use super::job::{RunJob, RunSources};
use super::postings::{BlindLeaf, Postings};
use super::query::{Indexed, Page, Query};
use super::search::search;
use super::tail::Tail;
use super::terms::EntryTerms;
use super::values::ValueSearch;
use crate::StoreError;

/// Maximum number of leaves in memory: those that do not fill a run, and runs that are not written yet.
const TAIL_LEAVES: u64 = 4 * LEVEL_0_LEAVES;
/// Number of times that a search is repeated because the runs changed under it.
const ATTEMPTS: usize = 5;

/// The lookup index of one process.
pub struct SearchIndex {
    form: u32,
    tail: Mutex<Tail>,
}

impl SearchIndex {
    /// Creates an index of this form without leaves in memory. [`align`](Self::align) comes first.
    pub fn new(form: u32) -> Self {
        Self { form, tail: Mutex::default() }
    }

    /// Continues where the complete runs end: forgets leaves that runs hold, and starts again if the index was dropped.
    ///
    /// The leaves of the newest run stay for a while, for searches that do not know it yet.
    pub fn align(&self, catalog: &RunCatalog) {
        let covered = catalog.covered().get();
        let mut tail = self.tail();
        if tail.dropped() != catalog.dropped || !(tail.from()..=tail.to()).contains(&covered) {
            *tail = Tail::at(covered, catalog.dropped);
        }
        tail.trim(covered.saturating_sub(LEVEL_0_LEAVES));
    }

    /// The size of the tree whose entries are in the index.
    pub fn size(&self) -> TreeSize {
        TreeSize::new(self.tail().to())
    }

    /// Number of leaves that can be added now.
    pub fn room(&self) -> u64 {
        let tail = self.tail();
        TAIL_LEAVES.saturating_sub(tail.to() - tail.from())
    }

    /// Adds the terms of the next leaves. Returns `false`, and adds nothing, if the index does not end at `from` (any more).
    pub fn append(&self, from: TreeSize, entries: Vec<EntryTerms>) -> bool {
        let mut tail = self.tail();
        if tail.to() != from.get() {
            return false;
        }
        entries.into_iter().for_each(|terms| tail.push(terms));
        true
    }

    /// Finds the entries that match every term of a query, in the query's order.
    pub async fn search(&self, store: &dyn LookupIndex, query: &Query) -> Result<Page, StoreError> {
        self.search_and_list_blind(store, query, 0).await.map(|(page, _)| page)
    }

    /// Searches, and lists up to `most_blind` entries in the leaves of the page that may match: they were erased, or cannot be
    /// read.
    pub async fn search_and_list_blind(
        &self,
        store: &dyn LookupIndex,
        query: &Query,
        most_blind: usize,
    ) -> Result<(Page, Vec<BlindLeaf>), StoreError> {
        let mut catalog = store.catalog().await?;
        for _ in 0..ATTEMPTS {
            let newest = self.newest(&catalog);
            let indexed = Indexed { form: catalog.form, to: TreeSize::new(newest.end) };
            let postings = Postings::new(store, &catalog, &self.tail, newest.clone());
            let mut page = search(&postings, indexed, query).await?;
            let runs = postings.runs().to_vec();
            let blind = match most_blind {
                0 => Vec::new(),
                most => {
                    let postings = postings.with_blind_runs_only();
                    postings.blind(page.leaves(query), query.order, most).await?
                }
            };
            if runs.is_empty() && self.still_has(&newest) {
                return Ok((page, blind));
            }
            let now = store.catalog().await?;
            if self.is_unchanged(&catalog, &now, &runs, &newest) {
                page.entries.retain(|entry| !now.erased.contains_key(entry));
                return Ok((page, blind));
            }
            catalog = now;
        }
        Err(always_changing())
    }

    /// Lists up to `limit` values of a kind that begin with `prefix`, in byte order: those greater than `after`
    /// if it is given.
    pub async fn values(
        &self,
        store: &dyn LookupIndex,
        kind: u8,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<String>, StoreError> {
        let search = ValueSearch { kind, prefix, after, limit };
        let mut catalog = store.catalog().await?;
        for _ in 0..ATTEMPTS {
            let (newest, runs) = (self.newest(&catalog), catalog.cover());
            let in_memory = self.tail().values(&search, &newest, &catalog.erased);
            let values = search.list(store, &runs, in_memory).await?;
            let now = store.catalog().await?;
            if self.is_unchanged(&catalog, &now, &runs, &newest) {
                return Ok(values);
            }
            catalog = now;
        }
        Err(always_changing())
    }

    /// Returns whether these runs and leaves were complete while they were read: between two reads of the catalog.
    fn is_unchanged(
        &self,
        before: &RunCatalog,
        now: &RunCatalog,
        runs: &[StoredRun],
        newest: &Range<u64>,
    ) -> bool {
        now.dropped == before.dropped && now.has_all(runs) && self.still_has(newest)
    }

    /// Returns whether all leaves of the run that follows the complete ones are in memory.
    pub fn has_full_run(&self, catalog: &RunCatalog) -> bool {
        holds(&self.tail(), &leaves_of(next_run(catalog)))
    }

    /// Writes the run that follows the complete ones, if all of its leaves are in memory; returns whether they are.
    pub async fn write_full_run(
        &self,
        store: &dyn LookupIndex,
        catalog: &RunCatalog,
    ) -> Result<bool, StoreError> {
        let Some((id, sources)) = self.full_run(catalog) else { return Ok(false) };
        let mut job = RunJob::begin(store, id, sources).await?;
        let summary = loop {
            if let Some(summary) = job.advance(store).await? {
                break summary;
            }
        };
        store.finish_run(&job.finish(summary)).await?;
        Ok(true)
    }

    /// What the run that follows the complete ones is written from, if all of its leaves are in memory.
    fn full_run(&self, catalog: &RunCatalog) -> Option<(RunId, RunSources)> {
        let id = next_run(catalog);
        let leaves = leaves_of(id);
        let tail = self.tail();
        if !holds(&tail, &leaves) {
            return None;
        }
        let without: BTreeSet<LeafIndex> = catalog.erased_in(leaves.clone()).map(|(leaf, _)| leaf).collect();
        let ready = tail.postings(&leaves, &without);
        let listed = tail.listed(&leaves, &without);
        Some((id, RunSources { dropped: catalog.dropped, runs: Vec::new(), ready, without, listed }))
    }

    /// The leaves that a search reads from memory: those after the complete runs. None while the two do not meet, and
    /// none for an index of another form or one that was dropped since.
    fn newest(&self, catalog: &RunCatalog) -> Range<u64> {
        let covered = catalog.covered().get();
        self.newest_in(&self.tail(), catalog).unwrap_or(covered..covered)
    }

    /// The leaves of the tail after the complete runs; `None` while the two do not meet.
    fn newest_in(&self, tail: &Tail, catalog: &RunCatalog) -> Option<Range<u64>> {
        let covered = catalog.covered().get();
        let meets = catalog.form == self.form
            && catalog.dropped == tail.dropped()
            && (tail.from()..=tail.to()).contains(&covered);
        meets.then(|| covered..tail.to())
    }

    /// Everything that a head commits to at the size of this index; `None` while a run of it is to be written first.
    /// The tail holds no posting of an entry that was erased before the catalog was read.
    pub fn snapshot(&self, catalog: &RunCatalog) -> Option<HeadSnapshot> {
        let tail = self.tail();
        let newest = self.newest_in(&tail, catalog)?;
        let erased: BTreeSet<LeafIndex> = catalog.erased_in(newest.clone()).map(|(leaf, _)| leaf).collect();
        HeadSnapshot::new(catalog, newest.clone(), tail.postings(&newest, &erased))
    }

    /// Returns whether these leaves are still in memory.
    fn still_has(&self, leaves: &Range<u64>) -> bool {
        let tail = self.tail();
        leaves.is_empty() || holds(&tail, leaves)
    }

    fn tail(&self) -> MutexGuard<'_, Tail> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn always_changing() -> StoreError {
    StoreError::Unavailable("the lookup index changed during each attempt to search it".into())
}

fn holds(tail: &Tail, leaves: &Range<u64>) -> bool {
    tail.from() <= leaves.start && leaves.end <= tail.to() && !leaves.is_empty()
}

/// The run of level 0 that follows the complete ones.
fn next_run(catalog: &RunCatalog) -> RunId {
    RunId { level: 0, number: catalog.covered().get() / LEVEL_0_LEAVES }
}
