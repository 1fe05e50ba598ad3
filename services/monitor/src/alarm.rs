//! Alarms: what is wrong, with which log, about whom, since when.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::evidence::Evidence;

/// How a process ends that found this. The numbers are part of the command line's contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Exit {
    /// Nothing is wrong with what was checked.
    Success,
    /// The monitor itself cannot do its work.
    Error,
    /// Somebody who writes to the log did what they may not.
    Failed,
    /// The log could not be asked for longer than it may be silent.
    Unreachable,
    /// What the log shows is old, or nobody can say how old it is.
    Stale,
    /// The log did what no log may.
    Misbehaviour,
}

impl Exit {
    /// The process's exit code.
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
        /// What can be wrong. The names are part of the output: they are never reworded.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum AlarmKind {
            $($(#[doc = $doc])+ #[serde(rename = $name)] $variant,)+
        }

        impl AlarmKind {
            /// Every kind.
            pub const ALL: &'static [AlarmKind] = &[$(AlarmKind::$variant,)+];

            /// The kind's name.
            pub const fn name(self) -> &'static str {
                match self { $(AlarmKind::$variant => $name,)+ }
            }

            /// Whether it is over once it is seen no more. All others stand until somebody has looked at them.
            pub const fn passes(self) -> bool {
                matches!(self.exit(), Exit::Stale | Exit::Unreachable)
            }

            /// How a process ends that found it.
            pub const fn exit(self) -> Exit {
                match self { $(AlarmKind::$variant => Exit::$exit,)+ }
            }
        }
    };
}

kinds! {
    /// The log's last verified checkpoint is larger than what it shows now, and it cannot show that it still has it.
    Rollback = "rollback" => Misbehaviour,
    /// The log signed two checkpoints that no tree can both have.
    Fork = "fork" => Misbehaviour,
    /// The log shows another tree elsewhere than it shows here.
    SplitView = "split-view" => Misbehaviour,
    /// What the log serves is not the tree that it signed.
    Inconsistent = "inconsistent" => Misbehaviour,
    /// The checkpoint is not signed by the log's key, or an issuer's statement by a key that is not the issuer's.
    UnknownKey = "unknown-key" => Misbehaviour,
    /// The log's signature is by a key that it had replaced, or that was compromised, before a tree of that size.
    RetiredKey = "retired-key" => Misbehaviour,
    /// A signature that claims to be of a known key is not.
    BadSignature = "bad-signature" => Misbehaviour,
    /// The checkpoint is of another log.
    OtherLog = "other-log" => Misbehaviour,
    /// An entry that had a receipt is not there any more.
    Vanished = "vanished" => Misbehaviour,
    /// The log admitted what its policy refuses, or cannot show why it admitted it.
    Decision = "decision" => Misbehaviour,
    /// What is shown is older than it may be.
    Stale = "stale" => Stale,
    /// This clock, a witness's or the log's is wrong: freshness cannot be told.
    Clock = "clock" => Stale,
    /// Nobody who is watched wrote anything for longer than they may be silent.
    Silence = "silence" => Stale,
    /// An entry of a sequence is missing.
    Gap = "gap" => Failed,
    /// A gateway let a call pass, and never said what came of it.
    OpenDecision = "open-decision" => Failed,
    /// A stream of audit records has no end.
    UnclosedStream = "unclosed-stream" => Failed,
    /// An issuer signed two statements that follow the same one.
    ChainFork = "chain-fork" => Failed,
    /// A subject passed and then failed, or the other way round.
    VerdictFlip = "verdict-flip" => Failed,
    /// An issuer's statement is signed with a key that is not on its list.
    UnknownIssuerKey = "unknown-issuer-key" => Failed,
    /// A part of the tree that the log signed is not served, for longer than that may be.
    MissingTile = "missing-tile" => Unreachable,
    /// The log does not answer, for longer than that may be.
    Unreachable = "unreachable" => Unreachable,
}

impl fmt::Display for AlarmKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Whom an alarm is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "kind", content = "name", rename_all = "kebab-case")]
pub enum About {
    /// The log itself.
    Log,
    /// Who signs statements: `iss`.
    Issuer(String),
    /// An agent, as statements name it.
    Agent(String),
    /// What statements are about: `sub`.
    Subject(String),
    /// Another place that shows the log's checkpoints.
    Vantage(String),
}

impl fmt::Display for About {
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

/// One thing that is wrong. Two alarms of one [`key`](Self::key) are the same alarm seen again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alarm {
    /// What is wrong.
    pub kind: AlarmKind,
    /// With which log: its name in the configuration.
    pub log: String,
    /// About whom.
    pub about: About,
    /// Tells alarms of one kind about one name apart that are not the same thing: a leaf, a size; or nothing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub which: String,
    /// What was found and what was expected. May repeat text of a log: to be escaped where it is shown.
    pub words: String,
    /// What shows it to a third party.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
    /// When it was seen first, by this machine's clock, in Unix seconds.
    pub first_seen: u64,
    /// When it was seen last.
    pub last_seen: u64,
}

/// What makes an alarm the same alarm.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AlarmKey {
    /// What is wrong.
    pub kind: AlarmKind,
    /// With which log.
    pub log: String,
    /// About whom.
    pub about: About,
    /// Which of them.
    pub which: String,
}

impl Alarm {
    /// An alarm that is seen now.
    pub fn new(kind: AlarmKind, log: &str, about: About, words: impl Into<String>, now: u64) -> Self {
        Self {
            kind,
            log: log.to_owned(),
            about,
            which: String::new(),
            words: words.into(),
            evidence: None,
            first_seen: now,
            last_seen: now,
        }
    }

    /// With what shows it to a third party.
    #[must_use]
    pub fn shown_by(self, evidence: Evidence) -> Self {
        Self { evidence: Some(evidence), ..self }
    }

    /// One of several of its kind and name.
    #[must_use]
    pub fn which(self, which: impl Into<String>) -> Self {
        Self { which: which.into(), ..self }
    }

    /// What makes it the same alarm when it is seen again.
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
        let first = Alarm::new(AlarmKind::Gap, "ours", About::Subject("s".into()), "one", 1).which("7");
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
        ] {
            assert_eq!(kind.exit().code(), code, "{kind}");
        }
    }
}
