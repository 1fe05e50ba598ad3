//! `LookupIndex` in memory.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use bytes::Bytes;
use lookup_tree::{InnerNode, Posting, PostingBlock, PostingPrefix, RunId, RunSummary};
use merkle::LeafIndex;

use super::Memory;
use crate::lookup::{Build, ErasedLeaves, FinishedRun, ListedValue, RunCatalog, StoredRun, ValueBlock};
use crate::{LookupIndex, Order, StoreError};

/// The tables of the lookup index.
#[derive(Clone, Debug, Default)]
pub(super) struct IndexTables {
    form: u32,
    next: u64,
    dropped: u64,
    runs: BTreeMap<Build, MemoryRun>,
    erased: ErasedLeaves,
}

#[derive(Clone, Debug, Default)]
struct MemoryRun {
    state: RunState,
    blocks: BTreeMap<Posting, Bytes>,
    nodes: BTreeMap<PostingPrefix, InnerNode>,
    values: BTreeMap<ListedValue, Vec<u8>>,
}

#[derive(Clone, Copy, Debug, Default)]
enum RunState {
    #[default]
    Begun,
    Complete(RunId, RunSummary),
    /// Replaced, retired or dropped.
    Gone,
}

impl MemoryRun {
    fn is(&self, id: RunId) -> bool {
        matches!(self.state, RunState::Complete(of, _) if of == id)
    }
}

impl IndexTables {
    /// Notes that the postings of an entry are to be taken out of the runs.
    pub(super) fn erase(&mut self, entry: LeafIndex) {
        let number = self.number();
        self.erased.insert(entry, number);
    }

    fn number(&mut self) -> Build {
        self.next += 1;
        Build::new(self.next - 1)
    }

    fn catalog(&self) -> RunCatalog {
        let complete = |(build, run): (&Build, &MemoryRun)| match run.state {
            RunState::Complete(id, summary) => Some(StoredRun { build: *build, id, summary }),
            RunState::Begun | RunState::Gone => None,
        };
        RunCatalog {
            form: self.form,
            next: Build::new(self.next),
            dropped: Build::new(self.dropped),
            runs: self.runs.iter().filter_map(complete).collect(),
            erased: self.erased.clone(),
        }
    }

    /// The leaves of a run that had been erased when it was begun.
    fn erased_before(&self, run: &FinishedRun) -> Vec<LeafIndex> {
        let leaves = run.id.leaves();
        let within = |leaf: LeafIndex| leaves.is_some_and(|leaves| leaves.contains(leaf));
        let before = self.erased.iter().filter(|(leaf, erasure)| within(**leaf) && **erasure < run.build);
        before.map(|(leaf, _)| *leaf).collect()
    }

    fn finish(&mut self, run: &FinishedRun) -> bool {
        let is_begun = self.runs.get(&run.build).is_some_and(|begun| matches!(begun.state, RunState::Begun));
        if !is_begun || run.dropped.get() != self.dropped || self.erased_before(run) != run.without {
            return false;
        }
        for replaced in self.runs.values_mut().filter(|other| other.is(run.id)) {
            replaced.state = RunState::Gone;
        }
        self.runs.entry(run.build).or_default().state = RunState::Complete(run.id, run.summary);
        self.forget_erased(&run.without);
        true
    }

    fn forget_erased(&mut self, leaves: &[LeafIndex]) {
        for leaf in leaves {
            let Some(erasure) = self.erased.get(leaf).copied() else { continue };
            let holds = |(build, run): (&Build, &MemoryRun)| match run.state {
                RunState::Complete(id, _) => {
                    *build < erasure && id.leaves().is_some_and(|leaves| leaves.contains(*leaf))
                }
                RunState::Begun | RunState::Gone => false,
            };
            if !self.runs.iter().any(holds) {
                self.erased.remove(leaf);
            }
        }
    }

    fn sweep(&mut self, abandoned: Build, limit: usize) -> bool {
        let mut left = limit;
        self.runs.retain(|build, run| {
            let goes = match run.state {
                RunState::Gone => true,
                RunState::Begun => *build < abandoned,
                RunState::Complete(..) => false,
            };
            if goes {
                run.state = RunState::Gone;
                while left > 0 && run.blocks.pop_first().is_some() {
                    left -= 1;
                }
            }
            !goes || !run.blocks.is_empty()
        });
        left == 0
    }

    fn blocks(&self, build: Build) -> BTreeMap<Posting, Bytes> {
        self.runs.get(&build).map(|run| run.blocks.clone()).unwrap_or_default()
    }
}

#[async_trait]
impl LookupIndex for Memory {
    async fn catalog(&self) -> Result<RunCatalog, StoreError> {
        Ok(self.tables().index.catalog())
    }

    async fn begin_run(&self) -> Result<Build, StoreError> {
        let index = &mut self.tables().index;
        let build = index.number();
        index.runs.insert(build, MemoryRun::default());
        Ok(build)
    }

    async fn add_blocks(
        &self,
        build: Build,
        blocks: &[PostingBlock],
        nodes: &[InnerNode],
    ) -> Result<(), StoreError> {
        let mut tables = self.tables();
        if let Some(run) = tables.index.runs.get_mut(&build) {
            run.nodes.extend(nodes.iter().map(|node| (node.prefix, *node)));
            run.blocks.extend(blocks.iter().map(|block| (block.first, block.bytes.clone().into())));
        }
        Ok(())
    }

    async fn finish_run(&self, run: &FinishedRun) -> Result<bool, StoreError> {
        let mut tables = self.tables();
        run.must_be_committed(tables.head()?.size())?;
        Ok(tables.index.finish(run))
    }

    async fn retire_run(&self, build: Build) -> Result<(), StoreError> {
        if let Some(run) = self.tables().index.runs.get_mut(&build) {
            run.state = RunState::Gone;
        }
        Ok(())
    }

    async fn sweep(&self, abandoned: Build, limit: usize) -> Result<bool, StoreError> {
        Ok(self.tables().index.sweep(abandoned, limit))
    }

    async fn drop_index(&self, form: u32) -> Result<(), StoreError> {
        let index = &mut self.tables().index;
        index.dropped = index.number().get();
        index.form = form;
        for run in index.runs.values_mut() {
            run.state = RunState::Gone;
        }
        Ok(())
    }

    async fn blocks(
        &self,
        build: Build,
        from: Posting,
        to: Posting,
        order: Order,
        limit: usize,
    ) -> Result<Vec<PostingBlock>, StoreError> {
        let blocks = self.tables().index.blocks(build);
        let start = blocks.range(..=from).next_back().map_or(from, |(first, _)| *first);
        let found = blocks.range(start..=to.max(start)).filter(|(first, _)| **first <= to).map(block);
        Ok(match order {
            Order::OldestFirst => found.take(limit).collect(),
            Order::NewestFirst => found.rev().take(limit).collect(),
        })
    }

    async fn blocks_with(&self, build: Build, postings: &[Posting]) -> Result<Vec<PostingBlock>, StoreError> {
        let blocks = self.tables().index.blocks(build);
        let of = |posting: &Posting| blocks.range(..=*posting).next_back().map(|(first, _)| *first);
        let wanted: BTreeSet<Posting> = postings.iter().filter_map(of).collect();
        Ok(blocks.iter().filter(|(first, _)| wanted.contains(first)).map(block).collect())
    }

    async fn nodes(
        &self,
        build: Build,
        places: &[PostingPrefix],
    ) -> Result<Vec<Option<InnerNode>>, StoreError> {
        let tables = self.tables();
        let run = tables.index.runs.get(&build);
        let node_at = |place: &PostingPrefix| {
            let (_, node) = run?.nodes.range(place..).next()?;
            Some(*node).filter(|node| node.prefix.is_within(place))
        };
        Ok(places.iter().map(node_at).collect())
    }

    async fn add_values(&self, build: Build, blocks: &[ValueBlock]) -> Result<(), StoreError> {
        if let Some(run) = self.tables().index.runs.get_mut(&build) {
            run.values.extend(blocks.iter().map(|block| (block.first.clone(), block.bytes.clone())));
        }
        Ok(())
    }

    async fn value_blocks(
        &self,
        build: Build,
        from: &ListedValue,
        limit: usize,
    ) -> Result<Vec<ValueBlock>, StoreError> {
        let tables = self.tables();
        let Some(run) = tables.index.runs.get(&build) else { return Ok(Vec::new()) };
        let start = run.values.range(..=from).next_back().map_or(from, |(first, _)| first);
        let found = run.values.range(start..).take(limit);
        Ok(found.map(|(first, bytes)| ValueBlock { first: first.clone(), bytes: bytes.clone() }).collect())
    }
}

fn block((first, bytes): (&Posting, &Bytes)) -> PostingBlock {
    PostingBlock { first: *first, bytes: bytes.to_vec() }
}
