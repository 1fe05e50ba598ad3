//! Records of a session: one or, if that would be too large, several of consecutive entries, chained by
//! `previous-record`.
//!
//! Each part has the members of the session and of the source, and `source.part` says which entries it has. The
//! `file-attribution` is in the last one, because it states the lines at the end of the session. Parts are made by halving
//! the list of entries, so they depend on the session and the limits only. A single entry is not divided: a record of one
//! entry may be larger than the limits.
//!
//! Of a large session the least size of each entry is computed first, so that a record of more entries than fit is not made: it
//! would take much memory.

use std::ops::Range;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::account::TranslationAccount;
use crate::entry::Entry;
use crate::format::Format;
use crate::record::{self, SessionRecord, TRANSLATOR_VERSION};
use crate::redaction::{Redaction, Redactions};
use crate::session::Session;
use crate::size;

/// The entries of a session that a record has, if it has not all of them (`source.part`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RecordPart {
    /// The number of the part, from 1.
    pub number: usize,
    /// The position of the first entry in the session, from 0.
    pub first_entry: usize,
    /// Number of entries, before redaction.
    pub entries: usize,
    /// Number of entries of the session, in all parts.
    pub session_entries: usize,
}

impl RecordPart {
    /// Reads the part of a record; `None` if the record has the whole session.
    pub fn of(record: &Value) -> Option<Self> {
        Self::deserialize(record.pointer("/source/part")?).ok()
    }

    /// True if no part follows.
    pub fn is_last(&self) -> bool {
        self.first_entry.checked_add(self.entries) == Some(self.session_entries)
    }
}

/// What a record says about its source.
pub(crate) struct AboutSource<'a> {
    pub format: Format,
    pub sha256: String,
    pub bytes: usize,
    pub account: &'a TranslationAccount,
}

/// What records are made with, apart from the session.
pub(crate) struct RecordTerms<'a> {
    pub about: AboutSource<'a>,
    pub redaction: &'a Redaction,
    /// The root of the repository; empty for the session's working folder.
    pub root: &'a str,
    /// Maximum size of a record in bytes.
    pub record_bytes: usize,
    /// Maximum number of values in a record.
    pub record_values: usize,
}

impl AboutSource<'_> {
    /// Adds the members of `source` to those that are there.
    fn add_to(&self, record: &mut Value, redactions: &Redactions, part: Option<RecordPart>) {
        let mut about = json!({
            "format": self.format,
            "sha-256": self.sha256,
            "bytes": self.bytes,
            "lines": self.account.total,
            "skipped": self.account.skipped(),
            "broken": self.account.broken.len(),
            "redactions": redactions.to_values(),
        });
        if let Some(part) = part {
            about["part"] = json!(part);
        }
        let Value::Object(members) = record else { return };
        let source = members.entry("source").or_insert_with(|| json!({}));
        if let (Value::Object(source), Value::Object(about)) = (source, about) {
            source.extend(about);
        }
    }
}

/// Returns the records of a session, the first of which names `previous` as the record before it.
pub(crate) fn records(
    mut session: Session,
    previous: Option<&str>,
    terms: &RecordTerms<'_>,
) -> Vec<(SessionRecord, Redactions)> {
    let entries = std::mem::take(&mut session.entries);
    let is_large = entries.iter().map(size::whole).sum::<usize>() > terms.record_bytes;
    let least_sizes = match is_large && !terms.redaction.depends_on_positions() {
        true => entries.iter().map(|entry| size::least(entry, terms.redaction)).collect(),
        false => vec![0; entries.len()],
    };
    let previous = previous.map(str::to_owned);
    let mut division = Division { session, entries, least_sizes, terms, previous, done: Vec::new() };
    division.add(0..division.entries.len());
    division.done
}

/// A session whose records are being made, in the order of its entries.
struct Division<'a> {
    /// The session without its entries.
    session: Session,
    entries: Vec<Entry>,
    /// The size in bytes that each entry has at least.
    least_sizes: Vec<usize>,
    terms: &'a RecordTerms<'a>,
    /// The record before the next one.
    previous: Option<String>,
    done: Vec<(SessionRecord, Redactions)>,
}

impl Division<'_> {
    /// Adds the record of these entries or, if it is too large, those of each half.
    fn add(&mut self, range: Range<usize>) {
        let least: usize = self.least_sizes[range.clone()].iter().sum();
        let is_divisible = range.len() > 1;
        if is_divisible && least > self.terms.record_bytes {
            return self.add_halves(&range);
        }
        let (record, redactions) = self.record(&range);
        let is_too_large =
            record.bytes().len() > self.terms.record_bytes || record.values() > self.terms.record_values;
        if is_divisible && is_too_large {
            drop(record);
            return self.add_halves(&range);
        }
        self.previous = Some(record.digest());
        self.done.push((record, redactions));
    }

    fn add_halves(&mut self, range: &Range<usize>) {
        let middle = range.start + range.len() / 2;
        self.add(range.start..middle);
        self.add(middle..range.end);
    }

    fn record(&self, range: &Range<usize>) -> (SessionRecord, Redactions) {
        let part = self.part(range);
        let mut session = Session { entries: self.entries[range.clone()].to_vec(), ..self.session.clone() };
        if part.is_some_and(|part| !part.is_last()) {
            session.attribution = None;
        }
        let chain = session.hash_chain.take();
        let mut value = record::assemble(self.identifier(part), session, self.previous.as_deref());
        if let (Some(chain), Value::Object(members)) = (chain, &mut value) {
            members.insert("source".to_owned(), json!({ "hash-chain": chain }));
        }
        let redactions = self.terms.redaction.apply(&mut value);
        self.terms.about.add_to(&mut value, &redactions, part);
        (SessionRecord::of(value, self.session.id.clone()), redactions)
    }

    fn part(&self, range: &Range<usize>) -> Option<RecordPart> {
        let (entries, session_entries) = (range.len(), self.entries.len());
        let part =
            RecordPart { number: self.done.len() + 1, first_entry: range.start, entries, session_entries };
        (entries < session_entries).then_some(part)
    }

    /// The identifier is that of all that the record depends on.
    fn identifier(&self, part: Option<RecordPart>) -> String {
        let RecordTerms { about, redaction, root, .. } = self.terms;
        let (fingerprint, part) = (redaction.fingerprint(), part.map(|part| json!(part).to_string()));
        let previous = self.previous.as_deref().unwrap_or_default();
        let (source, format) = (about.sha256.as_str(), about.format.name());
        let mut texts =
            vec![source, format, TRANSLATOR_VERSION, &self.session.id, &fingerprint, previous, root];
        texts.extend(part.as_deref());
        record::identifier(&texts)
    }
}
