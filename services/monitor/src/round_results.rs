//! The result of a round under construction: collects the checks and alarms that become a `Round`.

use crate::alarm::{Alarm, AlarmKind, AlarmSubject, FoundBy};
use crate::check_name::CheckName;
use crate::evidence::Evidence;
use crate::round::{Check, IndexHeads, Outcome};

/// Checks and alarms of the current round.
pub struct RoundResults {
    /// The log's name in the configuration.
    pub log: String,
    /// Start of the round, in Unix seconds.
    pub now: u64,
    /// The checks so far.
    pub checks: Vec<Check>,
    /// The alarms so far.
    pub alarms: Vec<Alarm>,
    /// What was made regardless of the outcomes in `checks`.
    pub made: Vec<FoundBy>,
    /// The checked heads of the search index.
    pub index: Option<IndexHeads>,
}

impl RoundResults {
    /// Creates the empty results of a round that begins at `now` (Unix seconds).
    pub fn new(log: &str, now: u64) -> Self {
        Self {
            log: log.to_owned(),
            now,
            checks: Vec::new(),
            alarms: Vec::new(),
            made: Vec::new(),
            index: None,
        }
    }

    /// Records a check with [`Outcome::Ok`].
    pub fn ok(&mut self, name: CheckName, words: impl Into<String>) {
        self.check(name, Outcome::Ok, words);
    }

    /// Records a check with [`Outcome::NotChecked`] and the reason.
    pub fn not_checked(&mut self, name: CheckName, words: impl Into<String>) {
        self.check(name, Outcome::NotChecked, words);
    }

    /// Records a check with [`Outcome::Unanswered`]: the data that it needs was not received.
    pub fn unanswered(&mut self, name: CheckName, words: impl Into<String>) {
        self.check(name, Outcome::Unanswered, words);
    }

    /// Records a check with [`Outcome::Failed`].
    pub fn failed(&mut self, name: CheckName, words: impl Into<String>) {
        self.check(name, Outcome::Failed, words);
    }

    /// Records a check with [`Outcome::Failed`] and raises an alarm with the same text.
    pub fn accuse(
        &mut self,
        name: CheckName,
        kind: AlarmKind,
        about: AlarmSubject,
        words: impl Into<String>,
        evidence: Option<Evidence>,
    ) {
        let words = words.into();
        self.failed(name, words.clone());
        self.alarm(name, kind, about, words, evidence);
    }

    /// Records that a check or a part of it was made, whatever its outcome: its passing alarms end unless they are raised
    /// in this round.
    pub fn count_as_made(&mut self, made: impl Into<FoundBy>) {
        let made = made.into();
        if !self.made.contains(&made) {
            self.made.push(made);
        }
    }

    /// Attaches evidence to the alarms of the given kinds that have none yet.
    pub fn attach_evidence(&mut self, kinds: impl Fn(AlarmKind) -> bool, evidence: impl Fn() -> Evidence) {
        for alarm in self.alarms.iter_mut().filter(|alarm| kinds(alarm.kind) && alarm.evidence.is_none()) {
            alarm.evidence = Some(evidence());
        }
    }

    /// Raises an alarm without recording a check.
    pub fn alarm(
        &mut self,
        found_by: impl Into<FoundBy>,
        kind: AlarmKind,
        about: AlarmSubject,
        words: String,
        evidence: Option<Evidence>,
    ) {
        let alarm = Alarm::new(kind, &self.log, about, words, self.now).found_by(found_by);
        self.alarms.push(Alarm { evidence, ..alarm });
    }

    /// Returns the worst outcome of a check; `None` if it was not made yet.
    pub fn outcome(&self, name: CheckName) -> Option<Outcome> {
        let outcomes = || self.checks.iter().filter(|check| check.name == name).map(|check| check.outcome);
        outcomes().find(|outcome| *outcome == Outcome::Failed).or_else(|| outcomes().next_back())
    }

    /// Returns `true` if the check is recorded as [`Outcome::Failed`] or [`Outcome::Unanswered`].
    pub fn is_bad(&self, name: CheckName) -> bool {
        let bad = |outcome| matches!(outcome, Outcome::Failed | Outcome::Unanswered);
        self.checks.iter().any(|check| check.name == name && bad(check.outcome))
    }

    fn check(&mut self, name: CheckName, outcome: Outcome, words: impl Into<String>) {
        self.checks.push(Check { name, outcome, words: words.into() });
    }
}
