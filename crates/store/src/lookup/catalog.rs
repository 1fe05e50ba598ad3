//! Which runs an index has.

use std::collections::BTreeMap;

use lookup_tree::{RunId, RunSummary, schedule};
use merkle::{LeafIndex, TreeSize};

/// Number of an attempt to write a run. Builds and erasures share one sequence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Build(u64);

impl Build {
    /// Wraps a number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// Erased leaves that runs may still hold, each with the number of its erasure.
pub type ErasedLeaves = BTreeMap<LeafIndex, Build>;

/// A complete run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredRun {
    /// The build under which its blocks are stored.
    pub build: Build,
    /// Level and number.
    pub id: RunId,
    /// Size and root.
    pub summary: RunSummary,
}

impl StoredRun {
    /// The first leaf of the run, and the leaf after its last one.
    pub fn leaves(&self) -> std::ops::Range<u64> {
        leaves_of(self.id)
    }
}

/// Returns the leaves of a run; none of the tail, and of a run beyond 64 bits.
pub(super) fn leaves_of(run: RunId) -> std::ops::Range<u64> {
    run.leaves().map_or(0..0, |leaves| leaves.start.get()..leaves.end.get())
}

/// The runs of an index at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunCatalog {
    /// Form (version) of the terms; 0: nothing was indexed yet.
    pub form: u32,
    /// Number that the next build or erasure gets.
    pub next: Build,
    /// Number of the last [`drop_index`](super::LookupIndex::drop_index).
    pub dropped: Build,
    /// The complete runs, in any order.
    pub runs: Vec<StoredRun>,
    /// Erased leaves that are to be taken out of the runs.
    pub erased: ErasedLeaves,
}

impl RunCatalog {
    /// The longest runs that cover the log from leaf 0 on without a gap, in the order of their leaves.
    pub fn cover(&self) -> Vec<StoredRun> {
        let mut cover: Vec<StoredRun> = Vec::new();
        let mut end = 0;
        while let Some(run) = self.longest_at(end) {
            end = run.leaves().end;
            cover.push(run);
        }
        cover
    }

    /// Number of leaves that the runs cover from leaf 0 on.
    pub fn covered(&self) -> TreeSize {
        TreeSize::new(self.cover().last().map_or(0, |run| run.leaves().end))
    }

    /// Returns whether all of these runs are complete and not replaced.
    pub(super) fn has_all(&self, runs: &[StoredRun]) -> bool {
        runs.iter().all(|run| self.runs.contains(run))
    }

    /// Returns the run with this level and number.
    pub fn run(&self, id: RunId) -> Option<&StoredRun> {
        self.runs.iter().find(|run| run.id == id)
    }

    /// Returns a run that may hold postings of an entry that was erased after the run was begun.
    pub(super) fn outdated(&self) -> Option<StoredRun> {
        self.runs.iter().find(|run| self.is_outdated(run)).copied()
    }

    /// Returns whether a run may hold postings of an entry that was erased after the run was begun.
    pub(super) fn is_outdated(&self, run: &StoredRun) -> bool {
        self.erased_in(run.leaves()).any(|(_, erasure)| erasure > run.build)
    }

    /// Returns a run that can be merged from eight complete ones, the shortest first.
    pub(super) fn due(&self) -> Option<RunId> {
        let due = self.runs.iter().filter_map(|run| parent(run.id));
        let due = due.filter(|parent| self.run(*parent).is_none());
        let due = due.filter(|parent| {
            parent.merged_from().is_some_and(|parts| parts.iter().all(|part| self.run(*part).is_some()))
        });
        due.min_by_key(|run| (run.level, run.number))
    }

    /// Returns a run that is no longer needed: a longer one holds its leaves, the log grew by two further runs since, and
    /// the newest head, of the size `head`, does not name it.
    pub(super) fn superseded(&self, head: Option<TreeSize>) -> Option<StoredRun> {
        let covered = self.covered().get();
        let in_head: Vec<RunId> = head.map(schedule).into_iter().flatten().map(|run| run.id).collect();
        let is_superseded = |run: &&StoredRun| {
            let longer = parent(run.id).and_then(|parent| self.run(parent));
            let length = run.leaves().end - run.leaves().start;
            longer.is_some_and(|longer| longer.leaves().end + 2 * length <= covered)
                && !in_head.contains(&run.id)
        };
        self.runs.iter().find(is_superseded).copied()
    }

    /// The erased leaves of a range.
    pub(super) fn erased_in(
        &self,
        leaves: std::ops::Range<u64>,
    ) -> impl Iterator<Item = (LeafIndex, Build)> + '_ {
        let range = LeafIndex::new(leaves.start)..LeafIndex::new(leaves.end);
        self.erased.range(range).map(|(leaf, erasure)| (*leaf, *erasure))
    }

    fn longest_at(&self, start: u64) -> Option<StoredRun> {
        let here = self.runs.iter().filter(|run| run.leaves().start == start && !run.leaves().is_empty());
        here.max_by_key(|run| run.id.level).copied()
    }
}

/// The run that a run is merged into.
fn parent(run: RunId) -> Option<RunId> {
    let parent =
        RunId { level: run.level.checked_add(1)?, number: run.number / lookup_tree::limits::MERGED_RUNS };
    parent.leaves().map(|_| parent)
}
