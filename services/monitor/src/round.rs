//! A round: the checks of one log at one time, their results, and the alarms.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::alarm::{Alarm, FoundBy, MonitorExit};
use crate::check_name::CheckName;
use crate::evidence::Sighting;

/// Result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The check was made and passed.
    Ok,
    /// The check was made and failed.
    Failed,
    /// Not checked, because it is not configured or data to check with does not exist; does not affect the exit status.
    NotChecked,
    /// Not checked, because required data was not received.
    Unanswered,
}

/// A check of a round and its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// The check's name.
    pub name: CheckName,
    /// The check's result.
    pub outcome: Outcome,
    /// The findings, or the reason why it was not checked.
    pub words: String,
}

/// Cost of a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// Number of requests sent.
    pub requests: u64,
    /// Number of body bytes received.
    pub bytes: u64,
    /// Number of hashes received in proofs and tiles.
    pub hashes: u64,
}

/// The log's checkpoint in this round; its signature is verified.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PresentedCheckpoint {
    /// Tree size: the number of leaves.
    pub size: u64,
    /// The root hash, in hex.
    pub root: String,
    /// Time of the newest cosignature by a known witness, in Unix seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cosigned_at: Option<u64>,
    /// The note as received.
    pub seen: Sighting,
}

/// Heads of a log's search index since the state was created, by result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct IndexHeads {
    /// Heads that were computed again and are right.
    pub right: u64,
    /// Heads that are wrong.
    pub wrong: u64,
    /// Heads that are right as far as they could be compared.
    pub uncompared: u64,
    /// The reason why the last one of them could not be compared.
    pub why_uncompared: Option<String>,
    /// Heads under a table of terms that this program does not have.
    pub other_table: u64,
    /// Size of the newest head without a fault.
    pub newest: u64,
}

/// The result of checking one log once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Round {
    /// The log's name in the configuration.
    pub log: String,
    /// The log's origin in checkpoints; for a SCITT service its base URL.
    pub origin: String,
    /// Start of the round, in Unix seconds.
    pub at: u64,
    /// The log's checkpoint; `None` if none was received, or its signature did not verify.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<PresentedCheckpoint>,
    /// The largest size up to which the log is proven consistent after this round.
    pub verified: Option<u64>,
    /// The checks, made and not made, in the order of [`CheckName`].
    pub checks: Vec<Check>,
    /// What was made regardless of the outcomes in `checks`: the vantage points that answered ([`CheckName::Reachable`])
    /// and that were compared ([`CheckName::Vantage`]), the reports that were read ([`CheckName::WatchLists`]), and checks
    /// of which a part was made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub made: Vec<FoundBy>,
    /// Current alarms. A standing alarm of a kind that [passes](crate::AlarmKind::passes) and is absent here has ended, if
    /// its check [was made](Round::was_made).
    pub alarms: Vec<Alarm>,
    /// The heads of the search index that were checked so far; `None` if the index was not checked in this round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<IndexHeads>,
    /// The cost of the round.
    pub cost: Cost,
}

impl Round {
    /// The exit status of a process that makes this round alone: the worst of its alarms and checks.
    pub fn exit(&self) -> MonitorExit {
        let checks = self.checks.iter().map(|check| match (check.name, check.outcome) {
            (_, Outcome::Ok | Outcome::NotChecked) => MonitorExit::Success,
            (_, Outcome::Unanswered) => MonitorExit::Unreachable,
            (CheckName::Kept, Outcome::Failed) => MonitorExit::Error,
            (_, Outcome::Failed) => MonitorExit::Failed,
        });
        let alarms = self.alarms.iter().map(|alarm| alarm.kind.exit());
        alarms.chain(checks).max().unwrap_or(MonitorExit::Success)
    }

    /// Returns `true` if a check was made, so that its passing alarms end unless they are in this round: it is in `made`, or
    /// nothing of it was left out or unanswered.
    pub fn was_made(&self, by: &FoundBy) -> bool {
        if self.made.contains(by) {
            return true;
        }
        if by.part.is_some() {
            return false;
        }
        let mut outcomes =
            self.checks.iter().filter(|check| check.name == by.check).map(|check| check.outcome);
        let is_made = |outcome| matches!(outcome, Outcome::Ok | Outcome::Failed);
        outcomes.next().is_some_and(is_made) && outcomes.all(is_made)
    }

    /// The result of a check; `None` if it is not part of the round.
    pub fn outcome(&self, name: CheckName) -> Option<Outcome> {
        self.checks.iter().find(|check| check.name == name).map(|check| check.outcome)
    }
}

/// A receiver of rounds: files, webhooks, metrics, a terminal.
#[async_trait]
pub trait Sink: Send + Sync {
    /// Processes a finished round. Saved data is durable when this returns.
    async fn round(&self, round: &Round);

    /// Processes a finished round and returns `true` if it was saved; findings that were not saved are found again in
    /// the next round.
    async fn keep(&self, round: &Round) -> bool {
        self.round(round).await;
        true
    }
}
