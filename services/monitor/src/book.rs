//! A round while it is being written.

use crate::alarm::{About, Alarm, AlarmKind};
use crate::evidence::Evidence;
use crate::round::{Check, CheckName, Outcome};

/// What was checked and what is wrong, so far.
pub struct Book {
    /// The log's name.
    pub log: String,
    /// When the round began.
    pub now: u64,
    /// What was checked.
    pub checks: Vec<Check>,
    /// What is wrong.
    pub alarms: Vec<Alarm>,
}

impl Book {
    /// Nothing is checked yet.
    pub fn new(log: &str, now: u64) -> Self {
        Self { log: log.to_owned(), now, checks: Vec::new(), alarms: Vec::new() }
    }

    /// Checked, and good.
    pub fn ok(&mut self, name: CheckName, words: impl Into<String>) {
        self.check(name, Outcome::Ok, words);
    }

    /// Not checked, and why.
    pub fn not_checked(&mut self, name: CheckName, words: impl Into<String>) {
        self.check(name, Outcome::NotChecked, words);
    }

    /// Not checked, because no answer came.
    pub fn unanswered(&mut self, name: CheckName, words: impl Into<String>) {
        self.check(name, Outcome::Unanswered, words);
    }

    /// Checked, and bad.
    pub fn failed(&mut self, name: CheckName, words: impl Into<String>) {
        self.check(name, Outcome::Failed, words);
    }

    /// Checked, and so bad that somebody must know.
    pub fn accuse(
        &mut self,
        name: CheckName,
        kind: AlarmKind,
        about: About,
        words: impl Into<String>,
        evidence: Option<Evidence>,
    ) {
        let words = words.into();
        self.failed(name, words.clone());
        self.alarm(kind, about, words, evidence);
    }

    /// Shows by this what alarms of some kinds have nothing to show for yet.
    pub fn show(&mut self, kinds: impl Fn(AlarmKind) -> bool, evidence: impl Fn() -> Evidence) {
        for alarm in self.alarms.iter_mut().filter(|alarm| kinds(alarm.kind) && alarm.evidence.is_none()) {
            alarm.evidence = Some(evidence());
        }
    }

    /// An alarm that no check of its own stands for.
    pub fn alarm(&mut self, kind: AlarmKind, about: About, words: String, evidence: Option<Evidence>) {
        let alarm = Alarm::new(kind, &self.log, about, words, self.now);
        self.alarms.push(Alarm { evidence, ..alarm });
    }

    /// Whether a check was made and was bad, or got no answer.
    pub fn is_bad(&self, name: CheckName) -> bool {
        let bad = |outcome| matches!(outcome, Outcome::Failed | Outcome::Unanswered);
        self.checks.iter().any(|check| check.name == name && bad(check.outcome))
    }

    fn check(&mut self, name: CheckName, outcome: Outcome, words: impl Into<String>) {
        self.checks.push(Check { name, outcome, words: words.into() });
    }
}
