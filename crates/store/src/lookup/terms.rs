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
    /// Key of the term.
    pub key: TermKey,
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
        let key = TermKey::of(kind, value.as_bytes());
        self.keys.push(key);
        if value.len() <= LISTED_BYTES && !value.contains('\0') {
            self.listed.push(ListedValue { kind, value, key });
        }
    }
}

/// Returns a string that is greater than each listed value with this beginning, and not greater than any other value
/// that is greater than those.
pub fn end_of_values(prefix: &str) -> String {
    let mut chars: Vec<char> = prefix.chars().collect();
    while let Some(last) = chars.pop() {
        let next = match last {
            '\u{d7ff}' => Some('\u{e000}'),
            last => char::from_u32(u32::from(last) + 1),
        };
        if let Some(next) = next {
            return chars.into_iter().chain([next]).collect();
        }
    }
    // Longer than any listed value, of the greatest character.
    char::MAX.to_string().repeat(LISTED_BYTES / char::MAX.len_utf8() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_beginning_parts_the_values() {
        let end = end_of_values("ab");
        assert!("ab\u{10ffff}\u{10ffff}" < &*end && &*end <= "ac");
        assert_eq!(end_of_values("a\u{d7ff}"), "a\u{e000}");
        assert_eq!(end_of_values("a\u{10ffff}"), "b");
        let greatest = "\u{10ffff}".repeat(LISTED_BYTES / 4);
        assert!(greatest < end_of_values("") && greatest < end_of_values("\u{10ffff}"));
    }
}
