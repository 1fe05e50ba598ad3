//! Reading a settings document key by key, so that every mistake is reported, not only the first.

use std::cell::RefCell;
use std::fmt;

use serde_json::{Map, Value};

use crate::limits::{MAX_INTEGER, MAX_POLICY_ITEMS};
use crate::violation::cut;

/// Something wrong in a policy: where, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The path of the key, e.g. `type[1].max_size`; empty for the document.
    pub key: String,
    /// What is wrong with it.
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

/// All the mistakes of one policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistakes(pub Vec<Mistake>);

impl Mistakes {
    pub(super) fn one(problem: impl Into<String>) -> Self {
        Mistakes(vec![Mistake { key: String::new(), problem: problem.into() }])
    }
}

/// Mistakes that an answer tells before it only counts them.
const TOLD: usize = 3;

impl Mistakes {
    /// The first few, each cut at a bound, and how many more there are.
    pub fn brief(&self) -> String {
        let mut told: Vec<String> =
            self.0.iter().take(TOLD).map(|mistake| cut(mistake.to_string())).collect();
        if let more @ 1.. = self.0.len().saturating_sub(TOLD) {
            told.push(format!("and {more} more"));
        }
        told.join("; ")
    }
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.0.iter().map(Mistake::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for Mistakes {}

/// Where mistakes are gathered while the rest is still being read.
#[derive(Default)]
pub(crate) struct Notebook(RefCell<Vec<Mistake>>);

impl Notebook {
    pub fn note(&self, key: impl Into<String>, problem: impl Into<String>) {
        self.0.borrow_mut().push(Mistake { key: key.into(), problem: problem.into() });
    }

    /// What was read, if nothing was wrong anywhere.
    pub fn close<T>(self, read: Option<T>) -> Result<T, Mistakes> {
        match (read, self.0.into_inner()) {
            (Some(value), mistakes) if mistakes.is_empty() => Ok(value),
            (_, mistakes) => Err(Mistakes(mistakes)),
        }
    }
}

/// A table of the document. Every key asked for is a key that exists; [`close`](Section::close) reports the others.
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

    /// The path of a key of this table.
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

    /// Whether a list is absent or has no items. Items that could not be read have been told of already.
    pub fn is_empty_list(&self, key: &str) -> bool {
        self.map.get(key).is_none_or(|value| value.as_array().is_some_and(Vec::is_empty))
    }

    /// A key that may be left out. A wrong value is noted.
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

    /// A key that must be there.
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

    /// A list, absent meaning empty. Items that cannot be read have noted why.
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

    /// A list of tables.
    pub fn tables<T>(&mut self, key: &'static str, mut read: impl FnMut(Section<'a>) -> Option<T>) -> Vec<T> {
        let notes = self.notes;
        self.list(key, |value, at| read(Section::open(value, at, notes)?))
    }

    /// Where mistakes are told.
    pub fn notes(&self) -> &'a Notebook {
        self.notes
    }

    /// A list of plain values.
    pub fn values<T>(&mut self, key: &'static str, read: impl Fn(&'a Value) -> Result<T, String>) -> Vec<T> {
        let notes = self.notes;
        self.list(key, |value, at| read(value).map_err(|problem| notes.note(at, problem)).ok())
    }

    /// Reports every key that was never asked for.
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

/// A string.
pub(crate) fn text(value: &Value) -> Result<&str, String> {
    value.as_str().ok_or_else(|| "a string is needed here".to_owned())
}

/// A string that names something: not empty, no control characters, within the bound on identifiers.
pub(crate) fn name(value: &Value) -> Result<String, String> {
    let text = text(value)?;
    match text {
        "" => Err("must not be empty".to_owned()),
        _ if text.chars().any(char::is_control) => Err("must hold no control characters".to_owned()),
        _ if text.chars().count() > crate::limits::MAX_IDENTIFIER => Err("too long".to_owned()),
        _ => Ok(text.to_owned()),
    }
}

/// A whole number of at least 0.
pub(crate) fn number(value: &Value) -> Result<u64, String> {
    value
        .as_u64()
        .filter(|n| *n <= MAX_INTEGER)
        .ok_or_else(|| "a whole number of at least 0 is needed here".to_owned())
}

/// true or false.
pub(crate) fn switch(value: &Value) -> Result<bool, String> {
    value.as_bool().ok_or_else(|| "true or false is needed here".to_owned())
}
