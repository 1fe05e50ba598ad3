//! Patterns of names, with `*` for any number of characters.

use serde_json::{Value, json};

use crate::section::{list, name};

/// A pattern in which `*` matches any number of characters; all other characters match themselves.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pattern(String);

impl Pattern {
    /// Creates the pattern with this text.
    pub fn new(text: impl Into<String>) -> Self {
        Pattern(text.into())
    }

    /// The text of the pattern.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether a name matches, in linear time in the name for each part without `*`.
    pub fn fits(&self, name: &str) -> bool {
        let Some((head, rest)) = self.0.split_once('*') else { return self.0 == name };
        let Some(mut name) = name.strip_prefix(head) else { return false };
        let (middle, tail) = rest.rsplit_once('*').unwrap_or(("", rest));
        for part in middle.split('*') {
            let Some((_, after)) = name.split_once(part) else { return false };
            name = after;
        }
        name.ends_with(tail)
    }
}

/// Parses a pattern.
pub(crate) fn pattern(value: &Value) -> Result<Pattern, String> {
    name(value).map(Pattern::new)
}

/// Serializes a list of patterns.
pub(crate) fn patterns(patterns: &[Pattern]) -> Value {
    list(patterns, |pattern| json!(pattern.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_run_of_characters_and_nothing_else_is_special() {
        let cases = [
            ("*", "", true),
            ("*", "anything", true),
            ("did:key:*", "did:key:z6Mk", true),
            ("did:key:*", "did:web:x", false),
            ("https://*.example", "https://a.b.example", true),
            ("https://*.example", "https://example", false),
            ("a*b*c", "abc", true),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "ac", false),
            ("a*a", "a", false),
            ("a?c", "abc", false),
            ("a?c", "a?c", true),
            ("exact", "exact", true),
            ("exact", "exactly", false),
            ("**", "x", true),
        ];
        for (pattern, name, fits) in cases {
            assert_eq!(Pattern::new(pattern).fits(name), fits, "{pattern} {name}");
        }
    }
}
