//! The state of a recomputation, as it is stored next to the pieces.

use std::collections::{BTreeMap, BTreeSet};

use lookup_tree::{RunId, RunSummary};
use serde::{Deserialize, Serialize};

use crate::heads::SeenHeads;

/// Version of the JSON form that this release writes and reads.
const VERSION: u32 = 1;

/// All of a recomputation but for the pieces. Leaves are numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecomputationState {
    version: u32,
    /// The next leaf to read.
    pub(crate) next: u64,
    /// Erased leaves, each with the leaf of the statement that erased it. Those that were erased by statements before
    /// `settled` are here only until the pieces have no postings of them.
    pub(crate) erased: BTreeMap<u64, u64>,
    /// Leaves whose statement was gone before it was read, and that are not settled.
    pub(crate) gone: BTreeSet<u64>,
    /// Heads with a smaller horizon cannot be compared: the pieces may lack the postings of entries that were erased by
    /// statements before this leaf.
    pub(crate) settled: u64,
    /// Runs that were computed.
    runs: Vec<ComputedRun>,
    pub(crate) heads: SeenHeads,
}

/// The summary of a run, and how many of its leaves were erased for it beyond those that are settled. Horizons only grow,
/// so that the number stands for the leaves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ComputedRun {
    level: u8,
    number: u64,
    erased: usize,
    postings: u64,
    blind: u64,
    /// In hexadecimal.
    root: String,
}

impl Default for RecomputationState {
    fn default() -> Self {
        Self {
            version: VERSION,
            next: 0,
            erased: BTreeMap::new(),
            gone: BTreeSet::new(),
            settled: 0,
            runs: Vec::new(),
            heads: SeenHeads::default(),
        }
    }
}

impl RecomputationState {
    /// Parses the stored form.
    pub(crate) fn from_json(bytes: &[u8]) -> Result<Self, String> {
        let state: Self = serde_json::from_slice(bytes).map_err(|why| why.to_string())?;
        match state.version {
            VERSION => Ok(state),
            other => Err(format!("version {other}")),
        }
    }

    /// The leaves of a range that were erased by statements before the horizon, beyond those that are settled.
    pub(crate) fn erased_in(&self, leaves: std::ops::Range<u64>, horizon: u64) -> BTreeSet<u64> {
        let erased = self.erased.range(leaves).filter(|(_, by)| **by < horizon);
        erased.map(|(leaf, _)| *leaf).collect()
    }

    /// The summary of a complete run with this number of erased leaves, if it was computed before.
    pub(crate) fn computed(&self, run: RunId, erased: usize) -> Option<RunSummary> {
        let known = self.runs.iter().find(|known| known.id() == run && known.erased == erased)?;
        let root = known.root.parse().ok()?;
        Some(RunSummary { postings: known.postings, blind: known.blind, root })
    }

    /// Remembers the summary of a complete run.
    pub(crate) fn remember(&mut self, run: RunId, erased: usize, summary: RunSummary) {
        self.runs.retain(|known| known.id() != run);
        let RunSummary { postings, blind, root } = summary;
        let (level, number) = (run.level, run.number);
        self.runs.push(ComputedRun { level, number, erased, postings, blind, root: root.to_string() });
    }

    /// Forgets the runs that no head of a larger tree can have: longer ones serve for their leaves.
    pub(crate) fn forget_runs_but(&mut self, serving: &BTreeSet<RunId>) {
        self.runs.retain(|known| serving.contains(&known.id()));
    }

    /// Gives up heads with a smaller horizon, if that settles erased leaves.
    pub(crate) fn settle(&mut self, horizon: u64) {
        let newly_settled = self.settled..horizon;
        if self.erased.values().any(|by| newly_settled.contains(by)) {
            self.settled = horizon;
        }
    }

    /// Takes settled leaves out of the erased ones, because the pieces have their blind postings only.
    pub(crate) fn forget_erased(&mut self, leaves: &BTreeSet<u64>) {
        // A run that was computed for other erased leaves is computed again.
        self.runs.retain_mut(|known| {
            let range = known.id().leaves().map_or(0..0, |leaves| leaves.start.get()..leaves.end.get());
            let is_of_these = known.erased == leaves.range(range).count();
            known.erased = 0;
            is_of_these
        });
        self.erased.retain(|leaf, _| !leaves.contains(leaf));
        self.gone.retain(|leaf| !leaves.contains(leaf));
    }
}

impl ComputedRun {
    fn id(&self) -> RunId {
        RunId { level: self.level, number: self.number }
    }
}
