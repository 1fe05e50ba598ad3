//! Parser for settings documents that reports all mistakes, not only the first.

use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt;

use serde_json::{Map, Value};

use crate::limits::{MAX_INTEGER, MAX_POLICY_ITEMS};
use crate::violation::cut;

/// A mistake in a policy, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The path of the key, e.g. `type[1].max_size`; empty for the whole document.
    pub key: String,
    /// A description of the mistake.
    pub problem: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.key.as_str() {
            "" => f.write_str(&self.problem),
            key => write!(f, "{key}: {}", self.problem),
        }
    }
}

/// All mistakes in one policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistakes(pub Vec<Mistake>);

impl Mistakes {
    pub(crate) fn one(problem: impl Into<String>) -> Self {
        Mistakes(vec![Mistake { key: String::new(), problem: problem.into() }])
    }
}

/// Maximum number of mistakes that [`Mistakes::brief`] lists.
const BRIEF_MISTAKES: usize = 3;

impl Mistakes {
    /// Formats the first mistakes, each cut at [`MAX_DETAIL`](crate::limits::MAX_DETAIL) characters, and the number of
    /// the others.
    pub fn brief(&self) -> String {
        let mut lines: Vec<String> =
            self.0.iter().take(BRIEF_MISTAKES).map(|mistake| cut(mistake.to_string())).collect();
        if let more @ 1.. = self.0.len().saturating_sub(BRIEF_MISTAKES) {
            lines.push(format!("and {more} more"));
        }
        lines.join("; ")
    }
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.0.iter().map(Mistake::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for Mistakes {}

/// A collector of mistakes, which lets parsing continue.
#[derive(Default)]
pub(crate) struct Notebook(RefCell<Vec<Mistake>>);

impl Notebook {
    pub fn note(&self, key: impl Into<String>, problem: impl Into<String>) {
        self.0.borrow_mut().push(Mistake { key: key.into(), problem: problem.into() });
    }

    /// Returns the parsed value if there were no mistakes.
    pub fn close<T>(self, read: Option<T>) -> Result<T, Mistakes> {
        match (read, self.0.into_inner()) {
            (Some(value), mistakes) if mistakes.is_empty() => Ok(value),
            (_, mistakes) => Err(Mistakes(mistakes)),
        }
    }
}

/// A table of the document. Every requested key becomes a known key; [`close`](Section::close) reports all others.
pub(crate) struct Section<'a> {
    at: String,
    map: &'a Map<String, Value>,
    known: Vec<&'static str>,
    notes: &'a Notebook,
}

impl<'a> Section<'a> {
    pub fn open(value: &'a Value, at: &str, notes: &'a Notebook) -> Option<Self> {
        let Value::Object(map) = value else {
            notes.note(at, "a table is needed here");
            return None;
        };
        Some(Section { at: at.to_owned(), map, known: Vec::new(), notes })
    }

    /// Returns the path of a key in this table.
    pub fn path(&self, key: &str) -> String {
        match self.at.as_str() {
            "" => key.to_owned(),
            at => format!("{at}.{key}"),
        }
    }

    pub fn note(&self, key: &str, problem: impl Into<String>) {
        self.notes.note(self.path(key), problem);
    }

    pub fn has(&self, key: &str) -> bool {
        self.map.contains_key(key)
    }

    /// Returns whether a list is absent or has no items. Invalid items count, because they were reported already.
    pub fn is_empty_list(&self, key: &str) -> bool {
        self.map.get(key).is_none_or(|value| value.as_array().is_some_and(Vec::is_empty))
    }

    /// Parses an optional key. An invalid value is noted as a mistake.
    pub fn optional<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&'a Value) -> Result<T, String>,
    ) -> Option<T> {
        self.known.push(key);
        match read(self.map.get(key)?) {
            Ok(value) => Some(value),
            Err(problem) => {
                self.note(key, problem);
                None
            }
        }
    }

    /// Parses a required key. A missing or invalid value is noted as a mistake.
    pub fn required<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&'a Value) -> Result<T, String>,
    ) -> Option<T> {
        if !self.has(key) {
            self.note(key, "this key is required");
        }
        self.optional(key, read)
    }

    /// Parses a list; an absent one is empty. `read` must note invalid items as mistakes.
    pub fn list<T>(
        &mut self,
        key: &'static str,
        mut read: impl FnMut(&'a Value, &str) -> Option<T>,
    ) -> Vec<T> {
        let items =
            self.optional(key, |value| value.as_array().ok_or_else(|| "a list is needed here".to_owned()));
        let items: &[Value] = items.map_or(&[], Vec::as_slice);
        if items.len() > MAX_POLICY_ITEMS {
            self.note(key, format!("more than {MAX_POLICY_ITEMS} items"));
            return Vec::new();
        }
        items
            .iter()
            .enumerate()
            .filter_map(|(i, item)| read(item, &format!("{}[{i}]", self.path(key))))
            .collect()
    }

    /// Parses a list of tables.
    pub fn tables<T>(&mut self, key: &'static str, mut read: impl FnMut(Section<'a>) -> Option<T>) -> Vec<T> {
        let notes = self.notes;
        self.list(key, |value, at| read(Section::open(value, at, notes)?))
    }

    /// The collector of mistakes.
    pub fn notes(&self) -> &'a Notebook {
        self.notes
    }

    /// Parses a list of plain values.
    pub fn values<T>(&mut self, key: &'static str, read: impl Fn(&'a Value) -> Result<T, String>) -> Vec<T> {
        let notes = self.notes;
        self.list(key, |value, at| read(value).map_err(|problem| notes.note(at, problem)).ok())
    }

    /// Notes every key that was not requested as a mistake.
    pub fn close(self) {
        for key in self.map.keys().filter(|key| !self.known.contains(&key.as_str())) {
            self.note(key, unknown(key, &self.known));
        }
    }
}

fn unknown(key: &str, known: &[&'static str]) -> String {
    let nearest =
        known.iter().max_by(|a, b| strsim::jaro_winkler(key, a).total_cmp(&strsim::jaro_winkler(key, b)));
    match nearest {
        Some(near) if strsim::jaro_winkler(key, near) > 0.7 => format!("unknown key; did you mean `{near}`?"),
        _ => format!("unknown key; known here: {}", known.join(", ")),
    }
}

/// Parses a string.
pub(crate) fn text(value: &Value) -> Result<&str, String> {
    value.as_str().ok_or_else(|| "a string is needed here".to_owned())
}

/// Parses a name: a string of 1 to [`MAX_IDENTIFIER`](crate::limits::MAX_IDENTIFIER) characters without control
/// characters.
pub(crate) fn name(value: &Value) -> Result<String, String> {
    let text = text(value)?;
    match text {
        "" => Err("must not be empty".to_owned()),
        _ if text.chars().any(char::is_control) => Err("must hold no control characters".to_owned()),
        _ if text.chars().count() > crate::limits::MAX_IDENTIFIER => Err("too long".to_owned()),
        _ => Ok(text.to_owned()),
    }
}

/// Parses an integer from 0 to [`MAX_INTEGER`].
pub(crate) fn number(value: &Value) -> Result<u64, String> {
    value
        .as_u64()
        .filter(|n| *n <= MAX_INTEGER)
        .ok_or_else(|| "a whole number of at least 0 is needed here".to_owned())
}

/// Parses a boolean.
pub(crate) fn switch(value: &Value) -> Result<bool, String> {
    value.as_bool().ok_or_else(|| "true or false is needed here".to_owned())
}

/// Notes each item that appears more than once.
pub(crate) fn unique<T: std::hash::Hash + Eq>(
    list: &str,
    items: impl Iterator<Item = T>,
    key: &str,
    notes: &Notebook,
) {
    let mut seen = HashSet::new();
    for (i, item) in items.enumerate() {
        if !seen.insert(item) {
            notes.note(format!("{list}[{i}].{key}"), "appears more than once");
        }
    }
}

/// Serializes a list.
pub(crate) fn list<T>(items: &[T], write: impl Fn(&T) -> Value) -> Value {
    Value::Array(items.iter().map(write).collect())
}
