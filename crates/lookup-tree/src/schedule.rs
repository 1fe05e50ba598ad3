//! Which runs serve a tree of n leaves.
//!
//! Level k has runs of `L = 4096 * 8^k` leaves. A run of level 0 serves once it is full, and a longer one L/8 leaves
//! later, so that there is time to merge it. From leaf 0 on, the longest run that serves and starts there is taken; the
//! leaves after the last run are the tail.

use std::fmt;

use merkle::{LeafIndex, TreeSize};

use crate::limits::{LEVEL_0_LEAVES, MAX_LEVEL, MERGED_RUNS, TAIL_LEVEL};

/// Leaves from `start` to before `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LeafRange {
    /// The first leaf.
    pub start: LeafIndex,
    /// The leaf after the last one.
    pub end: LeafIndex,
}

impl LeafRange {
    /// Creates the range of leaves from `start` to before `end`.
    pub const fn new(start: u64, end: u64) -> Self {
        Self { start: LeafIndex::new(start), end: LeafIndex::new(end) }
    }

    /// Returns `true` if the range has no leaf.
    pub fn is_empty(&self) -> bool {
        self.start >= self.end
    }

    /// Returns `true` if the leaf is in the range.
    pub fn contains(&self, leaf: LeafIndex) -> bool {
        self.start <= leaf && leaf < self.end
    }

    /// The leaves that are in both ranges; `None` if there are none.
    pub fn intersection(&self, other: &LeafRange) -> Option<LeafRange> {
        let both = Self { start: self.start.max(other.start), end: self.end.min(other.end) };
        (!both.is_empty()).then_some(both)
    }
}

impl fmt::Display for LeafRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}, {})", self.start, self.end)
    }
}

/// Level and number of a run. The tail is level 255, number 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunId {
    /// Level, at most [`MAX_LEVEL`], or [`TAIL_LEVEL`].
    pub level: u8,
    /// Number of the run in its level, from 0.
    pub number: u64,
}

impl RunId {
    /// The leaves after the last run.
    pub const TAIL: Self = Self { level: TAIL_LEVEL, number: 0 };

    /// Returns `true` for the tail.
    pub fn is_tail(&self) -> bool {
        *self == Self::TAIL
    }

    /// The leaves of a run. `None` for the tail, whose leaves depend on the size, and for a run beyond 64 bits.
    pub fn leaves(&self) -> Option<LeafRange> {
        let length = run_length(self.level)?;
        let start = self.number.checked_mul(length)?;
        Some(LeafRange::new(start, start.checked_add(length)?))
    }

    /// The eight runs of the level below that merge into this one; `None` for level 0 and for the tail.
    pub fn merged_from(&self) -> Option<[RunId; MERGED_RUNS as usize]> {
        let level = self.level.checked_sub(1).filter(|level| *level < MAX_LEVEL)?;
        let first = self.number.checked_mul(MERGED_RUNS)?;
        Some(std::array::from_fn(|nth| Self { level, number: first + nth as u64 }))
    }

    /// The smallest tree in which the run serves; `None` for the tail, and for a run beyond 64 bits.
    pub fn serves_from(&self) -> Option<TreeSize> {
        let delay = match self.level {
            0 => 0,
            level => run_length(level)? / MERGED_RUNS,
        };
        self.leaves()?.end.get().checked_add(delay).map(TreeSize::new)
    }
}

/// Writes `(level, number)`, or `tail`.
impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_tail() {
            true => f.write_str("tail"),
            false => write!(f, "({}, {})", self.level, self.number),
        }
    }
}

/// A run that serves, and its leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScheduledRun {
    /// Level and number.
    pub id: RunId,
    /// The leaves of the run.
    pub leaves: LeafRange,
}

/// Returns the runs that serve a tree of this size, in the order of their leaves. The tail comes last, unless it is empty.
pub fn schedule(size: TreeSize) -> Vec<ScheduledRun> {
    let mut runs: Vec<ScheduledRun> = Vec::new();
    let mut start = 0;
    while let Some(run) = longest_run_at(start, size) {
        start = run.leaves.end.get();
        runs.push(run);
    }
    let tail = LeafRange::new(start, size.get());
    if !tail.is_empty() {
        runs.push(ScheduledRun { id: RunId::TAIL, leaves: tail });
    }
    runs
}

/// The longest run that starts at a leaf and serves a tree of this size.
fn longest_run_at(start: u64, size: TreeSize) -> Option<ScheduledRun> {
    (0..=MAX_LEVEL).rev().find_map(|level| {
        let length = run_length(level)?;
        let id = RunId { level, number: start / length };
        let serves = start.is_multiple_of(length) && id.serves_from()? <= size;
        Some(ScheduledRun { id, leaves: id.leaves()? }).filter(|_| serves)
    })
}

/// The number of leaves of a level's runs; `None` above [`MAX_LEVEL`].
fn run_length(level: u8) -> Option<u64> {
    (level <= MAX_LEVEL).then(|| LEVEL_0_LEAVES * MERGED_RUNS.pow(level.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(size: u64) -> String {
        let runs = schedule(TreeSize::new(size));
        runs.iter().map(|run| run.id.to_string()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn runs_serve_as_the_design_says() {
        for (size, expected) in [
            (0, ""),
            (1, "tail"),
            (4_095, "tail"),
            (4_096, "(0, 0)"),
            (36_863, "(0, 0) (0, 1) (0, 2) (0, 3) (0, 4) (0, 5) (0, 6) (0, 7) tail"),
            (36_864, "(1, 0) (0, 8)"),
            (40_000, "(1, 0) (0, 8) tail"),
            (73_728, "(1, 0) (1, 1) (0, 16) (0, 17)"),
        ] {
            assert_eq!(runs(size), expected, "{size}");
        }
    }

    #[test]
    fn the_runs_of_any_size_cover_its_leaves_once() {
        for size in (0..200_000).step_by(1_023).chain((0..64).map(|bit| u64::MAX >> bit)) {
            let mut next = LeafIndex::new(0);
            let runs = schedule(TreeSize::new(size));
            for run in &runs {
                assert_eq!(run.leaves.start, next, "{size}");
                next = run.leaves.end;
            }
            assert_eq!(next.get(), size);
            assert!(runs.len() <= crate::limits::MAX_HEAD_RUNS, "{size}: {}", runs.len());
        }
    }

    #[test]
    fn a_run_merges_the_eight_below_it() {
        let run = RunId { level: 2, number: 3 };
        let merged = run.merged_from().expect("eight runs");
        let leaves = merged.map(|run| run.leaves().expect("leaves"));
        assert_eq!(leaves[0].start, run.leaves().expect("leaves").start);
        assert_eq!(leaves[7].end, run.leaves().expect("leaves").end);
        assert!(leaves.windows(2).all(|pair| pair[0].end == pair[1].start));
        assert_eq!((RunId { level: 0, number: 3 }).merged_from(), None);
        assert_eq!(RunId::TAIL.merged_from(), None);
    }
}
