//! A broken rule: [`RuleName`], [`Place`] in the statement, and details.

use std::borrow::Cow;
use std::fmt;

use crate::limits::MAX_DETAIL;

/// The name of a rule. Names are part of the API: clients match on them, so they are never changed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RuleName(Cow<'static, str>);

impl RuleName {
    /// A rule name known at compile time.
    pub const fn fixed(name: &'static str) -> Self {
        RuleName(Cow::Borrowed(name))
    }

    /// A rule name from a policy.
    pub fn of(name: impl Into<String>) -> Self {
        RuleName(Cow::Owned(name.into()))
    }

    /// The name as a string.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RuleName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The place in a statement where a rule was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A protected header parameter: its labels from the outside in, e.g. `15/1`.
    Protected(Cow<'static, str>),
    /// An unprotected header parameter: its label, followed by a JSON pointer into its value.
    Unprotected(Cow<'static, str>),
    /// A JSON pointer (RFC 6901) into the payload; empty for the whole payload.
    Payload(Cow<'static, str>),
    /// The signature.
    Signature,
    /// The statement as a whole.
    Statement,
}

impl Place {
    /// A [`Place::Protected`] with these labels, e.g. `15/1`.
    pub fn protected(labels: impl Into<Cow<'static, str>>) -> Self {
        Place::Protected(labels.into())
    }

    /// A [`Place::Payload`] with this JSON pointer.
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

/// A rule that a statement breaks. Statements are not repaired: the first violation refuses the statement.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{rule}: {detail} (at {place})")]
pub struct Violation {
    /// The name of the broken rule.
    pub rule: RuleName,
    /// The place in the statement where the rule was broken.
    pub place: Place,
    /// Details for display, which may contain a shortened and escaped value of the statement.
    pub detail: String,
}

/// Cuts a text that may contain untrusted values to [`MAX_DETAIL`] characters.
pub(crate) fn cut(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(MAX_DETAIL) {
        text.truncate(end);
        text.push('…');
    }
    text
}
