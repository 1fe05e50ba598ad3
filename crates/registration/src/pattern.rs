//! Patterns of issuers, with `*` for any number of characters.

use serde_json::{Value, json};
use vap::glob;

use crate::section::{list, name};

/// A pattern in which `*` matches any number of characters; all other characters match themselves.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IssuerPattern(String);

impl IssuerPattern {
    /// Creates the pattern with this text.
    pub fn new(text: impl Into<String>) -> Self {
        IssuerPattern(text.into())
    }

    /// The text of the pattern.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether a name matches.
    pub fn fits(&self, name: &str) -> bool {
        glob::matches(&self.0, name)
    }
}

/// Parses a pattern.
pub(crate) fn pattern(value: &Value) -> Result<IssuerPattern, String> {
    name(value).map(IssuerPattern::new)
}

/// Serializes a list of patterns.
pub(crate) fn patterns(patterns: &[IssuerPattern]) -> Value {
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
            assert_eq!(IssuerPattern::new(pattern).fits(name), fits, "{pattern} {name}");
        }
    }
}
