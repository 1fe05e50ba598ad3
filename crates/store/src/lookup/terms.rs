//! The terms of one entry.

use lookup_tree::{BlindCode, TermKey};

/// Maximum length in bytes of a value that is listed. A longer one is found, and not listed by its prefix.
pub const LISTED_BYTES: usize = 512;

/// What one entry is found by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntryTerms {
    /// Keys of the entry's terms and of its blind codes, in any order.
    pub keys: Vec<TermKey>,
    /// Values that a search by prefix lists, in any order.
    pub listed: Vec<ListedValue>,
}

/// A value that a search by prefix lists.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ListedValue {
    /// Kind of the value.
    pub kind: u8,
    /// The value, at most [`LISTED_BYTES`] long and without U+0000, which not every database stores.
    pub value: String,
}

impl ListedValue {
    /// The first value that could be listed, of any kind.
    pub(super) const FIRST: Self = Self { kind: 0, value: String::new() };

    /// Key of the term.
    pub fn key(&self) -> TermKey {
        TermKey::of(self.kind, self.value.as_bytes())
    }

    /// Returns the least value that may follow this one: no listed value has U+0000.
    pub(super) fn successor(&self) -> Self {
        Self { kind: self.kind, value: format!("{}\u{1}", self.value) }
    }
}

impl EntryTerms {
    /// The terms of an entry that may have any: only its blind posting is indexed.
    pub fn blind(code: BlindCode) -> Self {
        Self { keys: vec![code.key()], listed: Vec::new() }
    }

    /// Adds a blind code in addition to the terms that could be read.
    pub fn add_blind(&mut self, code: BlindCode) {
        self.keys.push(code.key());
    }

    /// Adds a term.
    pub fn add(&mut self, kind: u8, value: &str) {
        self.keys.push(TermKey::of(kind, value.as_bytes()));
    }

    /// Adds a term, and lists its value if it can be listed.
    pub fn add_listed(&mut self, kind: u8, value: String) {
        self.add(kind, &value);
        if value.len() <= LISTED_BYTES && !value.contains('\0') {
            self.listed.push(ListedValue { kind, value });
        }
    }
}
