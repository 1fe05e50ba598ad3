//! [`IndexRecomputation`]: reads entries in the order of leaves, and compares heads with their postings.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use lookup_tree::limits::LEVEL_0_LEAVES;
use lookup_tree::{IndexHead, PostingPrefix, RunSummary, ScheduledRun, TermKey};
use merkle::{CompactRange, EntryDigest, LeafHash, LeafIndex, RootHash, TreeSize};

use crate::entry::IndexedEntry;
use crate::error::RecomputationError;
use crate::fault::{FormFault, NotComparable, RunComparison, UncomparedRun, WrongRun};
use crate::piece::{Piece, piece_of};
use crate::piece_folder::{PieceFolder, find_in};
use crate::run_stream::RunStream;
use crate::state::RecomputationState;

/// The index of a log, computed from its statements.
#[derive(Debug)]
pub struct IndexRecomputation {
    folder: PieceFolder,
    state: RecomputationState,
    /// The piece with the next leaf; it has at least one leaf less than a full one.
    open: Piece,
    /// `true` if the open piece has leaves that are not in the folder.
    is_changed: bool,
}

impl IndexRecomputation {
    /// Continues from the state in a folder, or begins at leaf 0 if there is none.
    ///
    /// # Errors
    /// Returns a [`RecomputationError`] if a file cannot be read or is damaged.
    pub fn open(folder: &Path) -> Result<Self, RecomputationError> {
        let folder = PieceFolder::open(folder)?;
        let state = folder.read_state()?.unwrap_or_default();
        let open = read_open(&folder, LeafIndex::new(state.next))?;
        Ok(Self { folder, state, open, is_changed: false })
    }

    /// The next leaf to read.
    pub fn next(&self) -> LeafIndex {
        LeafIndex::new(self.state.next)
    }

    /// The tree of the leaves that were read.
    pub fn tree(&self) -> CompactRange {
        self.open.tree()
    }

    /// Adds the next entries.
    ///
    /// # Errors
    /// Returns a [`RecomputationError`] if a file cannot be read or written. The recomputation must then be
    /// [opened](Self::open) again: it has read a part of the entries.
    pub fn read_on(&mut self, entries: Vec<IndexedEntry>) -> Result<(), RecomputationError> {
        let mut erases: BTreeMap<LeafHash, u64> = BTreeMap::new();
        for entry in entries {
            let leaf = self.state.next;
            for erased in &entry.erases {
                erases.entry(erased.leaf_hash()).or_insert(leaf);
            }
            if entry.keys.is_none() {
                self.state.gone.insert(leaf);
            }
            self.push(entry.leaf, entry.keys.unwrap_or_default())?;
        }
        self.add_erasures(&erases)
    }

    fn push(&mut self, leaf: LeafHash, keys: BTreeSet<TermKey>) -> Result<(), RecomputationError> {
        self.open.push(leaf, keys);
        self.state.next += 1;
        self.is_changed = true;
        if self.open.is_full() {
            self.folder.write(&self.open)?;
            self.open = Piece::after(self.open.tree());
            self.is_changed = false;
        }
        Ok(())
    }

    /// Records which leaves were erased, each by the first statement that names it.
    fn add_erasures(&mut self, erases: &BTreeMap<LeafHash, u64>) -> Result<(), RecomputationError> {
        if erases.is_empty() {
            return Ok(());
        }
        let mut found = self.folder.find(erases, self.open.number())?;
        found.extend(find_in(&self.open, erases));
        for (leaf, by) in found {
            self.state.erased.entry(leaf.get()).or_insert(by);
        }
        Ok(())
    }

    /// Stores what was read, and removes what is [settled](Self::settle). Once `Ok`, it survives power loss.
    ///
    /// # Errors
    /// Returns a [`RecomputationError`] if a file cannot be read or written. The next call removes what is still there.
    pub fn save(&mut self) -> Result<(), RecomputationError> {
        if self.is_changed {
            self.folder.write(&self.open)?;
            self.is_changed = false;
        }
        // Before a posting is removed, the stored state says which heads cannot be compared any more. Until the state is
        // stored again, it has the settled leaves as erased ones, for which it does not matter what the pieces have.
        self.folder.write_state(&self.state)?;
        let settled = self.state.erased_in(0..u64::MAX, self.state.settled);
        if settled.is_empty() {
            return Ok(());
        }
        self.remove_postings(&settled)?;
        self.state.forget_erased(&settled);
        self.folder.write_state(&self.state)
    }

    /// Leaves only the blind postings of these entries in the pieces.
    fn remove_postings(&mut self, erased: &BTreeSet<u64>) -> Result<(), RecomputationError> {
        let mut by_piece: BTreeMap<u64, BTreeSet<LeafIndex>> = BTreeMap::new();
        for leaf in erased.iter().map(|leaf| LeafIndex::new(*leaf)) {
            by_piece.entry(piece_of(leaf)).or_default().insert(leaf);
        }
        for (number, leaves) in by_piece {
            if number == self.open.number() {
                self.open.erase(&leaves);
                self.folder.write(&self.open)?;
                continue;
            }
            let mut piece = self.folder.read(number)?;
            piece.erase(&leaves);
            self.folder.write(&piece)?;
        }
        Ok(())
    }

    /// Compares the form of a head, registered at this leaf, with the log and with earlier heads of its series.
    ///
    /// # Errors
    /// Returns a [`RecomputationError`] if a file cannot be read.
    pub fn check_form(
        &mut self,
        head: &IndexHead,
        leaf: LeafIndex,
        entry: &EntryDigest,
    ) -> Result<Vec<FormFault>, RecomputationError> {
        let mut faults: Vec<FormFault> = Vec::new();
        faults.extend(head.scheduled_runs().err().map(FormFault::WrongRuns));
        if head.size.get() > leaf.get() {
            faults.push(FormFault::BeyondLeaf { size: head.size, leaf });
        } else if let Some(root) = self.root_at(head.size)?.filter(|root| *root != head.log_root) {
            faults.push(FormFault::OtherLogRoot { given: head.log_root, root });
        }
        faults.extend(self.state.heads.add(head, leaf, entry));
        Ok(faults)
    }

    /// The root of the log at a size; `None` if its leaves are not all read.
    fn root_at(&self, size: TreeSize) -> Result<Option<RootHash>, RecomputationError> {
        let number = piece_of(size.next_leaf());
        if size.get() > self.state.next {
            return Ok(None);
        }
        match number == self.open.number() {
            true => Ok(self.open.root_at(size)),
            false => Ok(self.folder.read_leaves(number)?.root_at(size)),
        }
    }

    /// Compares the runs of a head, from [`IndexHead::scheduled_runs`], with those that its horizon requires. The leaves of
    /// the runs must be read.
    ///
    /// # Errors
    /// Returns a [`RecomputationError`] if a file cannot be read.
    pub fn compare_runs(
        &mut self,
        runs: &[(ScheduledRun, RunSummary)],
        horizon: LeafIndex,
    ) -> Result<RunComparison, RecomputationError> {
        let mut comparison = RunComparison::default();
        for (run, given) in runs {
            if let Some(why) = self.not_comparable(run, horizon) {
                comparison.uncompared.push(UncomparedRun { run: *run, why });
                continue;
            }
            let computed = self.summary(run, horizon)?;
            if computed != *given {
                comparison.wrong.push(WrongRun { run: *run, given: *given, computed });
            }
        }
        if !runs.is_empty() {
            let serving = runs.iter().map(|(run, _)| run.id).collect();
            self.state.forget_runs_but(&serving);
        }
        Ok(comparison)
    }

    fn not_comparable(&self, run: &ScheduledRun, horizon: LeafIndex) -> Option<NotComparable> {
        let settled = LeafIndex::new(self.state.settled);
        if horizon < settled {
            return Some(NotComparable::EarlierHorizon(settled));
        }
        let is_erased = |leaf: &u64| self.state.erased.get(leaf).is_some_and(|by| *by < horizon.get());
        let gone = self.state.gone.range(range_of(run)).find(|leaf| !is_erased(leaf))?;
        Some(NotComparable::Gone(LeafIndex::new(*gone)))
    }

    fn summary(&mut self, run: &ScheduledRun, horizon: LeafIndex) -> Result<RunSummary, RecomputationError> {
        let erased = self.state.erased_in(range_of(run), horizon.get()).len();
        if let Some(known) = self.state.computed(run.id, erased).filter(|_| !run.id.is_tail()) {
            return Ok(known);
        }
        let summary = self.postings(run, horizon).summarize(&PostingPrefix::ROOT)?;
        if !run.id.is_tail() {
            self.state.remember(run.id, erased, summary);
        }
        Ok(summary)
    }

    /// Streams the postings that a run must have in a head with this horizon.
    pub fn postings(&self, run: &ScheduledRun, horizon: LeafIndex) -> RunStream<'_> {
        let erased = self.state.erased_in(range_of(run), horizon.get());
        let erased = erased.into_iter().map(LeafIndex::new).collect();
        RunStream::of(&self.folder, &self.open, run, erased)
    }

    /// Gives up the postings of entries that were erased by statements before this horizon: heads with a smaller horizon
    /// cannot be compared any more. The next [`save`](Self::save) removes the postings.
    pub fn settle(&mut self, horizon: LeafIndex) {
        self.state.settle(horizon.get());
    }
}

/// Reads the piece with the next leaf.
fn read_open(folder: &PieceFolder, next: LeafIndex) -> Result<Piece, RecomputationError> {
    let is_at_start = next.get().is_multiple_of(LEVEL_0_LEAVES);
    match (is_at_start, piece_of(next).checked_sub(1)) {
        (true, None) => Ok(Piece::after(CompactRange::empty())),
        (true, Some(before)) => Ok(Piece::after(folder.read_leaves(before)?.tree())),
        (false, _) => {
            let mut piece = folder.read(piece_of(next))?;
            piece.truncate(next);
            Ok(piece)
        }
    }
}

fn range_of(run: &ScheduledRun) -> std::ops::Range<u64> {
    run.leaves.start.get()..run.leaves.end.get()
}
