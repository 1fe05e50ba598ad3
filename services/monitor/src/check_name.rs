//! The names of the checks of a round.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The checks of a round, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckName {
    /// The log answers with a checkpoint.
    Reachable,
    /// The checkpoint is signed by the log's key.
    Signature,
    /// The checkpoint is not smaller than the last one, and not a different one of the same size.
    Growth,
    /// The newest witness cosignature is recent.
    Freshness,
    /// The checkpoint extends the last verified one.
    Consistency,
    /// All new entries are in the tree and yield its root.
    Entries,
    /// All new entries were admitted according to the log's policy.
    Decisions,
    /// The heads of the search index are those of the entries.
    Index,
    /// The vantage points show the same tree.
    Vantage,
    /// No party on the watch lists broke a rule.
    WatchLists,
    /// The state was saved, so that the next round continues from it.
    Kept,
}

impl CheckName {
    /// The check's name in output and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reachable => "reachable",
            Self::Signature => "signature",
            Self::Growth => "growth",
            Self::Freshness => "freshness",
            Self::Consistency => "consistency",
            Self::Entries => "entries",
            Self::Decisions => "decisions",
            Self::Index => "index",
            Self::Vantage => "vantage",
            Self::WatchLists => "watch-lists",
            Self::Kept => "kept",
        }
    }
}

impl fmt::Display for CheckName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
