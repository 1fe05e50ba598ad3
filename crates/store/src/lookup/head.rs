//! The runs of a head of the index: what it commits to, and what is read for proofs under it.
//!
//! A head names runs by their roots. Its answers can be proven for as long as the store has exactly those runs: an erasure
//! changes the root of a run, so proofs of that run end, and the next head has the new root.
//!
//! Not here: the head's statement, and when one is made (the service).

use std::ops::Range;

use lookup_tree::{
    HeadRun, IndexHead, IndexQuestion, LeafRange, PartialRun, Posting, RunId, RunProof, RunQuestion,
    RunReader, RunSummary, RunTree, ScheduledRun, TermKey, schedule,
};
use merkle::{LeafIndex, TreeSize};

use super::LookupIndex;
use super::catalog::{ErasedLeaves, RunCatalog, StoredRun};
use super::postings::{leaves_of_run, postings_at};
use super::query::Order;
use crate::StoreError;

/// The complete runs that a head of one size has, and the postings of its tail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeadSnapshot {
    size: TreeSize,
    runs: Vec<StoredRun>,
    tail: Vec<Posting>,
}

impl HeadSnapshot {
    /// Takes the runs of the schedule from a catalog. `None` if one is missing or holds an erased entry, or if the tail,
    /// the leaves `newest`, does not begin where they end.
    pub(super) fn new(catalog: &RunCatalog, newest: Range<u64>, tail: Vec<Posting>) -> Option<Self> {
        let size = TreeSize::new(newest.end);
        let scheduled = schedule(size).into_iter().filter(|run| !run.id.is_tail());
        let runs = scheduled.map(|run| catalog.run(run.id).filter(|run| !catalog.is_outdated(run)).copied());
        let runs: Vec<StoredRun> = runs.collect::<Option<_>>()?;
        let end = runs.last().map_or(0, |run| run.leaves().end);
        (end == newest.start).then_some(Self { size, runs, tail })
    }

    /// The number of indexed leaves.
    pub fn size(&self) -> TreeSize {
        self.size
    }

    /// Hashes the tail, of up to 4,095 leaves: some milliseconds of work.
    pub fn hash(self) -> Result<HeadRuns, StoreError> {
        let tail = tree_of(self.tail)?;
        let summary_of = |run: &ScheduledRun| match self.runs.iter().find(|stored| stored.id == run.id) {
            Some(stored) => stored.summary,
            None => tail.summary(),
        };
        let runs = schedule(self.size).into_iter().map(|run| (run, summary_of(&run))).collect();
        Ok(HeadRuns { runs, tail })
    }
}

/// Builds the tree of a tail.
fn tree_of(tail: Vec<Posting>) -> Result<RunTree, StoreError> {
    RunTree::new(tail).map_err(|why| StoreError::Damaged(format!("the tail of the lookup index: {why}")))
}

/// The runs of a head, with the tail in memory.
#[derive(Clone, Debug)]
pub struct HeadRuns {
    runs: Vec<(ScheduledRun, RunSummary)>,
    tail: RunTree,
}

/// Why an answer under a head cannot be proven.
#[derive(Debug, thiserror::Error)]
pub enum ProveError {
    /// The index has the run with another root than the head, or not any more.
    #[error("run {0} of the head is not the run that the index has now")]
    RunChanged(RunId),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What the proof of one run is made from.
pub struct ProofParts<'a> {
    run: RunId,
    question: RunQuestion,
    source: ProofSource<'a>,
}

enum ProofSource<'a> {
    Stored(PartialRun),
    Tail(&'a RunTree),
}

impl ProofParts<'_> {
    /// Makes the proof. Takes time in proportion to the postings that were read.
    pub fn prove(&self) -> Result<(RunId, RunProof), StoreError> {
        let proof = match &self.source {
            ProofSource::Stored(run) => RunProof::prove(run, &self.question),
            ProofSource::Tail(tail) => {
                Ok(RunProof::prove(*tail, &self.question).unwrap_or_else(|no| match no {}))
            }
        };
        let damaged = |why| StoreError::Damaged(format!("run {} of the lookup index: {why}", self.run));
        Ok((self.run, proof.map_err(damaged)?))
    }
}

impl HeadRuns {
    /// The runs of a registered head, if these are the postings of its tail. `None` if they are not, or if the head has other
    /// runs than its size requires.
    pub fn of(head: &IndexHead, tail: Vec<Posting>) -> Result<Option<Self>, StoreError> {
        let tail = tree_of(tail)?;
        let Ok(runs) = head.scheduled_runs() else { return Ok(None) };
        let is_tail = runs.iter().all(|(run, summary)| !run.id.is_tail() || *summary == tail.summary());
        Ok(is_tail.then_some(Self { runs, tail }))
    }

    /// The runs as a head names them.
    pub fn in_head(&self) -> Vec<HeadRun> {
        self.runs.iter().map(|(run, summary)| HeadRun { id: run.id, summary: *summary }).collect()
    }

    /// The leaves of the tail; `None` if all leaves are in complete runs.
    pub fn tail_leaves(&self) -> Option<LeafRange> {
        self.runs.last().filter(|(run, _)| run.id.is_tail()).map(|(run, _)| run.leaves)
    }

    /// Returns the first `limit` leaves of a range, in order, that have a key.
    pub async fn leaves(
        &self,
        store: &dyn LookupIndex,
        catalog: &RunCatalog,
        key: TermKey,
        within: LeafRange,
        order: Order,
        limit: usize,
    ) -> Result<Vec<LeafIndex>, ProveError> {
        let mut runs: Vec<_> = self.runs.iter().collect();
        if order == Order::NewestFirst {
            runs.reverse();
        }
        let mut found = Vec::new();
        for (run, summary) in runs {
            if found.len() >= limit {
                break;
            }
            let Some(leaves) = run.leaves.intersection(&within) else { continue };
            let mut here = match stored(catalog, run, summary)? {
                Some(stored) => {
                    let leaves = leaves.start.get()..leaves.end.get();
                    let (left, none) = (limit - found.len(), ErasedLeaves::new());
                    leaves_of_run(store, &stored, key, &leaves, order, left, &none).await?
                }
                None => leaves_of_tail(&self.tail, key, leaves),
            };
            here.sort_unstable();
            if order == Order::NewestFirst {
                here.reverse();
            }
            found.extend(here);
        }
        found.truncate(limit);
        Ok(found)
    }

    /// Reads what the proof of a question needs, for each run that the question meets.
    pub async fn read(
        &self,
        store: &dyn LookupIndex,
        catalog: &RunCatalog,
        question: &IndexQuestion,
    ) -> Result<Vec<ProofParts<'_>>, ProveError> {
        let mut parts = Vec::new();
        for (run, summary) in &self.runs {
            let Some(question) = question.for_run(run, summary) else { continue };
            let source = match stored(catalog, run, summary)? {
                Some(stored) => ProofSource::Stored(read_run(store, &stored, &question).await?),
                None => ProofSource::Tail(&self.tail),
            };
            parts.push(ProofParts { run: run.id, question, source });
        }
        Ok(parts)
    }
}

/// The stored form of a run of a head; `None` for the tail.
fn stored(
    catalog: &RunCatalog,
    run: &ScheduledRun,
    summary: &RunSummary,
) -> Result<Option<StoredRun>, ProveError> {
    if run.id.is_tail() {
        return Ok(None);
    }
    let stored = catalog.run(run.id).filter(|stored| stored.summary == *summary);
    match stored.filter(|stored| !catalog.is_outdated(stored)) {
        Some(stored) => Ok(Some(*stored)),
        None => Err(ProveError::RunChanged(run.id)),
    }
}

/// The leaves of a range of the tail that have a key, ascending.
fn leaves_of_tail(tail: &RunTree, key: TermKey, within: LeafRange) -> Vec<LeafIndex> {
    let (start, end) = (Posting { key, leaf: within.start }, Posting { key, leaf: within.end });
    let postings = tail.postings();
    let first = postings.partition_point(|posting| *posting < start);
    postings[first..].iter().take_while(|posting| **posting < end).map(|posting| posting.leaf).collect()
}

/// Reads the nodes and postings that the proof of one run needs.
async fn read_run(
    store: &dyn LookupIndex,
    run: &StoredRun,
    question: &RunQuestion,
) -> Result<PartialRun, StoreError> {
    let mut reader = RunReader::new(question.clone());
    while !reader.places().is_empty() {
        let nodes = store.nodes(run.build, reader.places()).await?;
        reader.supply(nodes);
    }
    let mut lists = Vec::with_capacity(reader.lists().len());
    for place in reader.lists() {
        lists.push(postings_at(store, run, place).await?);
    }
    Ok(reader.finish(lists))
}
