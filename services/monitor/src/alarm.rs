//! Alarms: the kind of fault, the log and the party that it concerns, and the times of the first and last sighting.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::check_name::CheckName;
use crate::evidence::Evidence;

/// Exit status of the process, by the worst finding (the variants are ordered). The numbers of [`code`](Self::code) are
/// part of the command line's contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MonitorExit {
    /// No check failed.
    Success,
    /// The monitor itself cannot work: for example, its state cannot be written.
    Error,
    /// A party that writes to the log (an issuer, an agent) broke a rule.
    Failed,
    /// The log did not answer for longer than `unreachable_after`.
    Unreachable,
    /// The log's checkpoint is too old, or its age cannot be determined.
    Stale,
    /// The log itself broke a rule of transparency logs.
    Misbehaviour,
}

impl MonitorExit {
    /// All results.
    pub const ALL: [Self; 6] =
        [Self::Success, Self::Error, Self::Failed, Self::Unreachable, Self::Stale, Self::Misbehaviour];

    /// The name of the result in metrics and spans.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Success => "ok",
            Self::Error => "error",
            Self::Failed => "failed",
            Self::Unreachable => "unreachable",
            Self::Stale => "stale",
            Self::Misbehaviour => "misbehaviour",
        }
    }

    /// The process's exit code, as documented for the command line.
    pub const fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Error => 1,
            Self::Failed => 3,
            Self::Unreachable => 7,
            Self::Misbehaviour => 8,
            Self::Stale => 9,
        }
    }
}

macro_rules! kinds {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal => $exit:ident,)+) => {
        /// Kinds of faults. The names (`rollback`, `split-view` …) are part of the output and stay stable.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum AlarmKind {
            $($(#[doc = $doc])+ #[serde(rename = $name)] $variant,)+
        }

        impl AlarmKind {
            /// All kinds, in declaration order.
            pub const ALL: &'static [AlarmKind] = &[$(AlarmKind::$variant,)+];

            /// The kind's name in output, JSON and metric labels.
            pub const fn name(self) -> &'static str {
                match self { $(AlarmKind::$variant => $name,)+ }
            }

            /// Returns `true` if the alarm ends when its cause is no longer observed ([`MonitorExit::Stale`],
            /// [`MonitorExit::Unreachable`] and [`MonitorExit::Error`]). All other alarms stand until an operator resets
            /// them.
            pub const fn passes(self) -> bool {
                matches!(self.exit(), MonitorExit::Stale | MonitorExit::Unreachable | MonitorExit::Error)
            }

            /// The exit status of a process that found an alarm of this kind.
            pub const fn exit(self) -> MonitorExit {
                match self { $(AlarmKind::$variant => MonitorExit::$exit,)+ }
            }
        }
    };
}

kinds! {
    /// The log shows a smaller tree than the last verified one, and cannot show that it still has the larger tree.
    Rollback = "rollback" => Misbehaviour,
    /// The log signed two checkpoints that cannot belong to one append-only tree.
    Fork = "fork" => Misbehaviour,
    /// The log shows a vantage point another tree than it shows the monitor.
    SplitView = "split-view" => Misbehaviour,
    /// The tiles, entries or proofs that the log serves do not match the tree head that it signed.
    Inconsistent = "inconsistent" => Misbehaviour,
    /// The checkpoint is not signed by the log's key, or an issuer's statement is signed by a key that is not the
    /// issuer's.
    UnknownKey = "unknown-key" => Misbehaviour,
    /// The log's signature is by a key that had been retired or compromised before the tree reached that size.
    RetiredKey = "retired-key" => Misbehaviour,
    /// A signature names a known key and does not verify with it.
    BadSignature = "bad-signature" => Misbehaviour,
    /// The checkpoint's origin is that of another log.
    OtherLog = "other-log" => Misbehaviour,
    /// An entry for which the log issued a receipt is no longer served.
    Vanished = "vanished" => Misbehaviour,
    /// The log admitted an entry that its policy refuses, or serves no evidence for the admission.
    Decision = "decision" => Misbehaviour,
    /// The search index lacks a posting of a statement: a file shows it.
    IndexOmits = "index-omits" => Misbehaviour,
    /// The search index has a posting that the statement does not have: a file shows it.
    IndexAdds = "index-adds" => Misbehaviour,
    /// A head of the search index breaks a rule of its form: a file shows it.
    IndexForm = "index-form" => Misbehaviour,
    /// A head of the search index differs from the one that was computed from the statements.
    IndexDiffers = "index-differs" => Misbehaviour,
    /// The newest checkpoint or cosignature is older than the configured limit.
    Stale = "stale" => Stale,
    /// The clock of the monitor, a witness or the log is wrong, so that freshness cannot be determined.
    Clock = "clock" => Stale,
    /// A watched party wrote no entry for longer than its configured `silence`.
    Silence = "silence" => Stale,
    /// A number is missing in a sequence of entries.
    Gap = "gap" => Failed,
    /// A gateway permitted a tool call and recorded no outcome within `outcome_within`.
    OpenDecision = "open-decision" => Failed,
    /// A stream of audit records was not closed within `closed_within`.
    UnclosedStream = "unclosed-stream" => Failed,
    /// An issuer signed two statements with the same predecessor.
    ChainFork = "chain-fork" => Failed,
    /// The verdict about a subject changed from pass to fail or from fail to pass.
    VerdictFlip = "verdict-flip" => Failed,
    /// A watched issuer's statement is signed with a key that is not in its list of keys.
    UnknownIssuerKey = "unknown-issuer-key" => Failed,
    /// Tiles or entries of the signed tree have not been served for longer than `unreachable_after`.
    MissingTile = "missing-tile" => Unreachable,
    /// The log has not answered for longer than `unreachable_after`.
    Unreachable = "unreachable" => Unreachable,
    /// The monitor cannot read or write what it keeps for a check of the log, which it therefore does not make.
    OwnState = "monitor-state" => Error,
}

impl fmt::Display for AlarmKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The party that an alarm concerns.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "kind", content = "name", rename_all = "kebab-case")]
pub enum AlarmSubject {
    /// The log itself.
    Log,
    /// An issuer of statements: the `iss` claim.
    Issuer(String),
    /// An agent, by its name in statements.
    Agent(String),
    /// A subject of statements: the `sub` claim.
    Subject(String),
    /// A vantage point: another source of the log's checkpoints.
    Vantage(String),
}

impl fmt::Display for AlarmSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Log => f.write_str("log"),
            Self::Issuer(name) => write!(f, "issuer {name}"),
            Self::Agent(name) => write!(f, "agent {name}"),
            Self::Subject(name) => write!(f, "subject {name}"),
            Self::Vantage(name) => write!(f, "vantage point {name}"),
        }
    }
}

/// A fault that was found. Two alarms with equal [`key`](Self::key) are two sightings of one alarm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alarm {
    /// The kind of fault.
    pub kind: AlarmKind,
    /// The log's name in the configuration.
    pub log: String,
    /// The party that the alarm concerns.
    pub about: AlarmSubject,
    /// Distinguishes several alarms of one `kind` and `about`: for example a leaf index or a tree size. Empty if not
    /// needed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub which: String,
    /// Description of the found and the expected state. May contain text from a log: escape it before display.
    pub words: String,
    /// The check that found the fault, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found_by: Option<FoundBy>,
    /// Evidence that a third party can check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
    /// Time of the first sighting by the monitor's clock, in Unix seconds.
    pub first_seen: u64,
    /// Time of the last sighting by the monitor's clock, in Unix seconds.
    pub last_seen: u64,
}

/// A check that finds a fault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundBy {
    /// The check.
    pub check: CheckName,
    /// The part of the check: the name of a vantage point, or the log's reports; `None` for the check as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
}

impl FoundBy {
    /// A part of a check, such as a vantage point.
    pub fn at(check: CheckName, part: &str) -> Self {
        Self { check, part: Some(part.to_owned()) }
    }
}

impl From<CheckName> for FoundBy {
    fn from(check: CheckName) -> Self {
        Self { check, part: None }
    }
}

/// Identity of an alarm, for deduplication across rounds.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AlarmKey {
    /// The kind of fault.
    pub kind: AlarmKind,
    /// The log's name in the configuration.
    pub log: String,
    /// The party that the alarm concerns.
    pub about: AlarmSubject,
    /// The discriminator, as in `Alarm::which`.
    pub which: String,
}

impl Alarm {
    /// Creates an alarm without evidence, first and last seen at `now` (Unix seconds).
    pub fn new(kind: AlarmKind, log: &str, about: AlarmSubject, words: impl Into<String>, now: u64) -> Self {
        Self {
            kind,
            log: log.to_owned(),
            about,
            which: String::new(),
            words: words.into(),
            found_by: None,
            evidence: None,
            first_seen: now,
            last_seen: now,
        }
    }

    /// Adds the evidence.
    #[must_use]
    pub fn shown_by(self, evidence: Evidence) -> Self {
        Self { evidence: Some(evidence), ..self }
    }

    /// Sets the discriminator `which`.
    #[must_use]
    pub fn which(self, which: impl Into<String>) -> Self {
        Self { which: which.into(), ..self }
    }

    /// Sets the check that found the fault: the alarm does not end before this check is made again.
    #[must_use]
    pub fn found_by(self, check: impl Into<FoundBy>) -> Self {
        Self { found_by: Some(check.into()), ..self }
    }

    /// The alarm's identity for deduplication.
    pub fn key(&self) -> AlarmKey {
        AlarmKey {
            kind: self.kind,
            log: self.log.clone(),
            about: self.about.clone(),
            which: self.which.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_kind_has_a_name_of_its_own_and_serializes_as_it() {
        let names: HashSet<&str> = AlarmKind::ALL.iter().map(|kind| kind.name()).collect();
        assert_eq!(names.len(), AlarmKind::ALL.len());
        for kind in AlarmKind::ALL {
            assert_eq!(serde_json::to_string(kind).unwrap(), format!("\"{kind}\""));
        }
    }

    #[test]
    fn an_alarm_that_is_seen_again_has_the_same_key() {
        let first =
            Alarm::new(AlarmKind::Gap, "ours", AlarmSubject::Subject("s".into()), "one", 1).which("7");
        let again = Alarm { words: "two".into(), first_seen: 2, last_seen: 2, ..first.clone() };
        assert_eq!(first.key(), again.key());
        assert_ne!(first.key(), first.clone().which("8").key());
    }

    #[test]
    fn misbehaviour_ends_a_process_with_8_staleness_with_9_and_silence_of_the_network_with_7() {
        for (kind, code) in [
            (AlarmKind::Fork, 8),
            (AlarmKind::Rollback, 8),
            (AlarmKind::SplitView, 8),
            (AlarmKind::Stale, 9),
            (AlarmKind::Clock, 9),
            (AlarmKind::Unreachable, 7),
            (AlarmKind::MissingTile, 7),
            (AlarmKind::ChainFork, 3),
            (AlarmKind::OwnState, 1),
        ] {
            assert_eq!(kind.exit().code(), code, "{kind}");
        }
    }
}
