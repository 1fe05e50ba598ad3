//! Patterns over tool names (readings V-8, V-9): anchored, compared byte by byte; `*` matches any sequence, and every
//! other character matches itself.
//!
//! A match takes time proportional to the name and the pattern: the first piece of the pattern must begin the name, the
//! last must end it, and each piece between is searched once, after the previous one.

use serde::{Deserialize, Serialize};

use crate::limits::MAX_PATTERN;

/// A pattern over tool names, at most [`MAX_PATTERN`] bytes long.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pattern(Box<str>);

/// The error for a pattern longer than [`MAX_PATTERN`] bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a pattern is at most {MAX_PATTERN} bytes long")]
pub struct PatternTooLong;

impl Pattern {
    /// Accepts a pattern; every text within the length is one.
    ///
    /// # Errors
    /// [`PatternTooLong`] if the text exceeds [`MAX_PATTERN`] bytes.
    pub fn new(text: &str) -> Result<Pattern, PatternTooLong> {
        match text.len() <= MAX_PATTERN {
            true => Ok(Pattern(text.into())),
            false => Err(PatternTooLong),
        }
    }

    /// Returns `true` if the pattern matches the whole name.
    pub fn matches(&self, name: &str) -> bool {
        matches(&self.0, name)
    }

    /// Returns `true` if every name that matches the other pattern matches this one, too.
    pub fn covers(&self, other: &Pattern) -> bool {
        // A `*` of the other pattern stands for any text, so only a `*` of this one can match it.
        self.matches(&other.0)
    }

    /// Returns `true` if some name matches both patterns.
    pub fn overlaps(&self, other: &Pattern) -> bool {
        let (left, right) = (self.0.as_bytes(), other.0.as_bytes());
        // Dynamic programming: entry j tells whether the rest of the left pattern overlaps the right one from j on.
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

    /// Returns the pattern's text.
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

/// Returns `true` if a pattern of any length matches the whole name.
pub fn matches(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == name };
    let (between, last) = rest.rsplit_once('*').unwrap_or(("", rest));
    let Some(inner) = name.strip_prefix(first).and_then(|name| name.strip_suffix(last)) else {
        return false;
    };
    let mut pieces = between.split('*');
    pieces.try_fold(inner, |name, piece| Some(&name[name.find(piece)? + piece.len()..])).is_some()
}

/// Returns `true` if an `allow` pattern matches the name and no `deny` pattern does; the order of the patterns is
/// irrelevant (V-9).
pub fn allows(allow: &[Pattern], deny: &[Pattern], name: &str) -> bool {
    matches_any(allow, name) && !matches_any(deny, name)
}

/// Returns `true` if one of the patterns matches the whole name.
pub fn matches_any(patterns: &[Pattern], name: &str) -> bool {
    patterns.iter().any(|pattern| pattern.matches(name))
}
