//! Differences between a head and the index that was computed from the statements.

use std::fmt;

use lookup_tree::{RunSummary, ScheduledRun, WrongRuns};
use merkle::{LeafIndex, RootHash, TreeSize};

use crate::earlier_head::EarlierHead;

/// A rule that the form of a head breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormFault {
    /// The runs are not those of the schedule.
    #[error(transparent)]
    WrongRuns(#[from] WrongRuns),
    /// The head indexes more leaves than the log had before it.
    #[error("it indexes {size} leaves, but is at leaf {leaf}")]
    BeyondLeaf {
        /// The size of the head.
        size: TreeSize,
        /// The leaf of the head.
        leaf: LeafIndex,
    },
    /// The horizon is smaller than that of an earlier head of the series.
    #[error("its horizon is {horizon}, and that of the head at leaf {} was {}", earlier.leaf, earlier.horizon)]
    HorizonBack {
        /// The horizon of the head.
        horizon: LeafIndex,
        /// The earlier head.
        earlier: EarlierHead,
    },
    /// An earlier head of the series has the same size and horizon, and another content.
    #[error("the head at leaf {} has its size and horizon, and other runs or another root", earlier.leaf)]
    TwoHeads {
        /// The earlier head.
        earlier: EarlierHead,
    },
    /// The root of the log is another one.
    #[error("it names the root {given}, but the log's root at that size was {root}")]
    OtherLogRoot {
        /// The root that the head names.
        given: RootHash,
        /// The root of the log at the size of the head.
        root: RootHash,
    },
}

/// Result of [`IndexRecomputation::compare_runs`](crate::IndexRecomputation::compare_runs).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunComparison {
    /// The runs that differ.
    pub wrong: Vec<WrongRun>,
    /// The runs that could not be compared.
    pub uncompared: Vec<UncomparedRun>,
}

impl RunComparison {
    /// Returns `true` if all runs were compared and are right.
    pub fn is_right(&self) -> bool {
        self.wrong.is_empty() && self.uncompared.is_empty()
    }
}

/// A run of a head that differs from the one that was computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongRun {
    /// Level, number and leaves.
    pub run: ScheduledRun,
    /// Size and root in the head.
    pub given: RunSummary,
    /// Size and root that were computed.
    pub computed: RunSummary,
}

impl fmt::Display for WrongRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { run, given, computed } = self;
        write!(f, "run {} of leaves {}: ", run.id, run.leaves)?;
        write!(f, "{} postings, {} of them blind, root {}; ", given.postings, given.blind, given.root)?;
        write!(f, "computed {}, {}, {}", computed.postings, computed.blind, computed.root)
    }
}

/// A run that could not be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UncomparedRun {
    /// Level, number and leaves.
    pub run: ScheduledRun,
    /// The reason.
    pub why: NotComparable,
}

/// Reasons why a run cannot be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotComparable {
    /// The statement of this leaf was gone before it was read, and is not erased for the head.
    Gone(LeafIndex),
    /// The postings of entries that were erased before this leaf are kept no more, and the head's horizon is before it.
    EarlierHorizon(LeafIndex),
}

impl fmt::Display for UncomparedRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "run {} of leaves {} was not compared: ", self.run.id, self.run.leaves)?;
        match self.why {
            NotComparable::Gone(leaf) => write!(f, "the statement of leaf {leaf} is gone"),
            NotComparable::EarlierHorizon(horizon) => {
                write!(f, "heads with the horizon {horizon} were compared before")
            }
        }
    }
}
