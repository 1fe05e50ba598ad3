//! Reading the postings of keys from runs and tail, one range of leaves after the other.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use lookup_tree::{BlindCode, Posting, PostingBlock, PostingPrefix, TermKey, read_block};
use merkle::LeafIndex;

use super::LookupIndex;
use super::catalog::{ErasedLeaves, RunCatalog, StoredRun};
use super::query::Order;
use super::tail::Tail;
use crate::StoreError;

/// Number of blocks read at once.
const BLOCKS: usize = 4;
/// Number of postings whose blocks are read at once.
const PROBES: usize = 1024;

/// An entry that may have any term, and why.
pub type BlindLeaf = (LeafIndex, BlindCode);

/// The postings of an index: those of complete runs, then those of the tail. Erased entries are left out.
pub(super) struct Postings<'a> {
    store: &'a dyn LookupIndex,
    cover: Vec<StoredRun>,
    erased: &'a ErasedLeaves,
    tail: &'a Mutex<Tail>,
    /// Leaves that are read from the tail.
    newest: Range<u64>,
}

impl<'a> Postings<'a> {
    /// Reads the runs of `catalog`, and the leaves `newest` of the tail, which begin where the runs end.
    pub(super) fn new(
        store: &'a dyn LookupIndex,
        catalog: &'a RunCatalog,
        tail: &'a Mutex<Tail>,
        newest: Range<u64>,
    ) -> Self {
        Self { store, cover: catalog.cover(), erased: &catalog.erased, tail, newest }
    }

    /// The runs that are read.
    pub(super) fn runs(&self) -> &[StoredRun] {
        &self.cover
    }

    /// Returns the first `limit` entries of a range, in order, that have one of the keys; each once.
    pub(super) async fn follow(
        &self,
        keys: &[TermKey],
        within: Range<u64>,
        order: Order,
        limit: usize,
    ) -> Result<Vec<LeafIndex>, StoreError> {
        let mut parts: Vec<Part> = self.parts().collect();
        if order == Order::NewestFirst {
            parts.reverse();
        }
        let mut found = Vec::new();
        for part in parts {
            let leaves = intersection(&part.leaves(&self.newest), &within);
            if found.len() >= limit {
                break;
            }
            if !leaves.is_empty() {
                found.extend(self.of_part(&part, keys, leaves, order, limit - found.len()).await?);
            }
        }
        Ok(found)
    }

    /// Returns those of these entries that have one of the keys, in any order.
    pub(super) async fn among(
        &self,
        keys: &[TermKey],
        entries: &[LeafIndex],
    ) -> Result<Vec<LeafIndex>, StoreError> {
        let mut found = Vec::new();
        for part in self.parts() {
            let leaves = part.leaves(&self.newest);
            let here = || entries.iter().copied().filter(|entry| leaves.contains(&entry.get()));
            match part {
                Part::Run(run) => {
                    let wanted =
                        keys.iter().flat_map(|key| here().map(move |leaf| Posting { key: *key, leaf }));
                    let wanted: Vec<Posting> = wanted.collect();
                    let postings = present(self.store, run, &wanted).await?;
                    found.extend(postings.into_iter().map(|posting| posting.leaf));
                }
                Part::Tail => {
                    let tail = self.tail();
                    let has_key = |leaf: &LeafIndex| {
                        let at = leaf.get()..leaf.get() + 1;
                        keys.iter().any(|key| !tail.leaves(*key, at.clone()).is_empty())
                    };
                    found.extend(here().filter(has_key));
                }
            }
        }
        found.retain(|leaf| !self.erased.contains_key(leaf));
        Ok(found)
    }

    /// Returns the first `limit` entries of a range, in order, that may have any term, with the reasons. Those erased lately
    /// count, although runs still have their terms.
    pub(super) async fn blind(
        &self,
        within: Range<u64>,
        order: Order,
        limit: usize,
    ) -> Result<Vec<BlindLeaf>, StoreError> {
        let erased = self.erased.keys().filter(|leaf| within.contains(&leaf.get()));
        let mut found: Vec<BlindLeaf> = erased.map(|leaf| (*leaf, BlindCode::Erased)).collect();
        for code in BlindCode::ALL {
            let leaves = self.follow(&[code.key()], within.clone(), order, limit).await?;
            found.extend(leaves.into_iter().map(|leaf| (leaf, code)));
        }
        found.sort_unstable();
        if order == Order::NewestFirst {
            found.reverse();
        }
        found.truncate(limit);
        Ok(found)
    }

    /// The same postings without the runs that have no blind ones.
    pub(super) fn with_blind_runs_only(mut self) -> Self {
        self.cover.retain(|run| run.summary.blind > 0);
        self
    }

    fn parts(&self) -> impl Iterator<Item = Part<'_>> {
        self.cover.iter().map(Part::Run).chain([Part::Tail])
    }

    fn tail(&self) -> std::sync::MutexGuard<'_, Tail> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first entries of one part that have one of the keys, in order.
    async fn of_part(
        &self,
        part: &Part<'_>,
        keys: &[TermKey],
        within: Range<u64>,
        order: Order,
        limit: usize,
    ) -> Result<Vec<LeafIndex>, StoreError> {
        let mut leaves = match part {
            Part::Run(run) => self.of_run(run, keys, &within, order, limit).await?,
            Part::Tail => {
                let tail = self.tail();
                keys.iter().flat_map(|key| tail.leaves(*key, within.clone())).collect()
            }
        };
        leaves.retain(|leaf| !self.erased.contains_key(leaf));
        leaves.sort_unstable();
        leaves.dedup();
        if order == Order::NewestFirst {
            leaves.reverse();
        }
        leaves.truncate(limit);
        Ok(leaves)
    }

    /// At least the first `limit` leaves of a run that have one of the keys, or all of them, in any order.
    async fn of_run(
        &self,
        run: &StoredRun,
        keys: &[TermKey],
        within: &Range<u64>,
        order: Order,
        limit: usize,
    ) -> Result<Vec<LeafIndex>, StoreError> {
        let mut found = Vec::new();
        let mut longer = keys.to_vec();
        if keys.len() > 1 {
            // Most of many keys are in no run, or in one block of it.
            (found, longer) = leaves_in_one_block(self.store, run, keys, within).await?;
        }
        for key in longer {
            found.extend(leaves_of_run(self.store, run, key, within, order, limit, self.erased).await?);
        }
        Ok(found)
    }
}

/// Returns the leaves of those keys whose postings of the range are all in one block, which are read together, and the other keys.
async fn leaves_in_one_block(
    store: &dyn LookupIndex,
    run: &StoredRun,
    keys: &[TermKey],
    within: &Range<u64>,
) -> Result<(Vec<LeafIndex>, Vec<TermKey>), StoreError> {
    let posting = |key: &TermKey, leaf| Posting { key: *key, leaf: LeafIndex::new(leaf) };
    let firsts: Vec<Posting> = keys.iter().map(|key| posting(key, within.start)).collect();
    let mut blocks = Vec::new();
    for block in store.blocks_with(run.build, &firsts).await? {
        blocks.push(postings_of(run, &block)?);
    }
    let (mut found, mut longer) = (Vec::new(), Vec::new());
    for (key, first) in keys.iter().zip(firsts) {
        let last = posting(key, within.end - 1);
        let reaches = |block: &&Vec<Posting>| block.first() <= Some(&first) && block.last() >= Some(&last);
        match blocks.iter().find(reaches) {
            Some(block) => {
                let from = block.partition_point(|posting| *posting < first);
                let here = block[from..].iter().take_while(|posting| **posting <= last);
                found.extend(here.map(|posting| posting.leaf));
            }
            None => longer.push(*key),
        }
    }
    Ok((found, longer))
}

/// At least the first `limit` leaves of a run that have a key, or all of them, in any order. Those in `erased` are left out.
pub(super) async fn leaves_of_run(
    store: &dyn LookupIndex,
    run: &StoredRun,
    key: TermKey,
    within: &Range<u64>,
    order: Order,
    limit: usize,
    erased: &ErasedLeaves,
) -> Result<Vec<LeafIndex>, StoreError> {
    let mut from = Posting { key, leaf: LeafIndex::new(within.start) };
    let mut to = Posting { key, leaf: LeafIndex::new(within.end - 1) };
    let mut found = Vec::new();
    loop {
        let blocks = store.blocks(run.build, from, to, order, BLOCKS).await?;
        let mut edge = None;
        for block in &blocks {
            let postings = postings_of(run, block)?;
            let here = postings.iter().filter(|posting| (from..=to).contains(*posting));
            found.extend(here.map(|posting| posting.leaf).filter(|leaf| !erased.contains_key(leaf)));
            edge = match order {
                Order::OldestFirst => postings.last().copied(),
                Order::NewestFirst => postings.first().copied(),
            };
        }
        let Some(edge) = edge.filter(|edge| blocks.len() == BLOCKS && from < *edge && *edge < to) else {
            return Ok(found);
        };
        if found.len() >= limit {
            return Ok(found);
        }
        // An edge within the range has the key, and a leaf that is neither the first nor the last one.
        match order {
            Order::OldestFirst => from.leaf = LeafIndex::new(edge.leaf.get() + 1),
            Order::NewestFirst => to.leaf = LeafIndex::new(edge.leaf.get() - 1),
        }
    }
}

/// Reads all postings of a run in a place of its tree, in order.
pub(super) async fn postings_at(
    store: &dyn LookupIndex,
    run: &StoredRun,
    place: &PostingPrefix,
) -> Result<Vec<Posting>, StoreError> {
    let (mut from, last) = (place.first(), place.last());
    let mut found: Vec<Posting> = Vec::new();
    loop {
        let blocks = store.blocks(run.build, from, last, Order::OldestFirst, BLOCKS).await?;
        for block in &blocks {
            let postings = postings_from(run, block, from)?;
            found.extend(postings.into_iter().filter(|posting| *posting <= last));
        }
        match found.last() {
            Some(end) if blocks.len() == BLOCKS && *end < last => from = end.successor(),
            _ => return Ok(found),
        }
    }
}

/// A range of leaves with the place where its postings stand.
enum Part<'a> {
    Run(&'a StoredRun),
    Tail,
}

impl Part<'_> {
    fn leaves(&self, newest: &Range<u64>) -> Range<u64> {
        match self {
            Part::Run(run) => run.leaves(),
            Part::Tail => newest.clone(),
        }
    }
}

fn intersection(a: &Range<u64>, b: &Range<u64>) -> Range<u64> {
    a.start.max(b.start)..a.end.min(b.end)
}

/// Returns those of these postings that a run has, in order.
pub(crate) async fn present(
    store: &dyn LookupIndex,
    run: &StoredRun,
    wanted: &[Posting],
) -> Result<Vec<Posting>, StoreError> {
    let mut wanted = wanted.to_vec();
    wanted.sort_unstable();
    let mut found = Vec::new();
    for some in wanted.chunks(PROBES) {
        for block in store.blocks_with(run.build, some).await? {
            let postings = postings_of(run, &block)?;
            found.extend(postings.into_iter().filter(|posting| some.binary_search(posting).is_ok()));
        }
    }
    Ok(found)
}

/// Reads the postings of a block of a run that do not come before `from`: the first block of a range may begin before it.
pub(crate) fn postings_from(
    run: &StoredRun,
    block: &PostingBlock,
    from: Posting,
) -> Result<Vec<Posting>, StoreError> {
    let mut postings = postings_of(run, block)?;
    postings.retain(|posting| *posting >= from);
    Ok(postings)
}

/// Reads a block of a run; [`StoreError::Damaged`] if it is not a block of it.
fn postings_of(run: &StoredRun, block: &PostingBlock) -> Result<Vec<Posting>, StoreError> {
    let damaged =
        |why: String| StoreError::Damaged(format!("a block of run {} of the lookup index: {why}", run.id));
    let start = LeafIndex::new(run.leaves().start);
    let postings = read_block(&block.bytes, start).map_err(|why| damaged(why.to_string()))?;
    match postings.first() {
        Some(first) if *first == block.first => Ok(postings),
        _ => Err(damaged("it does not begin with its first posting".into())),
    }
}
