//! Questions to the index: terms and a range of leaves, and what they are for one run.
//!
//! A question is a list of keys; an entry is an answer if it has at least one of them. For a run it is an interval of
//! postings for each key, cut to the leaves of the run. If the head says that the run has blind postings, those of the
//! same leaves belong to the answer.

use std::ops::RangeInclusive;

use merkle::LeafIndex;

use crate::build::RunSummary;
use crate::limits::MAX_INTERVALS;
use crate::posting::{BlindCode, Posting, TermKey};
use crate::prefix::PostingPrefix;
use crate::schedule::{LeafRange, ScheduledRun};

/// Error: a question with more keys than fit into [`MAX_INTERVALS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a question of {0} keys: at most {MAX_KEYS} can be answered")]
pub struct TooManyKeys(pub usize);

/// Maximum number of keys in a question: the others are intervals of blind codes.
const MAX_KEYS: usize = MAX_INTERVALS - BlindCode::ALL.len();

/// Keys and a range of leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexQuestion {
    keys: Vec<TermKey>,
    leaves: LeafRange,
}

impl IndexQuestion {
    /// Creates the question for all postings of these keys in a range of leaves. A key that occurs twice counts once.
    pub fn new(keys: impl IntoIterator<Item = TermKey>, leaves: LeafRange) -> Result<Self, TooManyKeys> {
        let mut keys: Vec<TermKey> = keys.into_iter().collect();
        keys.sort_unstable();
        keys.dedup();
        match keys.len() > MAX_KEYS {
            true => Err(TooManyKeys(keys.len())),
            false => Ok(Self { keys, leaves }),
        }
    }

    /// The keys, in order.
    pub fn keys(&self) -> &[TermKey] {
        &self.keys
    }

    /// The range of leaves.
    pub fn leaves(&self) -> LeafRange {
        self.leaves
    }

    /// The same keys in other leaves: a page, or pages together.
    pub fn with_leaves(self, leaves: LeafRange) -> Self {
        Self { leaves, ..self }
    }

    /// Returns the question to a run; `None` if the run need not be proven, because it has no leaf of the range.
    pub fn for_run(&self, run: &ScheduledRun, summary: &RunSummary) -> Option<RunQuestion> {
        let leaves = self.leaves.intersection(&run.leaves)?;
        let blind = BlindCode::ALL.iter().filter(|_| summary.blind > 0).map(|code| code.key());
        let keys: Vec<TermKey> = blind.chain(self.keys.iter().copied()).collect();
        RunQuestion::new(keys, leaves)
    }
}

/// The postings that a run proof must show: intervals that do not overlap, in order, at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunQuestion {
    intervals: Vec<RangeInclusive<Posting>>,
}

impl RunQuestion {
    /// Creates the question for keys, those of blind codes included, in leaves of a run. `None` without keys or leaves.
    fn new(mut keys: Vec<TermKey>, leaves: LeafRange) -> Option<Self> {
        keys.sort_unstable();
        keys.dedup();
        let last =
            leaves.end.get().checked_sub(1).map(LeafIndex::new).filter(|last| leaves.contains(*last))?;
        let interval = |key| Posting { key, leaf: leaves.start }..=Posting { key, leaf: last };
        let intervals: Vec<_> = keys.into_iter().map(interval).collect();
        (!intervals.is_empty()).then_some(Self { intervals })
    }

    /// The intervals of postings, from first to last, in order.
    pub fn intervals(&self) -> &[RangeInclusive<Posting>] {
        &self.intervals
    }

    /// Returns `true` if the question is about this posting.
    pub fn contains(&self, posting: Posting) -> bool {
        self.first_ending_from(posting).is_some_and(|interval| *interval.start() <= posting)
    }

    /// Returns `true` if the question is about a posting that this place can hold.
    pub fn meets(&self, place: &PostingPrefix) -> bool {
        self.first_ending_from(place.first()).is_some_and(|interval| *interval.start() <= place.last())
    }

    /// Returns `true` if one interval holds all postings that this place can hold.
    pub fn covers(&self, place: &PostingPrefix) -> bool {
        let covering = self.first_ending_from(place.first());
        covering.is_some_and(|interval| *interval.start() <= place.first() && place.last() <= *interval.end())
    }

    /// The first interval that does not end before a posting.
    fn first_ending_from(&self, posting: Posting) -> Option<&RangeInclusive<Posting>> {
        let before = self.intervals.partition_point(|interval| *interval.end() < posting);
        self.intervals.get(before)
    }
}
