//! Account of the native entries of a source: what became of each.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Serialize, Serializer};

/// The result for one native entry or part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NativeOutcome {
    /// It is in the record, as an entry of this type, or in the named place.
    Kept(&'static str),
    /// It is not in the record, for this reason.
    Skipped(&'static str),
}

impl fmt::Display for NativeOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NativeOutcome::Kept(place) => write!(f, "kept as {place}"),
            NativeOutcome::Skipped(reason) => write!(f, "skipped: {reason}"),
        }
    }
}

impl Serialize for NativeOutcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A native entry that could not be read, or a peculiarity of the source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// The file's path in the source.
    pub file: String,
    /// The line, counted from 1; `None` if it concerns the whole file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// The reason.
    pub reason: String,
}

/// Counts by native type.
pub type Counts = BTreeMap<String, BTreeMap<NativeOutcome, u64>>;

/// The account of a source. The entries that were kept, skipped and broken add up to [`total`](Self::total).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TranslationAccount {
    /// Number of native entries: lines, messages or objects.
    pub total: u64,
    /// Native entries by their type.
    pub entries: Counts,
    /// Parts of native entries by their type: content blocks, tool calls, thoughts, changes of files.
    pub parts: Counts,
    /// Native entries that could not be read.
    pub broken: Vec<Diagnostic>,
    /// Remarks about entries that were read.
    pub remarks: Vec<Diagnostic>,
}

impl TranslationAccount {
    /// Number of native entries that are not in the record, by reason. Broken entries are not among them.
    pub fn skipped(&self) -> BTreeMap<&'static str, u64> {
        let mut skipped = BTreeMap::new();
        for (outcome, count) in self.entries.values().flatten() {
            if let NativeOutcome::Skipped(reason) = outcome {
                *skipped.entry(*reason).or_default() += count;
            }
        }
        skipped
    }

    /// The parts that are not in the record: their native type, the outcome and its number.
    pub fn skipped_parts(&self) -> impl Iterator<Item = (&str, NativeOutcome, u64)> {
        let outcomes = self.parts.iter().flat_map(|(kind, outcomes)| {
            outcomes.iter().map(move |(outcome, count)| (kind.as_str(), *outcome, *count))
        });
        outcomes.filter(|(_, outcome, _)| matches!(outcome, NativeOutcome::Skipped(_)))
    }

    /// Number of native entries that were kept, skipped or found broken.
    pub fn accounted(&self) -> u64 {
        self.entries.values().flat_map(BTreeMap::values).sum::<u64>() + self.broken.len() as u64
    }

    pub(crate) fn entry(&mut self, native: impl Into<String>, outcome: NativeOutcome) {
        *self.entries.entry(native.into()).or_default().entry(outcome).or_default() += 1;
    }

    pub(crate) fn part(&mut self, native: impl Into<String>, outcome: NativeOutcome) {
        *self.parts.entry(native.into()).or_default().entry(outcome).or_default() += 1;
    }

    pub(crate) fn broken(&mut self, file: &str, line: Option<usize>, reason: impl Into<String>) {
        self.broken.push(Diagnostic { file: file.to_owned(), line, reason: reason.into() });
    }

    pub(crate) fn remark(&mut self, file: &str, reason: impl Into<String>) {
        self.remarks.push(Diagnostic { file: file.to_owned(), line: None, reason: reason.into() });
    }

    /// Remarks that a file has something of another session than the one that its record is about.
    pub(crate) fn remark_other_session(&mut self, file: &str, session: &str) {
        self.remark(file, format!("some lines name another session, {session:?}"));
    }

    pub(crate) fn remark_line(&mut self, file: &str, line: usize, reason: impl Into<String>) {
        self.remarks.push(Diagnostic { file: file.to_owned(), line: Some(line), reason: reason.into() });
    }
}
