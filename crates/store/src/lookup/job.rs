//! Writing one run: from postings in memory, from the eight runs that it merges, or from an earlier build of itself.
//!
//! A job writes some blocks at a time, so that a long merge delays nothing else: first those of the postings, then those of
//! the values. It reads its inputs in order and keeps a few blocks of each. A crash leaves blocks that no search reads; the run is begun again.
//!
//! Not here: which run is written next, and from what (`writer`).

use std::collections::BTreeSet;

use lookup_tree::{
    BlockWriter, InnerNode, MergeStep, Posting, PostingBlock, RunBuilder, RunId, RunMerger, RunSummary,
    TermKey,
};
use merkle::LeafIndex;

use super::catalog::{Build, ErasedLeaves, StoredRun, leaves_of};
use super::postings::{leaves_of_run, postings_from};
use super::query::Order;
use super::terms::ListedValue;
use super::values::{MergedValues, RunValues, ValueWriter};
use super::{FinishedRun, LookupIndex};
use crate::StoreError;

/// Number of blocks read of an input at once.
const READ_BLOCKS: usize = 8;
/// Number of blocks written in one transaction, about half a megabyte.
const WRITTEN_BLOCKS: usize = 64;

/// What a run is written from.
pub(super) struct RunSources {
    /// The drop of the index after which the postings were read.
    pub(super) dropped: Build,
    /// Complete runs.
    pub(super) runs: Vec<StoredRun>,
    /// Postings in memory, in order. The runs have none of them, apart from those of `without`.
    pub(super) ready: Vec<Posting>,
    /// Erased leaves, whose postings in `runs` are left out.
    pub(super) without: BTreeSet<LeafIndex>,
    /// Values in memory, in order.
    pub(super) listed: Vec<ListedValue>,
}

/// A run that is being written.
pub(super) struct RunJob {
    id: RunId,
    build: Build,
    dropped: Build,
    inputs: Vec<RunInput>,
    without: BTreeSet<LeafIndex>,
    merger: RunMerger,
    tree: RunBuilder,
    writer: BlockWriter,
    full: Vec<PostingBlock>,
    nodes: Vec<InnerNode>,
    /// Keys of which an erased entry had a posting.
    removed: BTreeSet<TermKey>,
    listed: Vec<ListedValue>,
    /// Size and root of the run, and its values, once all postings are written.
    values: Option<(RunSummary, MergedValues)>,
    value_writer: ValueWriter,
}

/// A complete run that is read in order.
struct RunInput {
    run: StoredRun,
    from: Posting,
    read: u64,
}

impl RunJob {
    pub(super) async fn begin(
        store: &dyn LookupIndex,
        id: RunId,
        sources: RunSources,
    ) -> Result<Self, StoreError> {
        let ready = sources.runs.len();
        let mut merger = RunMerger::new(ready + 1);
        merger.supply(ready, sources.ready);
        merger.end(ready);
        Ok(Self {
            id,
            build: store.begin_run().await?,
            dropped: sources.dropped,
            inputs: sources
                .runs
                .into_iter()
                .map(|run| RunInput { run, from: Posting::FIRST, read: 0 })
                .collect(),
            without: sources.without,
            merger,
            tree: RunBuilder::new(),
            writer: BlockWriter::new(LeafIndex::new(leaves_of(id).start)),
            full: Vec::new(),
            nodes: Vec::new(),
            removed: BTreeSet::new(),
            listed: sources.listed,
            values: None,
            value_writer: ValueWriter::default(),
        })
    }

    /// The drop of the index after which the postings were read.
    pub(super) fn dropped(&self) -> Build {
        self.dropped
    }

    /// The complete runs that the job reads.
    pub(super) fn sources(&self) -> Vec<StoredRun> {
        self.inputs.iter().map(|input| input.run).collect()
    }

    /// Writes the next blocks; returns size and root of the run once all is written.
    pub(super) async fn advance(
        &mut self,
        store: &dyn LookupIndex,
    ) -> Result<Option<RunSummary>, StoreError> {
        match self.values.take() {
            Some((summary, values)) => self.write_values(store, summary, values).await,
            None => self.write_postings(store).await.map(|()| None),
        }
    }

    /// Describes the run after [`advance`](Self::advance) returned its `summary`.
    pub(super) fn finish(self, summary: RunSummary) -> FinishedRun {
        let Self { id, build, dropped, without, .. } = self;
        FinishedRun { build, dropped, id, summary, without: without.into_iter().collect() }
    }

    async fn write_postings(&mut self, store: &dyn LookupIndex) -> Result<(), StoreError> {
        let mut summary = None;
        while self.full.len() < WRITTEN_BLOCKS && summary.is_none() {
            match self.merger.step() {
                MergeStep::Posting(posting) => self.push(posting)?,
                MergeStep::Needs(input) => self.read(store, input).await?,
                MergeStep::End => {
                    let writer = std::mem::replace(&mut self.writer, BlockWriter::new(LeafIndex::new(0)));
                    self.full.extend(writer.finish());
                    let (whole, nodes) = std::mem::take(&mut self.tree).finish();
                    self.nodes.extend(nodes);
                    summary = Some(whole);
                }
            }
        }
        let (blocks, nodes) = (std::mem::take(&mut self.full), std::mem::take(&mut self.nodes));
        store.add_blocks(self.build, &blocks, &nodes).await?;
        if let Some(summary) = summary {
            self.values = Some((summary, self.merged_values(store, summary).await?));
        }
        Ok(())
    }

    /// The values of the run, whose postings are written.
    async fn merged_values(
        &mut self,
        store: &dyn LookupIndex,
        summary: RunSummary,
    ) -> Result<MergedValues, StoreError> {
        let stored =
            self.inputs.iter().map(|input| RunValues::new(&input.run, ListedValue::FIRST, READ_BLOCKS));
        let ready = RunValues::ready(std::mem::take(&mut self.listed));
        let inputs = stored.chain([ready]).collect();
        Ok(MergedValues::of(inputs, self.gone(store, summary).await?))
    }

    /// Those of the removed keys that no entry of the run has any more.
    async fn gone(
        &self,
        store: &dyn LookupIndex,
        summary: RunSummary,
    ) -> Result<BTreeSet<TermKey>, StoreError> {
        let run = StoredRun { build: self.build, id: self.id, summary };
        let (leaves, none) = (run.leaves(), ErasedLeaves::new());
        let mut gone = BTreeSet::new();
        for key in &self.removed {
            if leaves_of_run(store, &run, *key, &leaves, Order::NewestFirst, 1, &none).await?.is_empty() {
                gone.insert(*key);
            }
        }
        Ok(gone)
    }

    async fn write_values(
        &mut self,
        store: &dyn LookupIndex,
        summary: RunSummary,
        mut values: MergedValues,
    ) -> Result<Option<RunSummary>, StoreError> {
        let mut blocks = Vec::new();
        let mut is_end = false;
        while blocks.len() < WRITTEN_BLOCKS && !is_end {
            match values.next(store).await? {
                Some(value) => blocks.extend(self.value_writer.push(value)),
                None => {
                    blocks.extend(self.value_writer.finish());
                    is_end = true;
                }
            }
        }
        store.add_values(self.build, &blocks).await?;
        if is_end {
            return Ok(Some(summary));
        }
        self.values = Some((summary, values));
        Ok(None)
    }

    fn push(&mut self, posting: Posting) -> Result<(), StoreError> {
        let wrong = |why: String| StoreError::Damaged(format!("run {} of the lookup index: {why}", self.id));
        self.tree.push(posting).map_err(|why| wrong(why.to_string()))?;
        self.nodes.append(&mut self.tree.take_nodes());
        self.full.extend(self.writer.push(posting).map_err(|why| wrong(why.to_string()))?);
        Ok(())
    }

    async fn read(&mut self, store: &dyn LookupIndex, nth: usize) -> Result<(), StoreError> {
        let input = &mut self.inputs[nth];
        let blocks =
            store.blocks(input.run.build, input.from, Posting::LAST, Order::OldestFirst, READ_BLOCKS).await?;
        let mut postings = Vec::new();
        for block in &blocks {
            postings.extend(postings_from(&input.run, block, input.from)?);
        }
        input.read += postings.len() as u64;
        if blocks.len() < READ_BLOCKS {
            input.must_be_whole()?;
            self.merger.end(nth);
        }
        if let Some(last) = postings.last() {
            input.from = last.successor();
        }
        let erased: Vec<TermKey> = postings
            .extract_if(.., |posting| self.without.contains(&posting.leaf))
            .filter(|posting| posting.blind_code().is_none())
            .map(|posting| posting.key)
            .collect();
        self.removed.extend(erased);
        self.merger.supply(nth, postings);
        Ok(())
    }
}

impl RunInput {
    /// Refuses a run that was deleted while it was read, and one that is damaged.
    fn must_be_whole(&self) -> Result<(), StoreError> {
        match self.read == self.run.summary.postings {
            true => Ok(()),
            false => Err(StoreError::Damaged(format!(
                "run {} of the lookup index: {} of its {} postings were read",
                self.run.id, self.read, self.run.summary.postings
            ))),
        }
    }
}
