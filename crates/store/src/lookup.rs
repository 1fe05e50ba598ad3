//! The lookup index: finds entries by what their statements contain.
//!
//! Each term of an entry is hashed to a key, and a key with the leaf of an entry is a posting ([`lookup_tree`]). The
//! postings of a range of leaves are stored as a run: sorted, and cut into blocks. The postings of the newest leaves,
//! which do not fill a run yet, are in the memory of each process ([`SearchIndex`]). A run also has the values of its entries
//! that a search by prefix lists.
//!
//! The index is derived data: it can be dropped and rebuilt while it serves. A run is never seen in part: its row is
//! completed after its blocks were written, in one step.
//!
//! Not here: which terms an entry has (`registration`), and the task that keeps the index up to date (the service).

mod catalog;
mod head;
mod index;
mod job;
mod postings;
mod query;
mod search;
mod tail;
mod terms;
mod values;
mod writer;

use async_trait::async_trait;
use lookup_tree::{InnerNode, Posting, PostingBlock, PostingPrefix, RunId, RunSummary};
use merkle::{LeafIndex, TreeSize};

use crate::StoreError;
pub use catalog::{Build, ErasedLeaves, RunCatalog, StoredRun};
pub use head::{HeadRuns, HeadSnapshot, ProofParts, ProveError};
pub use index::SearchIndex;
pub use postings::BlindLeaf;
pub(crate) use postings::{postings_from, present};
pub use query::{Indexed, Order, Page, Query, TERMS, Term, VALUES_PER_TERM};
pub use terms::{EntryTerms, LISTED_BYTES, ListedValue};
pub use values::ValueBlock;
pub use writer::RunWriter;

/// Storage of the lookup index of one log.
#[async_trait]
pub trait LookupIndex: Send + Sync + 'static {
    /// Reads which runs are complete, and which erased entries may still have postings in them.
    async fn catalog(&self) -> Result<RunCatalog, StoreError>;

    /// Begins to write a run. Its number is larger than that of every earlier build and erasure.
    async fn begin_run(&self) -> Result<Build, StoreError>;

    /// Writes blocks of a run that is not complete, and nodes of its tree, in one transaction. Searches and proofs do not
    /// read them until [`finish_run`](Self::finish_run). After a crash they may be lost together with the later ones.
    async fn add_blocks(
        &self,
        build: Build,
        blocks: &[PostingBlock],
        nodes: &[InnerNode],
    ) -> Result<(), StoreError>;

    /// Completes a run, in one transaction: it takes the place of an earlier build of the same run, and the erased leaves
    /// that no run holds any more are forgotten.
    ///
    /// Returns `false`, and changes nothing, if the index was dropped since then, or if other leaves of its range than
    /// `without` had been erased when it was begun. For leaves erased later it is written again. A run of leaves that were never committed is [`StoreError::Refused`].
    async fn finish_run(&self, run: &FinishedRun) -> Result<bool, StoreError>;

    /// Takes a complete run out of the index. [`sweep`](Self::sweep) deletes its blocks, nodes and values.
    async fn retire_run(&self, build: Build) -> Result<(), StoreError>;

    /// Deletes up to `limit` blocks, and as many nodes and blocks of values, of runs that were replaced, retired or dropped, and of those that were begun before
    /// `abandoned` and not finished. Returns whether there may be more.
    async fn sweep(&self, abandoned: Build, limit: usize) -> Result<bool, StoreError>;

    /// Restarts the index without runs and values, in the given form.
    async fn drop_index(&self, form: u32) -> Result<(), StoreError>;

    /// Reads up to `limit` blocks of a run in which postings from `from` to `to`, inclusive, may stand, in this order.
    async fn blocks(
        &self,
        build: Build,
        from: Posting,
        to: Posting,
        order: Order,
        limit: usize,
    ) -> Result<Vec<PostingBlock>, StoreError>;

    /// Reads each block of a run in which one of these postings may stand, once, in the order of the blocks.
    async fn blocks_with(&self, build: Build, postings: &[Posting]) -> Result<Vec<PostingBlock>, StoreError>;

    /// Returns the stored node of a run with the shortest prefix within each of these places, in order; `None` where no node
    /// is stored.
    async fn nodes(
        &self,
        build: Build,
        places: &[PostingPrefix],
    ) -> Result<Vec<Option<InnerNode>>, StoreError>;

    /// Writes values of a run that is not complete, as [`add_blocks`](Self::add_blocks) its postings.
    async fn add_values(&self, build: Build, blocks: &[ValueBlock]) -> Result<(), StoreError>;

    /// Reads up to `limit` blocks of a run in which values from `from` on may stand, in the order of kinds and values.
    async fn value_blocks(
        &self,
        build: Build,
        from: &ListedValue,
        limit: usize,
    ) -> Result<Vec<ValueBlock>, StoreError>;
}

/// Reads a node as it is stored: its prefix, and the bytes of [`InnerNode::to_bytes`].
pub fn stored_node(prefix: &[u8], bytes: &[u8]) -> Result<InnerNode, StoreError> {
    let prefix = prefix.try_into().ok().and_then(PostingPrefix::from_bytes);
    let node = prefix.zip(bytes.try_into().ok()).map(|(prefix, bytes)| InnerNode::from_bytes(prefix, bytes));
    node.ok_or_else(|| StoreError::Damaged("a node of the lookup index is not a node".into()))
}

/// A run whose blocks are all written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinishedRun {
    /// The build under which the blocks were written.
    pub build: Build,
    /// The drop of the index after which its postings were read.
    pub dropped: Build,
    /// Level and number.
    pub id: RunId,
    /// Size and root.
    pub summary: RunSummary,
    /// Erased leaves of the run's range, of which it has only the blind postings; ascending.
    pub without: Vec<LeafIndex>,
}

impl FinishedRun {
    /// Refuses a run of leaves that were never committed, or that is not of the schedule.
    pub fn must_be_committed(&self, size: TreeSize) -> Result<(), StoreError> {
        match self.id.leaves() {
            Some(leaves) if leaves.end.get() <= size.get() => Ok(()),
            _ => Err(StoreError::Refused(format!("run {} is not of a tree of size {size}", self.id))),
        }
    }
}
