//! A rule that a statement breaks: which, where, and what was found.

use std::borrow::Cow;
use std::fmt;

use crate::limits::{MAX_QUOTE, MAX_TOLD};

/// A rule's name. Names are part of the API: clients match on them, so they are never reworded.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RuleName(Cow<'static, str>);

impl RuleName {
    /// A name known when the program was compiled.
    pub const fn fixed(name: &'static str) -> Self {
        RuleName(Cow::Borrowed(name))
    }

    /// A name out of a policy.
    pub fn of(name: impl Into<String>) -> Self {
        RuleName(Cow::Owned(name.into()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RuleName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Where in a statement a rule was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the protected header: labels from the outside in, e.g. `15/1`.
    Protected(Cow<'static, str>),
    /// In the unprotected header: the label, and a JSON pointer into its value.
    Unprotected(Cow<'static, str>),
    /// In the payload: a JSON pointer (RFC 6901); empty for the whole payload.
    Payload(Cow<'static, str>),
    /// The signature.
    Signature,
    /// The statement as a whole.
    Statement,
}

impl Place {
    /// A place in the protected header.
    pub fn protected(labels: impl Into<Cow<'static, str>>) -> Self {
        Place::Protected(labels.into())
    }

    /// A place in the payload.
    pub fn payload(pointer: impl Into<Cow<'static, str>>) -> Self {
        Place::Payload(pointer.into())
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Protected(labels) => write!(f, "protected/{labels}"),
            Place::Unprotected(place) => write!(f, "unprotected/{place}"),
            Place::Payload(pointer) => write!(f, "payload{pointer}"),
            Place::Signature => f.write_str("signature"),
            Place::Statement => f.write_str("statement"),
        }
    }
}

/// One rule broken. Nothing is repaired: the first violation refuses the statement.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{rule}: {detail} (at {place})")]
pub struct Violation {
    /// The rule.
    pub rule: RuleName,
    /// Where it was broken.
    pub place: Place,
    /// What was found, for people. May repeat a shortened, escaped value of the statement.
    pub detail: String,
}

/// A value of a statement as an answer may repeat it: escaped, and cut at a bound.
pub(crate) fn quote(value: &str) -> String {
    let end = value.floor_char_boundary(MAX_QUOTE);
    let more = if end < value.len() { "…" } else { "" };
    format!("\"{}{more}\"", value[..end].escape_debug())
}

/// Text that may hold names of the statement's choosing, cut at a bound.
pub(crate) fn cut(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(MAX_TOLD) {
        text.truncate(end);
        text.push('…');
    }
    text
}

/// One step of a JSON pointer, escaped as RFC 6901 asks.
pub(crate) fn pointer_step(member: &str) -> String {
    member.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_is_repeated_escaped_and_short() {
        let told = quote(&format!("\u{1b}[31m\u{202e}{}", "x".repeat(1000)));
        assert!(told.starts_with("\"\\u{1b}[31m\\u{202e}xx"), "{told}");
        assert!(told.ends_with("…\"") && told.chars().count() < 120, "{told}");
    }
}
