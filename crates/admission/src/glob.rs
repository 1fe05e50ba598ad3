//! Patterns over tool names (readings V-8, V-9): anchored, byte by byte, `*` is any run, and every other character is
//! itself.
//!
//! A match takes time in proportion to the name and the pattern: the first piece of the pattern begins the name, the last
//! ends it, and each piece between is sought once, behind the one before.

use serde::{Deserialize, Serialize};

use crate::limits::MAX_PATTERN;

/// One pattern.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pattern(Box<str>);

/// The pattern is longer than [`MAX_PATTERN`] bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a pattern is at most {MAX_PATTERN} bytes long")]
pub struct PatternTooLong;

impl Pattern {
    /// Takes a pattern as it was written.
    pub fn new(text: &str) -> Result<Pattern, PatternTooLong> {
        match text.len() <= MAX_PATTERN {
            true => Ok(Pattern(text.into())),
            false => Err(PatternTooLong),
        }
    }

    /// Whether the whole name fits.
    pub fn matches(&self, name: &str) -> bool {
        let Some((first, rest)) = self.0.split_once('*') else { return *self.0 == *name };
        let (between, last) = rest.rsplit_once('*').unwrap_or(("", rest));
        let Some(inner) = name.strip_prefix(first).and_then(|name| name.strip_suffix(last)) else {
            return false;
        };
        let mut pieces = between.split('*');
        pieces.try_fold(inner, |name, piece| Some(&name[name.find(piece)? + piece.len()..])).is_some()
    }

    /// Whether some name fits both patterns.
    pub fn overlaps(&self, other: &Pattern) -> bool {
        let (left, right) = (self.0.as_bytes(), other.0.as_bytes());
        // Whether the rest of the left pattern, from each place on, overlaps that of the right one.
        let mut later = vec![false; right.len() + 1];
        for i in (0..=left.len()).rev() {
            let mut now = vec![false; right.len() + 1];
            for j in (0..=right.len()).rev() {
                let (a, b) = (left.get(i), right.get(j));
                now[j] = match (a, b) {
                    (None, None) => true,
                    (Some(b'*'), _) => later[j] || b.is_some() && now[j + 1],
                    (_, Some(b'*')) => now[j + 1] || a.is_some() && later[j],
                    (Some(a), Some(b)) => a == b && later[j + 1],
                    (None, Some(_)) | (Some(_), None) => false,
                };
            }
            later = now;
        }
        later[0]
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Pattern {
    type Error = PatternTooLong;

    fn try_from(text: String) -> Result<Pattern, PatternTooLong> {
        Pattern::new(&text)
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> String {
        pattern.0.into()
    }
}

/// Whether a name is allowed and not denied; deny wins, whatever the order (V-9).
pub fn allows(allow: &[Pattern], deny: &[Pattern], name: &str) -> bool {
    let any = |patterns: &[Pattern]| patterns.iter().any(|pattern| pattern.matches(name));
    any(allow) && !any(deny)
}
