//! A round: what was asked of one log, what it showed, and what is wrong.

use std::fmt;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::alarm::{Alarm, Exit};
use crate::evidence::Sighting;

/// What a round checks, in its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckName {
    /// The log answers with a checkpoint.
    Reachable,
    /// The log's key signed it.
    Signature,
    /// It is not smaller than the last one, and not another one of the same size.
    Growth,
    /// A witness cosigned it not long ago.
    Freshness,
    /// It extends the last one that was verified.
    Consistency,
    /// Every new entry is in the tree, and all of them make its root.
    Entries,
    /// Every new entry was admitted as the log's policy says.
    Decisions,
    /// Other places show the same tree.
    Vantage,
    /// Nobody on the watch lists did what they may not.
    WatchLists,
    /// What was verified is kept, so that the next round goes on from it.
    Kept,
}

impl CheckName {
    /// The check's name, as it is serialized.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reachable => "reachable",
            Self::Signature => "signature",
            Self::Growth => "growth",
            Self::Freshness => "freshness",
            Self::Consistency => "consistency",
            Self::Entries => "entries",
            Self::Decisions => "decisions",
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

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Checked, and good.
    Ok,
    /// Checked, and bad.
    Failed,
    /// Not checked, because nobody asked for it or nothing is there to check it with: nothing follows from it.
    NotChecked,
    /// Not checked, because what it needs did not come.
    Unanswered,
}

/// One check of a round.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// Which.
    pub name: CheckName,
    /// How it ended.
    pub outcome: Outcome,
    /// What was found; why it was not checked.
    pub words: String,
}

/// What a round cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// Requests sent.
    pub requests: u64,
    /// Bytes of bodies that came.
    pub bytes: u64,
    /// Hashes in proofs and tiles that came.
    pub hashes: u64,
}

/// A checkpoint that was verified.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shown {
    /// Leaves.
    pub size: u64,
    /// The root, hex.
    pub root: String,
    /// The newest time at which a known witness cosigned it, in Unix seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cosigned_at: Option<u64>,
    /// The note as it came.
    pub seen: Sighting,
}

/// One look at one log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Round {
    /// The log's name in the configuration.
    pub log: String,
    /// The log's origin.
    pub origin: String,
    /// When the round began, in Unix seconds.
    pub at: u64,
    /// What the log showed, if it is signed by the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<Shown>,
    /// The largest size up to which everything is proven consistent, after this round.
    pub verified: Option<u64>,
    /// What was checked, and what was not.
    pub checks: Vec<Check>,
    /// What is wrong, as of now. An alarm of a kind that [passes](crate::AlarmKind::passes) and is absent here is over.
    pub alarms: Vec<Alarm>,
    /// What it cost.
    pub cost: Cost,
}

impl Round {
    /// How a process ends that made this round alone: by its worst alarm, and by what it could not check.
    pub fn exit(&self) -> Exit {
        let checks = self.checks.iter().map(|check| match (check.name, check.outcome) {
            (_, Outcome::Ok | Outcome::NotChecked) => Exit::Success,
            (_, Outcome::Unanswered) => Exit::Unreachable,
            (CheckName::Kept, Outcome::Failed) => Exit::Error,
            (_, Outcome::Failed) => Exit::Failed,
        });
        let alarms = self.alarms.iter().map(|alarm| alarm.kind.exit());
        alarms.chain(checks).max().unwrap_or(Exit::Success)
    }

    /// How a check ended, if it was made.
    pub fn outcome(&self, name: CheckName) -> Option<Outcome> {
        self.checks.iter().find(|check| check.name == name).map(|check| check.outcome)
    }
}

/// Where rounds go: files, webhooks, metrics, a terminal.
#[async_trait]
pub trait Sink: Send + Sync {
    /// A round is over. What this keeps is kept when it returns.
    async fn round(&self, round: &Round);

    /// The same. Whether it is kept: what is not, is found again in the next round.
    async fn keep(&self, round: &Round) -> bool {
        self.round(round).await;
        true
    }
}
